/* SPDX-License-Identifier: MIT
 *
 * q8_0_scalar.c - q8_0 weights times q8_32 activations, reference
 *
 * Products are added up in integers within a block, blocks in float.
 */
#include "kernels/q8_0/q8_0.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_block *out)
{
    const struct block_q8_0 *w = (const void *)block;

    out->d = half_to_f32(load_u16(w->d));
    out->m = 0;
    memcpy(out->q, w->qs, sizeof(w->qs));
}

SCALAR_KERNELS(q8_0, scalar_block_gemm, unpack, sizeof(struct block_q8_0))
