/* SPDX-License-Identifier: MIT
 *
 * attention_pairs.h - floats as pairs of bf16, rounded to nearest even
 */
#ifndef SLM_KERNELS_VECOPS_ATTENTION_PAIRS_H
#define SLM_KERNELS_VECOPS_ATTENTION_PAIRS_H

#include <immintrin.h>

#include "kernels/simd/simd.h"

enum { LANES = 16 }; /* pairs of a vector */

/* The first n of 32 floats, which may be none; zeros for the others. */
SIMD_INLINE __m512i first_pairs(const float *x, size_t n)
{
    const __mmask32 mask =
        n >= 2 * LANES ? 0xffffffff : (__mmask32)(((uint32_t)1 << n) - 1);

    return (__m512i)_mm512_cvtne2ps_pbh(
        _mm512_maskz_loadu_ps((__mmask16)(mask >> LANES), x + LANES),
        _mm512_maskz_loadu_ps((__mmask16)mask, x));
}

/* n floats; zeros up to the next multiple of LANES pairs. */
SIMD_INLINE void to_pairs(const float *x, size_t n, uint32_t *pairs)
{
    for (size_t i = 0; i < n; i += 2 * LANES)
        _mm512_storeu_si512(pairs + i / 2, first_pairs(x + i, n - i));
}

#endif
