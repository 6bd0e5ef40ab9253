/* SPDX-License-Identifier: MIT
 *
 * iq4_nl_x16.h - codes to values of the grid that iq4_nl and iq4_xs share
 */
#ifndef SLM_KERNELS_IQ4_NL_X16_H
#define SLM_KERNELS_IQ4_NL_X16_H

#include "kernels/iq4_nl/iq4_nl.h"
#include "kernels/simd/x16.h"

/* Values are -127..113; where dot products want unsigned bytes, 128 more. */
enum { IQ4_NL_BIAS = V_SIGNED ? 0 : 128 };

SIMD_INLINE vi iq4_nl_x16_table(void)
{
    return v_add8(v_bcast_16(iq4_nl_values), v_set1_8((char)IQ4_NL_BIAS));
}

/* A dword of codes gives four weights and, from the high nibbles, those 16 places on.
 */
SIMD_INLINE void iq4_nl_x16_weights(const uint8_t *codes, vi *low, vi *high)
{
    const vi table = iq4_nl_x16_table(), raw = v_load(codes);

    *low = v_table16_low(table, raw);
    *high = v_table16_high(table, raw);
}

#endif
