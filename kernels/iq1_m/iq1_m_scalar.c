/* SPDX-License-Identifier: MIT
 *
 * iq1_m_scalar.c - iq1_m weights times q8_256 activations, plain C
 *
 * Range: values in eighths are at most 9 and scales at most 15, so a super-block's
 * integer is below 256 * 9 * 127 * 15 = 4389120 < 2^31.
 */
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/iq1_m/iq1_m.h"
#include "kernels/simd/scalar.h"

static void unpack(const uint8_t *block, struct scalar_super *out)
{
    const struct block_iq1_m *w = (const void *)block;

    out->d = half_to_f32(iq1_m_d(w)) * 0.125f;
    out->dmin = 0;
    for (int i = 0; i < 16; i++) {
        out->scale[i] = (int16_t)(2 * iq1_m_level(w, i) + 1);
        out->min[i] = 0;
    }
    for (int g = 0; g < 32; g++)
        iq1_m_eighths(w, g, out->q + 8 * g);
}

SCALAR_KERNELS(iq1_m, scalar_super_gemm, unpack, sizeof(struct block_iq1_m))
