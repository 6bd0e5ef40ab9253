/* SPDX-License-Identifier: MIT
 *
 * vec_256.h - the words of vec.h in 256-bit registers, with and without AVX-VNNI
 */
#ifndef SLM_KERNELS_SIMD_VEC_256_H
#define SLM_KERNELS_SIMD_VEC_256_H

#include "kernels/simd/avx2.h"

enum {
    V_LANES = 8,
    V_TILE_COLS = 4, /* columns whose sums fit the registers */
    V_FEW_COLS = 1,
};

#ifdef KERN_LEVEL_avxvnni
#define V_DOT32  1
#define V_SIGNED 0
#define V_WIDE   1

#define V_TILE_PANELS     2
#define V_TILE_SUMS_APART 1
#else
#define V_DOT32       0
#define V_SIGNED      1
#define V_WIDE        0
#define V_SIGNS_APART 1
#endif

#define V_BLOCK_ROWS 1

typedef __m256i vi;
typedef __m256 vf;

#define MM(op)       _mm256_##op
#define MM_SI(op)    _mm256_##op##_si256
#define MM_BCAST_128 _mm256_broadcastsi128_si256

#if V_DOT32
/* The VEX-coded instructions; the same in EVEX coding where only that is on. */
#ifdef __AVXVNNI__
#define dpbusd_256 _mm256_dpbusd_avx_epi32
#define MM_DPWSSD  _mm256_dpwssd_avx_epi32
#define ASM_DPWSSD "%{vex%} vpdpwssd"
#else
#define dpbusd_256 _mm256_dpbusd_epi32
#define MM_DPWSSD  _mm256_dpwssd_epi32
#define ASM_DPWSSD "vpdpwssd"
#endif
#endif

SIMD_INLINE __m128i load_half(const void *p)
{
    return load_128(p);
}

SIMD_INLINE __m128i load_quarter(const void *p)
{
    return _mm_loadl_epi64((const __m128i *)p);
}

SIMD_INLINE vi load_rows(const uint8_t *p, size_t stride, size_t r)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(p + r * stride)),
                                   load_128(p + (r + 4) * stride), 1);
}

#include "kernels/simd/vec_x86.h"

/* Bits of a where mask has ones, of b elsewhere. */
SIMD_INLINE vi v_select(vi mask, vi a, vi b)
{
    return _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b));
}

/* a + b in the bytes where v and bit have a bit in common; bit has one in each. */
SIMD_INLINE vi v_add8_if(vi a, vi v, vi bit, vi b)
{
    const __m256i has = _mm256_cmpeq_epi8(_mm256_and_si256(v, bit), bit);

    return _mm256_add_epi8(a, _mm256_and_si256(has, b));
}

/* table[i] for the integer i of every lane. */
SIMD_INLINE vi v_gather(const void *table, vi i)
{
    return _mm256_i32gather_epi32(table, i, 4);
}

/* v, but from - v in bytes where bits has the one bit that sel has: there v is
 * inverted, which makes it -1 - v, and from + 1 added. */
SIMD_INLINE vi v_minus_where(vi v, vi from, vi bits, vi sel)
{
    const vi where = _mm256_cmpeq_epi8(_mm256_and_si256(bits, sel), sel);
#if V_SIGNED /* from is 0 */
    (void)from;
    return _mm256_sub_epi8(_mm256_xor_si256(v, where), where);
#else
    const vi more = _mm256_sub_epi8(from, _mm256_set1_epi8(-1));

    return _mm256_add_epi8(_mm256_xor_si256(v, where), _mm256_and_si256(where, more));
#endif
}

/* The 8-byte entries of a table, from plain loads: their first and their second four
 * bytes. index: of lane i the number of `bytes` bytes at index + 4 * i. */
SIMD_INLINE void v_gather_8(const uint8_t (*table)[8], const uint8_t *index, int bytes,
                            vi *first, vi *second)
{
    __m128i two[4];
    __m256 even, odd;

    SIMD_UNROLL
    for (size_t i = 0; i < 4; i++) {
        const uint8_t *at = index + 8 * i;
        const __m128i low = _mm_loadl_epi64((const void *)table[load_index(at, bytes)]);

        two[i] = _mm_castps_si128(_mm_loadh_pi(
            _mm_castsi128_ps(low), (const void *)table[load_index(at + 4, bytes)]));
    }
    even = _mm256_castsi256_ps(
        _mm256_inserti128_si256(_mm256_castsi128_si256(two[0]), two[2], 1));
    odd = _mm256_castsi256_ps(
        _mm256_inserti128_si256(_mm256_castsi128_si256(two[1]), two[3], 1));
    *first = _mm256_castps_si256(_mm256_shuffle_ps(even, odd, 0x88));
    *second = _mm256_castps_si256(_mm256_shuffle_ps(even, odd, 0xdd));
}

/* ---- dot products ------------------------------------------------------------- */

#if V_DOT32
SIMD_INLINE vi v_dot_u(vi part, vi w, const void *x)
{
    return dpbusd_256(part, w, v_bcast_4(x));
}

SIMD_INLINE vi v_dot_x(vi part, vi w, vi x)
{
    return dpbusd_256(part, w, x);
}
#else
/* |w| times x with w's sign; w is not -128. */
SIMD_INLINE vi v_dot_s(vi part, vi w, const void *x)
{
    const __m256i signed_x = _mm256_sign_epi8(v_bcast_4(x), w);

    return _mm256_add_epi16(part, _mm256_maddubs_epi16(_mm256_abs_epi8(w), signed_x));
}

/* The signs of v_dot_signs(): bytes below zero where bits has the one bit that sel has,
 * above zero elsewhere. */
SIMD_INLINE vi v_signs(vi bits, vi sel)
{
    return _mm256_add_epi8(_mm256_and_si256(bits, sel), _mm256_set1_epi8(127));
}

/* Bytes -1 where a signed byte of a is greater than b's, else 0. */
SIMD_INLINE vi v_greater_8(vi a, vi b)
{
    return _mm256_cmpgt_epi8(a, b);
}

/* Like v_dot_u(), of weights with these signs; no x is -128. */
SIMD_INLINE vi v_dot_signs(vi part, vi w, vi signs, const void *x)
{
    const __m256i signed_x = _mm256_sign_epi8(v_bcast_4(x), signs);

    return _mm256_add_epi16(part, _mm256_maddubs_epi16(w, signed_x));
}
#endif

/* ---- floats ------------------------------------------------------------------- */

/* The lower halves of the lanes. */
SIMD_INLINE vf v_half_low(vi v)
{
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(
        _mm256_packus_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0xffff)), v), 0x08)));
}

/* The first n < V_LANES lanes. */
SIMD_INLINE void v_store_some(float *p, vf v, size_t n)
{
    memcpy(p, &v, n * sizeof(float));
}

#endif
