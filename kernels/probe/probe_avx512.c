/* SPDX-License-Identifier: MIT
 *
 * probe_avx512.c - the roofs with 512-bit registers
 */
#include "kernels/probe/probe.h"

#include <immintrin.h>

/* Adds the line at p to the accumulators. */
static inline void add_line(__m512i *acc, const char *p)
{
    *acc = _mm512_add_epi64(*acc, _mm512_load_si512((const void *)p));
}

/* Prefetch goes to the second level: on its way to the first a line would hold one
 * of few miss buffers for the whole latency of memory. */
static inline uint64_t read_streams(const char *p, size_t part, int n_streams,
                                    size_t ahead)
{
    __m512i acc[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(),
                      _mm512_setzero_si512(), _mm512_setzero_si512()};
    uint64_t word[8], sum = 0;

    for (size_t at = 0; at < part; at += 64)
        for (int s = 0; s < n_streams; s++) {
            const char *line = p + (size_t)s * part + at;

            if (ahead)
                _mm_prefetch(line + ahead, _MM_HINT_T1);
            add_line(&acc[s], line);
        }
    acc[0] = _mm512_add_epi64(_mm512_add_epi64(acc[0], acc[1]),
                              _mm512_add_epi64(acc[2], acc[3]));
    _mm512_storeu_si512(word, acc[0]);
    for (int i = 0; i < 8; i++)
        sum += word[i];
    return sum;
}

/* Number of streams and whether to prefetch are constants in each call, so that
 * every variant is a loop of its own without branches. */
uint64_t kern_stream_read__avx512(const void *p, size_t bytes, int n_streams,
                                  size_t ahead)
{
    const size_t part = bytes / 64 / (size_t)n_streams * 64;
    const size_t done = part * (size_t)n_streams;
    uint64_t sum;

    if (n_streams == 4)
        sum = ahead ? read_streams(p, part, 4, ahead) : read_streams(p, part, 4, 0);
    else if (n_streams == 2)
        sum = ahead ? read_streams(p, part, 2, ahead) : read_streams(p, part, 2, 0);
    else
        sum = ahead ? read_streams(p, part, 1, ahead) : read_streams(p, part, 1, 0);
    return sum + read_streams((const char *)p + done, bytes - done, 1, 0);
}

#define N_INT8 16 /* independent sums */

/* Range: a 16-bit lane of maddubs holds 2 * 3 * -5; the 32-bit sums may wrap, as
 * nobody reads them as numbers. */
static inline __m512i multiply_add(__m512i acc, __m512i a, __m512i b)
{
    const __m512i pairs = _mm512_maddubs_epi16(a, b);

    return _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}

uint64_t kern_peak_int8__avx512(uint64_t n_iters, uint64_t *sink)
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

#define N_F32 16 /* independent sums: two units of four or five cycles need ten */

uint64_t kern_peak_f32__avx512(uint64_t n_iters, uint64_t *sink)
{
    __m512 acc[N_F32];
    const __m512 a = _mm512_set1_ps(0.75f), b = _mm512_set1_ps(0.25f);
    float lane[16];

    for (int i = 0; i < N_F32; i++) {
        acc[i] = _mm512_set1_ps((float)i);
        __asm__("" : "+v"(acc[i]));
    }
    /* tends to 1, so it neither overflows nor becomes denormal */
    for (uint64_t it = 0; it < n_iters; it++)
        for (int i = 0; i < N_F32; i++)
            acc[i] = _mm512_fmadd_ps(acc[i], a, b);
    for (int i = 1; i < N_F32; i++)
        acc[0] = _mm512_add_ps(acc[0], acc[i]);
    _mm512_storeu_ps(lane, acc[0]);
    *sink = (uint64_t)lane[0];
    return n_iters * N_F32 * 16 * 2;
}
