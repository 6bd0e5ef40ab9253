/* SPDX-License-Identifier: MIT
 *
 * probe_avxvnni.c - the int8 roof with AVX-VNNI
 */
#include "kernels/probe/probe.h"

#include <immintrin.h>

#define N_INT8 10 /* independent sums */

/* The 32-bit sums may wrap: nobody reads them as numbers. */
static inline __m256i multiply_add(__m256i acc, __m256i a, __m256i b)
{
    return _mm256_dpbusd_avx_epi32(acc, a, b);
}

uint64_t kern_peak_int8__avxvnni(uint64_t n_iters, uint64_t *sink)
{
    __m256i acc[N_INT8], a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-5);
    int32_t lane[8];

    /* the empty asm hides values, so that equal sums are not merged into one and
     * products of equal operands are not shared */
    for (int i = 0; i < N_INT8; i++) {
        acc[i] = _mm256_set1_epi32(i);
        __asm__("" : "+x"(acc[i]));
    }
    for (uint64_t it = 0; it < n_iters; it++)
        for (int i = 0; i < N_INT8; i++) {
            __asm__ volatile("" : "+x"(a));
            acc[i] = multiply_add(acc[i], a, b);
        }
    for (int i = 1; i < N_INT8; i++)
        acc[0] = _mm256_add_epi32(acc[0], acc[i]);
    _mm256_storeu_si256((__m256i *)lane, acc[0]);
    *sink = (uint32_t)lane[0];
    return n_iters * N_INT8 * 32 * 2;
}
