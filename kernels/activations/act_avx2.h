/* SPDX-License-Identifier: MIT
 *
 * act_avx2.h - steps of activation quantisation with AVX2
 */
#ifndef SLM_KERNELS_ACT_AVX2_H
#define SLM_KERNELS_ACT_AVX2_H

#include "kernels/activations/activations.h"
#include "kernels/simd/avx2.h"

/* Lane-wise maximum of magnitudes of 32 values, as bits: magnitudes compare like
 * integers, and a NaN is above infinity, so it wins. */
SIMD_INLINE __m256i act_max_32(__m256i largest, const float *x)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);

    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        largest =
            _mm256_max_epi32(largest, _mm256_and_si256(load_256(x + 8 * i), magnitude));
    return largest;
}

SIMD_INLINE float act_max_lane(__m256i v)
{
    __m128i m =
        _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(m));
}

/* 32 values to bytes. The packs interleave 128-bit halves, in groups of four
 * bytes, as 0 2 4 6 1 3 5 7; the permutation puts them in order. */
SIMD_INLINE __m256i act_round_32(const float *x, float inverse)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256 scale = _mm256_set1_ps(inverse);
    __m256i v[4];

    if (inverse == 0)
        return _mm256_setzero_si256();
    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), scale));
    return _mm256_permutevar8x32_epi32(
        _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]),
                           _mm256_packs_epi32(v[2], v[3])),
        order);
}

/* Sums of each 16 bytes of q: 32-bit lanes 0..3 add up to the first, 4..7 to the
 * second. */
SIMD_INLINE __m256i act_partial_sums(__m256i q)
{
    return widen_pairs(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q));
}

#endif
