/* SPDX-License-Identifier: MIT
 *
 * neon.h - helpers shared by kernels with 128-bit Arm registers
 *
 * Static inline functions only; for files compiled with at least Armv8.2, dot
 * product and half precision.
 */
#ifndef SLM_KERNELS_SIMD_NEON_H
#define SLM_KERNELS_SIMD_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/simd/simd.h"

/* Four or eight halves at any address as floats. */
SIMD_INLINE float32x4_t load_4_halves(const void *p)
{
    uint16x4_t v;

    memcpy(&v, p, sizeof(v));
    return vcvt_f32_f16(vreinterpret_f16_u16(v));
}

struct eight_floats {
    float32x4_t low, high;
};

SIMD_INLINE struct eight_floats load_8_halves(const void *p)
{
    uint16x8_t v;

    memcpy(&v, p, sizeof(v));

    const float16x8_t h = vreinterpretq_f16_u16(v);

    return (struct eight_floats){vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h)};
}

/* The first n < 4 floats at p, then zeros. */
static inline float32x4_t load_part(const float *p, size_t n)
{
    float part[4] = {0};

    memcpy(part, p, n * sizeof(float));
    return vld1q_f32(part);
}

/* p[0..n) = the first n < 4 of v. */
static inline void store_part(float *p, float32x4_t v, size_t n)
{
    memcpy(p, &v, n * sizeof(float));
}

/* Transposes a 4 x 4 matrix of 32-bit elements, row i in m[i]. */
SIMD_INLINE void transpose_4x4(int32x4_t m[4])
{
    const int64x2_t ab = vreinterpretq_s64_s32(vtrn1q_s32(m[0], m[1]));
    const int64x2_t ab_odd = vreinterpretq_s64_s32(vtrn2q_s32(m[0], m[1]));
    const int64x2_t cd = vreinterpretq_s64_s32(vtrn1q_s32(m[2], m[3]));
    const int64x2_t cd_odd = vreinterpretq_s64_s32(vtrn2q_s32(m[2], m[3]));

    m[0] = vreinterpretq_s32_s64(vtrn1q_s64(ab, cd));
    m[1] = vreinterpretq_s32_s64(vtrn1q_s64(ab_odd, cd_odd));
    m[2] = vreinterpretq_s32_s64(vtrn2q_s64(ab, cd));
    m[3] = vreinterpretq_s32_s64(vtrn2q_s64(ab_odd, cd_odd));
}

#endif
