/* SPDX-License-Identifier: MIT
 *
 * q4_1_scalar.c - q4_1 weights times q8_32 activations, reference
 *
 * A block's products sum to at most 32 * 15 * 127; m is multiplied with the
 * block sum that comes with the activations.
 */
#include "kernels/q4_1/q4_1.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_block *out)
{
    const struct block_q4_1 *w = (const void *)block;

    out->d = half_to_f32(load_u16(w->d));
    out->m = half_to_f32(load_u16(w->m));
    for (int j = 0; j < Q4_1_ELEMS / 2; j++) {
        out->q[j] = (int8_t)(w->qs[j] & 15);
        out->q[j + Q4_1_ELEMS / 2] = (int8_t)(w->qs[j] >> 4);
    }
}

SCALAR_KERNELS(q4_1, scalar_block_gemm, unpack, sizeof(struct block_q4_1))
