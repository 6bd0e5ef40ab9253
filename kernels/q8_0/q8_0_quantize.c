/* SPDX-License-Identifier: MIT
 *
 * q8_0_quantize.c - reference quantisation and dequantisation of q8_0
 */
#include "kernels/q8_0/q8_0.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"

static void quantize_block(const float *x, struct block_q8_0 *out)
{
    float largest = 0;

    for (int i = 0; i < Q8_0_ELEMS; i++)
        largest = fmaxf(largest, fabsf(x[i]));

    const float d = largest / 127;
    const float inverse = d != 0 ? 1 / d : 0;
    const uint16_t half = half_from_f32(d);

    memcpy(out->d, &half, sizeof(half));
    for (int i = 0; i < Q8_0_ELEMS; i++) {
        /* 1 / d overflows for a subnormal d; such weights are zero as f16 */
        const float q = roundf(x[i] * inverse);

        out->qs[i] = (int8_t)(q >= 127.0f ? 127 : q >= -127.0f ? q : q < 0 ? -127 : 0);
    }
}

void kern_quantize_q8_0__scalar(const float *src, void *dst, size_t n)
{
    struct block_q8_0 *out = dst;

    for (size_t b = 0; b < n / Q8_0_ELEMS; b++)
        quantize_block(src + b * Q8_0_ELEMS, &out[b]);
}

void kern_dequantize_q8_0__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q8_0 *in = src;

    for (size_t b = 0; b < n / Q8_0_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d));

        for (int i = 0; i < Q8_0_ELEMS; i++)
            dst[b * Q8_0_ELEMS + i] = (float)in[b].qs[i] * d;
    }
}
