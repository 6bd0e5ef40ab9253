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

#include "kernels/codebook/codebook_x16.h"

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
