/* SPDX-License-Identifier: MIT
 *
 * scalar.h - gemv and gemm in portable C around a format's dot product
 */
#ifndef SLM_KERNELS_SIMD_SCALAR_H
#define SLM_KERNELS_SIMD_SCALAR_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/simd.h"

/* One row of k weights times one activation column. */
typedef float scalar_dot_fn(const void *row, const void *x, size_t k);

SIMD_INLINE void scalar_gemv(scalar_dot_fn *dot, size_t n_rows, size_t k, const void *w,
                             size_t w_stride, const void *x, float *y)
{
    for (size_t i = 0; i < n_rows; i++)
        y[i] = dot((const char *)w + i * w_stride, x, k);
}

/* Rows outside, so that a row is read from memory once for all columns. */
SIMD_INLINE void scalar_gemm(scalar_dot_fn *dot, size_t n_rows, size_t k, const void *w,
                             size_t w_stride, size_t n_cols, const void *x,
                             size_t x_stride, float *y, size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i++)
        for (size_t j = 0; j < n_cols; j++)
            y[j * y_stride + i] =
                dot((const char *)w + i * w_stride, (const char *)x + j * x_stride, k);
}

#endif
