/* SPDX-License-Identifier: MIT
 *
 * kquant_x16.h - what q4_K and q5_K share when sixteen rows lie side by side
 */
#ifndef SLM_KERNELS_KQUANT_X16_H
#define SLM_KERNELS_KQUANT_X16_H

#include "kernels/simd/x16_super.h"

/* Dwords 0..3 of a body: d and dmin, then A, B, C of kquant.h. */
SIMD_INLINE void kq_x16_head(const uint8_t *body, struct x16_scales *out)
{
    const vi six = v_set1_32(0x3f), four = v_set1_32(0x0f), two = v_set1_32(0x30);
    const vi halves = v_load(body);

    out->d = v_half_low(halves);
    out->dmin = v_half_low(v_srl32(halves, 16));
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        const vi a = v_srl32(v_load(body + 64), 8 * i);
        const vi b = v_srl32(v_load(body + 128), 8 * i);
        const vi c = v_srl32(v_load(body + 192), 8 * i);

        out->scale[i] = v_and(a, six);
        out->scale[4 + i] = v_or(v_and(c, four), v_and(v_srl32(a, 2), two));
        out->min[i] = v_and(b, six);
        out->min[4 + i] = v_or(v_and(v_srl32(c, 4), four), v_and(v_srl32(b, 2), two));
    }
}

#endif
