/* SPDX-License-Identifier: MIT
 *
 * q8_0_simd.c - q8_0 weights times q8_32 activations, every vector level
 *
 * Where the dot instruction takes unsigned weights, flipping the sign bit adds 128,
 * the bias: 0..255. Range: |dot| <= 32 * 255 * 127 = 1036320 < 2^24: exact as a float.
 * Elsewhere weights are signed; -128, which a file may hold, works as long as its
 * magnitude is taken as 128 in an unsigned byte, and 2 * 128 * 127 < 2^15.
 */
#include "kernels/q8_0/q8_0.h"
#include "kernels/simd/x16_block.h"

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi w = v_load(body + 64 * step);

    emit(sink, step, V_SIGNED ? w : v_xor(w, v_set1_8(-128)));
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales, vf *d, vf *m)
{
    (void)body;
    (void)m;
    *d = v_half(block_scales);
}

static const struct x16_block_format format = {
    .layout = {.block_bytes = sizeof(struct block_q8_0),
               .body_at = offsetof(struct block_q8_0, qs),
               .body_bytes = Q8_0_ELEMS,
               .n_scales = 1,
               .scale_bytes = 2},
    .max = 128,
    .bias = V_SIGNED ? 0 : 128,
    .is_signed = V_SIGNED,
    .row = X16_ROW_BYTES,
    .steps = 8,
    .weights = weights,
    .scales = scales,
};

X16_BLOCK_KERNELS(q8_0, format)
