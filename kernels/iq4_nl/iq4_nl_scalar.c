/* SPDX-License-Identifier: MIT
 *
 * iq4_nl_scalar.c - iq4_nl weights times q8_32 activations, reference
 *
 * A block's products sum to at most 32 * 127 * 127 in magnitude.
 */
#include "kernels/iq4_nl/iq4_nl.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_block *out)
{
    const struct block_iq4_nl *w = (const void *)block;

    out->d = half_to_f32(load_u16(w->d));
    out->m = 0;
    for (int j = 0; j < IQ4_NL_ELEMS / 2; j++) {
        out->q[j] = iq4_nl_values[w->qs[j] & 15];
        out->q[j + IQ4_NL_ELEMS / 2] = iq4_nl_values[w->qs[j] >> 4];
    }
}

SCALAR_KERNELS(iq4_nl, scalar_block_gemm, unpack, sizeof(struct block_iq4_nl))
