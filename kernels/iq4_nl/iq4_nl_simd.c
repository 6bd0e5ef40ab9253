/* SPDX-License-Identifier: MIT
 *
 * iq4_nl_simd.c - iq4_nl weights times q8_32 activations, every vector level
 *
 * Range: |dot| <= 32 * 241 * 127 = 979424 before and 32 * 127 * 127 after the bias,
 * below 2^24: exact as a float.
 */
#include "kernels/iq4_nl/iq4_nl_x16.h"
#include "kernels/simd/x16_block.h"

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    vi low, high;

    iq4_nl_x16_weights(body + 64 * step, &low, &high);
    emit(sink, step, low);
    emit(sink, step + 4, high);
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales, vf *d, vf *m)
{
    (void)body;
    (void)m;
    *d = v_half(block_scales);
}

static const struct x16_block_format format = {
    .layout = {.block_bytes = sizeof(struct block_iq4_nl),
               .body_at = offsetof(struct block_iq4_nl, qs),
               .body_bytes = IQ4_NL_ELEMS / 2,
               .n_scales = 1,
               .scale_bytes = 2},
    .max = 127,
    .bias = IQ4_NL_BIAS,
    .is_signed = V_SIGNED,
    .light = V_DOT32, /* signed products take more than an instruction */
    .steps = 4,
    .weights = weights,
    .scales = scales,
};

X16_BLOCK_KERNELS(iq4_nl, format)
