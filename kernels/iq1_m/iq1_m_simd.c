/* SPDX-License-Identifier: MIT
 *
 * iq1_m_simd.c - iq1_m weights times q8_256 activations, every vector level
 *
 * Range: a super-block's integer is below 256 * 9 * 127 * 15 = 4389120 < 2^31.
 */
#include "kernels/iq1_m/iq1_m.h"
#include "kernels/codebook/codebook_x16.h"

/* Body, in dwords: 0..7 points; 8..11 high bits and shift, four bits of each group; 12
 * and 13 levels and, in bits 12 to 15 and 28 to 31, d. */

/* Indices of the points of groups 4u .. 4u + 3, shifts with them. */
SIMD_INLINE void indices(const uint8_t *body, int u, vi index[4])
{
    const vi points = v_load(body + 64 * u);
    const vi word = v_load(body + 64 * (8 + u / 2));

    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        index[i] =
            v_or(cb_byte(points, i), cb_to_bit(word, u % 2 * 16 + 4 * i, 8, 0xf00));
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

/* A unit is at most 16 * 9 * 127 = 18288 and fits 16 bits: its scale is applied by a
 * product of pairs. */
SIMD_INLINE void products(const uint8_t *body, const struct x16_sink sink)
{
    struct x16_sums *to = sink.to;
    vi sum = v_zero();

    SIMD_UNROLL
    for (int s = 0; s < 16; s += 2) {
        vi index[4];

        x16_prefetch_later(sink, s / 2, 8, sum);
        indices(body, s / 2, index);
        SIMD_UNROLL
        for (int unit = s; unit < s + 2; unit++) {
            vi low = v_zero(), high = v_zero();

            SIMD_UNROLL
            for (int i = 0; i < 2; i++)
                cb_dot_nibbles(index[2 * (unit - s) + i], sink.q + 16 * unit + 8 * i,
                               &low, &high);
            sum = kq_add_pairs(sum, cb_eighths(low, high, &sink.column->start[unit]),
                               to->scale[sink.strand][unit]);
        }
    }
    to->sum[sink.strand][0] = sum;
}
#else
#define PRODUCTS NULL
#endif

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    const vi words[2] = {v_load(body + 64 * 12), v_load(body + 64 * 13)};
    vi d = v_and(v_srl32(words[0], 12), v_set1_32(0xf));

    (void)block_scales;
    d = v_or(d, v_and(v_srl32(words[0], 24), v_set1_32(0xf0)));
    d = v_or(d, v_and(v_srl32(words[1], 4), v_set1_32(0xf00)));
    d = v_or(d, v_and(v_srl32(words[1], 16), v_set1_32(0xf000)));
    out->d = v_mul(v_half_low(d), v_set1_f(0.125f));
    SIMD_UNROLL
    for (int s = 0; s < 16; s++)
        out->scale[s] = cb_scale(words[s / 8], s % 8 / 4 * 16 + s % 4 * 3, 7);
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_iq1_m),
               .body_bytes = sizeof(struct block_iq1_m)},
    .n_subs = 16,
    .max = CB_IQ1_MAX,
    .bias = CB_IQ1_BIAS,
    .is_signed = V_SIGNED,
    .steps = 8,
    .weights = weights,
    .products = PRODUCTS,
    .scales = scales,
};

X16_SUPER_KERNELS(iq1_m, format)
