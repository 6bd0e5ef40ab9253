/* SPDX-License-Identifier: MIT
 *
 * iq3_s_scalar.c - iq3_s weights times q8_256 activations, plain C
 *
 * Range: |point| <= 15, |x| <= 127, scale <= 31, so a super-block's integer is at most
 * 256 * 15 * 127 * 31 = 15118080 < 2^31.
 */
#include "kernels/codebook/codebook.h"
#include "kernels/half.h"
#include "kernels/iq3_s/iq3_s.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_iq3_s *w = (const void *)block;

    out->d = half_to_f32(w->d);
    out->dmin = 0;
    for (int s = 0; s < 16; s++) {
        out->scale[s] = (int16_t)iq3_s_scale(w, s / 2);
        out->min[s] = 0;
    }
    for (int j = 0; j < KQ_ELEMS; j++) {
        const int m = codebook_iq3s[iq3_s_point(w, j / 4)][j % 4];

        out->q[j] = (int8_t)(w->signs[j / 8] >> j % 8 & 1 ? -m : m);
    }
}

SCALAR_KERNELS(iq3_s, scalar_super_gemm, unpack, sizeof(struct block_iq3_s))
