/* SPDX-License-Identifier: MIT
 *
 * f16_avx2.c - f16 weights times float activations with AVX2
 */
#include "kernels/f16/f16.h"

#include "kernels/kernels.h"
#include "kernels/simd/avx2_float.h"

SIMD_INLINE __m256 load_8(const uint8_t *w)
{
    return _mm256_cvtph_ps(load_128(w));
}

void kern_gemv_f16__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                         const void *x, float *y)
{
    avx2_float_gemv(load_8, F16_BLOCK_BYTES, n_rows, k, w, w_stride, x, y);
}

void kern_gemm_f16__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                         size_t n_cols, const void *x, size_t x_stride, float *y,
                         size_t y_stride)
{
    avx2_float_gemm(load_8, F16_BLOCK_BYTES, n_rows, k, w, w_stride, n_cols, x,
                    x_stride, y, y_stride);
}
