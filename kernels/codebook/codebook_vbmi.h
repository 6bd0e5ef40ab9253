/* SPDX-License-Identifier: MIT
 *
 * codebook_vbmi.h - grid points of sixteen rows by register look-ups (AVX512-VBMI)
 *
 * vpermi2b looks up 64 bytes in a table of 128. The values of a point are the codes of
 * one or two bytes, so that the codes of 64 points (16 rows of four) take one or two
 * tables of as many bytes as the grid has points. Nothing is then taken apart: vpermb
 * looks at the lower six bits of a byte, and a table that knows which of them are the
 * value's turns all four bytes of a lane into weights. The sign is put into the code
 * where the value is not, at another bit for each value, which is where it is found in
 * the signs of a group.
 *
 * A lane's four weights are then the same value of four points. Instead of taking them
 * to their places, cb_order puts the activations into theirs:
 *
 *       step    byte 0          byte 1          byte 2          byte 3
 *       0       value 0 of p0   value 0 of p1   value 0 of p2   value 0 of p3
 *       1       value 1 of p0   ...
 *
 * where p0 to p3 are the points of 16 weights, which IQ2's are the halves of.
 */
#ifndef SLM_KERNELS_CODEBOOK_VBMI_H
#define SLM_KERNELS_CODEBOOK_VBMI_H

#include "kernels/codebook/codebook_x16.h"

#ifdef KERN_LEVEL_avx512vbmi

/* Bytes of a table of 256 at the lower eight bits of index; top: those with bit 7. */
SIMD_INLINE vi cb_lookup_256(const uint8_t *table, vi index, __mmask64 top)
{
    return _mm512_mask_mov_epi8(
        _mm512_permutex2var_epi8(v_load(table), index, v_load(table + 64)), top,
        _mm512_permutex2var_epi8(v_load(table + 128), index, v_load(table + 192)));
}

/* Of a table of n points, 256, 512 or 1024; high: bits 8 and up of the index. */
SIMD_INLINE vi cb_lookup(const uint8_t *table, int n, vi index, vi high)
{
    const __mmask64 top = _mm512_movepi8_mask(index);
    vi found = cb_lookup_256(table, index, top);

    if (n >= 512)
        found = _mm512_mask_mov_epi8(found, _mm512_test_epi8_mask(high, v_set1_8(1)),
                                     cb_lookup_256(table + 256, index, top));
    if (n >= 1024) {
        const vi upper = _mm512_mask_mov_epi8(cb_lookup_256(table + 512, index, top),
                                              _mm512_test_epi8_mask(high, v_set1_8(1)),
                                              cb_lookup_256(table + 768, index, top));

        found = _mm512_mask_mov_epi8(found, _mm512_test_epi8_mask(high, v_set1_8(2)),
                                     upper);
    }
    return found;
}

/* For every byte the eight bits of its quadword from this one on: bits a, b, c and d
 * for the bytes of the first dword, the same in the second. */
SIMD_INLINE vi cb_four_windows(vi v, int a, int b, int c, int d)
{
    const long long dword =
        (a & 63) | (b & 63) << 8 | (c & 63) << 16 | (long long)(d & 63) << 24;

    return _mm512_multishift_epi64_epi8(
        _mm512_set1_epi64(dword | (dword ^ 0x20202020) << 32), v);
}

/* Bit `at` for the first byte, `step` more for each behind. */
SIMD_INLINE vi cb_windows(vi v, int at, int step)
{
    return cb_four_windows(v, at, at + step, at + 2 * step, at + 3 * step);
}

/* Lanes: bytes at and at + 2 of a's, then of b's. */
SIMD_INLINE vi cb_bytes_of(vi a, vi b, int at)
{
    const vi from = _mm512_setr_epi32(0x42400200, 0x46440604, 0x4a480a08, 0x4e4c0e0c,
                                      0x52501210, 0x56541614, 0x5a581a18, 0x5e5c1e1c,
                                      0x62602220, 0x66642624, 0x6a682a28, 0x6e6c2e2c,
                                      0x72703230, 0x76743634, 0x7a783a38, 0x7e7c3e3c);

    return _mm512_permutex2var_epi8(a, v_add8(from, v_set1_8(at)), b);
}

/* The eight signs of a group from the lower seven of every byte. */
SIMD_INLINE vi cb_even_signs(vi seven)
{
    return _mm512_permutex2var_epi8(v_load(codebook_signs), seven,
                                    v_load(codebook_signs + 64));
}

/* The values `which` (0 to 3) of the points of code; bits 0 to 3 of a byte of signs are
 * those of its four values. levels[which]: weights by six bits of value and sign. */
SIMD_INLINE vi cb_weights(const uint8_t (*levels)[64], vi code, vi signs, int which)
{
    return _mm512_permutexvar_epi8(v_select(v_set1_8(1 << which), signs, code),
                                   v_load(levels[which]));
}

#define CB_4(w, i)  w(i), w((i) + 1), w((i) + 2), w((i) + 3)
#define CB_16(w, i) CB_4(w, i), CB_4(w, (i) + 4), CB_4(w, (i) + 8), CB_4(w, (i) + 12)
#define CB_64(w)    CB_16(w, 0), CB_16(w, 16), CB_16(w, 32), CB_16(w, 48)

/* Four groups of eight, a byte of each lane for each: the lower bits of their points,
 * the bits from 8 on, and their signs. */
SIMD_INLINE void cb_emit_four(const uint8_t *codes, int n, vi index, vi high, vi signs,
                              int unit, x16_emit_fn *emit, struct x16_sink *sink)
{
#define WEIGHT(i, value, sign)                                            \
    ((i) >> (sign)&1 ? CB_IQ2_BIAS - CODEBOOK_IQ2_LEVEL((i) >> (value)&3) \
                     : CB_IQ2_BIAS + CODEBOOK_IQ2_LEVEL((i) >> (value)&3))
#define WEIGHT_0(i) WEIGHT(i, 4, 0)
#define WEIGHT_1(i) WEIGHT(i, 2, 1)
#define WEIGHT_2(i) WEIGHT(i, 0, 2)
#define WEIGHT_3(i) WEIGHT(i, 4, 3)
    static const uint8_t levels[4][64] __attribute__((aligned(64))) = {
        {CB_64(WEIGHT_0)}, {CB_64(WEIGHT_1)}, {CB_64(WEIGHT_2)}, {CB_64(WEIGHT_3)}};
#undef WEIGHT_0
#undef WEIGHT_1
#undef WEIGHT_2
#undef WEIGHT_3
#undef WEIGHT
    const vi low = v_set1_32(0xffff);
    const vi first = cb_lookup(codes, n, index, high);
    const vi second = cb_lookup(codes + n, n, index, high);

    SIMD_UNROLL
    for (int two = 0; two < 2; two++) { /* groups 0 and 1, 2 and 3 */
        const vi code = two == 0 ? v_select(low, first, v_sll32(second, 16))
                                 : v_select(low, v_srl32(first, 16), second);
        const int at = 16 * two;
        const vi sign = cb_four_windows(signs, at, at + 8, at + 4, at + 12);

        SIMD_UNROLL
        for (int i = 0; i < 4; i++)
            emit(sink, 8 * unit + 4 * two + i,
                 cb_weights(levels, i == 3 ? v_srl16(code, 2) : code, sign, i));
    }
}

/* Four points of four values (IQ3), a byte of each lane for each; bits at .. at + 15 of
 * signs: the first point's, the second's, ... */
SIMD_INLINE void cb_emit_16(const uint8_t *codes, int n, const uint8_t (*levels)[64],
                            vi index, vi high, vi signs, int at, int four,
                            x16_emit_fn *emit, struct x16_sink *sink)
{
    const vi sign = cb_windows(signs, at, 4);

    SIMD_UNROLL
    for (int pair = 0; pair < 2; pair++) {
        const vi code = cb_lookup(codes + pair * n, n, index, high);

        emit(sink, four + 2 * pair, cb_weights(levels, code, sign, 2 * pair));
        emit(sink, four + 2 * pair + 1, cb_weights(levels, code, sign, 2 * pair + 1));
    }
}

/* ---- the order --------------------------------------------------------------------
 */

/* Of IQ3's points, and of the halves of IQ2's: first halves of both groups, then
 * second. */
static const uint8_t cb_order_3[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                       2, 6, 10, 14, 3, 7, 11, 15};
static const uint8_t cb_order_2[16] = {0, 8,  4, 12, 1, 9,  5, 13,
                                       2, 10, 6, 14, 3, 11, 7, 15};

/* Bytes of every lane as a 4 x 4 matrix, transposed. */
SIMD_INLINE void cb_transpose(vi *w, int to_1, int to_2)
{
    const vi even = v_set1_32(0x00ff00ff), low = v_set1_32(0xffff);
    const vi ab_02 = v_select(even, w[0], v_sll16(w[1], 8));
    const vi ab_13 = v_select(even, v_srl16(w[0], 8), w[1]);
    const vi cd_02 = v_select(even, w[2], v_sll16(w[3], 8));
    const vi cd_13 = v_select(even, v_srl16(w[2], 8), w[3]);

    w[0] = v_select(low, ab_02, v_sll32(cd_02, 16));
    w[to_1] = v_select(low, ab_13, v_sll32(cd_13, 16));
    w[to_2] = v_select(low, v_srl32(ab_02, 16), cd_02);
    w[3] = v_select(low, v_srl32(ab_13, 16), cd_13);
}

SIMD_INLINE void cb_restore_3(vi *w)
{
    cb_transpose(w, 1, 2);
}

SIMD_INLINE void cb_restore_2(vi *w)
{
    cb_transpose(w, 2, 1);
}

#define CB_IQ2_ORDER   cb_order_2
#define CB_IQ2_RESTORE cb_restore_2

#else

#define CB_IQ2_ORDER   NULL
#define CB_IQ2_RESTORE NULL

#endif

#endif
