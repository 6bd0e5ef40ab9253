/* SPDX-License-Identifier: MIT
 *
 * clock.h - the clock of the engine and of all measurements
 *
 * Threading: any thread.
 */
#ifndef SLM_ENGINE_BASE_CLOCK_H
#define SLM_ENGINE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds: steady, not slewed in steps, a vDSO call. */
static inline uint64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CPU time of the calling thread in nanoseconds: what others take of its CPU is not
 * counted. A system call. */
static inline uint64_t clock_thread_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
