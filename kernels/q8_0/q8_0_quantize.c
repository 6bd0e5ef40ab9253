/* SPDX-License-Identifier: MIT
 *
 * q8_0_quantize.c - reference quantisation and dequantisation of q8_0
 */
#include "kernels/q8_0/q8_0.h"

#include <string.h>

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

/* The largest magnitude becomes 127: steps are so fine that importances would change
 * nothing. */
static void quantize_block(const float *src, struct block_q8_0 *out)
{
    fit_vec x[FIT_VECS];

    fit_load(src, x);

    const float largest = fmaxf(-fit_lowest(x), fit_highest(x));
    const float d = fminf(largest / 127, 65504.0f); /* the largest f16 */
    const uint16_t half = fit_half(d);
    /* 1 / d would overflow for a subnormal d; such weights are zero as f16 */
    const float inverse = d > 0x1p-100f ? 1 / d : 0;

    memcpy(out->d, &half, sizeof(half));
    for (int i = 0; i < FIT_VECS; i++) {
        const fit_vec q = fit_round(fit_clamp(x[i] * fit_all(inverse), -127, 127));

        for (int j = 0; j < FIT_LANES; j++)
            out->qs[FIT_LANES * i + j] = (int8_t)q[j];
    }
}

void kern_quantize_q8_0__scalar(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q8_0 *out = dst;

    (void)w;
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
