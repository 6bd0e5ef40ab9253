/* SPDX-License-Identifier: MIT
 *
 * avx512_float.h - templates for weights that are floats of 16 or 32 bits
 *
 * A tile of rows times columns is held in registers, one accumulator of 16 lanes
 * per product; a load of 16 weights serves all columns of the tile, one of 16
 * activations all its rows. Odd ends of a row are read under a mask.
 */
#ifndef SLM_KERNELS_SIMD_AVX512_FLOAT_H
#define SLM_KERNELS_SIMD_AVX512_FLOAT_H

#include "kernels/simd/avx512.h"

/* 16 weights as floats; those whose bit in mask is clear are not read and are 0. */
typedef __m512 avx512_load16_fn(const uint8_t *w, __mmask16 mask);

struct avx512_float_job {
    size_t k;
    const uint8_t *w; /* first row of the tile */
    size_t w_stride;
    size_t elem_bytes;
    const uint8_t *x; /* first column of the tile, floats */
    size_t x_stride;
    float *y; /* of the first row and column */
    size_t y_stride;
};

SIMD_INLINE void avx512_float_step(avx512_load16_fn *load, const int n_r, const int n_c,
                                   const struct avx512_float_job *job, size_t i,
                                   __mmask16 mask, __m512 acc[4][4])
{
    __m512 w[4];

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        w[r] = load(job->w + (size_t)r * job->w_stride + i * job->elem_bytes, mask);
    SIMD_UNROLL
    for (int c = 0; c < n_c; c++) {
        const uint8_t *at = job->x + (size_t)c * job->x_stride + i * sizeof(float);
        const __m512 x =
            mask == 0xffff ? _mm512_loadu_ps(at) : _mm512_maskz_loadu_ps(mask, at);

        SIMD_UNROLL
        for (int r = 0; r < n_r; r++)
            acc[r][c] = _mm512_fmadd_ps(w[r], x, acc[r][c]);
    }
}

/* Rows of one call follow each other in memory, so the lines that the next tile
 * needs lie one tile further: those are asked for while this one is computed. */
SIMD_INLINE void avx512_float_tile(avx512_load16_fn *load, const int n_r, const int n_c,
                                   const struct avx512_float_job *job)
{
    const size_t per_line = 64 / job->elem_bytes;
    const size_t ahead = (size_t)n_r * job->w_stride;
    __m512 acc[4][4];
    size_t i = 0;

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        acc[r][c] = _mm512_setzero_ps();

    for (; i + per_line <= job->k; i += per_line) {
        SIMD_UNROLL
        for (int r = 0; r < n_r; r++)
            prefetch_lines(job->w + (size_t)r * job->w_stride + i * job->elem_bytes,
                           ahead, 64);
        SIMD_UNROLL
        for (size_t j = 0; j < per_line; j += 16)
            avx512_float_step(load, n_r, n_c, job, i + j, 0xffff, acc);
    }
    for (; i < job->k; i += 16) {
        const size_t left = job->k - i;
        const __mmask16 mask = (__mmask16)(left < 16 ? (1u << left) - 1 : 0xffffu);

        avx512_float_step(load, n_r, n_c, job, i, mask, acc);
    }

    SIMD_UNROLL
    for (int r = 0; r < n_r; r++)
        SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        job->y[(size_t)c * job->y_stride + (size_t)r] = _mm512_reduce_add_ps(acc[r][c]);
}

SIMD_INLINE void avx512_float_gemv(avx512_load16_fn *load, size_t elem_bytes,
                                   size_t n_rows, size_t k, const void *w,
                                   size_t w_stride, const void *x, float *y)
{
    struct avx512_float_job job = {
        .k = k, .w = w, .w_stride = w_stride, .elem_bytes = elem_bytes, .x = x, .y = y};
    size_t i = 0;

    for (; i + 4 <= n_rows; i += 4, job.w += 4 * w_stride, job.y += 4)
        avx512_float_tile(load, 4, 1, &job);
    for (; i < n_rows; i++, job.w += w_stride, job.y++)
        avx512_float_tile(load, 1, 1, &job);
}

/* All columns of a few rows, the rows staying in the first-level cache. */
SIMD_INLINE void avx512_float_columns(avx512_load16_fn *load, const int n_r,
                                      size_t n_cols, struct avx512_float_job job)
{
    size_t j = 0;

    for (; j + 4 <= n_cols;
         j += 4, job.x += 4 * job.x_stride, job.y += 4 * job.y_stride)
        avx512_float_tile(load, n_r, 4, &job);
    for (; j < n_cols; j++, job.x += job.x_stride, job.y += job.y_stride)
        avx512_float_tile(load, n_r, 1, &job);
}

SIMD_INLINE void avx512_float_gemm(avx512_load16_fn *load, size_t elem_bytes,
                                   size_t n_rows, size_t k, const void *w,
                                   size_t w_stride, size_t n_cols, const void *x,
                                   size_t x_stride, float *y, size_t y_stride)
{
    struct avx512_float_job job = {.k = k,
                                   .w = w,
                                   .w_stride = w_stride,
                                   .elem_bytes = elem_bytes,
                                   .x = x,
                                   .x_stride = x_stride,
                                   .y = y,
                                   .y_stride = y_stride};
    size_t i = 0;

    for (; i + 4 <= n_rows; i += 4, job.w += 4 * w_stride, job.y += 4)
        avx512_float_columns(load, 4, n_cols, job);
    for (; i < n_rows; i++, job.w += w_stride, job.y++)
        avx512_float_columns(load, 1, n_cols, job);
}

#endif
