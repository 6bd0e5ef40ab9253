/* SPDX-License-Identifier: MIT
 *
 * vec_float.h - the words on floats that attention needs besides those of vec.h
 *
 *   v_load_f          V_LANES floats at any address
 *   v_add, v_sub, v_div, v_max_f, v_exp    lane by lane
 *   v_sum, v_largest  of all lanes
 *   v_dot             sum of products of n floats
 */
#ifndef SLM_KERNELS_VECOPS_VEC_FLOAT_H
#define SLM_KERNELS_VECOPS_VEC_FLOAT_H

#include "kernels/simd/exp.h"
#include "kernels/simd/vec.h"

#if defined(KERN_LEVEL_avx512) || defined(KERN_LEVEL_avx2)
SIMD_INLINE vf v_load_f(const float *p)
{
    return MM(loadu_ps)(p);
}

SIMD_INLINE vf v_sub(vf a, vf b)
{
    return MM(sub_ps)(a, b);
}

#ifdef KERN_LEVEL_avx512
SIMD_INLINE vf v_exp(vf v)
{
    return exp_avx512(v);
}

SIMD_INLINE float v_sum(vf v)
{
    return _mm512_reduce_add_ps(v);
}

SIMD_INLINE float v_largest(vf v)
{
    return _mm512_reduce_max_ps(v);
}
#else
SIMD_INLINE vf v_exp(vf v)
{
    return exp_avx2(v);
}

SIMD_INLINE float v_sum(vf v)
{
    return sum_8_floats(v);
}

SIMD_INLINE float v_largest(vf v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
#endif
#elif defined(KERN_LEVEL_neon)
SIMD_INLINE vf v_load_f(const float *p)
{
    return (vf){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}

SIMD_INLINE vf v_add(vf a, vf b)
{
    return V_EACH_2(vf, vaddq_f32, a, b);
}

SIMD_INLINE vf v_sub(vf a, vf b)
{
    return V_EACH_2(vf, vsubq_f32, a, b);
}

SIMD_INLINE vf v_div(vf a, vf b)
{
    return V_EACH_2(vf, vdivq_f32, a, b);
}

SIMD_INLINE vf v_max_f(vf a, vf b)
{
    return V_EACH_2(vf, vmaxq_f32, a, b);
}

SIMD_INLINE vf v_exp(vf v)
{
    return V_EACH_1(vf, exp_neon, v);
}

SIMD_INLINE float v_sum(vf v)
{
    return vaddvq_f32(vaddq_f32(vaddq_f32(v.q0, v.q1), vaddq_f32(v.q2, v.q3)));
}

SIMD_INLINE float v_largest(vf v)
{
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(v.q0, v.q1), vmaxq_f32(v.q2, v.q3)));
}
#endif

SIMD_INLINE float v_dot(const float *a, const float *b, size_t n)
{
    vf sum[2] = {v_zero_f(), v_zero_f()};
    float rest = 0.0f;
    size_t i = 0;

    for (; i + 2 * V_LANES <= n; i += 2 * V_LANES) {
        sum[0] = v_fma(v_load_f(a + i), v_load_f(b + i), sum[0]);
        sum[1] = v_fma(v_load_f(a + i + V_LANES), v_load_f(b + i + V_LANES), sum[1]);
    }
    for (; i + V_LANES <= n; i += V_LANES)
        sum[0] = v_fma(v_load_f(a + i), v_load_f(b + i), sum[0]);
    for (; i < n; i++)
        rest += a[i] * b[i];
    return v_sum(v_add(sum[0], sum[1])) + rest;
}

#endif
