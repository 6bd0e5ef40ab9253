/* SPDX-License-Identifier: MIT
 *
 * q2_K_scalar.c - q2_K weights times q8_256 activations, plain C
 *
 * Range: q <= 3, |x| <= 127, scale and min <= 15, so a super-block's integer is at
 * most 256 * 3 * 127 * 15 = 1463040 < 2^31 and its minima 16 * 15 * 2032 = 487680.
 */
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/q2_K/q2_K.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_q2_K *w = (const void *)block;

    out->d = half_to_f32(w->d);
    out->dmin = half_to_f32(w->dmin);
    for (int s = 0; s < 16; s++) {
        out->scale[s] = w->scales[s] & 15;
        out->min[s] = w->scales[s] >> 4;
    }
    for (int j = 0; j < KQ_ELEMS; j++)
        out->q[j] = (int8_t)kquant_two(w->qs, j);
}

SCALAR_KERNELS(q2_K, scalar_super_gemm, unpack, sizeof(struct block_q2_K))
