/* SPDX-License-Identifier: MIT
 *
 * q5_1_scalar.c - q5_1 weights times q8_32 activations, reference
 *
 * A block's products sum to at most 32 * 31 * 127; m is multiplied with the
 * block sum that comes with the activations.
 */
#include "kernels/q5_1/q5_1.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_block *out)
{
    const struct block_q5_1 *w = (const void *)block;

    out->d = half_to_f32(load_u16(w->d));
    out->m = half_to_f32(load_u16(w->m));
    for (int i = 0; i < Q5_1_ELEMS; i++) {
        const int low = w->qs[i % 16] >> i / 16 * 4 & 15;
        const int high = w->qh[i / 8] >> i % 8 & 1;

        out->q[i] = (int8_t)(low | high << 4);
    }
}

SCALAR_KERNELS(q5_1, scalar_block_gemm, unpack, sizeof(struct block_q5_1))
