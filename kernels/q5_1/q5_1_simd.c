/* SPDX-License-Identifier: MIT
 *
 * q5_1_simd.c - q5_1 weights times q8_32 activations, every vector level
 *
 * Quants are unsigned, 0..31. Range: |dot| <= 32 * 31 * 127 = 125984, below 2^24: exact
 * as a float.
 */
#include "kernels/q5_1/q5_1.h"
#include "kernels/simd/x16_nibbles.h"

/* A macro, since an object is no constant expression for a part of another one. */
#define LAYOUT                                                                        \
    {                                                                                 \
        .block_bytes = sizeof(struct block_q5_1),                                     \
        .body_at = offsetof(struct block_q5_1, qh), .body_bytes = 4 + Q5_1_ELEMS / 2, \
        .n_scales = 2, .scale_bytes = 2, .scale_at = {                                \
            offsetof(struct block_q5_1, d),                                           \
            offsetof(struct block_q5_1, m)                                            \
        }                                                                             \
    }

static const struct x16_layout layout = LAYOUT;

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales, vf *d, vf *m)
{
    (void)body;
    *d = v_half(block_scales);
    *m = v_half(x16_scale_of(&layout, block_scales, 1));
}

static const struct x16_block_format format = {
    .layout = LAYOUT,
    .max = 31,
    .has_m = true,
    .row = X16_ROW_FIVE,
    .steps = 4,
    .weights = x16_five_weights,
    .scales = scales,
};

X16_BLOCK_KERNELS(q5_1, format)
