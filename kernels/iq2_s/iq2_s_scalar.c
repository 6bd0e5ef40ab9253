/* SPDX-License-Identifier: MIT
 *
 * iq2_s_scalar.c - iq2_s weights times q8_256 activations, plain C
 *
 * Range: values are at most 43 and scales at most 31, so a super-block's integer is
 * below 256 * 43 * 127 * 31 = 43337536 < 2^31.
 */
#include "kernels/kernels.h"
#include "kernels/iq2_s/iq2_s.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_iq2_s *w = (const void *)block;

    out->d = half_to_f32(iq2_s_d(w)) * 0.125f;
    out->dmin = 0;
    for (int i = 0; i < 16; i++) {
        out->scale[i] = (int16_t)(2 * iq2_s_level(w, i) + 1);
        out->min[i] = 0;
    }
    for (int g = 0; g < 32; g++)
        iq2_s_values(w, g, out->q + 8 * g);
}

SCALAR_KERNELS(iq2_s, scalar_super_gemm, unpack, sizeof(struct block_iq2_s))
