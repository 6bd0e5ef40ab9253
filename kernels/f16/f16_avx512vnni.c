/* SPDX-License-Identifier: MIT
 *
 * f16_avx512vnni.c - f16 weights times float activations, 512 bits
 */
#include "kernels/f16/f16.h"

#include "kernels/kernels.h"
#include "kernels/simd/avx512_float.h"

SIMD_INLINE __m512 load_16(const uint8_t *w, __mmask16 mask)
{
    return _mm512_cvtph_ps(mask == 0xffff ? load_256(w)
                                          : _mm256_maskz_loadu_epi16(mask, w));
}

void kern_gemv_f16__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                               const void *x, float *y)
{
    avx512_float_gemv(load_16, F16_BLOCK_BYTES, n_rows, k, w, w_stride, x, y);
}

void kern_gemm_f16__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                               size_t n_cols, const void *x, size_t x_stride, float *y,
                               size_t y_stride)
{
    avx512_float_gemm(load_16, F16_BLOCK_BYTES, n_rows, k, w, w_stride, n_cols, x,
                      x_stride, y, y_stride);
}
