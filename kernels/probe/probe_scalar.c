/* SPDX-License-Identifier: MIT
 *
 * probe_scalar.c - the roofs in portable C
 */
#include "kernels/probe/probe.h"

/* Sum of the words of one part's line. */
static inline void add_line(uint64_t *restrict acc, const uint64_t *p)
{
    for (int i = 0; i < 8; i++)
        acc[i] += p[i];
}

static uint64_t read_streams(const char *p, size_t part, int n_streams, size_t distance)
{
    uint64_t acc[8] = {0}, sum = 0;

    for (size_t at = 0; at < part; at += 64)
        for (int s = 0; s < n_streams; s++) {
            const char *line = p + (size_t)s * part + at;

            if (distance)
                __builtin_prefetch(line + distance, 0, 3);
            add_line(acc, (const uint64_t *)(const void *)line);
        }
    for (int i = 0; i < 8; i++)
        sum += acc[i];
    return sum;
}

uint64_t kern_stream_read__scalar(const void *p, size_t bytes, int n_streams,
                                  size_t distance)
{
    const size_t part = bytes / 64 / (size_t)n_streams * 64;
    const size_t done = part * (size_t)n_streams;

    return read_streams(p, part, n_streams, distance) +
           read_streams((const char *)p + done, bytes - done, 1, 0);
}

#define N_BYTES 1024 /* of each operand: both stay in the first-level cache */

/* Range: 1024 products of at most 255 * 128 add up to 3.4e7. */
uint64_t kern_peak_int8__scalar(uint64_t n_iters, uint64_t *sink)
{
    uint8_t a[N_BYTES];
    int8_t b[N_BYTES];
    uint64_t sum = 0;

    for (int i = 0; i < N_BYTES; i++) {
        a[i] = (uint8_t)(i * 7);
        b[i] = (int8_t)(i * 3);
    }
    for (uint64_t it = 0; it < n_iters; it++) {
        int32_t acc = 0;

        /* the arrays may have changed, as far as the compiler can tell: it must
         * not lift the loop out */
        __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
        for (int i = 0; i < N_BYTES; i++)
            acc += a[i] * b[i];
        sum += (uint32_t)acc;
    }
    *sink = sum;
    return n_iters * N_BYTES * 2;
}

#define N_CHAINS 32 /* independent sums, enough to hide the latency of 4 cycles */

uint64_t kern_peak_f32__scalar(uint64_t n_iters, uint64_t *sink)
{
    float acc[N_CHAINS];
    double sum = 0;

    for (int i = 0; i < N_CHAINS; i++)
        acc[i] = (float)i;
    /* tends to 1, so it neither overflows nor becomes denormal */
    for (uint64_t it = 0; it < n_iters; it++)
        for (int i = 0; i < N_CHAINS; i++)
            acc[i] = acc[i] * 0.75f + 0.25f;
    for (int i = 0; i < N_CHAINS; i++)
        sum += (double)acc[i];
    *sink = (uint64_t)sum;
    return n_iters * N_CHAINS * 2;
}
