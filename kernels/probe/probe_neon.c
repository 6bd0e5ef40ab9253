/* SPDX-License-Identifier: MIT
 *
 * probe_neon.c - the roofs with NEON and the dot product instructions
 */
#include "kernels/probe/probe.h"

#include <arm_neon.h>

/* Adds the line at p to the accumulators. */
static inline void add_line(uint64x2_t *acc, const char *p)
{
    const uint64_t *word = (const uint64_t *)(const void *)p;

    for (int i = 0; i < 4; i++)
        acc[i] = vaddq_u64(acc[i], vld1q_u64(word + 2 * i));
}

/* Prefetch goes to the second level: on its way to the first a line would hold one
 * of few miss buffers for the whole latency of memory. */
static inline uint64_t read_streams(const char *p, size_t part, int n_streams,
                                    size_t ahead)
{
    uint64x2_t acc[8];

    for (int i = 0; i < 8; i++)
        acc[i] = vdupq_n_u64(0);
    for (size_t at = 0; at < part; at += 64)
        for (int s = 0; s < n_streams; s++) {
            const char *line = p + (size_t)s * part + at;

            if (ahead)
                __builtin_prefetch(line + ahead, 0, 2);
            add_line(&acc[s % 2 * 4], line);
        }
    for (int i = 1; i < 8; i++)
        acc[0] = vaddq_u64(acc[0], acc[i]);
    return vaddvq_u64(acc[0]);
}

/* Number of streams and whether to prefetch are constants in each call, so that
 * every variant is a loop of its own without branches. */
uint64_t kern_stream_read__neon(const void *p, size_t bytes, int n_streams,
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

#define N_SUMS 16 /* independent: four units of four cycles */

/* The 32-bit sums may wrap: nobody reads them as numbers. */
uint64_t kern_peak_int8__neon(uint64_t n_iters, uint64_t *sink)
{
    int8x16_t a = vdupq_n_s8(3), b = vdupq_n_s8(-5);
    int32x4_t acc[N_SUMS];

    /* the empty asm hides values, so that equal sums are not merged into one and
     * products of equal operands are not shared */
    for (int i = 0; i < N_SUMS; i++) {
        acc[i] = vdupq_n_s32(i);
        __asm__("" : "+w"(acc[i]));
    }
    for (uint64_t it = 0; it < n_iters; it++)
        for (int i = 0; i < N_SUMS; i++) {
            __asm__ volatile("" : "+w"(a));
            acc[i] = vdotq_s32(acc[i], a, b);
        }
    for (int i = 1; i < N_SUMS; i++)
        acc[0] = vaddq_s32(acc[0], acc[i]);
    *sink = (uint32_t)vaddvq_s32(acc[0]);
    return n_iters * N_SUMS * 16 * 2;
}

uint64_t kern_peak_f32__neon(uint64_t n_iters, uint64_t *sink)
{
    const float32x4_t a = vdupq_n_f32(0.75f), b = vdupq_n_f32(0.25f);
    float32x4_t acc[N_SUMS];

    for (int i = 0; i < N_SUMS; i++) {
        acc[i] = vdupq_n_f32((float)i);
        __asm__("" : "+w"(acc[i]));
    }
    /* FMLA adds to its first operand, so the sums grow, by 3/16 a round until that is
     * less than a rounding: no overflow */
    for (uint64_t it = 0; it < n_iters; it++)
        for (int i = 0; i < N_SUMS; i++)
            acc[i] = vfmaq_f32(acc[i], a, b);
    for (int i = 1; i < N_SUMS; i++)
        acc[0] = vaddq_f32(acc[0], acc[i]);
    *sink = (uint64_t)vaddvq_f32(acc[0]);
    return n_iters * N_SUMS * 4 * 2;
}
