/* SPDX-License-Identifier: MIT
 *
 * q4_K_scalar.c - q4_K weights times q8_256 activations, plain C
 *
 * Range: a sub-block's dot product is at most 32 * 15 * 127 and its scale at
 * most 63, so a super-block's integer is below 8 * 32 * 15 * 127 * 63 =
 * 30723840 < 2^31; the minima sum to at most 8 * 63 * 4064 = 2048256.
 */
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/q4_K/q4_K.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_q4_K *w = (const void *)block;
    uint8_t six[16];

    out->d = half_to_f32(w->d);
    out->dmin = half_to_f32(w->dmin);
    kquant_unpack_six(w->scales, six);
    for (int s = 0; s < 16; s++) {
        out->scale[s] = six[s / 2];
        out->min[s] = six[8 + s / 2];
    }
    for (int i = 0; i < KQ_ELEMS; i++)
        out->q[i] = (int8_t)(w->qs[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15);
}

SCALAR_KERNELS(q4_K, scalar_super_gemm, unpack, sizeof(struct block_q4_K))
