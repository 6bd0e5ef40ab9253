/* SPDX-License-Identifier: MIT
 *
 * q8_0_quantize.c - reference quantisation and dequantisation of q8_0
 */
#include "kernels/q8_0/q8_0.h"

#include <string.h>

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

typedef int8_t bytes __attribute__((vector_size(FIT_LANES)));

SIMD_INLINE float largest_of(const fit_vec *x)
{
    float part[FIT_LANES];
    fit_vec most = fit_abs(x[0]);

    for (int i = 1; i < FIT_VECS; i++)
        most = fit_max(fit_abs(x[i]), most);
    memcpy(part, &most, sizeof part);
    SIMD_UNROLL
    for (int n = FIT_LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            part[i] = part[i] > part[i + n] ? part[i] : part[i + n];
    return part[0];
}

/* The largest magnitude becomes 127: steps are so fine that importances would change
 * nothing. */
static void quantize_block(const float *src, struct block_q8_0 *out)
{
    fit_vec x[FIT_VECS];

    fit_load(src, x);

    const float largest = largest_of(x);
    const float d = fminf(largest / 127, 65504.0f); /* the largest f16 */
    const uint16_t half = fit_half(d);
    /* 1 / d would overflow for a subnormal d; such weights are zero as f16 */
    const float inverse = d > 0x1p-100f ? 1 / d : 0;

    memcpy(out->d, &half, sizeof(half));
    for (int i = 0; i < FIT_VECS; i++) {
        const fit_vec q = fit_round(fit_clamp(x[i] * fit_all(inverse), -127, 127));
        const bytes narrow =
            __builtin_convertvector(__builtin_convertvector(q, fit_mask), bytes);

        memcpy(out->qs + FIT_LANES * i, &narrow, sizeof narrow);
    }
}

void KERN_NAME(quantize, q8_0)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q8_0 *out = dst;

    (void)w;
    for (size_t b = 0; b < n / Q8_0_ELEMS; b++)
        quantize_block(src + b * Q8_0_ELEMS, &out[b]);
}

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q8_0__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q8_0 *in = src;

    for (size_t b = 0; b < n / Q8_0_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d));

        for (int i = 0; i < Q8_0_ELEMS; i++)
            dst[b * Q8_0_ELEMS + i] = (float)in[b].qs[i] * d;
    }
}
#endif
