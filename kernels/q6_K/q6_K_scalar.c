/* SPDX-License-Identifier: MIT
 *
 * q6_K_scalar.c - q6_K weights times q8_256 activations, plain C
 *
 * Range: |q - 32| <= 32, |x| <= 127, |scale| <= 128, so a super-block's integer
 * is at most 256 * 32 * 127 * 128 = 133169152 < 2^31.
 */
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/q6_K/q6_K.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_q6_K *w = (const void *)block;

    out->d = half_to_f32(w->d);
    out->dmin = 0;
    for (int s = 0; s < 16; s++) {
        out->scale[s] = w->scales[s];
        out->min[s] = 0;
    }
    for (int h = 0; h < 2; h++) {
        const uint8_t *ql = w->ql + 64 * h, *qh = w->qh + 32 * h;

        for (int i = 0; i < 32; i++) {
            int8_t *q = out->q + 128 * h + i;

            q[0] = (int8_t)(((ql[i] & 15) | (qh[i] & 3) << 4) - 32);
            q[32] = (int8_t)(((ql[32 + i] & 15) | (qh[i] >> 2 & 3) << 4) - 32);
            q[64] = (int8_t)((ql[i] >> 4 | (qh[i] >> 4 & 3) << 4) - 32);
            q[96] = (int8_t)((ql[32 + i] >> 4 | (qh[i] >> 6) << 4) - 32);
        }
    }
}

SCALAR_KERNELS(q6_K, scalar_super_gemm, unpack, sizeof(struct block_q6_K))
