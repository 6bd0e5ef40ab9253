/* SPDX-License-Identifier: MIT
 *
 * q5_0_scalar.c - q5_0 weights times q8_32 activations, reference
 *
 * A block's products sum to at most 32 * 16 * 127 in magnitude.
 */
#include "kernels/q5_0/q5_0.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_block *out)
{
    const struct block_q5_0 *w = (const void *)block;

    out->d = half_to_f32(load_u16(w->d));
    out->m = 0;
    for (int i = 0; i < Q5_0_ELEMS; i++) {
        const int low = w->qs[i % 16] >> i / 16 * 4 & 15;
        const int high = w->qh[i / 8] >> i % 8 & 1;

        out->q[i] = (int8_t)((low | high << 4) - 16);
    }
}

SCALAR_KERNELS(q5_0, scalar_block_gemm, unpack, sizeof(struct block_q5_0))
