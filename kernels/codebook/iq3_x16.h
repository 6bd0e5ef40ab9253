/* SPDX-License-Identifier: MIT
 *
 * iq3_x16.h - what iq3_xxs and iq3_s share when sixteen rows lie side by side
 *
 * A point of the grid is four values. Where the dot product wants unsigned bytes,
 * weights get the format's bias: magnitudes m become bias + m, and where the sign is
 * negative 2 * bias - that. Three ways from indices to weights:
 *
 * - iq3_emit(): a lane's index fetches a lane's weights, one four at a time.
 * - With V_WORDS, iq3_emit_words(): the grid is a table of words in registers, a nibble
 *   per value. A dword of four indices splits into points 0, 2 and points 1, 3, one
 *   per 16-bit lane; the words found split into their even and odd nibbles:
 *
 *       byte          0          1          2          3
 *       even of 0, 2  p0 value 0 p0 value 2 p2 value 0 p2 value 2
 *       odd of 0, 2   p0 value 1 p0 value 3 p2 value 1 p2 value 3
 *       even of 1, 3  p1 value 0 ...
 *
 *   Instead of putting these 16 values in their places, iq3_order puts the activations
 *   into theirs.
 * - With AVX512-VBMI, cb_emit_block_16() of codebook_vbmi.h, from a table of the codes
 * of all points' values 0 and 1, and one of values 2 and 3.
 */
#ifndef SLM_KERNELS_CODEBOOK_IQ3_X16_H
#define SLM_KERNELS_CODEBOOK_IQ3_X16_H

#include "kernels/codebook/codebook_vbmi.h"
#include "kernels/codebook/codebook_x16.h"

#ifdef KERN_LEVEL_avx512vbmi

enum { IQ3_STEPS = 1 };
#define IQ3_ORDER cb_order_3

/* Where values are in the six bits of their byte, and the byte they are put into. The
 * sign of value v takes the place of bit v. */
#define IQ3_VALUE_0(i)     (((i) >> 1 & 1) | ((i) >> 4 & 3) << 1)
#define IQ3_VALUE_1(i)     (((i)&1) | ((i) >> 2 & 3) << 1)
#define IQ3_VALUE_2(i)     ((i) >> 3 & 7)
#define IQ3_VALUE_3(i)     ((i)&7)
#define IQ3_BYTE_01(a, b)  (((a)&1) << 1 | ((a) >> 1) << 4 | ((b)&1) | ((b) >> 1) << 2)
#define IQ3_BYTE_23(c, d)  ((c) << 3 | (d))
#define IQ3_CODES_01(code) IQ3_BYTE_01((code)&7, (code) >> 3 & 7)
#define IQ3_CODES_23(code) IQ3_BYTE_23((code) >> 6 & 7, (code) >> 9 & 7)

/* The four tables of weights, from LEVEL(code). */
#define IQ3_WEIGHT(i, v) \
    ((i) >> (v)&1 ? BIAS - LEVEL(IQ3_VALUE_##v(i)) : BIAS + LEVEL(IQ3_VALUE_##v(i)))
#define IQ3_WEIGHT_0(i) IQ3_WEIGHT(i, 0)
#define IQ3_WEIGHT_1(i) IQ3_WEIGHT(i, 1)
#define IQ3_WEIGHT_2(i) IQ3_WEIGHT(i, 2)
#define IQ3_WEIGHT_3(i) IQ3_WEIGHT(i, 3)
#define IQ3_LEVELS                                                       \
    {CB_64(IQ3_WEIGHT_0)}, {CB_64(IQ3_WEIGHT_1)}, {CB_64(IQ3_WEIGHT_2)}, \
    {                                                                    \
        CB_64(IQ3_WEIGHT_3)                                              \
    }

#elif defined(V_WORDS)

enum { IQ3_STEPS = 16 }; /* of 16 weights */
#define IQ3_ORDER iq3_order
static const uint8_t iq3_order[16] = {0, 2, 8,  10, 1, 3, 9,  11,
                                      4, 6, 12, 14, 5, 7, 13, 15};

/* The points of two words per lane, from nibbles to weights (without sign) by way of
 * finish(): fours `four` and four + 1. signs: bytes s, s, t, t, s of the signs of
 * points 0 and 1, t of 2 and 3. odd: these are points 1 and 3. */
SIMD_INLINE void iq3_emit_words(vi words, int odd, vi signs, int bias, vi (*finish)(vi),
                                int four, x16_emit_fn *emit, const struct x16_sink sink)
{
    const vi from = v_set1_8(2 * bias);
    const unsigned sel = odd ? 0x40104010 : 0x04010401;

    emit(sink, four, v_minus_where(finish(words), from, signs, v_set1_32((int)sel)));
    emit(sink, four + 1,
         v_minus_where(finish(v_srl16(words, 4)), from, signs,
                       v_set1_32((int)(sel << 1))));
}

/* Bytes 0, 0, 1, 1 (half 0) or 2, 2, 3, 3 of every lane. */
SIMD_INLINE vi iq3_sign_bytes(vi signs, int half)
{
    static const uint8_t spread[2][16] __attribute__((aligned(16))) = {
        {0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13},
        {2, 2, 3, 3, 6, 6, 7, 7, 10, 10, 11, 11, 14, 14, 15, 15},
    };

    return v_table16(signs, v_bcast_16(spread[half]));
}

#else

enum { IQ3_STEPS = 8 }; /* of a sub-block */
#define IQ3_ORDER NULL

/* Four g of sub-block b, from the index of its point; byte g / 2 of signs has the signs
 * of fours g and g ^ 1. */
SIMD_INLINE void iq3_emit(const void *grid, vi index, vi signs, int bias, int b, int g,
                          x16_emit_fn *emit, const struct x16_sink sink)
{
    const vi sel = v_set1_32(g % 2 == 0 ? 0x08040201 : (int)0x80402010);

    x16_emit_signs(v_gather(grid, index), cb_spread(signs, g / 2), sel, bias, 8 * b + g,
                   emit, sink);
}

#endif

/* Defines the kernels of an IQ3 format whose points are at most max_ and whose body of
 * body_dwords dwords begins with qs; weights() and scales() are the file's. */
#define IQ3_KERNELS(name, body_dwords, max_)                     \
    static const struct x16_super_format format = {              \
        .layout = {.block_bytes = sizeof(struct block_##name),   \
                   .body_at = offsetof(struct block_##name, qs), \
                   .body_bytes = 4 * (body_dwords),              \
                   .n_scales = 1,                                \
                   .scale_bytes = 2},                            \
        .n_subs = 8,                                             \
        .max = max_,                                             \
        .bias = BIAS,                                            \
        .is_signed = V_SIGNED,                                   \
        .two_chains = true,                                      \
        .order = IQ3_ORDER,                                      \
        .steps = IQ3_STEPS,                                      \
        .weights = weights,                                      \
        .scales = scales,                                        \
    };                                                           \
    X16_SUPER_KERNELS(name, format)

#endif
