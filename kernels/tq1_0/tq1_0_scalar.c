/* SPDX-License-Identifier: MIT
 *
 * tq1_0_scalar.c - tq1_0 weights times q8_256 activations, plain C
 *
 * Range: |t - 1| <= 1, |x| <= 127, so a block's integer is at most 256 * 127 = 32512.
 */
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"
#include "kernels/tq1_0/tq1_0.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_tq1_0 *w = (const void *)block;
    uint8_t q[KQ_ELEMS];

    out->d = half_to_f32(w->d);
    out->dmin = 0;
    for (int s = 0; s < 16; s++) {
        out->scale[s] = 1;
        out->min[s] = 0;
    }
    tq1_0_unpack(w, q);
    for (int j = 0; j < KQ_ELEMS; j++)
        out->q[j] = (int8_t)(q[j] - 1);
}

SCALAR_KERNELS(tq1_0, scalar_super_gemm, unpack, sizeof(struct block_tq1_0))
