/* SPDX-License-Identifier: MIT
 *
 * x16_five.h - weights of q5_0 and q5_1: nibbles, and the fifth bits apart
 *
 * Body, in dwords: qh, then four of nibbles. Bit i of qh belongs to weight i, so each
 * byte of qh has the bits of eight neighbours: it is copied to all bytes of its lane,
 * where each looks at another bit.
 */
#ifndef SLM_KERNELS_SIMD_X16_FIVE_H
#define SLM_KERNELS_SIMD_X16_FIVE_H

#include "kernels/simd/x16_block.h"

SIMD_INLINE void x16_five_weights(const uint8_t *body, int step, x16_emit_fn *emit,
                                  struct x16_sink *sink)
{
    const vi low = v_set1_8(15), sixteen = v_set1_8(16);
    const vi bit = v_set1_32(step % 2 == 0 ? 0x08040201 : (int)0x80402010);
    const vi qh = v_load(body), raw = v_load(body + 64 * (1 + step));

    emit(sink, step,
         v_add8_if(v_and(raw, low), v_lane_byte(qh, step / 2), bit, sixteen));
    emit(sink, 4 + step,
         v_add8_if(v_srl8(raw, 4), v_lane_byte(qh, 2 + step / 2), bit, sixteen));
}

#endif
