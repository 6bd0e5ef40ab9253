/* SPDX-License-Identifier: MIT
 *
 * vec_neon_pairs.h - the words of x16_pairs.h in 128-bit Arm registers, for levels
 * that have SMMLA
 */
#ifndef SLM_KERNELS_SIMD_VEC_NEON_PAIRS_H
#define SLM_KERNELS_SIMD_VEC_NEON_PAIRS_H

#include "kernels/simd/vec_neon.h"

/* In: four weights of every row and the next four. Out: rows 0..7, rows 8..15. */
SIMD_INLINE void v_pair_rows(vi *first, vi *second)
{
    const vi a = *first, b = *second;

    *first = (vi){vzip1q_s32(a.q0, b.q0), vzip2q_s32(a.q0, b.q0),
                  vzip1q_s32(a.q1, b.q1), vzip2q_s32(a.q1, b.q1)};
    *second = (vi){vzip1q_s32(a.q2, b.q2), vzip2q_s32(a.q2, b.q2),
                   vzip1q_s32(a.q3, b.q3), vzip2q_s32(a.q3, b.q3)};
}

/* Sixteen bytes of two columns: the first eight of both, the others of both. */
SIMD_INLINE void v_pair_columns(const int8_t *a, const int8_t *b, int8x16_t out[2])
{
    const int64x2_t va = vreinterpretq_s64_s8(vld1q_s8(a));
    const int64x2_t vb = vreinterpretq_s64_s8(vld1q_s8(b));

    out[0] = vreinterpretq_s8_s64(vzip1q_s64(va, vb));
    out[1] = vreinterpretq_s8_s64(vzip2q_s64(va, vb));
}

SIMD_INLINE int32x4_t q_dot_pair(int32x4_t sum, int32x4_t w, int8x16_t x)
{
    return vmmlaq_s32(sum, vreinterpretq_s8_s32(w), x);
}

/* part + eight weights of eight rows times two columns. */
SIMD_INLINE vi v_dot_2x2(vi part, vi w, int8x16_t x)
{
    return (vi){q_dot_pair(part.q0, w.q0, x), q_dot_pair(part.q1, w.q1, x),
                q_dot_pair(part.q2, w.q2, x), q_dot_pair(part.q3, w.q3, x)};
}

/* Numbers of rows 8 * half .. 8 * half + 7, beside sums of two columns. */
SIMD_INLINE vf v_pair_row_floats(vf v, int half)
{
    const float32x4_t a = half == 0 ? v.q0 : v.q2, b = half == 0 ? v.q1 : v.q3;

    return (vf){vzip1q_f32(a, a), vzip2q_f32(a, a), vzip1q_f32(b, b), vzip2q_f32(b, b)};
}

/* Numbers of two columns, beside sums of any rows. */
SIMD_INLINE vf v_pair_column_floats(const float *a, const float *b)
{
    const float32x2_t ab = vld1_lane_f32(b, vld1_dup_f32(a), 1);

    return V_ALL(vf, vcombine_f32(ab, ab));
}

SIMD_INLINE vi v_pair_column_ints(const int32_t *a, const int32_t *b)
{
    const int32x2_t ab = vld1_lane_s32(b, vld1_dup_s32(a), 1);

    return V_ALL(vi, vcombine_s32(ab, ab));
}

/* Sums of two columns, rows 0..7 and rows 8..15, to one column and the other. */
SIMD_INLINE void v_part_columns(vf low, vf high, vf *a, vf *b)
{
    *a = (vf){vuzp1q_f32(low.q0, low.q1), vuzp1q_f32(low.q2, low.q3),
              vuzp1q_f32(high.q0, high.q1), vuzp1q_f32(high.q2, high.q3)};
    *b = (vf){vuzp2q_f32(low.q0, low.q1), vuzp2q_f32(low.q2, low.q3),
              vuzp2q_f32(high.q0, high.q1), vuzp2q_f32(high.q2, high.q3)};
}

SIMD_INLINE vf v_add(vf a, vf b)
{
    return V_EACH_2(vf, vaddq_f32, a, b);
}

#endif
