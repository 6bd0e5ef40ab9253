/* SPDX-License-Identifier: MIT
 *
 * q1_0_quantize.c - reference quantisation and dequantisation of q1_0
 *
 * With signs as codes the best scale is the weighed mean of the magnitudes.
 */
#include "kernels/q1_0/q1_0.h"

#define FIT_N 128

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

static_assert(FIT_N == Q1_0_ELEMS, "a block at a time");

static void quantize_block(const float *src, const fit_vec *w, struct block_q1_0 *out)
{
    fit_vec x[FIT_VECS], sum = fit_all(0), all = fit_all(0);
    uint16_t d;

    fit_load(src, x);
    for (int i = 0; i < FIT_VECS; i++) {
        sum += w[i] * fit_abs(x[i]);
        all += w[i];
    }
    d = fit_half(fit_sum(sum) * fit_inverse(fit_sum(all)));
    memcpy(out->d, &d, sizeof(d));
    memset(out->qs, 0, sizeof(out->qs));
    for (int i = 0; i < FIT_N; i++)
        if (fit_at(x, i) >= 0)
            out->qs[i / 8] = (uint8_t)(out->qs[i / 8] | 1 << i % 8);
}

FIT_QUANTIZE(q1_0)

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q1_0__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q1_0 *in = src;

    for (size_t b = 0; b < n / Q1_0_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d));

        for (int i = 0; i < Q1_0_ELEMS; i++)
            *dst++ = (float)q1_0_sign(in[b].qs, i) * d;
    }
}
#endif
