/* SPDX-License-Identifier: MIT
 *
 * q4_1_simd.c - q4_1 weights times q8_32 activations, every vector level
 *
 * Nibbles are unsigned, 0..15. Range: |dot| <= 32 * 15 * 127 = 60960, below 2^24: exact
 * as a float.
 */
#include "kernels/q4_1/q4_1.h"
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

static const struct x16_layout layout = {
    .block_bytes = sizeof(struct block_q4_1),
    .body_at = offsetof(struct block_q4_1, qs),
    .body_bytes = Q4_1_ELEMS / 2,
    .n_scales = 2,
    .scale_bytes = 2,
    .scale_at = {offsetof(struct block_q4_1, d), offsetof(struct block_q4_1, m)},
};

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales, vf *d, vf *m)
{
    (void)body;
    *d = v_half(block_scales);
    *m = v_half(x16_scale_of(layout, block_scales, 1));
}

static const struct x16_block_format format = {
    .layout = layout,
    .max = 15,
    .has_m = true,
    .light = true,
    .row = X16_ROW_NIBBLES,
    .steps = 4,
    .weights = weights,
    .wide = wide,
    .scales = scales,
};

X16_BLOCK_KERNELS(q4_1, format)
