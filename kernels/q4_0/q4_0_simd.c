/* SPDX-License-Identifier: MIT
 *
 * q4_0_simd.c - q4_0 weights times q8_32 activations, every vector level
 *
 * Nibbles stay unsigned, 0..15; the format's 8 is the bias. Range: |dot| <= 32 * 15 *
 * 127 = 60960 before and 32 * 8 * 127 after the bias, below 2^24: exact as a float.
 */
#include "kernels/q4_0/q4_0.h"
#include "kernels/simd/x16_block.h"

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         struct x16_sink *sink)
{
    const vi raw = v_load(body + 64 * step), low = v_set1_8(15);

    emit(sink, step, v_and(raw, low));
    emit(sink, 4 + step, v_srl8(raw, 4));
}

/* High nibbles left where they are: times 16. */
SIMD_INLINE void wide(const uint8_t *body, int step, x16_emit_fn *emit,
                      struct x16_sink *sink)
{
    const vi raw = v_keep(v_load(body + 64 * step));

    emit(sink, step, v_and(raw, v_set1_8(15)));
    emit(sink, 4 + step, v_and(raw, v_set1_8(-16)));
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales, vf *d, vf *m)
{
    (void)body;
    (void)m;
    *d = v_half(block_scales);
}

static const struct x16_block_format format = {
    .layout = {.block_bytes = sizeof(struct block_q4_0),
               .body_at = offsetof(struct block_q4_0, qs),
               .body_bytes = Q4_0_ELEMS / 2,
               .n_scales = 1,
               .scale_bytes = 2},
    .max = 15,
    .bias = 8,
    .light = true,
    .row = X16_ROW_NIBBLES,
    .steps = 4,
    .weights = weights,
    .wide = wide,
    .scales = scales,
};

X16_BLOCK_KERNELS(q4_0, format)
