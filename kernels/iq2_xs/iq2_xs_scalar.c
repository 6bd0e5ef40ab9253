/* SPDX-License-Identifier: MIT
 *
 * iq2_xs_scalar.c - iq2_xs weights times q8_256 activations, plain C
 *
 * Range: values are at most 43 and scales at most 31, so a super-block's integer is
 * below 256 * 43 * 127 * 31 = 43337536 < 2^31.
 */
#include "kernels/kernels.h"
#include "kernels/iq2_xs/iq2_xs.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_iq2_xs *w = (const void *)block;

    out->d = half_to_f32(iq2_xs_d(w)) * 0.125f;
    out->dmin = 0;
    for (int i = 0; i < 16; i++) {
        out->scale[i] = (int16_t)(2 * iq2_xs_level(w, i) + 1);
        out->min[i] = 0;
    }
    for (int g = 0; g < 32; g++)
        iq2_xs_values(w, g, out->q + 8 * g);
}

SCALAR_KERNELS(iq2_xs, scalar_super_gemm, unpack, sizeof(struct block_iq2_xs))
