/* SPDX-License-Identifier: MIT
 *
 * simd.h - what the kernel templates of every ISA level share
 *
 * A template is a static inline function that takes the format's own part (how
 * a row is unpacked, how wide a tile is) as constant arguments; inlined into
 * the format's file, they fold away and leave a loop for that format alone.
 */
#ifndef SLM_KERNELS_SIMD_H
#define SLM_KERNELS_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIMD_INLINE static inline __attribute__((always_inline))

/* SIMD_NOINLINE: there is one copy of a function, not one for each caller's constants.
 * SIMD_UNROLL: before a loop whose bound is a constant, at most 16; SIMD_UNROLL_64: at
 * most 64. */
#if defined(__clang__)
#define SIMD_NOINLINE  __attribute__((noinline))
#define SIMD_UNROLL    _Pragma("unroll")
#define SIMD_UNROLL_64 _Pragma("unroll")
#else
#define SIMD_NOINLINE  __attribute__((noinline, noclone))
#define SIMD_UNROLL    _Pragma("GCC unroll 16")
#define SIMD_UNROLL_64 _Pragma("GCC unroll 64")
#endif

/* Prefetches every cache line that holds one of `bytes` bytes at p + offset (before p
 * where offset is negative; they need not be readable) into the second level: several
 * streams at once would push each other, and the activations, out of the first. No
 * line may be left out, so with an odd step some are prefetched twice. */
SIMD_INLINE void prefetch_lines(const void *p, ptrdiff_t offset, size_t bytes)
{
    const uintptr_t at = (uintptr_t)p + (uintptr_t)offset;

    SIMD_UNROLL
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const void *)(at + i), 0, 2);
}

/* The unsigned number of one byte or two at p. Two have just been stored with others,
 * as a vector: for x86, GCC would take them out of that vector instead, which is twice
 * the work of loading them. */
SIMD_INLINE size_t load_index(const uint8_t *p, int bytes)
{
    if (bytes == 1)
        return *p;
#ifdef __x86_64__
    size_t v;

    __asm__("movzwl %1, %k0" : "=r"(v) : "m"(*(const uint8_t(*)[2])p));
#else
    uint16_t v;

    memcpy(&v, p, sizeof(v));
#endif
    return v;
}

/* kern_<op>_<format>__<level>, in files that are compiled for several levels: the
 * build defines KERN_LEVEL. */
#define KERN_NAME_3(op, format, level) kern_##op##_##format##__##level
#define KERN_NAME_2(op, format, level) KERN_NAME_3(op, format, level)
#define KERN_NAME(op, format)          KERN_NAME_2(op, format, KERN_LEVEL)

#endif
