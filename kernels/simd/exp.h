/* SPDX-License-Identifier: MIT
 *
 * exp.h - exp() of a register of floats
 *
 * exp(x) = 2^n * exp(r) with n = round(x / ln 2) and r = x - n ln 2, |r| <= ln 2 / 2.
 * ln 2 is subtracted in two parts: EXP_LN2_HI has 15 significant bits, so n times
 * it is exact for |n| < 2^9, and EXP_LN2_LO is the rest.
 *
 *   exp(r) = 1 + r + r^2 * P(r),  P of degree 4
 *
 * P interpolates (exp(r) - 1 - r) / r^2 at the five Chebyshev nodes of
 * [-0.3468, 0.3468] (ln 2 / 2 and a little, for the rounding of n). With the
 * coefficients rounded to float the relative error against exp(r) is below
 * 1.1e-8, a fifth of a unit in the last place; the rounding of the final
 * additions dominates.
 *
 * Below -104 the result is 0 (2^-150 is half the smallest subnormal), above
 * 88.73 infinity; -infinity gives 0, infinity infinity, NaN NaN. Subnormal results
 * are rounded once.
 */
#ifndef SLM_KERNELS_SIMD_EXP_H
#define SLM_KERNELS_SIMD_EXP_H

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define EXP_LOWEST   -104.0f
#define EXP_HIGHEST  89.0f
#define EXP_1_BY_LN2 0x1.715476p+0f
#define EXP_LN2_HI   0x1.62e4p-1f
#define EXP_LN2_LO   0x1.7f7d1cp-20f
#define EXP_P0       0.5f
#define EXP_P1       1.666657627e-01f
#define EXP_P2       4.166655615e-02f
#define EXP_P3       8.363203146e-03f
#define EXP_P4       1.392621314e-03f

#ifdef __AVX2__
static inline __m256 exp_avx2(__m256 x)
{
    /* Operands in this order, so that NaN stays. */
    x = _mm256_max_ps(_mm256_set1_ps(EXP_LOWEST), x);
    x = _mm256_min_ps(_mm256_set1_ps(EXP_HIGHEST), x);

    const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(EXP_1_BY_LN2)),
                                     _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(EXP_LN2_HI), x);
    __m256 p = _mm256_set1_ps(EXP_P4);

    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(EXP_LN2_LO), r);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_P0));
    p = _mm256_fmadd_ps(_mm256_mul_ps(r, r), p, r);
    p = _mm256_add_ps(p, _mm256_set1_ps(1.0f));

    /* n is in -150..128, beyond one exponent: scale by two halves of it. Only the
     * second product can leave the normal range, so only it rounds. */
    const __m256i whole = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    const __m256i rest = _mm256_sub_epi32(whole, half);
    const __m256i bias = _mm256_set1_epi32(127);
    const __m256i scale1 = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    const __m256i scale2 = _mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23);

    p = _mm256_mul_ps(p, _mm256_castsi256_ps(scale1));
    return _mm256_mul_ps(p, _mm256_castsi256_ps(scale2));
}
#endif

#ifdef __AVX512F__
static inline __m512 exp_avx512(__m512 x)
{
    /* Operands in this order, so that NaN stays. */
    x = _mm512_max_ps(_mm512_set1_ps(EXP_LOWEST), x);
    x = _mm512_min_ps(_mm512_set1_ps(EXP_HIGHEST), x);

    const __m512 n =
        _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(EXP_1_BY_LN2)),
                             _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_LN2_HI), x);
    __m512 p = _mm512_set1_ps(EXP_P4);

    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_LN2_LO), r);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_P3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_P2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_P1));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_P0));
    p = _mm512_fmadd_ps(_mm512_mul_ps(r, r), p, r);
    p = _mm512_add_ps(p, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, n); /* p * 2^n, rounded once */
}
#endif

#ifdef __aarch64__
static inline float32x4_t exp_neon(float32x4_t x)
{
    /* FMAX and FMIN keep NaN. */
    x = vmaxq_f32(x, vdupq_n_f32(EXP_LOWEST));
    x = vminq_f32(x, vdupq_n_f32(EXP_HIGHEST));

    const float32x4_t n = vrndnq_f32(vmulq_n_f32(x, EXP_1_BY_LN2));
    float32x4_t r = vfmsq_f32(x, n, vdupq_n_f32(EXP_LN2_HI));
    float32x4_t p = vdupq_n_f32(EXP_P4);

    r = vfmsq_f32(r, n, vdupq_n_f32(EXP_LN2_LO));
    p = vfmaq_f32(vdupq_n_f32(EXP_P3), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_P2), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_P1), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_P0), p, r);
    p = vfmaq_f32(r, vmulq_f32(r, r), p);
    p = vaddq_f32(p, vdupq_n_f32(1.0f));

    /* two halves of n, as in exp_avx2() */
    const int32x4_t whole = vcvtq_s32_f32(n);
    const int32x4_t half = vshrq_n_s32(whole, 1);
    const int32x4_t rest = vsubq_s32(whole, half);
    const int32x4_t bias = vdupq_n_s32(127);
    const int32x4_t scale1 = vshlq_n_s32(vaddq_s32(half, bias), 23);
    const int32x4_t scale2 = vshlq_n_s32(vaddq_s32(rest, bias), 23);

    p = vmulq_f32(p, vreinterpretq_f32_s32(scale1));
    return vmulq_f32(p, vreinterpretq_f32_s32(scale2));
}
#endif

#endif
