/* SPDX-License-Identifier: MIT
 *
 * f32_scalar.c - f32 weights, which are their own quantisation, times float
 * activations, reference
 */
#include "kernels/f32/f32.h"

#include <string.h>

#include "kernels/kernels.h"
#include "kernels/simd/scalar.h"

void kern_quantize_f32__scalar(const float *src, const float *w, void *dst, size_t n)
{
    (void)w;
    memcpy(dst, src, n * F32_BLOCK_BYTES);
}

void kern_dequantize_f32__scalar(const void *src, float *dst, size_t n)
{
    memcpy(dst, src, n * F32_BLOCK_BYTES);
}

SIMD_INLINE float value(const void *at)
{
    float v;

    memcpy(&v, at, sizeof(v));
    return v;
}

SCALAR_KERNELS(f32, scalar_float_gemm, value, F32_BLOCK_BYTES)
