/* SPDX-License-Identifier: MIT
 *
 * q5_0_simd.c - q5_0 weights times q8_32 activations, every vector level
 *
 * Quants stay unsigned, 0..31; the format's 16 is the bias. Range: |dot| <= 32 * 31 *
 * 127 = 125984 before and 32 * 16 * 127 after the bias, below 2^24: exact as a float.
 */
#include "kernels/q5_0/q5_0.h"
#include "kernels/simd/x16_nibbles.h"

static const struct x16_block_format format = {
    .layout = {.block_bytes = sizeof(struct block_q5_0),
               .body_at = offsetof(struct block_q5_0, qh),
               .body_bytes = 4 + Q5_0_ELEMS / 2,
               .n_scales = 1,
               .scale_bytes = 2},
    .max = 31,
    .bias = 16,
    .light = true,
    .row = X16_ROW_FIVE,
    .steps = 4,
    .weights = x16_five_weights,
    .scales = x16_scale_d,
};

X16_BLOCK_KERNELS(q5_0, format)
