/* SPDX-License-Identifier: MIT
 *
 * iq1_s_simd.c - iq1_s weights times q8_256 activations, every vector level
 *
 * Range: a super-block's integer is below 256 * 9 * 127 * 15 = 4389120 < 2^31.
 */
#include "kernels/iq1_s/iq1_s.h"
#include "kernels/codebook/codebook_x16.h"

/* Body, in dwords: 0..7 points, 8..11 two units each: the points' high bits, level,
 * shift. */

/* Indices of unit u's points, shifts with them. */
SIMD_INLINE void indices(const uint8_t *body, int u, vi index[4])
{
    const int at = u % 2 * 16;
    const vi points = v_load(body + 64 * u);
    const vi word = v_load(body + 64 * (8 + u / 2));
    const vi shift = cb_to_bit(word, at + 15, 11, 0x800);

    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        index[i] = v_or(v_or(cb_byte(points, i), shift),
                        cb_to_bit(word, at + 3 * i, 8, 0x700));
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    vi index[4];

    indices(body, step, index);
    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        cb_emit_shifted(index[i], 4 * step + i, emit, sink);
}

#if V_WIDE
#define PRODUCTS products

/* A unit is at most 32 * 9 * 127 = 36576, 16 times the nibbles of half of it 16 * 16 *
 * 9 * 127 = 292608. */
SIMD_INLINE void products(const uint8_t *body, const struct x16_sink sink)
{
    struct x16_sums *to = sink.to;
    vi sum = v_zero();

    SIMD_UNROLL
    for (int u = 0; u < 8; u++) {
        vi index[4], low = v_zero(), high = v_zero();

        x16_prefetch_later(sink, u, 8, sum);
        indices(body, u, index);
        SIMD_UNROLL
        for (int i = 0; i < 4; i++)
            cb_dot_nibbles(index[i], sink.q + 32 * u + 8 * i, &low, &high);
        sum = v_add_scaled(sum, cb_eighths(low, high, &sink.column->start[u]),
                           to->scale[sink.strand][u]);
    }
    to->sum[sink.strand][0] = sum;
}
#else
#define PRODUCTS NULL
#endif

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    out->d = v_mul(v_half(block_scales), v_set1_f(0.125f));
    SIMD_UNROLL
    for (int s = 0; s < 8; s++)
        out->scale[s] = cb_scale(v_load(body + 64 * (8 + s / 2)), s % 2 * 16 + 12, 7);
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_iq1_s),
               .body_at = sizeof(uint16_t),
               .body_bytes = 48,
               .n_scales = 1,
               .scale_bytes = 2,
               .scale_at = {offsetof(struct block_iq1_s, d)}},
    .n_subs = 8,
    .max = CB_IQ1_MAX,
    .bias = CB_IQ1_BIAS,
    .is_signed = V_SIGNED,
    .steps = 8,
    .weights = weights,
    .products = PRODUCTS,
    .scales = scales,
};

X16_SUPER_KERNELS(iq1_s, format)
