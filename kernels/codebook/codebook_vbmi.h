/* SPDX-License-Identifier: MIT
 *
 * codebook_vbmi.h - grid points of sixteen rows by register look-ups (AVX512-VBMI)
 *
 * vpermb looks up 64 bytes in a table of 64, and leaves alone those that a mask says
 * are in another. The values of a point are the codes of one or two bytes, so that the
 * codes of 64 points (16 rows of four) take one or two tables of as many bytes as the
 * grid has points; the tables share the masks. Nothing is then taken apart: vpermb
 * looks at the lower six bits of a byte, and a table that knows which of them are the
 * value's turns all four bytes of a lane into weights. The sign is put into the code
 * where the value is not, at another bit for each value, which is where it is found in
 * the signs of a group.
 *
 * IQ2's values are short enough for two of them, with two signs, in one index. The
 * signs of a group's values 0, 1, 4, 5 are a window of its byte of signs, and two bits
 * on those of values 2, 3, 6, 7: that is why these share codes.
 *
 * A lane's four weights are then the same value of four points. Instead of taking them
 * to their places, the format's order puts the activations into theirs, of IQ3
 *
 *       step    byte 0          byte 1          byte 2          byte 3
 *       0       value 0 of p0   value 0 of p1   value 0 of p2   value 0 of p3
 *       1       value 1 of p0   ...
 *
 * and of IQ2 likewise with p0, p1 and a later value of p0 and p1.
 */
#ifndef SLM_KERNELS_CODEBOOK_VBMI_H
#define SLM_KERNELS_CODEBOOK_VBMI_H

#include "kernels/codebook/codebook_x16.h"

#ifdef KERN_LEVEL_avx512vbmi

/* Which quarter of 256 entries each byte's index is in, and which 256. */
struct cb_where {
    __mmask64 bit_6, bit_7, both;
    __mmask64 bit_8, bit_9;
};

/* In a table of n entries, 256, 512 or 1024; high: bits 8 and up of the index. */
SIMD_INLINE struct cb_where cb_where(int n, vi index, vi high)
{
    struct cb_where at = {.bit_6 = _mm512_movepi8_mask(v_sll16(index, 1)),
                          .bit_7 = _mm512_movepi8_mask(index)};

    at.both = _kand_mask64(at.bit_6, at.bit_7);
    if (n >= 512)
        at.bit_8 = _mm512_movepi8_mask(v_sll16(high, 7));
    if (n >= 1024)
        at.bit_9 = _mm512_movepi8_mask(v_sll16(high, 6));
    return at;
}

SIMD_INLINE vi cb_lookup_256(const uint8_t *table, vi index, struct cb_where at)
{
    vi found = _mm512_permutexvar_epi8(index, v_load(table));

    found = _mm512_mask_permutexvar_epi8(found, at.bit_6, index, v_load(table + 64));
    found = _mm512_mask_permutexvar_epi8(found, at.bit_7, index, v_load(table + 128));
    return _mm512_mask_permutexvar_epi8(found, at.both, index, v_load(table + 192));
}

SIMD_INLINE vi cb_lookup_512(const uint8_t *table, vi index, struct cb_where at)
{
    return _mm512_mask_mov_epi8(cb_lookup_256(table, index, at), at.bit_8,
                                cb_lookup_256(table + 256, index, at));
}

SIMD_INLINE vi cb_lookup(const uint8_t *table, int n, vi index, struct cb_where at)
{
    if (n == 256)
        return cb_lookup_256(table, index, at);
    if (n == 512)
        return cb_lookup_512(table, index, at);
    return _mm512_mask_mov_epi8(cb_lookup_512(table, index, at), at.bit_9,
                                cb_lookup_512(table + 512, index, at));
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

/* The codes of both halves of four groups of eight, a byte of each lane for each, and
 * their signs. */
struct cb_four {
    vi first, second, signs;
};

/* From the lower bits of their points and the bits from 8 on. */
SIMD_INLINE struct cb_four cb_four(const uint8_t *codes, int n, vi index, vi high,
                                   vi signs)
{
    const struct cb_where where = cb_where(n, index, high);

    return (struct cb_four){cb_lookup(codes, n, index, where),
                            cb_lookup(codes + n, n, index, where), signs};
}

SIMD_INLINE void cb_emit_four(struct cb_four of, int unit, x16_emit_fn *emit,
                              const struct x16_sink sink)
{
#define WEIGHT(i, value, sign)                                            \
    ((i) >> (sign)&1 ? CB_IQ2_BIAS - CODEBOOK_IQ2_LEVEL((i) >> (value)&3) \
                     : CB_IQ2_BIAS + CODEBOOK_IQ2_LEVEL((i) >> (value)&3))
#define WEIGHT_0(i) WEIGHT(i, 2, 0)
#define WEIGHT_1(i) WEIGHT(i, 4, 1)
#define WEIGHT_2(i) WEIGHT(i, 0, 4)
#define WEIGHT_3(i) WEIGHT(i, 2, 5)
    static const uint8_t levels[4][64] __attribute__((aligned(64))) = {
        {CB_64(WEIGHT_0)}, {CB_64(WEIGHT_1)}, {CB_64(WEIGHT_2)}, {CB_64(WEIGHT_3)}};
#undef WEIGHT_0
#undef WEIGHT_1
#undef WEIGHT_2
#undef WEIGHT_3
#undef WEIGHT
    const vi low = v_set1_32(0xffff);

    SIMD_UNROLL
    for (int two = 0; two < 2; two++) { /* groups 0 and 1, 2 and 3 */
        const vi code = two == 0 ? v_select(low, of.first, v_sll32(of.second, 16))
                                 : v_select(low, v_srl32(of.first, 16), of.second);
        const int at = 16 * two;
        const vi sign = cb_four_windows(of.signs, at, at + 8, at + 2, at + 10);
        const vi index[2] = {v_select(v_set1_8(0x03), sign, v_srl16(code, 2)),
                             v_select(v_set1_8(0x30), sign, code)};

        SIMD_UNROLL
        for (int i = 0; i < 4; i++)
            emit(sink, 8 * unit + 4 * two + i,
                 _mm512_permutexvar_epi8(index[i / 2], v_load(levels[i])));
    }
}

/* All of a block's 32 groups. A step's look-ups come before the weights of the step
 * before: the processor's window is too short to find them there. */
typedef struct cb_four cb_points_fn(const uint8_t *body, int step);

SIMD_INLINE void cb_emit_block(cb_points_fn *points, const uint8_t *body,
                               x16_emit_fn *emit, const struct x16_sink sink)
{
    struct cb_four next = points(body, 0);

    SIMD_UNROLL
    for (int step = 0; step < 8; step++) {
        const struct cb_four now = next;

        if (step < 7)
            next = points(body, step + 1);
        cb_emit_four(now, step, emit, sink);
    }
}

/* Four points of four values (IQ3), a byte of each lane for each: the codes of values 0
 * and 1, of 2 and 3, and the signs: bits 0 to 3 of a byte. */
struct cb_16 {
    vi code[2], signs;
};

/* Bits at .. at + 15 of signs: the first point's, the second's, ... */
SIMD_INLINE struct cb_16 cb_16(const uint8_t *codes, int n, vi index, vi high, vi signs,
                               int at)
{
    const struct cb_where where = cb_where(n, index, high);

    return (struct cb_16){
        {cb_lookup(codes, n, index, where), cb_lookup(codes + n, n, index, where)},
        cb_windows(signs, at, 4)};
}

typedef struct cb_16 cb_points_16_fn(const uint8_t *body, int step);

/* All of a block's 64 points, in the manner of cb_emit_block(). */
SIMD_INLINE void cb_emit_block_16(cb_points_16_fn *points, const uint8_t (*levels)[64],
                                  const uint8_t *body, x16_emit_fn *emit,
                                  const struct x16_sink sink)
{
    struct cb_16 next = points(body, 0);

    SIMD_UNROLL
    for (int step = 0; step < 16; step++) {
        const struct cb_16 now = next;

        if (step < 15)
            next = points(body, step + 1);
        SIMD_UNROLL
        for (int i = 0; i < 4; i++)
            emit(sink, 4 * step + i, cb_weights(levels, now.code[i / 2], now.signs, i));
    }
}

/* ---- the order --------------------------------------------------------------------
 */

/* Of IQ3's points, and of pairs of IQ2's: values 0 and 2, 1 and 3, 4 and 6, 5 and 7 of
 * both. */
static const uint8_t cb_order_3[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                       2, 6, 10, 14, 3, 7, 11, 15};
static const uint8_t cb_order_2[16] = {0, 8,  2, 10, 1, 9,  3, 11,
                                       4, 12, 6, 14, 5, 13, 7, 15};

#define CB_IQ2_ORDER cb_order_2

#else

#define CB_IQ2_ORDER NULL

#endif

#endif
