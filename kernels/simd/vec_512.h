/* SPDX-License-Identifier: MIT
 *
 * vec_512.h - the words of vec.h in 512-bit registers, with and without VNNI
 */
#ifndef SLM_KERNELS_SIMD_VEC_512_H
#define SLM_KERNELS_SIMD_VEC_512_H

#include "kernels/simd/avx512.h"

enum {
    V_LANES = 16,
#ifdef __AVX512VNNI__
    V_TILE_COLS = 6, /* columns whose sums fit the registers */
    V_FEW_COLS = 8,
#else
    V_TILE_COLS = 8,
    V_FEW_COLS = 4, /* parts and sums are apart */
#endif
};

#ifdef __AVX512VNNI__
#define V_DOT32  1
#define V_SIGNED 0
#define V_WIDE   1

#define V_TILE_PANELS 2
#else
#define V_DOT32  0
#define V_SIGNED 1
#define V_WIDE   0
#endif

#define V_BLOCK_ROWS 1

typedef __m512i vi;
typedef __m512 vf;

#define MM(op)       _mm512_##op
#define MM_SI(op)    _mm512_##op##_si512
#define MM_BCAST_128 _mm512_broadcast_i32x4
#define dpbusd_256   _mm256_dpbusd_epi32 /* for x16_block_rows.h */
#define MM_DPWSSD    _mm512_dpwssd_epi32
#define ASM_DPWSSD   "vpdpwssd"

SIMD_INLINE __m256i load_half(const void *p)
{
    return load_256(p);
}

SIMD_INLINE __m128i load_quarter(const void *p)
{
    return load_128(p);
}

SIMD_INLINE vi load_rows(const uint8_t *p, size_t stride, size_t r)
{
    return load_4x128(p + r * stride, p + (r + 4) * stride, p + (r + 8) * stride,
                      p + (r + 12) * stride);
}

#include "kernels/simd/vec_x86.h"

/* Bits of a where mask has ones, of b elsewhere. b is overwritten, which spares a copy
 * where it is a passing value; the mask is a constant that others need. */
SIMD_INLINE vi v_select(vi mask, vi a, vi b)
{
    return _mm512_ternarylogic_epi32(b, mask, a, 0xb8);
}

/* a + b in the bytes where v and bit have a bit in common; bit has one in each. */
SIMD_INLINE vi v_add8_if(vi a, vi v, vi bit, vi b)
{
    return _mm512_mask_add_epi8(a, _mm512_test_epi8_mask(v, bit), a, b);
}

/* table[i] for the integer i of every lane. The instruction reads its destination, too,
 * and without a zero there waits for whoever wrote it last; GCC leaves the zero out
 * where it knows that all lanes are wanted. */
SIMD_INLINE vi v_gather(const void *table, vi i)
{
    __mmask16 all = 0xffff;

    __asm__("" : "+Yk"(all));
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), all, i, table, 4);
}

/* Tables of 256 and 512 words in registers: for every 16-bit lane of i the word that
 * its lower eight bits choose, of 512 the upper half where bits has the one bit that
 * sel has (it may be any of the 16). */
#define V_WORDS 1

SIMD_INLINE vi v_words_64(const uint16_t *table, vi i)
{
    return _mm512_permutex2var_epi16(v_load(table), i, v_load(table + 32));
}

SIMD_INLINE vi v_words_256(const uint16_t *table, vi i)
{
    const __mmask32 bit_6 = _mm512_test_epi16_mask(i, _mm512_set1_epi16(64));
    const __mmask32 bit_7 = _mm512_test_epi16_mask(i, _mm512_set1_epi16(128));
    const vi low =
        _mm512_mask_blend_epi16(bit_6, v_words_64(table, i), v_words_64(table + 64, i));
    const vi high = _mm512_mask_blend_epi16(bit_6, v_words_64(table + 128, i),
                                            v_words_64(table + 192, i));

    return _mm512_mask_blend_epi16(bit_7, low, high);
}

SIMD_INLINE vi v_words_512(const uint16_t *table, vi i, vi bits, vi sel)
{
    return _mm512_mask_blend_epi16(_mm512_test_epi16_mask(bits, sel),
                                   v_words_256(table, i), v_words_256(table + 256, i));
}

/* v, but from - v in bytes where bits has the one bit that sel has. */
SIMD_INLINE vi v_minus_where(vi v, vi from, vi bits, vi sel)
{
    return _mm512_mask_sub_epi8(v, _mm512_test_epi8_mask(bits, sel), from, v);
}

/* The 8-byte entries of a table, from plain loads: their first and their second four
 * bytes. index: of lane i the number of `bytes` bytes at index + 4 * i. */
SIMD_INLINE void v_gather_8(const uint8_t (*table)[8], const uint8_t *index, int bytes,
                            vi *first, vi *second)
{
    __m128i two[8];
    __m512i even, odd;

    SIMD_UNROLL
    for (size_t i = 0; i < 8; i++) {
        const uint8_t *at = index + 8 * i;
        const __m128i low = _mm_loadl_epi64((const void *)table[load_index(at, bytes)]);

        two[i] = _mm_castps_si128(_mm_loadh_pi(
            _mm_castsi128_ps(low), (const void *)table[load_index(at + 4, bytes)]));
    }
    even = _mm512_castsi128_si512(two[0]);
    even = _mm512_inserti32x4(even, two[2], 1);
    even = _mm512_inserti32x4(even, two[4], 2);
    even = _mm512_inserti32x4(even, two[6], 3);
    odd = _mm512_castsi128_si512(two[1]);
    odd = _mm512_inserti32x4(odd, two[3], 1);
    odd = _mm512_inserti32x4(odd, two[5], 2);
    odd = _mm512_inserti32x4(odd, two[7], 3);
    *first = _mm512_castps_si512(
        _mm512_shuffle_ps(_mm512_castsi512_ps(even), _mm512_castsi512_ps(odd), 0x88));
    *second = _mm512_castps_si512(
        _mm512_shuffle_ps(_mm512_castsi512_ps(even), _mm512_castsi512_ps(odd), 0xdd));
}

/* ---- dot products ------------------------------------------------------------- */

#if V_DOT32
/* GCC (12) has no pattern for a broadcast within this instruction and would take an
 * instruction and a register more. */
SIMD_INLINE vi v_dot_u(vi part, vi w, const void *x)
{
#if defined(__GNUC__) && !defined(__clang__)
    const char(*four)[4] = x;

    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(part) : "v"(w), "m"(*four));
    return part;
#else
    return _mm512_dpbusd_epi32(part, w, v_bcast_4(x));
#endif
}

SIMD_INLINE vi v_dot_x(vi part, vi w, vi x)
{
    return _mm512_dpbusd_epi32(part, w, x);
}
#else
/* |w| times x with w's sign; w is not -128. */
SIMD_INLINE vi v_dot_s(vi part, vi w, const void *x)
{
    const __m512i b = v_bcast_4(x);
    const __m512i signed_x =
        _mm512_mask_sub_epi8(b, _mm512_movepi8_mask(w), _mm512_setzero_si512(), b);

    return _mm512_add_epi16(part, _mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_x));
}
#endif

/* ---- floats ------------------------------------------------------------------- */

/* The lower halves of the lanes. Opaque: clang 14 would convert them where they are
 * used, and carry sixteen halves there one by one. */
SIMD_INLINE vf v_half_low(vi v)
{
    vf f = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));

    SIMD_OPAQUE(f);
    return f;
}

/* The first n <= V_LANES lanes. */
SIMD_INLINE void v_store_some(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}

#endif
