/* SPDX-License-Identifier: MIT
 *
 * avx512.h - helpers shared by kernels with 512-bit registers
 *
 * Static inline functions only; for files compiled with at least AVX-512 F BW DQ
 * VL.
 */
#ifndef SLM_KERNELS_SIMD_AVX512_H
#define SLM_KERNELS_SIMD_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/simd/simd.h"

/* Any 16, 32, 64 bytes. */
SIMD_INLINE __m128i load_128(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

SIMD_INLINE __m256i load_256(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

SIMD_INLINE __m512i load_512(const void *p)
{
    return _mm512_loadu_si512(p);
}

/* Four 16-byte pieces, the first lowest. A masked broadcast from memory is a load and
 * a blend, where an insertion would take the port of the shuffles. */
SIMD_INLINE __m512i load_4x128(const void *p0, const void *p1, const void *p2,
                               const void *p3)
{
    __m512i v = _mm512_castsi128_si512(load_128(p0));

    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, load_128(p1));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, load_128(p2));
    return _mm512_mask_broadcast_i32x4(v, 0xf000, load_128(p3));
}

/* Four bytes from any address in all lanes. */
SIMD_INLINE __m512i broadcast_4_bytes(const void *p)
{
    int32_t v;

    memcpy(&v, p, sizeof(v));
    return _mm512_set1_epi32(v);
}

#endif
