/* SPDX-License-Identifier: MIT
 *
 * bf16_quantize.c - float32 to bf16, rounding to nearest even, and back
 */
#include "kernels/bf16/bf16.h"

#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"

void kern_quantize_bf16__scalar(const float *src, const float *w, void *dst, size_t n)
{
    (void)w;
    char *out = dst;

    for (size_t i = 0; i < n; i++) {
        const uint16_t v = bf16_from_f32(src[i]);

        memcpy(out + i * BF16_BLOCK_BYTES, &v, sizeof(v));
    }
}

void kern_dequantize_bf16__scalar(const void *src, float *dst, size_t n)
{
    const char *in = src;

    for (size_t i = 0; i < n; i++)
        dst[i] = bf16_to_f32(load_u16(in + i * BF16_BLOCK_BYTES));
}
