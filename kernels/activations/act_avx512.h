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

/* 64 values to bytes. The packs leave groups of four bytes in the order 0 4 8 12
 * 1 5 9 13 ...; the permutation puts them right. */
SIMD_INLINE __m512i act_round_64(const float *x, float inverse)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i v01 =
        _mm512_packs_epi32(act_round_16(x, inverse), act_round_16(x + 16, inverse));
    const __m512i v23 = _mm512_packs_epi32(act_round_16(x + 32, inverse),
                                           act_round_16(x + 48, inverse));

    return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(v01, v23));
}

#endif
