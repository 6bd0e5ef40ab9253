/* SPDX-License-Identifier: MIT
 *
 * iq4_xs_scalar.c - iq4_xs weights times q8_256 activations, plain C
 *
 * Range: a sub-block's dot product is at most 32 * 127 * 127 and its scale at most
 * 32, so a super-block's integer is at most 256 * 127 * 127 * 32 = 132128768 < 2^31.
 */
#include "kernels/iq4_xs/iq4_xs.h"

#include "kernels/half.h"
#include "kernels/iq4_nl/iq4_nl.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_iq4_xs *w = (const void *)block;

    out->d = half_to_f32(load_u16(w->d));
    out->dmin = 0;
    for (int s = 0; s < 16; s++) {
        out->scale[s] = (int16_t)iq4_xs_scale(w, s / 2);
        out->min[s] = 0;
    }
    for (int i = 0; i < IQ4_XS_ELEMS; i++)
        out->q[i] = iq4_nl_values[w->qs[i / 32 * 16 + i % 16] >> i / 16 % 2 * 4 & 15];
}

SCALAR_KERNELS(iq4_xs, scalar_super_gemm, unpack, sizeof(struct block_iq4_xs))
