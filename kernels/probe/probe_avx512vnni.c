/* SPDX-License-Identifier: MIT
 *
 * probe_avx512vnni.c - the int8 roof with AVX512-VNNI
 */
#include "kernels/probe/probe.h"

#include <immintrin.h>

#define N_INT8 16 /* independent sums */

/* The 32-bit sums may wrap: nobody reads them as numbers. */
static inline __m512i multiply_add(__m512i acc, __m512i a, __m512i b)
{
    return _mm512_dpbusd_epi32(acc, a, b);
}

uint64_t kern_peak_int8__avx512vnni(uint64_t n_iters, uint64_t *sink)
{
    __m512i acc[N_INT8], a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-5);
    int32_t lane[16];

    /* the empty asm hides values, so that equal sums are not merged into one and
     * products of equal operands are not shared */
    for (int i = 0; i < N_INT8; i++) {
        acc[i] = _mm512_set1_epi32(i);
        __asm__("" : "+v"(acc[i]));
    }
    for (uint64_t it = 0; it < n_iters; it++)
        for (int i = 0; i < N_INT8; i++) {
            __asm__ volatile("" : "+v"(a));
            acc[i] = multiply_add(acc[i], a, b);
        }
    for (int i = 1; i < N_INT8; i++)
        acc[0] = _mm512_add_epi32(acc[0], acc[i]);
    _mm512_storeu_si512(lane, acc[0]);
    *sink = (uint32_t)lane[0];
    return n_iters * N_INT8 * 64 * 2;
}
