/* SPDX-License-Identifier: MIT
 *
 * q4_0_scalar.c - q4_0 weights times q8_32 activations, reference
 *
 * Products are added up in integers within a block, blocks in float.
 */
#include "kernels/q4_0/q4_0.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_block *out)
{
    const struct block_q4_0 *w = (const void *)block;

    out->d = half_to_f32(load_u16(w->d));
    out->m = 0;
    for (int j = 0; j < Q4_0_ELEMS / 2; j++) {
        out->q[j] = (int8_t)((w->qs[j] & 15) - 8);
        out->q[j + Q4_0_ELEMS / 2] = (int8_t)((w->qs[j] >> 4) - 8);
    }
}

SCALAR_KERNELS(q4_0, scalar_block_gemm, unpack, sizeof(struct block_q4_0))
