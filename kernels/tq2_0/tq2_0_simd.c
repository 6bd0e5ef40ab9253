/* SPDX-License-Identifier: MIT
 *
 * tq2_0_simd.c - tq2_0 weights times q8_256 activations, every vector level
 *
 * Quants stay unsigned, 0..3, the format's -1 is the frame's bias. There are no scales:
 * eight sub-blocks with the scale 1 are so many sums that do not wait for each other.
 * Range: a block's dot product is at most 256 * 3 * 127 = 97536.
 */
#include "kernels/simd/x16_super.h"
#include "kernels/tq2_0/tq2_0.h"

/* Body: the quants. Dword j of a half's eight has the fours j, 8 + j, 16 + j and 24 + j
 * of its 128 weights. */
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi low = v_set1_8(3), raw = v_load(body + 64 * step);
    const int four = step / 8 * 32 + step % 8;

    emit(sink, four, v_and(raw, low));
    emit(sink, four + 8, v_and(v_srl16(raw, 2), low));
    emit(sink, four + 16, v_and(v_srl16(raw, 4), low));
    emit(sink, four + 24, v_srl8(raw, 6));
}

/* Left where they are: times 1, 4, 16, 64. */
SIMD_INLINE void wide(const uint8_t *body, int step, x16_emit_fn *emit,
                      const struct x16_sink sink)
{
    const vi raw = v_keep(v_load(body + 64 * (step)));
    const int four = step / 8 * 32 + step % 8;

    emit(sink, four, v_and(raw, v_set1_8(0x03)));
    emit(sink, four + 8, v_and(raw, v_set1_8(0x0c)));
    emit(sink, four + 16, v_and(raw, v_set1_8(0x30)));
    emit(sink, four + 24, v_and(raw, v_set1_8(0xc0)));
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    (void)body;
    out->d = v_half(block_scales);
    SIMD_UNROLL
    for (int s = 0; s < 8; s++)
        out->scale[s] = v_scale(v_set1_32(1));
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_tq2_0),
               .body_bytes = offsetof(struct block_tq2_0, d),
               .n_scales = 1,
               .scale_bytes = 2,
               .scale_at = {offsetof(struct block_tq2_0, d)}},
    .n_subs = 8,
    .unscaled = true,
    .max = 3,
    .narrow = 1,
    .bias = 1,
    .light = true,
    .steps = 16,
    .weights = weights,
    .wide = wide,
    .shifts = 0x64206420,
    .scales = scales,
};

X16_SUPER_KERNELS(tq2_0, format)
