/* SPDX-License-Identifier: MIT
 *
 * iq4_xs_simd.c - iq4_xs weights times q8_256 activations, every vector level
 *
 * Range: a sub-block's dot product is at most 32 * 241 * 127 = 979424 before the bias
 * and 32 * 127 * 127 = 516128 after it, times 32, eight times: 132128768 < 2^31.
 */
#include "kernels/iq4_nl/iq4_nl_x16.h"
#include "kernels/iq4_xs/iq4_xs.h"
#include "kernels/simd/x16_super.h"

/* Body, in dwords: d and scales_h, scales_l, then four of codes per sub-block. */
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const int four = step / 4 * 8 + step % 4;
    vi low, high;

    iq4_nl_x16_weights(body + 64 * (2 + step), &low, &high);
    emit(sink, four, low);
    emit(sink, four + 4, high);
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    const vi first = v_load(body), scales_l = v_load(body + 64);
    const vi fifteen = v_set1_32(15), high = v_set1_32(0x30), bias = v_set1_32(32);

    (void)block_scales;
    out->d = v_half_low(first);
    SIMD_UNROLL
    for (int s = 0; s < IQ4_XS_SUBS; s++) {
        const vi low = v_and(v_srl32(scales_l, 4 * s), fifteen);

        /* bits 16 + 2s and 17 + 2s become 4 and 5 */
        out->scale[s] =
            v_scale(v_sub32(v_or(low, v_and(v_srl32(first, 12 + 2 * s), high)), bias));
    }
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_iq4_xs),
               .body_bytes = sizeof(struct block_iq4_xs)},
    .n_subs = IQ4_XS_SUBS,
    .max = 127,
    .bias = IQ4_NL_BIAS,
    .is_signed = V_SIGNED,
    .light = V_DOT32, /* signed products take more than an instruction */
    .steps = 32,
    .weights = weights,
    .scales = scales,
};

X16_SUPER_KERNELS(iq4_xs, format)
