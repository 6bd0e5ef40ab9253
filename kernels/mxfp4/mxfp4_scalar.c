/* SPDX-License-Identifier: MIT
 *
 * mxfp4_scalar.c - mxfp4 weights times q8_32 activations, reference
 *
 * A block's products sum to at most 32 * 12 * 127 in magnitude.
 */
#include "kernels/mxfp4/mxfp4.h"

#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_block *out)
{
    const struct block_mxfp4 *w = (const void *)block;

    out->d = mxfp4_scale(w->e);
    out->m = 0;
    for (int j = 0; j < MXFP4_ELEMS / 2; j++) {
        out->q[j] = mxfp4_values[w->qs[j] & 15];
        out->q[j + MXFP4_ELEMS / 2] = mxfp4_values[w->qs[j] >> 4];
    }
}

SCALAR_KERNELS(mxfp4, scalar_block_gemm, unpack, sizeof(struct block_mxfp4))
