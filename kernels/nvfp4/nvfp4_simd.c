/* SPDX-License-Identifier: MIT
 *
 * nvfp4_simd.c - nvfp4 weights times q8_32 activations, every vector level
 *
 * Values get a bias of 12, which makes them 0..24. Range: |dot| of 16 weights <= 16 *
 * 24
 * * 127 before and 16 * 12 * 127 after the bias, below 2^24: exact as a float.
 */
#include "kernels/nvfp4/nvfp4.h"
#include "kernels/simd/x16_block.h"

enum { BIAS = 12 };

/* A step is one group: two dwords, weights 0..7 low and 8..15 high. */
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi table = v_add8(v_bcast_16(mxfp4_values), v_set1_8(BIAS));
    const vi first = v_load(body + 128 * step), second = v_load(body + 128 * step + 64);

    emit(sink, 4 * step, v_table16_low(table, first));
    emit(sink, 4 * step + 1, v_table16_low(table, second));
    emit(sink, 4 * step + 2, v_table16_high(table, first));
    emit(sink, 4 * step + 3, v_table16_high(table, second));
}

/* See nvfp4_half_scale(): codes above NVFP4_LARGEST become 0. */
SIMD_INLINE vf half_scale(const uint8_t *codes)
{
    const vi code = v_u8(codes);
    const vi valid = v_sra32(v_sub32(code, v_set1_32(NVFP4_LARGEST + 1)), 31);

    return v_mul(v_half_low(v_sll32(v_and(code, valid), 7)), v_set1_f(128));
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales, vf *d, vf *m);

static const struct x16_block_format format = {
    .layout = {.block_bytes = sizeof(struct block_nvfp4),
               .body_at = offsetof(struct block_nvfp4, qs),
               .body_bytes = NVFP4_ELEMS / 2,
               .n_scales = NVFP4_ELEMS / NVFP4_GROUP,
               .scale_bytes = 1,
               .scale_at = {0, 1, 2, 3}},
    .parts = NVFP4_ELEMS / X16_BLOCK,
    .part_scales = X16_BLOCK / NVFP4_GROUP,
    .max = 2 * BIAS,
    .bias = BIAS,
    .halves = true,
    .light = true,
    .steps = 2,
    .weights = weights,
    .scales = scales,
};

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales, vf *d, vf *m)
{
    (void)body;
    *d = half_scale(block_scales);
    *m = half_scale(x16_scale_of(&format.layout, block_scales, 1));
}

X16_BLOCK_KERNELS(nvfp4, format)
