/* SPDX-License-Identifier: MIT
 *
 * q4_0_quantize.c - reference quantisation and dequantisation of q4_0
 *
 * The value of largest magnitude maps to -8, the one quant that has no
 * counterpart on the other side, so that all 16 steps are used on its side:
 * d = extreme / -8, which may be negative.
 */
#include "kernels/q4_0/q4_0.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"

/* round(x / d) + 8, limited to 0..15. Truncation of x/d + 8.5 rounds half up. */
static uint8_t quant_of(float x, float inverse)
{
    const float q = x * inverse + 8.5f;

    return q >= 15.0f ? 15 : q >= 0.0f ? (uint8_t)q : 0;
}

static void quantize_block(const float *x, struct block_q4_0 *out)
{
    float extreme = 0;

    for (int i = 0; i < Q4_0_ELEMS; i++)
        if (fabsf(x[i]) > fabsf(extreme))
            extreme = x[i];

    const float d = extreme / -8;
    const float inverse = d != 0 ? 1 / d : 0;
    const uint16_t half = half_from_f32(d);

    memcpy(out->d, &half, sizeof(half));
    for (int j = 0; j < Q4_0_ELEMS / 2; j++) {
        const unsigned low = quant_of(x[j], inverse);
        const unsigned high = quant_of(x[j + Q4_0_ELEMS / 2], inverse);

        out->qs[j] = (uint8_t)(low | high << 4);
    }
}

void kern_quantize_q4_0__scalar(const float *src, void *dst, size_t n)
{
    struct block_q4_0 *out = dst;

    for (size_t b = 0; b < n / Q4_0_ELEMS; b++)
        quantize_block(src + b * Q4_0_ELEMS, &out[b]);
}

void kern_dequantize_q4_0__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q4_0 *in = src;

    for (size_t b = 0; b < n / Q4_0_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d));
        float *out = dst + b * Q4_0_ELEMS;

        for (int j = 0; j < Q4_0_ELEMS / 2; j++) {
            out[j] = (float)((in[b].qs[j] & 15) - 8) * d;
            out[j + Q4_0_ELEMS / 2] = (float)((in[b].qs[j] >> 4) - 8) * d;
        }
    }
}
