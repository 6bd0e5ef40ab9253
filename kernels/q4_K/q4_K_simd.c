/* SPDX-License-Identifier: MIT
 *
 * q4_K_simd.c - q4_K weights times q8_256 activations, every vector level
 *
 * Nibbles are unsigned, 0..15. Range: a sub-block's dot product is at most
 * 32 * 15 * 127 = 60960, times 63, eight times: 30723840 < 2^31; minima at most
 * 8 * 63 * 4064 = 2048256. A part that is 16 times as large is at most 975360.
 */
#include "kernels/kquant/kquant_rows.h"
#include "kernels/kquant/kquant_x16.h"
#include "kernels/q4_K/q4_K.h"

/* Body, in dwords: d and dmin, twelve bytes of six-bit numbers (A, B, C of
 * kquant.h), quants. */
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi low = v_set1_8(15), raw = v_load(body + 64 * (4 + step));
    const int four = step / 8 * 16 + step % 8;

    emit(sink, four, v_and(raw, low));
    emit(sink, four + 8, v_srl8(raw, 4));
}

/* High nibbles left where they are: times 16. */
SIMD_INLINE void wide(const uint8_t *body, int step, x16_emit_fn *emit,
                      const struct x16_sink sink)
{
    const vi low = v_set1_8(15), high = v_set1_8(-16);
    const vi raw = v_keep(v_load(body + 64 * (4 + step)));
    const int four = step / 8 * 16 + step % 8;

    emit(sink, four, v_and(raw, low));
    emit(sink, four + 8, v_and(raw, high));
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    (void)block_scales;
    kq_x16_scales(body, out);
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_q4_K),
               .body_bytes = sizeof(struct block_q4_K)},
    .n_subs = 8,
    .max = 15,
    .mins = true,
    .light = true,
    .steps = 32,
    .weights = weights,
    .wide = wide,
    .shifts = 0x40404040,
    .scales = scales,
};

#if KQ_ROWS
/* 64 bytes of qs are low nibbles of sub-blocks s, s + 2 and high ones of s + 1, s + 3.
 * Range: an int16 lane of vpmaddubsw is at most 2 * 15 * 127 = 3810. */
SIMD_INLINE vi row_dot(const uint8_t *block, const struct kq_x *x, vi scales)
{
    const uint8_t *qs = block + offsetof(struct block_q4_K, qs);
    const vi low = v_set1_8(15);
    vi acc = v_zero();

    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
        const vi raw = v_load(qs + 64 * i);

        acc = kq_add_scaled(acc, v_and(raw, low), x->low[i], scales, 4 * i);
        acc = kq_add_scaled(acc, v_and(v_srl16(raw, 4), low), x->high[i], scales,
                            4 * i + 1);
    }
    return acc;
}

SIMD_INLINE void rows(const struct x16_super_format *f, size_t n_rows, size_t k,
                      const void *w, size_t w_stride, const void *x, float *y)
{
    kq_gemv_affine(n_rows, k, w, w_stride, x, y, f->layout.block_bytes, row_dot);
}
#endif

KQ_KERNELS(q4_K, format)
