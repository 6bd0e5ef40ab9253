/* SPDX-License-Identifier: MIT
 *
 * probe_avx2.c - the roofs with 256-bit registers
 */
#include "kernels/probe/probe.h"

#include <immintrin.h>

/* Adds the line at p to the accumulators. */
static inline void add_line(__m256i *acc, const char *p)
{
    acc[0] = _mm256_add_epi64(acc[0], _mm256_load_si256((const void *)p));
    acc[1] = _mm256_add_epi64(acc[1], _mm256_load_si256((const void *)(p + 32)));
}

/* Prefetch goes to the second level: on its way to the first a line would hold one
 * of few miss buffers for the whole latency of memory. */
static inline uint64_t read_streams(const char *p, size_t part, int n_streams,
                                    size_t ahead)
{
    __m256i acc[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(),
                      _mm256_setzero_si256(), _mm256_setzero_si256()};
    uint64_t word[4], sum = 0;

    for (size_t at = 0; at < part; at += 64)
        for (int s = 0; s < n_streams; s++) {
            const char *line = p + (size_t)s * part + at;

            if (ahead)
                _mm_prefetch(line + ahead, _MM_HINT_T1);
            add_line(&acc[s % 2 * 2], line);
        }
    acc[0] = _mm256_add_epi64(_mm256_add_epi64(acc[0], acc[1]),
                              _mm256_add_epi64(acc[2], acc[3]));
    _mm256_storeu_si256((__m256i *)word, acc[0]);
    for (int i = 0; i < 4; i++)
        sum += word[i];
    return sum;
}

/* Number of streams and whether to prefetch are constants in each call, so that
 * every variant is a loop of its own without branches. */
uint64_t kern_stream_read__avx2(const void *p, size_t bytes, int n_streams,
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

#define N_INT8 10 /* independent sums */

/* Range: a 16-bit lane of maddubs holds 2 * 3 * -5; the 32-bit sums may wrap, as
 * nobody reads them as numbers. */
static inline __m256i multiply_add(__m256i acc, __m256i a, __m256i b)
{
    const __m256i pairs = _mm256_maddubs_epi16(a, b);

    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

uint64_t kern_peak_int8__avx2(uint64_t n_iters, uint64_t *sink)
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

#define N_F32 12 /* independent sums: two units of four or five cycles need ten */

uint64_t kern_peak_f32__avx2(uint64_t n_iters, uint64_t *sink)
{
    __m256 acc[N_F32];
    const __m256 a = _mm256_set1_ps(0.75f), b = _mm256_set1_ps(0.25f);
    float lane[8];

    for (int i = 0; i < N_F32; i++) {
        acc[i] = _mm256_set1_ps((float)i);
        __asm__("" : "+x"(acc[i]));
    }
    /* tends to 1, so it neither overflows nor becomes denormal */
    for (uint64_t it = 0; it < n_iters; it++)
        for (int i = 0; i < N_F32; i++)
            acc[i] = _mm256_fmadd_ps(acc[i], a, b);
    for (int i = 1; i < N_F32; i++)
        acc[0] = _mm256_add_ps(acc[0], acc[i]);
    _mm256_storeu_ps(lane, acc[0]);
    *sink = (uint64_t)lane[0];
    return n_iters * N_F32 * 8 * 2;
}
