/* SPDX-License-Identifier: MIT
 *
 * q8_0_avx2.c - q8_0 weights times q8_32 activations with AVX2
 */
#include "kernels/q8_0/q8_0.h"

#include "kernels/kernels.h"
#include "kernels/simd/avx2_q32.h"

SIMD_INLINE __m256i unpack(const uint8_t *w)
{
    return load_256(w + 2);
}

static const struct q32_format format = {unpack, sizeof(struct block_q8_0), 0};

void kern_gemv_q8_0__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          const void *x, float *y)
{
    q32_gemv(format, n_rows, k, w, w_stride, x, y);
}

void kern_gemm_q8_0__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          size_t n_cols, const void *x, size_t x_stride, float *y,
                          size_t y_stride)
{
    q32_gemm(format, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
