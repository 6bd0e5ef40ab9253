/* SPDX-License-Identifier: MIT
 *
 * q2_0_128_simd.c - q2_0_128 weights times q8_32 activations, every vector level
 */
#include "kernels/q2_0/q2_0_x16.h"

static const struct x16_block_format format = {
    .layout = {.block_bytes = sizeof(struct block_q2_0_128),
               .body_at = offsetof(struct block_q2_0_128, qs),
               .body_bytes = Q2_0_128_ELEMS / 4,
               .n_scales = 1,
               .scale_bytes = 2},
    .parts = Q2_0_128_ELEMS / X16_BLOCK,
    Q2_0_X16_WEIGHTS,
};

X16_BLOCK_KERNELS(q2_0_128, format)
