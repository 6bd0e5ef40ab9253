/* SPDX-License-Identifier: MIT
 *
 * nvfp4_scalar.c - nvfp4 weights times q8_32 activations, reference
 *
 * The products of 16 weights sum to at most 16 * 12 * 127 in magnitude.
 */
#include "kernels/nvfp4/nvfp4.h"

#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, int part, struct scalar_part *out)
{
    const struct block_nvfp4 *w = (const void *)block;

    out->d[0] = nvfp4_half_scale(w->s[2 * part]);
    out->d[1] = nvfp4_half_scale(w->s[2 * part + 1]);
    for (int i = 0; i < 32; i++)
        out->q[i] = (int8_t)nvfp4_value(w->qs, 32 * part + i);
}

SCALAR_KERNELS(nvfp4, scalar_two_parts_gemm, unpack, sizeof(struct block_nvfp4))
