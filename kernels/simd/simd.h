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

#define SIMD_INLINE static inline __attribute__((always_inline))

/* Before a loop whose bound is a constant, at most 16. */
#if defined(__clang__)
#define SIMD_UNROLL _Pragma("unroll")
#else
#define SIMD_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
