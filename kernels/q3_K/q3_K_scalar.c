/* SPDX-License-Identifier: MIT
 *
 * q3_K_scalar.c - q3_K weights times q8_256 activations, plain C
 *
 * Range: |q - 4| <= 4, |x| <= 127, |scale| <= 32, so a super-block's integer is at
 * most 256 * 4 * 127 * 32 = 4161536 < 2^31.
 */
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/q3_K/q3_K.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_q3_K *w = (const void *)block;

    out->d = half_to_f32(w->d);
    out->dmin = 0;
    for (int s = 0; s < 16; s++) {
        out->scale[s] = (int16_t)q3_K_scale(w->scales, s);
        out->min[s] = 0;
    }
    for (int j = 0; j < KQ_ELEMS; j++)
        out->q[j] = (int8_t)q3_K_weight(w, j);
}

SCALAR_KERNELS(q3_K, scalar_super_gemm, unpack, sizeof(struct block_q3_K))
