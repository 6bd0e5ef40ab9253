/* SPDX-License-Identifier: MIT
 *
 * q4_1_simd.c - q4_1 weights times q8_32 activations, every vector level
 *
 * Nibbles are unsigned, 0..15. Range: |dot| <= 32 * 15 * 127 = 60960, below 2^24: exact
 * as a float.
 */
#include "kernels/q4_1/q4_1.h"
#include "kernels/simd/x16_block.h"

SIMD_INLINE void weights(const uint8_t *body, x16_emit_fn *emit, struct x16_sink *sink)
{
    const vi low = v_set1_8(15);

    SIMD_UNROLL
    for (int j = 0; j < 4; j++)
        emit(sink, j, v_and(v_load(body + 64 * j), low));
    SIMD_UNROLL
    for (int j = 0; j < 4; j++)
        emit(sink, 4 + j, v_and(v_srl16(v_load(body + 64 * j), 4), low));
}

static const struct x16_layout layout = {
    .block_bytes = sizeof(struct block_q4_1),
    .body_at = offsetof(struct block_q4_1, qs),
    .body_bytes = Q4_1_ELEMS / 2,
    .n_heads = 2,
    .head_bytes = 2,
    .head_at = {offsetof(struct block_q4_1, d), offsetof(struct block_q4_1, m)},
};

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *head, vf *d, vf *m)
{
    (void)body;
    *d = v_half(head);
    *m = v_half(x16_head(layout, head, 1));
}

static const struct x16_block_format format = {
    .layout = layout,
    .max = 15,
    .has_m = true,
    .weights = weights,
    .scales = scales,
};

X16_BLOCK_KERNELS(q4_1, format)
