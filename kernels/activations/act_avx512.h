/* SPDX-License-Identifier: MIT
 *
 * act_avx512.h - steps of activation quantisation with 512-bit registers
 */
#ifndef SLM_KERNELS_ACT_AVX512_H
#define SLM_KERNELS_ACT_AVX512_H

#include "kernels/activations/activations.h"
#include "kernels/simd/avx512.h"

/* Lane-wise maximum of magnitudes of 16 values, as bits: magnitudes compare like
 * integers, and a NaN is above infinity, so it wins. */
SIMD_INLINE __m512i act_max_16(__m512i largest, const float *x)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);

    return _mm512_max_epi32(largest, _mm512_and_si512(load_512(x), magnitude));
}

SIMD_INLINE float act_max_lane(__m512i v)
{
    const int32_t bits = _mm512_reduce_max_epi32(v);
    float largest;

    memcpy(&largest, &bits, sizeof(largest));
    return largest;
}

/* 16 values to 32-bit integers. */
SIMD_INLINE __m512i act_round_16(const float *x, float inverse)
{
    if (inverse == 0)
        return _mm512_setzero_si512();
    return _mm512_cvtps_epi32(
        _mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(inverse)));
}

#endif
