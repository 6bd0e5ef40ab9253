/* SPDX-License-Identifier: MIT
 *
 * q3_K_simd.c - q3_K weights times q8_256 activations, every vector level
 *
 * Quants stay unsigned, 0..7, the format's -4 is the frame's bias. Range: a sub-block's
 * dot product is at most 16 * 7 * 127 = 14224 (with the bias off 16 * 4 * 127), times
 * 32, sixteen times: 7282688 < 2^31; the bias's part at most 16 * 4 * 2032 * 32.
 */
#include "kernels/kquant/kquant_pairs.h"
#include "kernels/q3_K/q3_K.h"
#include "kernels/simd/x16_super.h"

/* Body in the file, in dwords: 0..7 top bits, 8..23 low bits, 24..26 scales; d is the
 * block scale. In a panel: the scales, top bits and low bits of the first half
 * interleaved, the low bits of the second half. */
SIMD_INLINE size_t place(size_t dword)
{
    return dword < 8    ? 3 + 2 * dword
           : dword < 16 ? 4 + 2 * (dword - 8)
           : dword < 24 ? 19 + (dword - 16)
                        : dword - 24;
}

SIMD_INLINE vi load_tops(const uint8_t *body, int j)
{
    return v_load(body + 64 * (3 + 2 * j));
}

SIMD_INLINE vi load_low(const uint8_t *body, int h, int j)
{
    return v_load(body + 64 * (h == 0 ? 4 + 2 * j : 19 + j));
}

/* Of the file's: dword j
 * of a half's eight has the fours j, 8 + j, 16 + j and 24 + j of its 128 weights, and
 * their top bits are at bits 4h to 4h + 3 of dword j of the first eight. */
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi low = v_set1_8(3), top = v_set1_8(4);
    const vi tops = load_tops(body, step);

    SIMD_UNROLL
    for (int h = 0; h < 2; h++) {
        const vi raw = load_low(body, h, step);
        /* bits 4h .. 4h + 3 at 2 .. 5, so that shifts go to the right only */
        const vi bits = h == 0 ? v_sll16(tops, 2) : v_srl16(tops, 2);
        const int four = 32 * h + step;

        emit(sink, four, v_or(v_and(raw, low), v_and(bits, top)));
        emit(sink, four + 8,
             v_or(v_and(v_srl16(raw, 2), low), v_and(v_srl16(bits, 1), top)));
        emit(sink, four + 16,
             v_or(v_and(v_srl16(raw, 4), low), v_and(v_srl16(bits, 2), top)));
        emit(sink, four + 24,
             v_or(v_and(v_srl16(raw, 6), low), v_and(v_srl16(bits, 3), top)));
    }
}

/* Four bytes each: scales 0..3, 4..7, 8..11, 12..15. */
SIMD_INLINE void scale_bytes(const uint8_t *body, vi out[4])
{
    const vi nibble = v_set1_8(15), top = v_set1_8(0x30), half = v_set1_8(32);
    const vi a = v_load(body), b = v_load(body + 64);
    const vi c = v_load(body + 64 * 2);

    out[0] = v_or(v_and(a, nibble), v_and(v_sll16(c, 4), top));
    out[1] = v_or(v_and(b, nibble), v_and(v_sll16(c, 2), top));
    out[2] = v_or(v_and(v_srl16(a, 4), nibble), v_and(c, top));
    out[3] = v_or(v_and(v_srl16(b, 4), nibble), v_and(v_srl16(c, 2), top));
    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        out[i] = v_sub8(out[i], half);
}

#if V_WIDE
#define PRODUCTS products
#define WIDE     wide

/* Weights j, 8 + j, 16 + j, 24 + j of half h, by fours, left at bits 0, 2, 2 and 4:
 * then two shifts bring four top bits to where they belong, and one of the low bits
 * makes room for the last one. */
SIMD_INLINE void four_fields(const uint8_t *body, int h, int j, vi out[4])
{
    const vi tops = load_tops(body, j), low = load_low(body, h, j);
    const vi even = h == 0 ? v_sll16(tops, 2) : v_srl16(tops, 2);
    const vi odd = h == 0 ? v_sll16(tops, 3) : v_srl16(tops, 1);
    const vi less = v_srl16(low, 2);

    out[0] = v_and(v_select(v_set1_8(0x03), low, even), v_set1_8(0x07));
    out[1] = v_and(v_select(v_set1_8(0x0c), low, odd), v_set1_8(0x1c));
    out[2] = v_and(v_select(v_set1_8(0x0c), less, even), v_set1_8(0x1c));
    out[3] = v_and(v_select(v_set1_8(0x30), less, odd), v_set1_8(0x70));
}

SIMD_INLINE void wide(const uint8_t *body, int step, x16_emit_fn *emit,
                      const struct x16_sink sink)
{
    vi w[4];

    SIMD_UNROLL
    for (int h = 0; h < 2; h++) {
        four_fields(body, h, step, w);
        SIMD_UNROLL
        for (int i = 0; i < 4; i++)
            emit(sink, 32 * h + 8 * i + step, w[i]);
    }
}

/* A part of 16 weights is at most 16 * 4 * 127 = 8128, bias off: times 1 or 4 it fits
 * 16 bits, and the scale is applied by a product of pairs. A scale is taken times 256,
 * as it lies in the upper byte of a 16-bit number. Eight parts times 4 add up to at
 * most 8 * 4 * 8128 * 32 * 256 = 2130706432 < 2^31. */
SIMD_INLINE void products(const uint8_t *body, const struct x16_sink sink)
{
    vi sum_1 = v_zero(), sum_4 = v_zero(), scale[4];

    scale_bytes(body, scale);
    SIMD_UNROLL
    for (int group = 0; group < 4; group++) {
        const int h = group / 2, odd = group % 2;
        vi part[4];

        x16_prefetch_later(sink, group, 4, sum_1);
        SIMD_UNROLL
        for (int i = 0; i < 4; i++)
            part[i] = v_bcast_4(&sink.column->start[8 * h + 2 * i + odd]);
        SIMD_UNROLL
        for (int j = 4 * odd; j < 4 * odd + 4; j++) {
            vi w[4];

            four_fields(body, h, j, w);
            SIMD_UNROLL
            for (int i = 0; i < 4; i++)
                part[i] = v_dot_u(part[i], w[i], sink.q + 4 * (32 * h + 8 * i + j));
        }
        SIMD_UNROLL
        for (int i = 0; i < 4; i++) {
            const vi s = kq_scale_256(scale[2 * h + i / 2], i % 2 * 2 + odd);

            if (i == 1 || i == 2)
                sum_4 = kq_add_pairs(sum_4, part[i], s);
            else
                sum_1 = kq_add_pairs(sum_1, i == 0 ? part[i] : v_sra32(part[i], 4), s);
        }
    }
    sink.to->sum[sink.strand][0] = v_sra32(v_add32(sum_1, v_sra32(sum_4, 2)), 8);
}
#else
#define PRODUCTS NULL
#define WIDE     NULL
#endif

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    vi four[4];

    scale_bytes(body, four);
    out->d = v_half(block_scales);
    SIMD_UNROLL
    for (int s = 0; s < 16; s++)
        out->scale[s] = v_scale(v_sra32(v_sll32(four[s / 4], 24 - s % 4 * 8), 24));
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_q3_K),
               .body_bytes = offsetof(struct block_q3_K, d),
               .n_scales = 1,
               .scale_bytes = 2,
               .scale_at = {offsetof(struct block_q3_K, d)},
               .place = place},
    .n_subs = 16,
    .max = 7,
    .narrow = -1,
    .bias = 4,
    .steps = 8,
    .weights = weights,
    .products = PRODUCTS,
    .wide = WIDE,
    .shifts = 0x4422220044222200,
    .scales = scales,
};

X16_SUPER_KERNELS(q3_K, format)
