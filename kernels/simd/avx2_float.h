/* SPDX-License-Identifier: MIT
 *
 * avx2_float.h - templates for weights that are floats of 16 or 32 bits
 *
 * As avx512_float.h with eight lanes. Sixteen registers hold a tile of 2 x 4
 * (eight accumulators, two weights, one activation) or 4 x 1.
 */
#ifndef SLM_KERNELS_SIMD_AVX2_FLOAT_H
#define SLM_KERNELS_SIMD_AVX2_FLOAT_H

#include "kernels/simd/avx2.h"

/* 8 weights as floats. */
typedef __m256 avx2_load8_fn(const uint8_t *w);

struct avx2_float_job {
    size_t k;
    const uint8_t *w; /* first row of the tile */
    size_t w_stride;
    size_t elem_bytes;
    const uint8_t *x; /* first column of the tile, floats */
    size_t x_stride;
    float *y; /* of the first row and column */
    size_t y_stride;
};

SIMD_INLINE void avx2_float_step(avx2_load8_fn *load, const int n_r, const int n_c,
                                 const struct avx2_float_job *job, size_t i,
                                 __m256 acc[4][4])
{
    __m256 w[4];

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        w[r] = load(job->w + (size_t)r * job->w_stride + i * job->elem_bytes);
    SIMD_UNROLL
    for (int c = 0; c < n_c; c++) {
        const uint8_t *at = job->x + (size_t)c * job->x_stride + i * sizeof(float);
        const __m256 x = _mm256_castsi256_ps(load_256(at));

        SIMD_UNROLL
        for (int r = 0; r < n_r; r++)
            acc[r][c] = _mm256_fmadd_ps(w[r], x, acc[r][c]);
    }
}

/* The last one to seven elements, padded with zeros to eight. */
SIMD_INLINE void avx2_float_tail(avx2_load8_fn *load, const int n_r, const int n_c,
                                 const struct avx2_float_job *job, size_t i,
                                 __m256 acc[4][4])
{
    const __m256i mask = first_lanes(job->k - i);

    for (int r = 0; r < n_r; r++) {
        uint8_t padded[32] = {0};
        __m256 w;

        memcpy(padded, job->w + (size_t)r * job->w_stride + i * job->elem_bytes,
               (job->k - i) * job->elem_bytes);
        w = load(padded);
        for (int c = 0; c < n_c; c++) {
            const uint8_t *col = job->x + (size_t)c * job->x_stride;
            const __m256 x =
                _mm256_maskload_ps((const float *)(const void *)col + i, mask);

            acc[r][c] = _mm256_fmadd_ps(w, x, acc[r][c]);
        }
    }
}

/* Rows of one call follow each other in memory, so the lines that the next tile
 * needs lie one tile further: those are asked for while this one is computed. */
SIMD_INLINE void avx2_float_tile(avx2_load8_fn *load, const int n_r, const int n_c,
                                 const struct avx2_float_job *job)
{
    const size_t per_line = 64 / job->elem_bytes;
    const size_t ahead = (size_t)n_r * job->w_stride;
    __m256 acc[4][4];
    size_t i = 0;

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        acc[r][c] = _mm256_setzero_ps();

    for (; i + per_line <= job->k; i += per_line) {
        SIMD_UNROLL
        for (int r = 0; r < n_r; r++)
            prefetch_lines(job->w + (size_t)r * job->w_stride + i * job->elem_bytes,
                           ahead, 64);
        SIMD_UNROLL
        for (size_t j = 0; j < per_line; j += 8)
            avx2_float_step(load, n_r, n_c, job, i + j, acc);
    }
    for (; i + 8 <= job->k; i += 8)
        avx2_float_step(load, n_r, n_c, job, i, acc);
    if (i < job->k)
        avx2_float_tail(load, n_r, n_c, job, i, acc);

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        job->y[(size_t)c * job->y_stride + (size_t)r] = sum_8_floats(acc[r][c]);
}

SIMD_INLINE void avx2_float_gemv(avx2_load8_fn *load, size_t elem_bytes, size_t n_rows,
                                 size_t k, const void *w, size_t w_stride,
                                 const void *x, float *y)
{
    struct avx2_float_job job = {
        .k = k, .w = w, .w_stride = w_stride, .elem_bytes = elem_bytes, .x = x, .y = y};
    size_t i = 0;

    for (; i + 4 <= n_rows; i += 4, job.w += 4 * w_stride, job.y += 4)
        avx2_float_tile(load, 4, 1, &job);
    for (; i < n_rows; i++, job.w += w_stride, job.y++)
        avx2_float_tile(load, 1, 1, &job);
}

/* All columns of one or two rows, the rows staying in the first-level cache. */
SIMD_INLINE void avx2_float_columns(avx2_load8_fn *load, const int n_r, size_t n_cols,
                                    struct avx2_float_job job)
{
    size_t j = 0;

    for (; j + 4 <= n_cols;
         j += 4, job.x += 4 * job.x_stride, job.y += 4 * job.y_stride)
        avx2_float_tile(load, n_r, 4, &job);
    for (; j < n_cols; j++, job.x += job.x_stride, job.y += job.y_stride)
        avx2_float_tile(load, n_r, 1, &job);
}

SIMD_INLINE void avx2_float_gemm(avx2_load8_fn *load, size_t elem_bytes, size_t n_rows,
                                 size_t k, const void *w, size_t w_stride,
                                 size_t n_cols, const void *x, size_t x_stride,
                                 float *y, size_t y_stride)
{
    struct avx2_float_job job = {.k = k,
                                 .w = w,
                                 .w_stride = w_stride,
                                 .elem_bytes = elem_bytes,
                                 .x = x,
                                 .x_stride = x_stride,
                                 .y = y,
                                 .y_stride = y_stride};
    size_t i = 0;

    for (; i + 2 <= n_rows; i += 2, job.w += 2 * w_stride, job.y += 2)
        avx2_float_columns(load, 2, n_cols, job);
    for (; i < n_rows; i++, job.w += w_stride, job.y++)
        avx2_float_columns(load, 1, n_cols, job);
}

#endif
