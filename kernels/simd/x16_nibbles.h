/* SPDX-License-Identifier: MIT
 *
 * x16_nibbles.h - what q4_0, q4_1, q5_0 and q5_1 share: nibbles, fifth bits, d
 */
#ifndef SLM_KERNELS_SIMD_X16_NIBBLES_H
#define SLM_KERNELS_SIMD_X16_NIBBLES_H

#include "kernels/simd/x16_block.h"

/* A body of four dwords. */
SIMD_INLINE void x16_four_weights(const uint8_t *body, int step, x16_emit_fn *emit,
                                  const struct x16_sink sink)
{
    const vi raw = v_load(body + 64 * step), low = v_set1_8(15);

    emit(sink, step, v_and(raw, low));
    emit(sink, 4 + step, v_srl8(raw, 4));
}

/* High nibbles left where they are: times 16. */
SIMD_INLINE void x16_four_wide(const uint8_t *body, int step, x16_emit_fn *emit,
                               const struct x16_sink sink)
{
    const vi raw = v_keep(v_load(body + 64 * step));

    emit(sink, step, v_and(raw, v_set1_8(15)));
    emit(sink, 4 + step, v_and(raw, v_set1_8(-16)));
}

/* Body, in dwords: qh, then four of nibbles. Bit i of qh belongs to weight i, so each
 * byte of qh has the bits of eight neighbours: it is copied to all bytes of its lane,
 * each of which selects another bit. */
SIMD_INLINE void x16_five_weights(const uint8_t *body, int step, x16_emit_fn *emit,
                                  const struct x16_sink sink)
{
    const vi low = v_set1_8(15), sixteen = v_set1_8(16);
    const vi bit = v_set1_32(step % 2 == 0 ? 0x08040201 : (int)0x80402010);
    const vi qh = v_load(body), raw = v_load(body + 64 * (1 + step));

    emit(sink, step,
         v_add8_if(v_and(raw, low), v_lane_byte(qh, step / 2), bit, sixteen));
    emit(sink, 4 + step,
         v_add8_if(v_srl8(raw, 4), v_lane_byte(qh, 2 + step / 2), bit, sixteen));
}

/* A block's only scale, d. */
SIMD_INLINE void x16_scale_d(const uint8_t *body, const uint8_t *block_scales, vf *d,
                             vf *m)
{
    (void)body;
    (void)m;
    *d = v_half(block_scales);
}

#endif
