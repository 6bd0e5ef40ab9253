/* SPDX-License-Identifier: MIT
 *
 * iq1_s_scalar.c - iq1_s weights times q8_256 activations, plain C
 *
 * Range: values in eighths are at most 9 and scales at most 15, so a super-block's
 * integer is below 256 * 9 * 127 * 15 = 4389120 < 2^31.
 */
#include "kernels/kernels.h"
#include "kernels/iq1_s/iq1_s.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_iq1_s *w = (const void *)block;

    out->d = half_to_f32(iq1_s_d(w)) * 0.125f;
    out->dmin = 0;
    for (int i = 0; i < 16; i++) {
        out->scale[i] = (int16_t)(2 * iq1_s_level(w, i / 2) + 1);
        out->min[i] = 0;
    }
    for (int g = 0; g < 32; g++)
        iq1_s_eighths(w, g, out->q + 8 * g);
}

SCALAR_KERNELS(iq1_s, scalar_super_gemm, unpack, sizeof(struct block_iq1_s))
