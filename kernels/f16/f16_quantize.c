/* SPDX-License-Identifier: MIT
 *
 * f16_quantize.c - float32 to f16, rounding to nearest even, and back
 */
#include "kernels/f16/f16.h"

#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"

void kern_quantize_f16__scalar(const float *src, const float *w, void *dst, size_t n)
{
    (void)w;
    char *out = dst;

    for (size_t i = 0; i < n; i++) {
        const uint16_t v = half_from_f32(src[i]);

        memcpy(out + i * F16_BLOCK_BYTES, &v, sizeof(v));
    }
}

void kern_dequantize_f16__scalar(const void *src, float *dst, size_t n)
{
    const char *in = src;

    for (size_t i = 0; i < n; i++)
        dst[i] = half_to_f32(load_u16(in + i * F16_BLOCK_BYTES));
}
