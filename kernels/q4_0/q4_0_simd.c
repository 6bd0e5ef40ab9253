/* SPDX-License-Identifier: MIT
 *
 * q4_0_simd.c - q4_0 weights times q8_32 activations, every vector level
 *
 * Nibbles stay unsigned, 0..15; the format's 8 is the bias. Range: |dot| <= 32 * 15 *
 * 127 = 60960 before and 32 * 8 * 127 after the bias, below 2^24: exact as a float.
 */
#include "kernels/q4_0/q4_0.h"
#include "kernels/simd/x16_nibbles.h"

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
    .weights = x16_four_weights,
    .wide = x16_four_wide,
    .scales = x16_scale_d,
};

X16_BLOCK_KERNELS(q4_0, format)
