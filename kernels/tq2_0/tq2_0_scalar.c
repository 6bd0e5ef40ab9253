/* SPDX-License-Identifier: MIT
 *
 * tq2_0_scalar.c - tq2_0 weights times q8_256 activations, plain C
 *
 * Range: |q - 1| <= 2, |x| <= 127, so a block's integer is at most 256 * 2 * 127 =
 * 65024.
 */
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"
#include "kernels/tq2_0/tq2_0.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_tq2_0 *w = (const void *)block;

    out->d = half_to_f32(w->d);
    out->dmin = 0;
    for (int s = 0; s < 16; s++) {
        out->scale[s] = 1;
        out->min[s] = 0;
    }
    for (int j = 0; j < KQ_ELEMS; j++)
        out->q[j] = (int8_t)(kquant_two(w->qs, j) - 1);
}

SCALAR_KERNELS(tq2_0, scalar_super_gemm, unpack, sizeof(struct block_tq2_0))
