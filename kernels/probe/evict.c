/* SPDX-License-Identifier: MIT
 *
 * evict.c - cache lines flushed one by one, ordered by one fence at the end
 */
#include "kernels/probe/evict.h"

#include <stdint.h>

#if defined(__x86_64__)

#include <cpuid.h>
#include <emmintrin.h>
#include <stdatomic.h>
#include <stdbool.h>

#define LINE_BYTES 64u /* of every x86-64 CPU that has CLFLUSHOPT */

/* CPUID leaf 7, EBX bit 23. A hypervisor that hides it leaves CLFLUSH, which is ordered
 * and several times slower. Asked once: a hypervisor answers CPUID itself, at the
 * cost of hundreds of flushed lines. */
static bool has_clflushopt(void)
{
    static atomic_int known; /* 0: not asked yet; 1: no; 2: yes */
    unsigned a, b, c, d;

    if (!known)
        known = 1 + (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 23 & 1));
    return known == 2;
}

__attribute__((target("clflushopt"))) static void flush_unordered(const char *at,
                                                                  const char *end)
{
    for (; at < end; at += LINE_BYTES)
        __builtin_ia32_clflushopt((void *)(uintptr_t)at);
}

static void flush_lines(uintptr_t begin, uintptr_t end)
{
    const char *at = (const char *)(begin & ~(uintptr_t)(LINE_BYTES - 1));

    if (has_clflushopt())
        flush_unordered(at, (const char *)end);
    else
        for (; at < (const char *)end; at += LINE_BYTES)
            _mm_clflush(at);
    _mm_mfence();
}

#elif defined(__aarch64__)

/* CTR_EL0 bits 19..16: log2 of the words of the smallest data line. */
static uintptr_t line_bytes(void)
{
    uint64_t ctr;

    __asm__("mrs %0, ctr_el0" : "=r"(ctr));
    return (uintptr_t)4 << (ctr >> 16 & 15);
}

static void flush_lines(uintptr_t begin, uintptr_t end)
{
    const uintptr_t line = line_bytes();

    for (uintptr_t at = begin & ~(line - 1); at < end; at += line)
        __asm__ volatile("dc civac, %0" : : "r"(at) : "memory");
    __asm__ volatile("dsb ish" : : : "memory");
}

#else
#error "evict.c: how does this CPU write back and drop a cache line?"
#endif

void evict_from_caches(const void *p, size_t bytes)
{
    if (bytes)
        flush_lines((uintptr_t)p, (uintptr_t)p + bytes);
}
