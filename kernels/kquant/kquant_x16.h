/* SPDX-License-Identifier: MIT
 *
 * kquant_x16.h - what q4_K and q5_K share when sixteen rows lie side by side
 */
#ifndef SLM_KERNELS_KQUANT_X16_H
#define SLM_KERNELS_KQUANT_X16_H

#include "kernels/simd/x16_super.h"

/* Dwords 0..3 of a body: d and dmin, then A, B, C of kquant.h. */
SIMD_INLINE void kq_x16_scales(const uint8_t *body, struct x16_scales *out)
{
    const vi six = v_set1_8(0x3f), four = v_set1_8(0x0f), two = v_set1_8(0x30);
    const vi halves = v_load(body), a = v_load(body + 64), b = v_load(body + 128),
             c = v_load(body + 192);
    const vi scales_0 = v_and(a, six), mins_0 = v_and(b, six);
    const vi scales_4 = v_or(v_and(c, four), v_and(v_srl16(a, 2), two));
    const vi mins_4 = v_or(v_and(v_srl16(c, 4), four), v_and(v_srl16(b, 2), two));

    out->d = v_half_low(halves);
    out->dmin = v_half_low(v_srl32(halves, 16));
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        out->scale[i] = v_scale_u8(scales_0, i);
        out->scale[4 + i] = v_scale_u8(scales_4, i);
    }
    x16_pairs_u8(mins_0, out->pairs);
    x16_pairs_u8(mins_4, out->pairs + 2);
}

#endif
