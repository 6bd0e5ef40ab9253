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
#else
#define V_DOT32       0
#define V_SIGNED      1
#define V_WIDE        0
#define V_SIGNS_APART 1
#endif

#define V_BLOCK_ROWS 1

typedef __m256i vi;
typedef __m256 vf;

SIMD_INLINE vi v_load(const void *p)
{
    return load_256(p);
}

SIMD_INLINE void v_store(void *p, vi v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

SIMD_INLINE vi v_zero(void)
{
    return _mm256_setzero_si256();
}

SIMD_INLINE vi v_set1_8(int v)
{
    return _mm256_set1_epi8((char)v);
}

SIMD_INLINE vi v_set1_32(int v)
{
    return _mm256_set1_epi32(v);
}

SIMD_INLINE vi v_bcast_4(const void *p)
{
    return broadcast_4_bytes(p);
}

/* 16 bytes, repeated. */
SIMD_INLINE vi v_bcast_16(const void *p)
{
    return _mm256_broadcastsi128_si256(load_128(p));
}

/* V_LANES unsigned or signed bytes as integers. */
SIMD_INLINE vi v_u8(const void *p)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

SIMD_INLINE vi v_s8(const void *p)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p));
}

/* V_LANES signed 16-bit numbers as integers. */
SIMD_INLINE vi v_s16(const int16_t *p)
{
    return _mm256_cvtepi16_epi32(load_128(p));
}

SIMD_INLINE vi v_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}

SIMD_INLINE vi v_or(vi a, vi b)
{
    return _mm256_or_si256(a, b);
}

SIMD_INLINE vi v_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
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

/* Bits of a where mask has ones, of b elsewhere. */
SIMD_INLINE vi v_select(vi mask, vi a, vi b)
{
    return _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b));
}

SIMD_INLINE vi v_srl16(vi v, int n)
{
    return _mm256_srli_epi16(v, n);
}

/* Bytes. */
SIMD_INLINE vi v_srl8(vi v, int n)
{
    return v_and(v_srl16(v, n), v_set1_8(255 >> n));
}

SIMD_INLINE vi v_sll16(vi v, int n)
{
    return _mm256_slli_epi16(v, n);
}

SIMD_INLINE vi v_srl32(vi v, int n)
{
    return _mm256_srli_epi32(v, n);
}

SIMD_INLINE vi v_sll32(vi v, int n)
{
    return _mm256_slli_epi32(v, n);
}

SIMD_INLINE vi v_sra32(vi v, int n)
{
    return _mm256_srai_epi32(v, n);
}

SIMD_INLINE vi v_add8(vi a, vi b)
{
    return _mm256_add_epi8(a, b);
}

SIMD_INLINE vi v_sub8(vi a, vi b)
{
    return _mm256_sub_epi8(a, b);
}

SIMD_INLINE vi v_add32(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}

SIMD_INLINE vi v_sub32(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}

SIMD_INLINE vi v_mul32(vi a, vi b)
{
    return _mm256_mullo_epi32(a, b);
}

/* The larger of signed lanes. */
SIMD_INLINE vi v_max32(vi a, vi b)
{
    return _mm256_max_epi32(a, b);
}

/* Byte i of every lane in all bytes of the lane. */
SIMD_INLINE vi v_lane_byte(vi v, int i)
{
    const __m128i from = _mm_add_epi8(
        _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c), _mm_set1_epi8((char)i));

    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(from));
}

/* a + b in the bytes where v and bit have a bit in common; bit has one in each. */
SIMD_INLINE vi v_add8_if(vi a, vi v, vi bit, vi b)
{
    const __m256i has = _mm256_cmpeq_epi8(_mm256_and_si256(v, bit), bit);

    return _mm256_add_epi8(a, _mm256_and_si256(has, b));
}

SIMD_INLINE vi v_table16(vi table, vi index)
{
    return _mm256_shuffle_epi8(table, index);
}

SIMD_INLINE vi v_table16_low(vi table, vi index)
{
    return v_table16(table, v_and(index, v_set1_8(15)));
}

SIMD_INLINE vi v_table16_high(vi table, vi index)
{
    return v_table16(table, v_srl8(index, 4));
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
/* The VEX-coded instructions; the same in EVEX coding where only that is on. */
#ifdef __AVXVNNI__
#define dpbusd _mm256_dpbusd_avx_epi32
#define dpwssd _mm256_dpwssd_avx_epi32
#else
#define dpbusd _mm256_dpbusd_epi32
#define dpwssd _mm256_dpwssd_epi32
#endif

SIMD_INLINE vi v_dot_u(vi part, vi w, const void *x)
{
    return dpbusd(part, w, broadcast_4_bytes(x));
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

    return _mm256_shuffle_epi8(four, _mm256_broadcastsi128_si256(choose));
}

SIMD_INLINE vi v_add_scaled(vi sum, vi part, vi scale)
{
    return _mm256_add_epi32(sum, _mm256_mullo_epi32(part, scale));
}

SIMD_INLINE vi v_dot_pairs(vi sum, vi pairs, const int16_t *two)
{
    return dpwssd(sum, pairs, broadcast_4_bytes(two));
}
#else
SIMD_INLINE vi v_dot_u(vi part, vi w, const void *x)
{
    return _mm256_add_epi16(part, _mm256_maddubs_epi16(w, broadcast_4_bytes(x)));
}

/* |w| times x with w's sign; w is not -128. */
SIMD_INLINE vi v_dot_s(vi part, vi w, const void *x)
{
    const __m256i signed_x = _mm256_sign_epi8(broadcast_4_bytes(x), w);

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
    const __m256i signed_x = _mm256_sign_epi8(broadcast_4_bytes(x), signs);

    return _mm256_add_epi16(part, _mm256_maddubs_epi16(w, signed_x));
}

SIMD_INLINE vi v_dot_sum(vi part)
{
    return _mm256_madd_epi16(part, _mm256_set1_epi16(1));
}

/* Scale form: a 16-bit number in both halves of the lane. */
SIMD_INLINE vi v_scale(vi scale)
{
    return _mm256_blend_epi16(scale, _mm256_slli_epi32(scale, 16), 0xaa);
}

/* The scale form of unsigned byte i of every lane. */
SIMD_INLINE vi v_scale_u8(vi four, int i)
{
    const __m128i choose =
        _mm_add_epi32(_mm_setr_epi32((int)0x80008000, (int)0x80048004, (int)0x80088008,
                                     (int)0x800c800c),
                      _mm_set1_epi32(0x10001 * i));

    return _mm256_shuffle_epi8(four, _mm256_broadcastsi128_si256(choose));
}

/* Lower halves of a, upper halves of b. */
SIMD_INLINE vi v_mix(vi a, vi b)
{
    return _mm256_blend_epi16(a, b, 0xaa);
}

SIMD_INLINE vi v_add_scaled(vi sum, vi part, vi scale)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(part, scale));
}

SIMD_INLINE vi v_dot_pairs(vi sum, vi pairs, const int16_t *two)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, broadcast_4_bytes(two)));
}
#endif

/* ---- floats ------------------------------------------------------------------- */

SIMD_INLINE vf v_half(const void *p)
{
    return _mm256_cvtph_ps(load_128(p));
}

/* The lower halves of the lanes. */
SIMD_INLINE vf v_half_low(vi v)
{
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(
        _mm256_packus_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0xffff)), v), 0x08)));
}

SIMD_INLINE vf v_float_bits(vi v)
{
    return _mm256_castsi256_ps(v);
}

SIMD_INLINE vf v_to_float(vi v)
{
    return _mm256_cvtepi32_ps(v);
}

SIMD_INLINE vf v_zero_f(void)
{
    return _mm256_setzero_ps();
}

SIMD_INLINE vf v_set1_f(float v)
{
    return _mm256_set1_ps(v);
}

SIMD_INLINE vf v_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

SIMD_INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

SIMD_INLINE vf v_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

SIMD_INLINE void v_store_f(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}

/* The first n < V_LANES lanes. */
SIMD_INLINE void v_store_some(float *p, vf v, size_t n)
{
    memcpy(p, &v, n * sizeof(float));
}

/* ---- rows to lanes ------------------------------------------------------------ */

/* out[j] = dword j of the 16 bytes at p + i * stride, i < V_LANES. The rows go into
 * the 128-bit lanes in the order that a 4 x 4 transposition within them needs. */
SIMD_INLINE void v_rows_16(const uint8_t *p, size_t stride, vi out[4])
{
    vi v[4], a, b, c, d;

    SIMD_UNROLL
    for (size_t r = 0; r < 4; r++)
        v[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(load_128(p + r * stride)),
                                       load_128(p + (r + 4) * stride), 1);
    a = _mm256_unpacklo_epi32(v[0], v[1]);
    b = _mm256_unpackhi_epi32(v[0], v[1]);
    c = _mm256_unpacklo_epi32(v[2], v[3]);
    d = _mm256_unpackhi_epi32(v[2], v[3]);
    out[0] = _mm256_unpacklo_epi64(a, c);
    out[1] = _mm256_unpackhi_epi64(a, c);
    out[2] = _mm256_unpacklo_epi64(b, d);
    out[3] = _mm256_unpackhi_epi64(b, d);
}

#endif
