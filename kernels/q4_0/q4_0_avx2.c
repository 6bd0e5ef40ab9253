/* SPDX-License-Identifier: MIT
 *
 * q4_0_avx2.c - q4_0 weights times q8_32 activations with AVX2
 *
 * Nibbles are unsigned already: u = q + 8.
 */
#include "kernels/q4_0/q4_0.h"

#include "kernels/kernels.h"
#include "kernels/simd/avx2_q32.h"

SIMD_INLINE __m256i unpack(const uint8_t *w)
{
    return unpack_nibbles(w + 2);
}

static const struct q32_format format = {unpack, sizeof(struct block_q4_0), 8};

void kern_gemv_q4_0__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          const void *x, float *y)
{
    q32_gemv(format, n_rows, k, w, w_stride, x, y);
}

void kern_gemm_q4_0__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          size_t n_cols, const void *x, size_t x_stride, float *y,
                          size_t y_stride)
{
    q32_gemm(format, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
