/* SPDX-License-Identifier: MIT
 *
 * codebook_x16.h - grid points of sixteen rows side by side, for the IQ1 and IQ2
 * formats' <format>_simd.c (iq3_x16.h: for IQ3)
 *
 * A lane is a row, so that every lane looks up a point of its own. IQ2's magnitudes,
 * at most 43, take the group's signs; where the dot instruction wants unsigned bytes
 * 64 is added and is the frame's bias. IQ1's values in eighths are shifted by one, at
 * most 9 then; their bias is 16.
 */
#ifndef SLM_KERNELS_CODEBOOK_X16_H
#define SLM_KERNELS_CODEBOOK_X16_H

#include "kernels/codebook/codebook.h"
#include "kernels/simd/x16_super.h"

enum {
    CB_IQ2_MAX = 43,
    CB_IQ2_BIAS = V_SIGNED ? 0 : 64,
    CB_IQ1_MAX = 9,
    CB_IQ1_BIAS = V_SIGNED ? 0 : 16,
};

/* Byte `at` of every lane, four times. */
SIMD_INLINE vi cb_spread(vi v, int at)
{
    static const uint8_t spread[4][16] __attribute__((aligned(16))) = {
        {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12},
        {1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13, 13, 13, 13},
        {2, 2, 2, 2, 6, 6, 6, 6, 10, 10, 10, 10, 14, 14, 14, 14},
        {3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15},
    };

    return v_table16(v, v_bcast_16(spread[at]));
}

/* Bit 7 of every byte becomes the parity of bits 0 to 6; it is 0 before. */
SIMD_INLINE vi cb_eighth_sign(vi seven)
{
    static const uint8_t odd[16] = {0,    0x80, 0x80, 0,    0x80, 0,    0,    0x80,
                                    0x80, 0,    0,    0x80, 0,    0x80, 0x80, 0};
    const vi nibble = v_and(v_xor(seven, v_srl16(seven, 4)), v_set1_8(15));

    return v_or(seven, v_table16(v_bcast_16(odd), nibble));
}

/* Group `group` of an IQ2 block: the points at `index`, byte `at` of signs. */
SIMD_INLINE void cb_emit_signed(const uint8_t (*grid)[8], const uint32_t *points,
                                vi signs, int at, int group, x16_emit_fn *emit,
                                struct x16_sink *sink)
{
    const vi spread = cb_spread(signs, at);
    vi low, high;

    v_gather_8(grid, points, &low, &high);
#if !V_SIGNED
    low = v_add8(low, v_set1_8(CB_IQ2_BIAS));
    high = v_add8(high, v_set1_8(CB_IQ2_BIAS));
#endif
    low = v_minus_where(low, v_set1_8(2 * CB_IQ2_BIAS), spread, v_set1_32(0x08040201));
    high = v_minus_where(high, v_set1_8(2 * CB_IQ2_BIAS), spread,
                         v_set1_32((int)0x80402010));
    emit(sink, 2 * group, low);
    emit(sink, 2 * group + 1, high);
}

/* What is added to the eighths of IQ1 points, bytes: bit `at` of every lane's word says
 * whether they are shifted down. */
SIMD_INLINE vi cb_shift(vi word, int at)
{
    return v_select(v_sra32(v_sll32(word, 31 - at), 31), v_set1_8(CB_IQ1_BIAS - 1),
                    v_set1_8(CB_IQ1_BIAS + 1));
}

/* Group `group` of an IQ1 block. */
SIMD_INLINE void cb_emit_shifted(vi index, vi shift, int group, x16_emit_fn *emit,
                                 struct x16_sink *sink)
{
    uint32_t points[V_LANES];
    vi low, high;

    v_store(points, index);
    v_gather_8(codebook_iq1s, points, &low, &high);
    emit(sink, 2 * group, v_add8(low, shift));
    emit(sink, 2 * group + 1, v_add8(high, shift));
}

/* Lanes' bits `at` and up below mask + 1, as the scale 2 * level + 1. */
SIMD_INLINE vi cb_scale(vi word, int at, int mask)
{
    const vi level = v_and(v_srl32(word, at), v_set1_32(mask));

    return v_scale(v_add32(v_add32(level, level), v_set1_32(1)));
}

/* Bits at .. at + n of every lane, to where bit 8 is; mask covers them there. */
SIMD_INLINE vi cb_to_bit_8(vi word, int at, int mask)
{
    return v_and(at < 8 ? v_sll32(word, 8 - at) : v_srl32(word, at - 8),
                 v_set1_32(mask));
}

/* The points at one byte of every lane's dwords. They are taken from memory one by one:
 * out of a vector they would have to be taken apart. */
SIMD_INLINE void cb_points(const uint8_t *at, uint32_t *points)
{
    SIMD_UNROLL
    for (size_t lane = 0; lane < V_LANES; lane++)
        points[lane] = at[4 * lane];
}

#endif
