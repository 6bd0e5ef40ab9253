/* SPDX-License-Identifier: MIT
 *
 * q2_0_x16.h - what q2_0 and q2_0_128 share when sixteen rows lie side by side
 *
 * Quants stay unsigned, 0..3; the format's 1 is the bias. A dword of a row has sixteen
 * weights, the lowest bits of its bytes those 4 apart: columns are put into that order.
 * Range: |dot| <= 32 * 3 * 127 before and 32 * 2 * 127 after the bias.
 */
#ifndef SLM_KERNELS_Q2_0_X16_H
#define SLM_KERNELS_Q2_0_X16_H

#include "kernels/q2_0/q2_0.h"
#include "kernels/simd/x16_block.h"

static const uint8_t q2_0_x16_order[X16_BLOCK] = {
    0,  4,  8,  12, 1,  5,  9,  13, 2,  6,  10, 14, 3,  7,  11, 15,
    16, 20, 24, 28, 17, 21, 25, 29, 18, 22, 26, 30, 19, 23, 27, 31,
};

SIMD_INLINE void q2_0_x16_weights(const uint8_t *body, int step, x16_emit_fn *emit,
                                  const struct x16_sink sink)
{
    const vi three = v_set1_8(3), raw = v_load(body + 64 * step);

    emit(sink, 4 * step, v_and(raw, three));
    emit(sink, 4 * step + 1, v_and(v_srl16(raw, 2), three));
    emit(sink, 4 * step + 2, v_and(v_srl16(raw, 4), three));
    emit(sink, 4 * step + 3, v_srl8(raw, 6));
}

SIMD_INLINE void q2_0_x16_scales(const uint8_t *body, const uint8_t *block_scales,
                                 vf *d, vf *m)
{
    (void)body;
    (void)m;
    *d = v_half(block_scales);
}

/* Members of a struct x16_block_format. */
#define Q2_0_X16_WEIGHTS                                                     \
    .max = 3, .bias = 1, .light = true, .steps = 2, .order = q2_0_x16_order, \
    .weights = q2_0_x16_weights, .scales = q2_0_x16_scales

#endif
