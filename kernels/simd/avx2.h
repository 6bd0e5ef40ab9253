/* SPDX-License-Identifier: MIT
 *
 * avx2.h - helpers shared by kernels with 256-bit registers
 *
 * Static inline functions only; for files compiled with at least AVX2, FMA and
 * F16C.
 */
#ifndef SLM_KERNELS_SIMD_AVX2_H
#define SLM_KERNELS_SIMD_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/simd/simd.h"

/* Any 16, 32 bytes. */
SIMD_INLINE __m128i load_128(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

SIMD_INLINE __m256i load_256(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* Sum of pairs of 16-bit values in 32 bits. */
SIMD_INLINE __m256i widen_pairs(__m256i v16)
{
    return _mm256_madd_epi16(v16, _mm256_set1_epi16(1));
}

SIMD_INLINE float sum_8_floats(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* Ends shorter than a register are copied through eight floats on the stack: masked
 * stores are slow on part of the CPUs of this level, and emulators fault on masked
 * loads next to an unreadable page. load_part: the first n < 8 floats at p, then
 * zeros. store_part: p[0..n) = the first n < 8 of v. */
static inline __m256 load_part(const float *p, size_t n)
{
    float part[8] = {0};

    memcpy(part, p, n * sizeof(float));
    return _mm256_loadu_ps(part);
}

static inline void store_part(float *p, __m256 v, size_t n)
{
    float part[8];

    _mm256_storeu_ps(part, v);
    memcpy(p, part, n * sizeof(float));
}

#endif
