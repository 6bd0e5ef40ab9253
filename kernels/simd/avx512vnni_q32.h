/* SPDX-License-Identifier: MIT
 *
 * avx512vnni_q32.h - templates for formats of 32-weight blocks with one scale,
 *                    times q8_32 activations, with vpdpbusd
 *
 * vpdpbusd multiplies unsigned by signed bytes and adds four products to a 32-bit
 * lane, so weights come as unsigned bytes u = q + bias, and bias * sum(x) is
 * taken off:   sum(q * x) = sum(u * x) - bias * sum(x)
 * Range: a block's sum is at most 32 * 255 * 127 = 1036320, below 2^24, so
 * turning it into a float is exact.
 *
 * Two shapes of loop:
 * - dot, for one to three columns: a register holds four blocks of one row,
 *       u.lo | first half of block 0 | ... of block 1 | ... 2 | ... 3 |
 *       u.hi | second halves                                          |
 *   so that 32-bit lanes 4b..4b+3 belong to block b, and both halves add up in
 *   one register.
 * - panel, for more columns: 16 rows are unpacked once into lanes,
 *       u[i] | 4 weights 4i..4i+3 of row 0 | ... of row 1 | ... | row 15 |
 *   and 4 activations at a time are broadcast from memory; 16 results of a
 *   column come out side by side, without any sum across lanes.
 */
#ifndef SLM_KERNELS_SIMD_AVX512VNNI_Q32_H
#define SLM_KERNELS_SIMD_AVX512VNNI_Q32_H

#include "kernels/activations/activations.h"
#include "kernels/simd/avx512.h"

/* Four blocks of a row, in the order described above; d holds the scale of
 * block b in lanes 4b..4b+3. */
struct q32_weights {
    __m512i lo, hi;
    __m512 d;
};

typedef struct q32_weights q32_unpack_fn(const uint8_t *w);

/* What a format says of itself. */
struct q32_format {
    q32_unpack_fn *unpack;
    size_t block_bytes;
    int bias; /* 1..128 */
};

#define Q32_MAX_BLOCK_BYTES 34

/* ---- dot -------------------------------------------------------------------- */

/* Four blocks of a column. start: minus bias times the sums, which a weight sum
 * begins with. */
struct q32_column {
    __m512i lo, hi, start;
    __m512 d;
};

SIMD_INLINE struct q32_column q32_load_column(const int8_t *q, const float *d, int bias)
{
    const __m512i x0 = load_512(q), x1 = load_512(q + 64);
    const __m512i minus = _mm512_set1_epi8((char)bias);
    struct q32_column x;
    __m512i sums;

    x.lo = _mm512_shuffle_i64x2(x0, x1, 0x88);
    x.hi = _mm512_shuffle_i64x2(x0, x1, 0xdd);
    sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), minus, x.lo);
    sums = _mm512_dpbusd_epi32(sums, minus, x.hi);
    x.start = _mm512_sub_epi32(_mm512_setzero_si512(), sums);
    x.d = spread_4_floats(_mm_loadu_ps(d));
    return x;
}

SIMD_INLINE __m512 q32_add(__m512 acc, const struct q32_weights *w,
                           const struct q32_column *x)
{
    __m512i sum = _mm512_dpbusd_epi32(x->start, w->lo, x->lo);

    sum = _mm512_dpbusd_epi32(sum, w->hi, x->hi);
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(w->d, x->d), acc);
}

struct q32_job {
    size_t k;
    const uint8_t *w;
    size_t w_stride;
    const uint8_t *x;
    size_t x_stride;
    float *y;
    size_t y_stride;
};

/* The last one to three blocks, padded with zeros to four. */
SIMD_INLINE void q32_dot_tail(const struct q32_format f, const int n_r, const int n_c,
                              const struct q32_job *job, size_t block, __m512 acc[4][4])
{
    const size_t left = job->k / 32 - block;
    struct q32_column x[4];

    for (int c = 0; c < n_c; c++) {
        const uint8_t *col = job->x + (size_t)c * job->x_stride;
        int8_t q[128] = {0};
        float d[4] = {0};

        memcpy(q, act_q(col) + block * 32, left * 32);
        memcpy(d, act_q8_32_d(col, job->k) + block, left * sizeof(float));
        x[c] = q32_load_column(q, d, f.bias);
    }
    for (int r = 0; r < n_r; r++) {
        uint8_t blocks[4 * Q32_MAX_BLOCK_BYTES] = {0};
        struct q32_weights w;

        memcpy(blocks, job->w + (size_t)r * job->w_stride + block * f.block_bytes,
               left * f.block_bytes);
        w = f.unpack(blocks);
        for (int c = 0; c < n_c; c++)
            acc[r][c] = q32_add(acc[r][c], &w, &x[c]);
    }
}

/* Rows of one call follow each other in memory, so the lines that the next tile
 * needs lie one tile further: those are asked for while this one is computed. */
SIMD_INLINE void q32_dot(const struct q32_format f, const int n_r, const int n_c,
                         const struct q32_job *job)
{
    const size_t n_blocks = job->k / 32;
    const size_t ahead = (size_t)n_r * job->w_stride;
    __m512 acc[4][4];
    size_t b = 0;

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        acc[r][c] = _mm512_setzero_ps();

    for (; b + 4 <= n_blocks; b += 4) {
        struct q32_column x[4];

        SIMD_UNROLL
        for (int c = 0; c < n_c; c++) {
            const uint8_t *col = job->x + (size_t)c * job->x_stride;

            x[c] = q32_load_column(act_q(col) + b * 32, act_q8_32_d(col, job->k) + b,
                                   f.bias);
        }
        SIMD_UNROLL
        for (int r = 0; r < n_r; r++) {
            const uint8_t *at = job->w + (size_t)r * job->w_stride + b * f.block_bytes;
            const struct q32_weights w = f.unpack(at);

            prefetch_lines(at, ahead, 4 * f.block_bytes);
            SIMD_UNROLL
            for (int c = 0; c < n_c; c++)
                acc[r][c] = q32_add(acc[r][c], &w, &x[c]);
        }
    }
    if (b < n_blocks)
        q32_dot_tail(f, n_r, n_c, job, b, acc);

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        job->y[(size_t)c * job->y_stride + (size_t)r] = _mm512_reduce_add_ps(acc[r][c]);
}

SIMD_INLINE void q32_dot_rows(const struct q32_format f, size_t n_rows, const int n_c,
                              struct q32_job job)
{
    size_t i = 0;

    for (; i + 4 <= n_rows; i += 4, job.w += 4 * job.w_stride, job.y += 4)
        q32_dot(f, 4, n_c, &job);
    for (; i < n_rows; i++, job.w += job.w_stride, job.y++)
        q32_dot(f, 1, n_c, &job);
}

SIMD_INLINE void q32_gemv(const struct q32_format f, size_t n_rows, size_t k,
                          const void *w, size_t w_stride, const void *x, float *y)
{
    const struct q32_job job = {.k = k, .w = w, .w_stride = w_stride, .x = x, .y = y};

    q32_dot_rows(f, n_rows, 1, job);
}

/* ---- panel ------------------------------------------------------------------ */

#define Q32_PANEL_BLOCKS 16 /* 16 rows of 512 weights: 8 KiB of the first level */

struct q32_panel {
    __m512i u[Q32_PANEL_BLOCKS * 8]; /* [weight / 4], lane: row */
    __m512 d[Q32_PANEL_BLOCKS];      /* [block], lane: row */
};

/* Four blocks of up to 16 rows into the panel at block `to`; `left` is how many
 * of the four exist. Missing rows and blocks become zeros with scale 0. */
SIMD_INLINE void q32_pack_4(const struct q32_format f, struct q32_panel *panel,
                            size_t to, const uint8_t *w, size_t w_stride, size_t n_rows,
                            size_t left)
{
    uint8_t padded[4 * Q32_MAX_BLOCK_BYTES];
    __m512i lo[16], hi[16], d[16];

    for (size_t r = 0; r < 16; r++) {
        const uint8_t *at = w + r * w_stride;
        struct q32_weights v;

        if (r >= n_rows || left < 4) {
            memset(padded, 0, sizeof(padded));
            if (r < n_rows)
                memcpy(padded, at, left * f.block_bytes);
            at = padded;
        } else {
            prefetch_lines(at, 16 * w_stride, 4 * f.block_bytes);
        }
        v = f.unpack(at);
        lo[r] = v.lo;
        hi[r] = v.hi;
        d[r] = _mm512_castps_si512(v.d);
    }
    transpose_16x16(lo);
    transpose_16x16(hi);
    transpose_16x16(d);
    SIMD_UNROLL
    for (size_t j = 0; j < 16; j++) {
        panel->u[(to + j / 4) * 8 + j % 4] = lo[j];
        panel->u[(to + j / 4) * 8 + j % 4 + 4] = hi[j];
    }
    SIMD_UNROLL
    for (size_t b = 0; b < 4; b++)
        panel->d[to + b] = _mm512_castsi512_ps(d[4 * b]);
}

/* Adds n_blocks blocks of the panel times n_c columns to acc. x and d, s: the
 * first column's values at the panel's first block. */
SIMD_INLINE void q32_panel_tile(const struct q32_panel *panel, size_t n_blocks,
                                const int n_c, const uint8_t *x, const uint8_t *d,
                                const float biased[][Q32_PANEL_BLOCKS], size_t x_stride,
                                __m512 *acc)
{
    for (size_t b = 0; b < n_blocks; b++) {
        const __m512 scale = panel->d[b];
        __m512i sum[8];

        SIMD_UNROLL
        for (int c = 0; c < n_c; c++)
            sum[c] = _mm512_setzero_si512();
        SIMD_UNROLL
        for (size_t i = 0; i < 8; i++) {
            const __m512i u = panel->u[b * 8 + i];

            SIMD_UNROLL
            for (int c = 0; c < n_c; c++) {
                const uint8_t *at = x + (size_t)c * x_stride + b * 32 + i * 4;

                sum[c] = _mm512_dpbusd_epi32(sum[c], u, broadcast_4_bytes(at));
            }
        }
        SIMD_UNROLL
        for (int c = 0; c < n_c; c++) {
            const __m512 dx = _mm512_castsi512_ps(
                broadcast_4_bytes(d + (size_t)c * x_stride + b * sizeof(float)));
            const __m512 dot = _mm512_fmsub_ps(_mm512_cvtepi32_ps(sum[c]), dx,
                                               _mm512_set1_ps(biased[c][b]));

            acc[c] = _mm512_fmadd_ps(scale, dot, acc[c]);
        }
    }
}

/* One tile of n_c columns: y += panel * x, or y = for the first panel. The
 * columns' bias * s are computed here once, for all blocks of the panel. */
SIMD_INLINE void q32_panel_columns(const struct q32_panel *panel, const int bias,
                                   size_t first, size_t n_blocks, __mmask16 rows,
                                   const int n_c, const struct q32_job *job)
{
    float biased[8][Q32_PANEL_BLOCKS];
    __m512 acc[8];

    SIMD_UNROLL
    for (int c = 0; c < n_c; c++) {
        const float *s =
            act_q8_32_s(job->x + (size_t)c * job->x_stride, job->k) + first;
        const __mmask16 valid = (__mmask16)(0xffffu >> (16 - n_blocks));
        const float *y = job->y + (size_t)c * job->y_stride;

        _mm512_storeu_ps(biased[c], _mm512_mul_ps(_mm512_maskz_loadu_ps(valid, s),
                                                  _mm512_set1_ps((float)bias)));
        acc[c] = first == 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(rows, y);
    }
    q32_panel_tile(panel, n_blocks, n_c, job->x + first * 32,
                   (const uint8_t *)(act_q8_32_d(job->x, job->k) + first),
                   (const float(*)[Q32_PANEL_BLOCKS])biased, job->x_stride, acc);
    SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        _mm512_mask_storeu_ps(job->y + (size_t)c * job->y_stride, rows, acc[c]);
}

/* Up to 16 rows times all columns. */
SIMD_INLINE void q32_panel_rows(const struct q32_format f, size_t n_rows, size_t n_cols,
                                const struct q32_job *rows)
{
    const size_t n_blocks = rows->k / 32;
    const __mmask16 mask = (__mmask16)(0xffffu >> (16 - n_rows));
    struct q32_panel panel;

    for (size_t first = 0; first < n_blocks; first += Q32_PANEL_BLOCKS) {
        const size_t n =
            n_blocks - first < Q32_PANEL_BLOCKS ? n_blocks - first : Q32_PANEL_BLOCKS;
        struct q32_job job = *rows;
        size_t j = 0;

        for (size_t b = 0; b < n; b += 4)
            q32_pack_4(f, &panel, b, job.w + (first + b) * f.block_bytes, job.w_stride,
                       n_rows, n - b);
        for (; j + 8 <= n_cols;
             j += 8, job.x += 8 * job.x_stride, job.y += 8 * job.y_stride)
            q32_panel_columns(&panel, f.bias, first, n, mask, 8, &job);
        for (; j + 4 <= n_cols;
             j += 4, job.x += 4 * job.x_stride, job.y += 4 * job.y_stride)
            q32_panel_columns(&panel, f.bias, first, n, mask, 4, &job);
        for (; j < n_cols; j++, job.x += job.x_stride, job.y += job.y_stride)
            q32_panel_columns(&panel, f.bias, first, n, mask, 1, &job);
    }
}

SIMD_INLINE void q32_gemm(const struct q32_format f, size_t n_rows, size_t k,
                          const void *w, size_t w_stride, size_t n_cols, const void *x,
                          size_t x_stride, float *y, size_t y_stride)
{
    struct q32_job job = {.k = k,
                          .w = w,
                          .w_stride = w_stride,
                          .x = x,
                          .x_stride = x_stride,
                          .y = y,
                          .y_stride = y_stride};

    if (n_cols == 1) {
        q32_dot_rows(f, n_rows, 1, job);
    } else if (n_cols == 2) {
        q32_dot_rows(f, n_rows, 2, job);
    } else if (n_cols == 3) {
        q32_dot_rows(f, n_rows, 3, job);
    } else {
        for (size_t i = 0; i < n_rows; i += 16, job.w += 16 * w_stride, job.y += 16)
            q32_panel_rows(f, n_rows - i < 16 ? n_rows - i : 16, n_cols, &job);
    }
}

#endif
