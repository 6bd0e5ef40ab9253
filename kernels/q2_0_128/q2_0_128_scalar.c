/* SPDX-License-Identifier: MIT
 *
 * q2_0_128_scalar.c - q2_0_128 weights times q8_32 activations, reference
 *
 * The products of 16 weights sum to at most 16 * 2 * 127 in magnitude.
 */
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/q2_0/q2_0.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, int part, struct scalar_part *out)
{
    const struct block_q2_0_128 *w = (const void *)block;

    out->d[0] = out->d[1] = half_to_f32(load_u16(w->d));
    for (int i = 0; i < 32; i++)
        out->q[i] = (int8_t)q2_0_value(w->qs, 32 * part + i);
}

SCALAR_KERNELS(q2_0_128, scalar_four_parts_gemm, unpack, sizeof(struct block_q2_0_128))
