/* SPDX-License-Identifier: MIT
 *
 * subnormals.h - subnormal floats as zeros
 *
 * Many CPUs take a hundred cycles and more for an instruction that reads or makes a
 * subnormal number (below 2^-126). Weights of attention become that small in heads that
 * look at few positions, and so do states that decay: no result needs them.
 *
 * Threading: the mode belongs to the calling thread.
 */
#ifndef SLM_ENGINE_BASE_SUBNORMALS_H
#define SLM_ENGINE_BASE_SUBNORMALS_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h> /* immintrin.h takes a compiler a third of a second */

/* Flush to zero and denormals are zero. */
#define SUBNORMALS_AS_ZEROS 0x8040u

static inline uint64_t subnormals_mode(void)
{
    return _mm_getcsr();
}

static inline void subnormals_set_mode(uint64_t mode)
{
    _mm_setcsr((unsigned)mode);
}
#elif defined(__aarch64__)
/* FZ, which is about floats and doubles; halves keep theirs. */
#define SUBNORMALS_AS_ZEROS (UINT64_C(1) << 24)

static inline uint64_t subnormals_mode(void)
{
    uint64_t mode;

    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static inline void subnormals_set_mode(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
#define SUBNORMALS_AS_ZEROS 0

static inline uint64_t subnormals_mode(void)
{
    return 0;
}

static inline void subnormals_set_mode(uint64_t mode)
{
    (void)mode;
}
#endif

/* Take subnormals as zeros from now on. Returns the mode before, for
 * subnormals_set_mode(). */
static inline uint64_t subnormals_off(void)
{
    const uint64_t before = subnormals_mode();

    subnormals_set_mode(before | SUBNORMALS_AS_ZEROS);
    return before;
}

#endif
