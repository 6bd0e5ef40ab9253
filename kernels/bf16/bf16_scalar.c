/* SPDX-License-Identifier: MIT
 *
 * bf16_scalar.c - bf16 weights times float activations, reference
 */
#include "kernels/bf16/bf16.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

SIMD_INLINE float dot(const void *row, const void *x, size_t k)
{
    const char *w = row;
    const float *xf = x;
    float sum = 0;

    for (size_t i = 0; i < k; i++)
        sum += bf16_to_f32(load_u16(w + i * BF16_BLOCK_BYTES)) * xf[i];
    return sum;
}

void kern_gemm_bf16__scalar(size_t n_rows, size_t k, const void *w, size_t w_stride,
                            size_t n_cols, const void *x, size_t x_stride, float *y,
                            size_t y_stride)
{
    scalar_gemm(dot, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}

void kern_gemv_bf16__scalar(size_t n_rows, size_t k, const void *w, size_t w_stride,
                            const void *x, float *y)
{
    scalar_gemm(dot, n_rows, k, w, w_stride, 1, x, 0, y, 0);
}
