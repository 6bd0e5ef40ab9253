/* SPDX-License-Identifier: MIT
 *
 * iq3_xxs_scalar.c - iq3_xxs weights times q8_256 activations, plain C
 *
 * (ls + 0.5) * 0.5 is a quarter of the odd integer 2 * ls + 1 <= 31, the quarter
 * goes into d. Range: |point| <= 62, |x| <= 127, so a super-block's integer is at most
 * 256 * 62 * 127 * 31 = 62488064 < 2^31.
 */
#include "kernels/codebook/codebook.h"
#include "kernels/half.h"
#include "kernels/iq3_xxs/iq3_xxs.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_iq3_xxs *w = (const void *)block;

    out->d = 0.25f * half_to_f32(w->d);
    out->dmin = 0;
    for (int s = 0; s < 16; s++) {
        out->scale[s] = (int16_t)(2 * (iq3_xxs_word(w, s / 2) >> 28) + 1);
        out->min[s] = 0;
    }
    for (int j = 0; j < KQ_ELEMS; j++) {
        const uint32_t word = iq3_xxs_word(w, j / 32);
        const uint8_t signs = codebook_signs[word >> j % 32 / 8 * 7 & 127];
        const int m = codebook_iq3xxs[w->qs[j / 4]][j % 4];

        out->q[j] = (int8_t)(signs >> j % 8 & 1 ? -m : m);
    }
}

SCALAR_KERNELS(iq3_xxs, scalar_super_gemm, unpack, sizeof(struct block_iq3_xxs))
