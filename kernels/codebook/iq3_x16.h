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
 * - With AVX512-VBMI, iq3_emit_16(): as in codebook_vbmi.h, from a table of the codes
 * of all points' values 0 and 1, and one of values 2 and 3. These pairs stay together,
 *   in another iq3_order.
 */
#ifndef SLM_KERNELS_CODEBOOK_IQ3_X16_H
#define SLM_KERNELS_CODEBOOK_IQ3_X16_H

#include "kernels/codebook/codebook_vbmi.h"
#include "kernels/codebook/codebook_x16.h"

#ifdef KERN_LEVEL_avx512vbmi

enum { IQ3_STEPS = 16 }; /* of 16 weights */
#define IQ3_ORDER iq3_order
static const uint8_t iq3_order[16] = {0, 1, 4, 5, 8,  9,  12, 13,
                                      2, 3, 6, 7, 10, 11, 14, 15};

/* 16 weights, those of step j: index has their four points, bit 0 of the bytes of high
 * (n 512) what is above eight bits; signs: of a sub-block, bit i of weight i. codes: of
 * values 0 and 1 of n points, then of values 2 and 3; weights[8 * minus + code], the
 * same four times. */
SIMD_INLINE void iq3_emit_16(const uint8_t *codes, int n, const uint8_t *weights,
                             vi index, vi high, vi signs, int j, x16_emit_fn *emit,
                             struct x16_sink *sink)
{
    SIMD_UNROLL
    for (int pair = 0; pair < 2; pair++) {
        const vi code = cb_lookup(codes + pair * n, n, index, high);

        SIMD_UNROLL
        for (int half = 0; half < 2; half++) { /* points 0 and 1, 2 and 3 */
            const int first = 16 * half, bit = j % 2 * 16 + 8 * half + 2 * pair - 3;
            const vi value =
                cb_four_windows(code, first, first + 3, first + 8, first + 11);
            const vi sign = cb_four_windows(signs, bit, bit + 1, bit + 4, bit + 5);

            emit(sink, 4 * j + 2 * pair + half,
                 _mm512_permutexvar_epi8(v_select(v_set1_8(8), sign, value),
                                         v_load(weights)));
        }
    }
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
                                int four, x16_emit_fn *emit, struct x16_sink *sink)
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
                          x16_emit_fn *emit, struct x16_sink *sink)
{
    const vi sel = v_set1_32(g % 2 == 0 ? 0x08040201 : (int)0x80402010);
    vi w = v_gather(grid, index);

    if (bias != 0)
        w = v_add8(w, v_set1_8(bias));
    emit(sink, 8 * b + g,
         v_minus_where(w, v_set1_8(2 * bias), cb_spread(signs, g / 2), sel));
}

#endif

#endif
