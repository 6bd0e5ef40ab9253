/* SPDX-License-Identifier: MIT
 *
 * kquant_gemm_avx2.h - AVX2 frame of the K-quant matrix products
 *
 * One super-block of eight rows is unpacked into a tile whose int32 lanes are the
 * rows: q[t] holds weights 4t..4t+3 of row 0, of row 1, ... of row 7. A column's
 * four activations are broadcast against it, so nothing has to be summed across
 * lanes, and the tile serves every column before the next super-block is
 * unpacked.
 *
 * vpmaddubsw leaves two int16 per row, each the sum of two products. Several of
 * these (`run`) are added in 16 bits before vpmaddwd applies the scale and widens
 * to 32: with weights up to qmax a run of 32767 / (2 * qmax * 127) cannot
 * overflow: 8 for q4_K (30480), 4 for q5_K (31496), 2 for q6_K (32004).
 *
 * Bytes get into that order by loading the same 16 bytes of all rows, rows r and
 * r+4 into the two 128-bit lanes of register r: a 4x4 transposition of dwords
 * within the lanes then puts dword j of rows 0..7 in register j.
 */
#ifndef SLM_KERNELS_KQUANT_GEMM_AVX2_H
#define SLM_KERNELS_KQUANT_GEMM_AVX2_H

#include "kernels/kquant/kquant_avx2.h"

enum { KQ_TILE_ROWS = 8, KQ_TILE_COLS = 64 };

struct kq_tile {
    __m256i q[64];     /* unsigned weights, see above */
    __m256i scale[16]; /* the scale twice per row as int16, one per sub-block */
    __m256i pair[8];   /* two int16 per row, factors of sums[2j] and sums[2j+1] */
    __m256 d, dmin;    /* dmin unused where the format has none */
};

/* Unpack the blocks at row[0..7] + at. */
typedef void kq_unpack_tile_fn(const uint8_t *const row[8], size_t at,
                               struct kq_tile *tile);

SIMD_INLINE __m256i kq_two_rows(const uint8_t *lower, const uint8_t *upper)
{
    return _mm256_set_m128i(load_128(upper), load_128(lower));
}

/* out[j] = dword j of the 16 bytes at row[0..7] + at. */
SIMD_INLINE void kq_load_dwords(const uint8_t *const row[8], size_t at, __m256i out[4])
{
    const __m256i v0 = kq_two_rows(row[0] + at, row[4] + at);
    const __m256i v1 = kq_two_rows(row[1] + at, row[5] + at);
    const __m256i v2 = kq_two_rows(row[2] + at, row[6] + at);
    const __m256i v3 = kq_two_rows(row[3] + at, row[7] + at);
    const __m256i a = _mm256_unpacklo_epi32(v0, v1), b = _mm256_unpackhi_epi32(v0, v1);
    const __m256i c = _mm256_unpacklo_epi32(v2, v3), e = _mm256_unpackhi_epi32(v2, v3);

    out[0] = _mm256_unpacklo_epi64(a, c);
    out[1] = _mm256_unpackhi_epi64(a, c);
    out[2] = _mm256_unpacklo_epi64(b, e);
    out[3] = _mm256_unpackhi_epi64(b, e);
}

/* The low half-precision number of every dword. */
SIMD_INLINE __m256 kq_low_half(__m256i v)
{
    /* Bytes 0, 1 of each dword to the front of each 128-bit lane. */
    const __m256i words = _mm256_shuffle_epi8(
        v, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1,
                                                     -1, -1, -1, -1, -1, -1)));

    return _mm256_cvtph_ps(_mm256_castsi256_si128(
        _mm256_permute4x64_epi64(words, _MM_SHUFFLE(2, 0, 2, 0))));
}

/* An int16 in the low half of every dword, twice; the upper half is zero. */
SIMD_INLINE __m256i kq_twice(__m256i v)
{
    return _mm256_or_si256(v, _mm256_slli_epi32(v, 16));
}

/* Head of a q4_K or q5_K block: d, dmin, scales and minima of eight rows. */
SIMD_INLINE void kq_unpack_head(const uint8_t *const row[8], size_t at,
                                struct kq_tile *tile)
{
    const __m256i six = _mm256_set1_epi32(0x3f), four = _mm256_set1_epi32(0x0f);
    const __m256i two = _mm256_set1_epi32(0x30);
    __m256i h[4]; /* d and dmin, A, B, C of kquant.h */

    kq_load_dwords(row, at, h);
    tile->d = kq_low_half(h[0]);
    tile->dmin = kq_low_half(_mm256_srli_epi32(h[0], 16));
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m256i a = _mm256_srli_epi32(h[1], 8 * i),
                      b = _mm256_srli_epi32(h[2], 8 * i);
        const __m256i c = _mm256_srli_epi32(h[3], 8 * i);

        tile->scale[i] = kq_twice(_mm256_and_si256(a, six));
        tile->scale[4 + i] = kq_twice(_mm256_or_si256(
            _mm256_and_si256(c, four), _mm256_and_si256(_mm256_srli_epi32(a, 2), two)));
        tile->pair[i] = kq_twice(_mm256_and_si256(b, six));
        tile->pair[4 + i] =
            kq_twice(_mm256_or_si256(_mm256_and_si256(_mm256_srli_epi32(c, 4), four),
                                     _mm256_and_si256(_mm256_srli_epi32(b, 2), two)));
    }
}

/* v, opaque to the compiler: gcc would turn the chain of 16-bit additions below
 * into a tree, which needs more registers than there are. */
SIMD_INLINE __m256i kq_in_order(__m256i v)
{
    __asm__("" : "+x"(v));
    return v;
}

/* What the frame needs to know of a format; constants after inlining. */
struct kq_gemm_format {
    size_t block_bytes;
    int n_groups; /* sub-blocks: 8 or 16 */
    int run;      /* vpmaddubsw results that may be added in 16 bits */
    bool affine;  /* minima with dmin, else an offset of 32 under the same d */
    kq_unpack_tile_fn *unpack;
};

/* acc[c][row] += tile times block b of n columns (n <= 4, a constant after
 * inlining). */
SIMD_INLINE void kq_tile_columns(const struct kq_tile *tile,
                                 const struct kq_gemm_format f, int n, size_t k,
                                 size_t b, const char *x, size_t x_stride, __m256 *acc)
{
    const int runs = 64 / f.run, runs_per_group = runs / f.n_groups;
    const int8_t *q = act_q(x) + KQ_ELEMS * b;
    __m256i prod[4], sums[4];

    SIMD_UNROLL
    for (int c = 0; c < n; c++)
        prod[c] = sums[c] = _mm256_setzero_si256();
    for (int u = 0; u < runs; u++) {
        __m256i part[4];

        SIMD_UNROLL
        for (int t = 0; t < f.run; t++) {
            const __m256i w = tile->q[u * f.run + t];

            SIMD_UNROLL
            for (int c = 0; c < n; c++) {
                const __m256i sum =
                    _mm256_maddubs_epi16(w, broadcast_4_bytes(q + (size_t)c * x_stride +
                                                              4 * (u * f.run + t)));

                part[c] = t == 0 ? sum : kq_in_order(_mm256_add_epi16(part[c], sum));
            }
        }
        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            prod[c] = _mm256_add_epi32(
                prod[c], _mm256_madd_epi16(part[c], tile->scale[u / runs_per_group]));
    }
    for (int j = 0; j < 8; j++) {
        SIMD_UNROLL
        for (int c = 0; c < n; c++) {
            const int16_t *s = act_q8_256_sums(x + (size_t)c * x_stride, k);
            const __m256i two = broadcast_4_bytes(s + KQ_ELEMS / 16 * b + 2 * j);

            sums[c] = _mm256_add_epi32(sums[c], _mm256_madd_epi16(tile->pair[j], two));
        }
    }
    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        const __m256 dx = _mm256_set1_ps(act_q8_256_d(x + (size_t)c * x_stride, k)[b]);
        __m256 v;

        if (f.affine) {
            v = _mm256_mul_ps(tile->d, _mm256_cvtepi32_ps(prod[c]));
            v = _mm256_fnmadd_ps(tile->dmin, _mm256_cvtepi32_ps(sums[c]), v);
        } else {
            v = _mm256_mul_ps(tile->d, _mm256_cvtepi32_ps(_mm256_sub_epi32(
                                           prod[c], _mm256_slli_epi32(sums[c], 5))));
        }
        acc[c] = _mm256_fmadd_ps(dx, v, acc[c]);
    }
}

/* Eight rows (or fewer: the last is repeated) times up to 64 columns. */
SIMD_INLINE void kq_gemm_tile(const struct kq_gemm_format f,
                              const uint8_t *const row[8], size_t n_rows, size_t k,
                              const char *x, size_t x_stride, size_t n_cols, float *y,
                              size_t y_stride)
{
    __m256 acc[KQ_TILE_COLS];
    struct kq_tile tile;

    for (size_t c = 0; c < n_cols; c++)
        acc[c] = _mm256_setzero_ps();
    for (size_t b = 0; b < k / KQ_ELEMS; b++) {
        size_t c = 0;

        f.unpack(row, b * f.block_bytes, &tile);
        for (size_t r = 0; r < KQ_TILE_ROWS; r++)
            prefetch_lines(row[r] + b * f.block_bytes, 2 * f.block_bytes,
                           f.block_bytes);
        for (; c + 4 <= n_cols; c += 4)
            kq_tile_columns(&tile, f, 4, k, b, x + c * x_stride, x_stride, acc + c);
        if (n_cols - c >= 2) {
            kq_tile_columns(&tile, f, 2, k, b, x + c * x_stride, x_stride, acc + c);
            c += 2;
        }
        if (c < n_cols)
            kq_tile_columns(&tile, f, 1, k, b, x + c * x_stride, x_stride, acc + c);
    }
    for (size_t c = 0; c < n_cols; c++) {
        if (n_rows >= KQ_TILE_ROWS)
            _mm256_storeu_ps(y + c * y_stride, acc[c]);
        else
            memcpy(y + c * y_stride, &acc[c], n_rows * sizeof(float));
    }
}

SIMD_INLINE void kq_gemm(const struct kq_gemm_format f, size_t n_rows, size_t k,
                         const void *w, size_t w_stride, size_t n_cols, const void *x,
                         size_t x_stride, float *y, size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i += KQ_TILE_ROWS) {
        const uint8_t *row[KQ_TILE_ROWS];

        for (size_t r = 0; r < KQ_TILE_ROWS; r++)
            row[r] =
                (const uint8_t *)w + (i + r < n_rows ? i + r : n_rows - 1) * w_stride;
        for (size_t c = 0; c < n_cols; c += KQ_TILE_COLS)
            kq_gemm_tile(f, row, n_rows - i, k, (const char *)x + c * x_stride,
                         x_stride,
                         n_cols - c < KQ_TILE_COLS ? n_cols - c : KQ_TILE_COLS,
                         y + c * y_stride + i, y_stride);
    }
}

#endif
