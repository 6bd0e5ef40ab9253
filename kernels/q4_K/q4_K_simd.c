/* SPDX-License-Identifier: MIT
 *
 * q4_K_simd.c - q4_K weights times q8_256 activations, every vector level
 *
 * Nibbles are unsigned, 0..15. Range: a sub-block's dot product is at most
 * 32 * 15 * 127 = 60960, times 63, eight times: 30723840 < 2^31; minima at most
 * 8 * 63 * 4064 = 2048256.
 */
#include "kernels/q4_K/q4_K.h"
#include "kernels/kquant/kquant_x16.h"

/* Body, in dwords: d and dmin, twelve bytes of six-bit numbers (A, B, C of
 * kquant.h), quants. */
SIMD_INLINE void weights(const uint8_t *body, x16_emit_fn *emit, struct x16_sink *sink)
{
    const vi low = v_set1_8(15);

    SIMD_UNROLL
    for (int pair = 0; pair < 4; pair++) {
        SIMD_UNROLL
        for (int j = 0; j < 8; j++) {
            const vi raw = v_load(body + 64 * (4 + 8 * pair + j));

            emit(sink, 16 * pair + j, v_and(raw, low));
            emit(sink, 16 * pair + 8 + j, v_and(v_srl16(raw, 4), low));
        }
    }
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *head,
                        struct x16_scales *out)
{
    (void)head;
    kq_x16_head(body, out);
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_q4_K),
               .body_bytes = sizeof(struct block_q4_K)},
    .n_subs = 8,
    .max = 15,
    .mins = true,
    .weights = weights,
    .scales = scales,
};

X16_SUPER_KERNELS(q4_K, format)
