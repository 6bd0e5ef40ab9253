/* SPDX-License-Identifier: MIT
 *
 * vec_x86.h - the words of vec.h that 256-bit and 512-bit registers have alike
 *
 * Included by vec_256.h and vec_512.h, which say first what they are made of:
 *
 *   vi, vf, V_DOT32   as in vec.h
 *   MM(op), MM_SI(op) an intrinsic of the width: _mm256_<op>, _mm256_<op>_si256
 *   MM_BCAST_128      the intrinsic that repeats 16 bytes
 *   load_half, load_quarter  as many bytes as V_LANES 16-bit or 8-bit numbers have
 *   load_rows(p, stride, r)  16 bytes of every fourth row, from row r on
 *   MM_DPWSSD, ASM_DPWSSD  with V_DOT32: the dot instruction of 16-bit pairs, as an
 *                     intrinsic and in assembly
 */
#ifndef SLM_KERNELS_SIMD_VEC_X86_H
#define SLM_KERNELS_SIMD_VEC_X86_H

SIMD_INLINE vi v_load(const void *p)
{
    return MM_SI(loadu)(p);
}

SIMD_INLINE void v_store(void *p, vi v)
{
    MM_SI(storeu)(p, v);
}

SIMD_INLINE vi v_zero(void)
{
    return MM_SI(setzero)();
}

SIMD_INLINE vi v_set1_8(int v)
{
    return MM(set1_epi8)((char)v);
}

SIMD_INLINE vi v_set1_32(int v)
{
    return MM(set1_epi32)(v);
}

SIMD_INLINE vi v_bcast_4(const void *p)
{
    int32_t v;

    memcpy(&v, p, sizeof(v));
    return MM(set1_epi32)(v);
}

/* 16 bytes, repeated. */
SIMD_INLINE vi v_bcast_16(const void *p)
{
    return MM_BCAST_128(load_128(p));
}

/* V_LANES unsigned or signed bytes as integers. */
SIMD_INLINE vi v_u8(const void *p)
{
    return MM(cvtepu8_epi32)(load_quarter(p));
}

SIMD_INLINE vi v_s8(const void *p)
{
    return MM(cvtepi8_epi32)(load_quarter(p));
}

/* V_LANES signed 16-bit numbers as integers. */
SIMD_INLINE vi v_s16(const int16_t *p)
{
    return MM(cvtepi16_epi32)(load_half(p));
}

/* out[i], i < 8: sums of two neighbours of sixteen 16-bit numbers, which fit 16 bits,
 * in the order 0, 2, 1, 3, 4, 6, 5, 7. */
SIMD_INLINE void v_sums_of_two(const int16_t *v, int16_t *out)
{
    const __m128i order =
        _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
    const __m256i two = _mm256_madd_epi16(load_256(v), _mm256_set1_epi16(1));

    _mm_storeu_si128((void *)out,
                     _mm_shuffle_epi8(_mm_packs_epi32(_mm256_castsi256_si128(two),
                                                      _mm256_extracti128_si256(two, 1)),
                                      order));
}

/* out[i], i < 8: `by` times the sum of two neighbours of sixteen 16-bit numbers. */
SIMD_INLINE void v_sums_times(const int16_t *v, int by, int32_t *out)
{
    _mm256_storeu_si256((void *)out,
                        _mm256_madd_epi16(load_256(v), _mm256_set1_epi16((short)by)));
}

/* to[i] = from[order[i]], i < 32; every order below 32. */
SIMD_INLINE void v_order_32(const void *from, const uint8_t *order, void *to)
{
    const __m128i low = load_128(from), high = load_128((const char *)from + 16);

    SIMD_UNROLL
    for (int h = 0; h < 2; h++) { /* a top bit in what is chosen gives zero */
        const __m128i at = load_128(order + 16 * h);
        const __m128i in_low = _mm_adds_epu8(at, _mm_set1_epi8(0x70));
        const __m128i in_high = _mm_sub_epi8(at, _mm_set1_epi8(16));

        _mm_storeu_si128((__m128i *)to + h,
                         _mm_or_si128(_mm_shuffle_epi8(low, in_low),
                                      _mm_shuffle_epi8(high, in_high)));
    }
}

SIMD_INLINE vi v_and(vi a, vi b)
{
    return MM_SI(and)(a, b);
}

SIMD_INLINE vi v_or(vi a, vi b)
{
    return MM_SI(or)(a, b);
}

SIMD_INLINE vi v_xor(vi a, vi b)
{
    return MM_SI(xor)(a, b);
}

/* v_keep, v_made: "steering the compiler" in simd.h. */
SIMD_INLINE vi v_keep(vi v)
{
    SIMD_OPAQUE(v);
    return v;
}

SIMD_INLINE void v_made(vi v)
{
    __asm__ volatile("" : : "v"(v));
}

SIMD_INLINE vi v_srl16(vi v, int n)
{
    return MM(srli_epi16)(v, n);
}

/* Bytes. */
SIMD_INLINE vi v_srl8(vi v, int n)
{
    return v_and(v_srl16(v, n), v_set1_8(255 >> n));
}

SIMD_INLINE vi v_sll16(vi v, int n)
{
    return MM(slli_epi16)(v, n);
}

SIMD_INLINE vi v_srl32(vi v, int n)
{
    return MM(srli_epi32)(v, n);
}

SIMD_INLINE vi v_sll32(vi v, int n)
{
    return MM(slli_epi32)(v, n);
}

SIMD_INLINE vi v_sra32(vi v, int n)
{
    return MM(srai_epi32)(v, n);
}

SIMD_INLINE vi v_add8(vi a, vi b)
{
    return MM(add_epi8)(a, b);
}

SIMD_INLINE vi v_sub8(vi a, vi b)
{
    return MM(sub_epi8)(a, b);
}

SIMD_INLINE vi v_add32(vi a, vi b)
{
    return MM(add_epi32)(a, b);
}

SIMD_INLINE vi v_sub32(vi a, vi b)
{
    return MM(sub_epi32)(a, b);
}

SIMD_INLINE vi v_mul32(vi a, vi b)
{
    return MM(mullo_epi32)(a, b);
}

/* The larger of signed lanes. */
SIMD_INLINE vi v_max32(vi a, vi b)
{
    return MM(max_epi32)(a, b);
}

/* Unsigned bytes; 16-bit lanes. */
SIMD_INLINE vi v_min_u8(vi a, vi b)
{
    return MM(min_epu8)(a, b);
}

SIMD_INLINE vi v_max_u8(vi a, vi b)
{
    return MM(max_epu8)(a, b);
}

SIMD_INLINE vi v_add16(vi a, vi b)
{
    return MM(add_epi16)(a, b);
}

SIMD_INLINE vi v_mul16(vi a, vi b)
{
    return MM(mullo_epi16)(a, b);
}

/* Byte i of every lane in all bytes of the lane. */
SIMD_INLINE vi v_lane_byte(vi v, int i)
{
    const __m128i from = _mm_add_epi8(
        _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c), _mm_set1_epi8((char)i));

    return MM(shuffle_epi8)(v, MM_BCAST_128(from));
}

SIMD_INLINE vi v_table16(vi table, vi index)
{
    return MM(shuffle_epi8)(table, index);
}

/* With VBMI the look-up is in all 64 bytes, four times the same 16, and takes the lower
 * six bits of an index: nothing has to be masked away. */
SIMD_INLINE vi v_table16_low(vi table, vi index)
{
#ifdef __AVX512VBMI__
    return _mm512_permutexvar_epi8(index, table);
#else
    return v_table16(table, v_and(index, v_set1_8(15)));
#endif
}

SIMD_INLINE vi v_table16_high(vi table, vi index)
{
#ifdef __AVX512VBMI__
    return _mm512_permutexvar_epi8(v_srl16(index, 4), table);
#else
    return v_table16(table, v_srl8(index, 4));
#endif
}

/* ---- dot products ------------------------------------------------------------- */

/* Byte i of every lane into the bytes of `choose` that have no top bit. */
SIMD_INLINE vi v_choose_byte(vi four, __m128i choose, int i)
{
    return MM(shuffle_epi8)(four,
                            MM_BCAST_128(_mm_add_epi32(choose, _mm_set1_epi32(i))));
}

#if V_DOT32
/* sum + the products of 16-bit pairs. In a chain of them clang would multiply and add
 * apart: that shortens the chain, but other chains fill the time, and it takes two
 * instructions. */
SIMD_INLINE vi dpwssd(vi sum, vi a, vi b)
{
#ifdef __clang__
    __asm__(ASM_DPWSSD " %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
#else
    return MM_DPWSSD(sum, a, b);
#endif
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
    return v_choose_byte(four,
                         _mm_setr_epi32((int)0x80808000, (int)0x80808004,
                                        (int)0x80808008, (int)0x8080800c),
                         i);
}

SIMD_INLINE vi v_add_scaled(vi sum, vi part, vi scale)
{
    return v_add32(sum, v_mul32(part, scale));
}

SIMD_INLINE vi v_dot_pairs(vi sum, vi pairs, const int16_t *two)
{
    return dpwssd(sum, pairs, v_bcast_4(two));
}
#else
SIMD_INLINE vi v_dot_u(vi part, vi w, const void *x)
{
    return MM(add_epi16)(part, MM(maddubs_epi16)(w, v_bcast_4(x)));
}

SIMD_INLINE vi v_dot_sum(vi part)
{
    return MM(madd_epi16)(part, MM(set1_epi16)(1));
}

/* Lower halves of a, upper halves of b. */
SIMD_INLINE vi v_mix(vi a, vi b)
{
#ifdef __AVX512BW__
    return _mm512_mask_blend_epi16(0xaaaaaaaa, a, b);
#else
    return _mm256_blend_epi16(a, b, 0xaa);
#endif
}

/* Scale form: a 16-bit number in both halves of the lane. */
SIMD_INLINE vi v_scale(vi scale)
{
    return v_mix(scale, v_sll32(scale, 16));
}

/* The scale form of unsigned byte i of every lane. */
SIMD_INLINE vi v_scale_u8(vi four, int i)
{
    return v_choose_byte(four,
                         _mm_setr_epi32((int)0x80008000, (int)0x80048004,
                                        (int)0x80088008, (int)0x800c800c),
                         0x10001 * i);
}

SIMD_INLINE vi v_add_scaled(vi sum, vi part, vi scale)
{
    return v_add32(sum, MM(madd_epi16)(part, scale));
}

SIMD_INLINE vi v_dot_pairs(vi sum, vi pairs, const int16_t *two)
{
    return v_add32(sum, MM(madd_epi16)(pairs, v_bcast_4(two)));
}
#endif

/* ---- floats ------------------------------------------------------------------- */

SIMD_INLINE vf v_half(const void *p)
{
    return MM(cvtph_ps)(load_half(p));
}

SIMD_INLINE vf v_float_bits(vi v)
{
    return (vf)v;
}

SIMD_INLINE vf v_to_float(vi v)
{
    return MM(cvtepi32_ps)(v);
}

SIMD_INLINE vf v_zero_f(void)
{
    return MM(setzero_ps)();
}

SIMD_INLINE vf v_set1_f(float v)
{
    return MM(set1_ps)(v);
}

SIMD_INLINE vf v_mul(vf a, vf b)
{
    return MM(mul_ps)(a, b);
}

SIMD_INLINE vf v_add(vf a, vf b)
{
    return MM(add_ps)(a, b);
}

SIMD_INLINE vf v_div(vf a, vf b)
{
    return MM(div_ps)(a, b);
}

/* The larger; b where one is not a number. */
SIMD_INLINE vf v_max_f(vf a, vf b)
{
    return MM(max_ps)(a, b);
}

SIMD_INLINE vf v_abs_f(vf a)
{
    return v_float_bits(v_and((vi)a, v_set1_32(0x7fffffff)));
}

/* To the nearest integer; INT_MIN where that does not fit. */
SIMD_INLINE vi v_round(vf a)
{
    return MM(cvtps_epi32)(a);
}

SIMD_INLINE vf v_fma(vf a, vf b, vf c)
{
    return MM(fmadd_ps)(a, b, c);
}

SIMD_INLINE vf v_fnma(vf a, vf b, vf c)
{
    return MM(fnmadd_ps)(a, b, c);
}

SIMD_INLINE void v_store_f(float *p, vf v)
{
    MM(storeu_ps)(p, v);
}

/* ---- rows to lanes ------------------------------------------------------------ */

/* out[j] = dword j of the 16 bytes at p + i * stride, i < V_LANES. The rows go into
 * the 128-bit lanes in the order that a 4 x 4 transposition within them needs. */
SIMD_INLINE void v_rows_16(const uint8_t *p, size_t stride, vi out[4])
{
    vi v[4], a, b, c, d;

    SIMD_UNROLL
    for (size_t r = 0; r < 4; r++)
        v[r] = load_rows(p, stride, r);
    a = MM(unpacklo_epi32)(v[0], v[1]);
    b = MM(unpackhi_epi32)(v[0], v[1]);
    c = MM(unpacklo_epi32)(v[2], v[3]);
    d = MM(unpackhi_epi32)(v[2], v[3]);
    out[0] = MM(unpacklo_epi64)(a, c);
    out[1] = MM(unpackhi_epi64)(a, c);
    out[2] = MM(unpacklo_epi64)(b, d);
    out[3] = MM(unpackhi_epi64)(b, d);
}

#endif
