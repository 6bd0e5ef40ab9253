/* SPDX-License-Identifier: MIT
 *
 * codebook_vbmi.h - grid points of sixteen rows by register look-ups (AVX512-VBMI)
 *
 * vpermi2b looks up 64 bytes in a table of 128. A point's code, two bits per value, is
 * two bytes, so that the codes of 64 points (16 rows of four groups) take two tables of
 * as many bytes as the grid has points. vpmultishiftqb then brings the code of every
 * value, and its sign, to the lower bits of its own byte, and one more look-up turns
 * these three bits into the weight, with the bias.
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

/* Four groups, a byte of each lane for each: the lower bits of their points, the bits
 * from 8 on, and their signs. place[i]: the byte that group i of the unit is in. */
SIMD_INLINE void cb_emit_four(const uint8_t *codes, int n, vi index, vi high, vi signs,
                              const int place[4], int unit, x16_emit_fn *emit,
                              struct x16_sink *sink)
{
    /* code | minus << 2; the other bits of a look-up's index, 3 to 5, do not matter */
    static const uint8_t weights[64] __attribute__((aligned(64))) = {
#define EIGHT 64 + 8, 64 + 25, 64 + 43, 0, 64 - 8, 64 - 25, 64 - 43, 0
        EIGHT, EIGHT, EIGHT, EIGHT, EIGHT,
        EIGHT, EIGHT, EIGHT
#undef EIGHT
    };
    const vi table = v_load(weights);
    const vi code[2] = {cb_lookup(codes, n, index, high),
                        cb_lookup(codes + n, n, index, high)};

    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        SIMD_UNROLL
    for (int half = 0; half < 2; half++) {
        const vi value = cb_windows(code[half], 8 * place[i], 2);
        const vi sign = cb_windows(signs, 8 * place[i] + 4 * half - 2, 1);

        emit(sink, 8 * unit + 2 * i + half,
             _mm512_permutexvar_epi8(v_select(v_set1_8(4), sign, value), table));
    }
}

#endif

#endif
