/* SPDX-License-Identifier: MIT
 *
 * f32_quantize.c - float32 weights are their own quantisation
 */
#include "kernels/f32/f32.h"

#include <string.h>

#include "kernels/kernels.h"

void kern_quantize_f32__scalar(const float *src, const float *w, void *dst, size_t n)
{
    (void)w;
    memcpy(dst, src, n * F32_BLOCK_BYTES);
}

void kern_dequantize_f32__scalar(const void *src, float *dst, size_t n)
{
    memcpy(dst, src, n * F32_BLOCK_BYTES);
}
