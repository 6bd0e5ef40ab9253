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

/* Lane 4b + j of the result is v[b]. */
SIMD_INLINE __m512 spread_4_floats(__m128 v)
{
    const __m512i lane =
        _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);

    return _mm512_permutexvar_ps(lane, _mm512_castps128_ps512(v));
}

/* Transposes a 16 x 16 matrix of 32-bit elements, row i in m[i]. */
SIMD_INLINE void transpose_16x16(__m512i m[16])
{
    __m512i t[16];

    SIMD_UNROLL
    for (int i = 0; i < 16; i += 2) { /* pairs of rows, then fours, within 128 bits */
        t[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
    }
    SIMD_UNROLL
    for (int i = 0; i < 16; i += 4) {
        m[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        m[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        m[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        m[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* m[4g + c], 128-bit lane l: column 4l + c of rows 4g..4g+3 */
    SIMD_UNROLL
    for (int c = 0; c < 4; c++) {
        t[c] = _mm512_shuffle_i32x4(m[c], m[4 + c], 0x88);
        t[4 + c] = _mm512_shuffle_i32x4(m[c], m[4 + c], 0xdd);
        t[8 + c] = _mm512_shuffle_i32x4(m[8 + c], m[12 + c], 0x88);
        t[12 + c] = _mm512_shuffle_i32x4(m[8 + c], m[12 + c], 0xdd);
    }
    SIMD_UNROLL
    for (int c = 0; c < 4; c++) {
        m[c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0x88);
        m[4 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0x88);
        m[8 + c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0xdd);
        m[12 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0xdd);
    }
}

#endif
