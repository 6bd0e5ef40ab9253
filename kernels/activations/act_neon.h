/* SPDX-License-Identifier: MIT
 *
 * act_neon.h - steps of activation quantisation with NEON
 */
#ifndef SLM_KERNELS_ACT_NEON_H
#define SLM_KERNELS_ACT_NEON_H

#include "kernels/activations/activations.h"
#include "kernels/half.h"
#include "kernels/simd/neon.h"

/* Lane-wise maximum of magnitudes of 16 values, as bits: magnitudes compare like
 * integers, and a NaN is above infinity, so it wins. */
SIMD_INLINE uint32x4_t act_max_16(uint32x4_t largest, const float *x)
{
    const uint32x4_t magnitude = vdupq_n_u32(0x7fffffff);

    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        largest = vmaxq_u32(
            largest, vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + 4 * i)), magnitude));
    return largest;
}

SIMD_INLINE float act_max_lane(uint32x4_t v)
{
    return float_from_bits(vmaxvq_u32(v));
}

/* 16 values to bytes; the narrowing never saturates, as |x * inverse| <= 127. */
SIMD_INLINE int8x16_t act_round_16(const float *x, float inverse)
{
    int32x4_t v[4];

    if (inverse == 0)
        return vdupq_n_s8(0);
    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        v[i] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), inverse));
    return vuzp1q_s8(vreinterpretq_s8_s16(vuzp1q_s16(vreinterpretq_s16_s32(v[0]),
                                                     vreinterpretq_s16_s32(v[1]))),
                     vreinterpretq_s8_s16(vuzp1q_s16(vreinterpretq_s16_s32(v[2]),
                                                     vreinterpretq_s16_s32(v[3]))));
}

#endif
