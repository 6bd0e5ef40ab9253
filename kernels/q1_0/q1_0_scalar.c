/* SPDX-License-Identifier: MIT
 *
 * q1_0_scalar.c - q1_0 weights times q8_32 activations, reference
 *
 * The products of 16 weights sum to at most 16 * 127 in magnitude.
 */
#include "kernels/q1_0/q1_0.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, int part, struct scalar_part *out)
{
    const struct block_q1_0 *w = (const void *)block;

    out->d[0] = out->d[1] = half_to_f32(load_u16(w->d));
    for (int i = 0; i < 32; i++)
        out->q[i] = (int8_t)q1_0_sign(w->qs, 32 * part + i);
}

SCALAR_KERNELS(q1_0, scalar_four_parts_gemm, unpack, sizeof(struct block_q1_0))
