/* SPDX-License-Identifier: MIT
 *
 * q1_0_simd.c - q1_0 weights times q8_32 activations, every vector level
 *
 * Bits are taken where they make 0 or 2, the bias is 1. A dword of a row has the 32
 * weights of a part, bit i of its bytes those 8 apart: columns are put into that order.
 * Range: |dot| <= 32 * 2 * 127 before and 32 * 127 after the bias.
 */
#include "kernels/q1_0/q1_0.h"
#include "kernels/simd/x16_block.h"

static const uint8_t order[X16_BLOCK] = {
    0, 8,  16, 24, 1, 9,  17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
    4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31,
};

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi two = v_set1_8(2), raw = v_load(body);

    (void)step;
    emit(sink, 0, v_and(v_sll16(raw, 1), two));
    emit(sink, 1, v_and(raw, two));
    SIMD_UNROLL
    for (int i = 2; i < 8; i++)
        emit(sink, i, v_and(v_srl16(raw, i - 1), two));
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales, vf *d, vf *m)
{
    (void)body;
    (void)m;
    *d = v_half(block_scales);
}

static const struct x16_block_format format = {
    .layout = {.block_bytes = sizeof(struct block_q1_0),
               .body_at = offsetof(struct block_q1_0, qs),
               .body_bytes = Q1_0_ELEMS / 8,
               .n_scales = 1,
               .scale_bytes = 2},
    .parts = Q1_0_ELEMS / X16_BLOCK,
    .max = 2,
    .bias = 1,
    .light = true,
    .steps = 1,
    .order = order,
    .weights = weights,
    .scales = scales,
};

X16_BLOCK_KERNELS(q1_0, format)
