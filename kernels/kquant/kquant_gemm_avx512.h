/* SPDX-License-Identifier: MIT
 *
 * kquant_gemm_avx512.h - AVX-512 VNNI frame of the K-quant matrix products
 *
 * One super-block of sixteen rows is unpacked into a tile whose int32 lanes are
 * the rows: q[t] holds weights 4t..4t+3 of row 0, of row 1, ... of row 15. A
 * column's four activations are broadcast against it from memory, vpdpbusd adds
 * the four products, and nothing has to be summed across lanes. The tile serves
 * every column before the next super-block is unpacked.
 *
 * Bytes get into that order by loading the same 16 bytes of all rows, rows r,
 * r+4, r+8, r+12 into the four 128-bit lanes of register r: a 4x4 transposition
 * of dwords within the lanes then puts dword j of rows 0..15 in register j.
 */
#ifndef SLM_KERNELS_KQUANT_GEMM_AVX512_H
#define SLM_KERNELS_KQUANT_GEMM_AVX512_H

#include "kernels/kquant/kquant_avx512.h"

enum { KQ_TILE_ROWS = 16, KQ_TILE_COLS = 64 };

struct kq_tile {
    __m512i q[64];     /* unsigned weights, see above */
    __m512i scale[16]; /* int32 per row, one per sub-block (8 or 16 used) */
    __m512i pair[8];   /* two int16 per row, factors of sums[2j] and sums[2j+1] */
    __m512 d, dmin;    /* dmin unused where the format has none */
};

/* Unpack the blocks at row[0..15] + at. */
typedef void kq_unpack_tile_fn(const uint8_t *const row[16], size_t at,
                               struct kq_tile *tile);

/* out[j] = dword j of the 16 bytes at row[0..15] + at. */
SIMD_INLINE void kq_load_dwords(const uint8_t *const row[16], size_t at, __m512i out[4])
{
    __m512i v[4];

    for (int r = 0; r < 4; r++)
        v[r] =
            load_4x128(row[r] + at, row[r + 4] + at, row[r + 8] + at, row[r + 12] + at);

    const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]),
                  b = _mm512_unpackhi_epi32(v[0], v[1]);
    const __m512i c = _mm512_unpacklo_epi32(v[2], v[3]),
                  e = _mm512_unpackhi_epi32(v[2], v[3]);

    out[0] = _mm512_unpacklo_epi64(a, c);
    out[1] = _mm512_unpackhi_epi64(a, c);
    out[2] = _mm512_unpacklo_epi64(b, e);
    out[3] = _mm512_unpackhi_epi64(b, e);
}

/* The low half-precision number of every dword. */
SIMD_INLINE __m512 kq_low_half(__m512i v)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v));
}

/* Head of a q4_K or q5_K block: d, dmin, scales and minima of sixteen rows. */
SIMD_INLINE void kq_unpack_head(const uint8_t *const row[16], size_t at,
                                struct kq_tile *tile)
{
    const __m512i six = _mm512_set1_epi32(0x3f), four = _mm512_set1_epi32(0x0f);
    const __m512i two = _mm512_set1_epi32(0x30);
    __m512i h[4]; /* d and dmin, A, B, C of kquant.h */

    kq_load_dwords(row, at, h);
    tile->d = kq_low_half(h[0]);
    tile->dmin = kq_low_half(_mm512_srli_epi32(h[0], 16));
    SIMD_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        const __m512i a = _mm512_srli_epi32(h[1], 8 * i),
                      b = _mm512_srli_epi32(h[2], 8 * i);
        const __m512i c = _mm512_srli_epi32(h[3], 8 * i);
        const __m512i m_low = _mm512_and_si512(b, six);
        const __m512i m_high =
            _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi32(c, 4), four),
                            _mm512_and_si512(_mm512_srli_epi32(b, 2), two));

        tile->scale[i] = _mm512_and_si512(a, six);
        tile->scale[4 + i] = _mm512_or_si512(
            _mm512_and_si512(c, four), _mm512_and_si512(_mm512_srli_epi32(a, 2), two));
        tile->pair[i] = _mm512_or_si512(m_low, _mm512_slli_epi32(m_low, 16));
        tile->pair[4 + i] = _mm512_or_si512(m_high, _mm512_slli_epi32(m_high, 16));
    }
}

/* What the frame needs to know of a format; constants after inlining. */
struct kq_gemm_format {
    size_t block_bytes;
    int n_groups; /* sub-blocks: 8 or 16 */
    bool affine;  /* minima with dmin, else an offset of 32 under the same d */
    kq_unpack_tile_fn *unpack;
};

/* acc[c][row] += tile times block b of n columns (n constant after inlining). */
SIMD_INLINE void kq_tile_columns(const struct kq_tile *tile,
                                 const struct kq_gemm_format f, int n, size_t k,
                                 size_t b, const char *x, size_t x_stride, __m512 *acc)
{
    const int steps = 64 / f.n_groups;
    const int8_t *q = act_q(x) + KQ_ELEMS * b;
    __m512i prod[8], sums[8];

    SIMD_UNROLL
    for (int c = 0; c < n; c++)
        prod[c] = _mm512_setzero_si512();
    for (int g = 0; g < f.n_groups; g++) {
        __m512i part[8];

        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            part[c] = _mm512_setzero_si512();
        SIMD_UNROLL
        for (int t = 0; t < steps; t++) {
            const __m512i w = tile->q[g * steps + t];

            SIMD_UNROLL
            for (int c = 0; c < n; c++)
                part[c] = _mm512_dpbusd_epi32(
                    part[c], w,
                    broadcast_4_bytes(q + (size_t)c * x_stride + 4 * (g * steps + t)));
        }
        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            prod[c] =
                _mm512_add_epi32(prod[c], _mm512_mullo_epi32(part[c], tile->scale[g]));
    }
    SIMD_UNROLL
    for (int c = 0; c < n; c++)
        sums[c] = _mm512_setzero_si512();
    for (int j = 0; j < 8; j++) {
        SIMD_UNROLL
        for (int c = 0; c < n; c++) {
            const int16_t *s = act_q8_256_sums(x + (size_t)c * x_stride, k);

            sums[c] =
                _mm512_dpwssd_epi32(sums[c], tile->pair[j],
                                    broadcast_4_bytes(s + KQ_ELEMS / 16 * b + 2 * j));
        }
    }
    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        const __m512 dx = _mm512_set1_ps(act_q8_256_d(x + (size_t)c * x_stride, k)[b]);
        __m512 v;

        if (f.affine) {
            v = _mm512_mul_ps(tile->d, _mm512_cvtepi32_ps(prod[c]));
            v = _mm512_fnmadd_ps(tile->dmin, _mm512_cvtepi32_ps(sums[c]), v);
        } else {
            v = _mm512_mul_ps(tile->d, _mm512_cvtepi32_ps(_mm512_sub_epi32(
                                           prod[c], _mm512_slli_epi32(sums[c], 5))));
        }
        acc[c] = _mm512_fmadd_ps(dx, v, acc[c]);
    }
}

/* Sixteen rows (or fewer: the last is repeated) times up to 64 columns. */
SIMD_INLINE void kq_gemm_tile(const struct kq_gemm_format f,
                              const uint8_t *const row[16], size_t n_rows, size_t k,
                              const char *x, size_t x_stride, size_t n_cols, float *y,
                              size_t y_stride)
{
    const __mmask16 rows = (__mmask16)(n_rows < 16 ? (1u << n_rows) - 1 : 0xffff);
    __m512 acc[KQ_TILE_COLS];
    struct kq_tile tile;

    for (size_t c = 0; c < n_cols; c++)
        acc[c] = _mm512_setzero_ps();
    for (size_t b = 0; b < k / KQ_ELEMS; b++) {
        size_t c = 0;

        f.unpack(row, b * f.block_bytes, &tile);
        for (size_t r = 0; r < 16; r++)
            prefetch_lines(row[r] + b * f.block_bytes, 2 * f.block_bytes,
                           f.block_bytes);
        for (; c + 8 <= n_cols; c += 8)
            kq_tile_columns(&tile, f, 8, k, b, x + c * x_stride, x_stride, acc + c);
        if (n_cols - c >= 4) {
            kq_tile_columns(&tile, f, 4, k, b, x + c * x_stride, x_stride, acc + c);
            c += 4;
        }
        if (n_cols - c >= 2) {
            kq_tile_columns(&tile, f, 2, k, b, x + c * x_stride, x_stride, acc + c);
            c += 2;
        }
        if (c < n_cols)
            kq_tile_columns(&tile, f, 1, k, b, x + c * x_stride, x_stride, acc + c);
    }
    for (size_t c = 0; c < n_cols; c++)
        _mm512_mask_storeu_ps(y + c * y_stride, rows, acc[c]);
}

SIMD_INLINE void kq_gemm(const struct kq_gemm_format f, size_t n_rows, size_t k,
                         const void *w, size_t w_stride, size_t n_cols, const void *x,
                         size_t x_stride, float *y, size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i += KQ_TILE_ROWS) {
        const uint8_t *row[KQ_TILE_ROWS];

        for (size_t r = 0; r < KQ_TILE_ROWS; r++)
            row[r] = kq_row(w, w_stride, i + r, n_rows);
        for (size_t c = 0; c < n_cols; c += KQ_TILE_COLS)
            kq_gemm_tile(f, row, n_rows - i, k, (const char *)x + c * x_stride,
                         x_stride,
                         n_cols - c < KQ_TILE_COLS ? n_cols - c : KQ_TILE_COLS,
                         y + c * y_stride + i, y_stride);
    }
}

#endif
