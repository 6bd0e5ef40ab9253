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

SIMD_INLINE vi v_load(const void *p)
{
    return _mm512_loadu_si512(p);
}

SIMD_INLINE void v_store(void *p, vi v)
{
    _mm512_storeu_si512(p, v);
}

SIMD_INLINE vi v_zero(void)
{
    return _mm512_setzero_si512();
}

SIMD_INLINE vi v_set1_8(int v)
{
    return _mm512_set1_epi8((char)v);
}

SIMD_INLINE vi v_set1_32(int v)
{
    return _mm512_set1_epi32(v);
}

SIMD_INLINE vi v_bcast_4(const void *p)
{
    return broadcast_4_bytes(p);
}

/* 16 bytes, repeated. */
SIMD_INLINE vi v_bcast_16(const void *p)
{
    return _mm512_broadcast_i32x4(load_128(p));
}

/* V_LANES unsigned or signed bytes as integers. */
SIMD_INLINE vi v_u8(const void *p)
{
    return _mm512_cvtepu8_epi32(load_128(p));
}

SIMD_INLINE vi v_s8(const void *p)
{
    return _mm512_cvtepi8_epi32(load_128(p));
}

/* V_LANES signed 16-bit numbers as integers. */
SIMD_INLINE vi v_s16(const int16_t *p)
{
    return _mm512_cvtepi16_epi32(load_256(p));
}

SIMD_INLINE vi v_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}

SIMD_INLINE vi v_or(vi a, vi b)
{
    return _mm512_or_si512(a, b);
}

SIMD_INLINE vi v_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}

/* The same vector; the compiler is to keep it in a register rather than to load it
 * again for every use. */
SIMD_INLINE vi v_keep(vi v)
{
    __asm__("" : "+v"(v));
    return v;
}

/* p, but not before v is known to the compiler: what is done with p stays behind what
 * makes v, at no cost. */
SIMD_INLINE const uint8_t *v_after(const uint8_t *p, vi v)
{
    __asm__("" : "+r"(p) : "v"(v));
    return p;
}

/* Bits of a where mask has ones, of b elsewhere. b is overwritten, which spares a copy
 * where it is a passing value; the mask is a constant that others need. */
SIMD_INLINE vi v_select(vi mask, vi a, vi b)
{
    return _mm512_ternarylogic_epi32(b, mask, a, 0xb8);
}

SIMD_INLINE vi v_srl16(vi v, int n)
{
    return _mm512_srli_epi16(v, (unsigned)n);
}

/* Bytes. */
SIMD_INLINE vi v_srl8(vi v, int n)
{
    return v_and(v_srl16(v, n), v_set1_8(255 >> n));
}

SIMD_INLINE vi v_sll16(vi v, int n)
{
    return _mm512_slli_epi16(v, (unsigned)n);
}

SIMD_INLINE vi v_srl32(vi v, int n)
{
    return _mm512_srli_epi32(v, (unsigned)n);
}

SIMD_INLINE vi v_sll32(vi v, int n)
{
    return _mm512_slli_epi32(v, (unsigned)n);
}

SIMD_INLINE vi v_sra32(vi v, int n)
{
    return _mm512_srai_epi32(v, (unsigned)n);
}

SIMD_INLINE vi v_add8(vi a, vi b)
{
    return _mm512_add_epi8(a, b);
}

SIMD_INLINE vi v_sub8(vi a, vi b)
{
    return _mm512_sub_epi8(a, b);
}

SIMD_INLINE vi v_add32(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}

SIMD_INLINE vi v_sub32(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}

SIMD_INLINE vi v_mul32(vi a, vi b)
{
    return _mm512_mullo_epi32(a, b);
}

/* The larger of signed lanes. */
SIMD_INLINE vi v_max32(vi a, vi b)
{
    return _mm512_max_epi32(a, b);
}

/* Byte i of every lane in all bytes of the lane. */
SIMD_INLINE vi v_lane_byte(vi v, int i)
{
    const __m128i from = _mm_add_epi8(
        _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c), _mm_set1_epi8((char)i));

    return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(from));
}

/* a + b in the bytes where v and bit have a bit in common; bit has one in each. */
SIMD_INLINE vi v_add8_if(vi a, vi v, vi bit, vi b)
{
    return _mm512_mask_add_epi8(a, _mm512_test_epi8_mask(v, bit), a, b);
}

SIMD_INLINE vi v_table16(vi table, vi index)
{
    return _mm512_shuffle_epi8(table, index);
}

/* The look-up in all 64 bytes, four times the same 16, takes the lower six bits of an
 * index: nothing has to be masked away. */
SIMD_INLINE vi v_table16_low(vi table, vi index)
{
#ifdef __AVX512VBMI__
    return _mm512_permutexvar_epi8(index, table);
#else
    return _mm512_shuffle_epi8(table, _mm512_and_si512(index, _mm512_set1_epi8(15)));
#endif
}

SIMD_INLINE vi v_table16_high(vi table, vi index)
{
#ifdef __AVX512VBMI__
    return _mm512_permutexvar_epi8(_mm512_srli_epi16(index, 4), table);
#else
    return _mm512_shuffle_epi8(table, v_srl8(index, 4));
#endif
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
#define dpbusd _mm256_dpbusd_epi32 /* for x16_block_rows.h */

/* GCC (12) has no pattern for a broadcast within this instruction and would take an
 * instruction and a register more. */
SIMD_INLINE vi v_dot_u(vi part, vi w, const void *x)
{
#if defined(__GNUC__) && !defined(__clang__)
    const char(*four)[4] = x;

    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(part) : "v"(w), "m"(*four));
    return part;
#else
    return _mm512_dpbusd_epi32(part, w, broadcast_4_bytes(x));
#endif
}

SIMD_INLINE vi v_dot_x(vi part, vi w, vi x)
{
    return _mm512_dpbusd_epi32(part, w, x);
}

SIMD_INLINE vi v_dot_sum(vi part)
{
    return part;
}

/* Scale form: a 32-bit number. */
SIMD_INLINE vi v_scale(vi scale)
{
    return scale;
}

/* The scale form of unsigned byte i of every lane. */
SIMD_INLINE vi v_scale_u8(vi four, int i)
{
    const __m128i choose =
        _mm_add_epi32(_mm_setr_epi32((int)0x80808000, (int)0x80808004, (int)0x80808008,
                                     (int)0x8080800c),
                      _mm_set1_epi32(1 * i));

    return _mm512_shuffle_epi8(four, _mm512_broadcast_i32x4(choose));
}

SIMD_INLINE vi v_add_scaled(vi sum, vi part, vi scale)
{
    return _mm512_add_epi32(sum, _mm512_mullo_epi32(part, scale));
}

SIMD_INLINE vi v_dot_pairs(vi sum, vi pairs, const int16_t *two)
{
    return _mm512_dpwssd_epi32(sum, pairs, broadcast_4_bytes(two));
}
#else
SIMD_INLINE vi v_dot_u(vi part, vi w, const void *x)
{
    return _mm512_add_epi16(part, _mm512_maddubs_epi16(w, broadcast_4_bytes(x)));
}

/* |w| times x with w's sign; w is not -128. */
SIMD_INLINE vi v_dot_s(vi part, vi w, const void *x)
{
    const __m512i b = broadcast_4_bytes(x);
    const __m512i signed_x =
        _mm512_mask_sub_epi8(b, _mm512_movepi8_mask(w), _mm512_setzero_si512(), b);

    return _mm512_add_epi16(part, _mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_x));
}

SIMD_INLINE vi v_dot_sum(vi part)
{
    return _mm512_madd_epi16(part, _mm512_set1_epi16(1));
}

/* Scale form: a 16-bit number in both halves of the lane. */
SIMD_INLINE vi v_scale(vi scale)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaa, scale, _mm512_slli_epi32(scale, 16));
}

/* The scale form of unsigned byte i of every lane. */
SIMD_INLINE vi v_scale_u8(vi four, int i)
{
    const __m128i choose =
        _mm_add_epi32(_mm_setr_epi32((int)0x80008000, (int)0x80048004, (int)0x80088008,
                                     (int)0x800c800c),
                      _mm_set1_epi32(0x10001 * i));

    return _mm512_shuffle_epi8(four, _mm512_broadcast_i32x4(choose));
}

/* Lower halves of a, upper halves of b. */
SIMD_INLINE vi v_mix(vi a, vi b)
{
    return _mm512_mask_blend_epi16(0xaaaaaaaa, a, b);
}

SIMD_INLINE vi v_add_scaled(vi sum, vi part, vi scale)
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(part, scale));
}

SIMD_INLINE vi v_dot_pairs(vi sum, vi pairs, const int16_t *two)
{
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, broadcast_4_bytes(two)));
}
#endif

/* ---- floats ------------------------------------------------------------------- */

SIMD_INLINE vf v_half(const void *p)
{
    return _mm512_cvtph_ps(load_256(p));
}

/* The lower halves of the lanes. */
SIMD_INLINE vf v_half_low(vi v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

SIMD_INLINE vf v_float_bits(vi v)
{
    return _mm512_castsi512_ps(v);
}

SIMD_INLINE vf v_to_float(vi v)
{
    return _mm512_cvtepi32_ps(v);
}

SIMD_INLINE vf v_zero_f(void)
{
    return _mm512_setzero_ps();
}

SIMD_INLINE vf v_set1_f(float v)
{
    return _mm512_set1_ps(v);
}

SIMD_INLINE vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

SIMD_INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

SIMD_INLINE vf v_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

SIMD_INLINE void v_store_f(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}

/* The first n <= V_LANES lanes. */
SIMD_INLINE void v_store_some(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}

/* ---- rows to lanes ------------------------------------------------------------ */

/* out[j] = dword j of the 16 bytes at p + i * stride, i < V_LANES. The rows go into
 * the 128-bit lanes in the order that a 4 x 4 transposition within them needs. */
SIMD_INLINE void v_rows_16(const uint8_t *p, size_t stride, vi out[4])
{
    vi v[4], a, b, c, d;

    SIMD_UNROLL
    for (size_t r = 0; r < 4; r++)
        v[r] = load_4x128(p + r * stride, p + (r + 4) * stride, p + (r + 8) * stride,
                          p + (r + 12) * stride);
    a = _mm512_unpacklo_epi32(v[0], v[1]);
    b = _mm512_unpackhi_epi32(v[0], v[1]);
    c = _mm512_unpacklo_epi32(v[2], v[3]);
    d = _mm512_unpackhi_epi32(v[2], v[3]);
    out[0] = _mm512_unpacklo_epi64(a, c);
    out[1] = _mm512_unpackhi_epi64(a, c);
    out[2] = _mm512_unpacklo_epi64(b, d);
    out[3] = _mm512_unpackhi_epi64(b, d);
}

#endif
