/* SPDX-License-Identifier: MIT
 *
 * iq3_x16.h - what iq3_xxs and iq3_s share when sixteen rows lie side by side
 *
 * A point of the grid is four bytes, so a lane's index fetches a lane's weights. Where
 * the dot product wants unsigned bytes, weights get the format's bias: magnitudes m
 * become bias + m, and where the sign is negative 2 * bias - that.
 */
#ifndef SLM_KERNELS_CODEBOOK_IQ3_X16_H
#define SLM_KERNELS_CODEBOOK_IQ3_X16_H

#include "kernels/codebook/codebook.h"
#include "kernels/simd/x16_super.h"

/* Bytes l, l, l, l of every lane. */
SIMD_INLINE vi iq3_byte(vi v, int l)
{
    static const uint8_t spread[4][16] __attribute__((aligned(16))) = {
        {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12},
        {1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13, 13, 13, 13},
        {2, 2, 2, 2, 6, 6, 6, 6, 10, 10, 10, 10, 14, 14, 14, 14},
        {3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15},
    };

    return v_table16(v, v_bcast_16(spread[l]));
}

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
         v_minus_where(w, v_set1_8(2 * bias), iq3_byte(signs, g / 2), sel));
}

#endif
