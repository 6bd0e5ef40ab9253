/* SPDX-License-Identifier: MIT
 *
 * simd.h - what the kernel templates of every ISA level share
 *
 * A template is a static inline function that takes the format's own part (how
 * a row is unpacked, how wide a tile is) as constant arguments; inlined into
 * the format's file, they fold away and leave a loop for that format alone. How to
 * pass them is in "constants that fold" below.
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
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* At -O1 GCC removes a loop of one turn before it looks for the pragma, and warns. */
#define SIMD_NOINLINE __attribute__((noinline, noclone))
#define SIMD_UNROLL
#define SIMD_UNROLL_64
#elif defined(__clang__)
#define SIMD_NOINLINE  __attribute__((noinline))
#define SIMD_UNROLL    _Pragma("unroll")
#define SIMD_UNROLL_64 _Pragma("unroll")
#else
#define SIMD_NOINLINE  __attribute__((noinline, noclone))
#define SIMD_UNROLL    _Pragma("GCC unroll 16")
#define SIMD_UNROLL_64 _Pragma("GCC unroll 64")
#endif

/* SIMD_REGISTER_OR_MEMORY(v): an operand of an asm statement. Given the choice, clang
 * stores v before every statement. */
#if defined(__clang__)
#define SIMD_REGISTER_OR_MEMORY(v) "r"(v)
#else
#define SIMD_REGISTER_OR_MEMORY(v) "rm"(v)
#endif

/* ---- constants that fold -----------------------------------------------------------
 *
 * Loops are unrolled, and their arrays of accumulators become registers, only where the
 * compiler knows the bounds. Two rules make GCC and clang know them:
 *
 *   - A description (struct x16_super_format, struct x16_layout) is a static const
 *     object, and functions take its address. What clang reads from there is a constant
 *     while it inlines, so that functions called through it are inlined, too. A copy of
 *     the description becomes constant only later, and then these calls remain.
 *   - What a frame passes to a format's functions besides (struct x16_sink) goes by
 *     value, and is numbers and addresses alone. Behind a pointer each store through
 *     another pointer might have changed it; an array in it that a loop indexes keeps
 *     all of it in memory. Then a loop whose bound is a member of it stays a loop.
 *
 * Results that are kept between calls (struct x16_sums) lie in another struct, which
 * the first one points to. clang warns "loop not unrolled" where a rule was broken, and
 * SLM_WERROR makes an error of it: ci/full builds with both compilers. */

/* ---- steering the compiler ---------------------------------------------------------
 *
 * A kernel's registers are counted, but GCC knows how each value was made and may make
 * it again at every use, move loads together until registers overflow, or reorder what
 * must stay in order. An empty asm statement that takes a value and returns it costs no
 * instruction, and the compiler must assume that the value has changed:
 *
 *   SIMD_OPAQUE(v)          a vector: it stays in a register, instead of being loaded
 *                           again for each use, or merged with an equal one. v_keep()
 *                           (vec.h) returns such a vector
 *   SIMD_OPAQUE_ADDRESS(p)  an address: what is found relative to it has one base, and
 *                           its loads are not moved among those of its origin.
 *                           x16_forget() (x16.h) returns such an address
 *   SIMD_IN_MEMORY(x)       an object: it is stored, and its elements are read where
 *                           they are used. Dot products and FMAs broadcast an operand
 *                           from memory at no cost, where GCC would shuffle it out of
 *                           registers
 *   v_made(v)               (vec.h) a volatile statement that takes vector v: the
 *                           volatile statements behind it, prefetches, stay behind the
 *                           instructions that make v
 *
 * Without them the results are the same. Elsewhere asm spells out an instruction that
 * GCC has no pattern for; the reason is there: load_index() below, v_dot_u() and
 * v_gather() of vec_512.h, x16_prefetch_line(). */
#ifdef __aarch64__
#define SIMD_OPAQUE(v) __asm__("" : "+w"(v))
#else
#define SIMD_OPAQUE(v) __asm__("" : "+v"(v))
#endif
#define SIMD_OPAQUE_ADDRESS(p) __asm__("" : "+r"(p))
#define SIMD_IN_MEMORY(x)      __asm__("" : "+m"(x))

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

/* kern_<op>_<format>__<level> and kern_<op>__<level>, in files that are compiled for
 * several levels: the build defines KERN_LEVEL. */
#define KERN_NAME_3(op, format, level) kern_##op##_##format##__##level
#define KERN_NAME_2(op, format, level) KERN_NAME_3(op, format, level)
#define KERN_NAME(op, format)          KERN_NAME_2(op, format, KERN_LEVEL)
#define KERN_LEVEL_NAME_3(op, level)   kern_##op##__##level
#define KERN_LEVEL_NAME_2(op, level)   KERN_LEVEL_NAME_3(op, level)
#define KERN_LEVEL_NAME(op)            KERN_LEVEL_NAME_2(op, KERN_LEVEL)

#endif
