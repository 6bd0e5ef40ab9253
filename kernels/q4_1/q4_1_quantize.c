/* SPDX-License-Identifier: MIT
 *
 * q4_1_quantize.c - reference quantisation and dequantisation of q4_1
 */
#include "kernels/q4_1/q4_1.h"

#include <string.h>

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

#define N_REPEATS 4

static void quantize_block(const float *src, const fit_vec *w, struct block_q4_1 *out)
{
    fit_vec x[FIT_VECS];

    fit_load(src, x);

    const struct fit_line line = fit_line(x, w, 15, N_REPEATS);
    const uint16_t half_d = fit_half(line.d), half_m = fit_half(line.m);
    uint8_t q[FIT_N];

    memcpy(out->d, &half_d, sizeof(half_d));
    memcpy(out->m, &half_m, sizeof(half_m));
    fit_line_codes(x, half_to_f32(half_d), half_to_f32(half_m), 15, q);
    for (int j = 0; j < Q4_1_ELEMS / 2; j++)
        out->qs[j] = (uint8_t)(q[j] | q[j + Q4_1_ELEMS / 2] << 4);
}

void KERN_NAME(quantize, q4_1)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q4_1 *out = dst;
    fit_vec importance[FIT_VECS];

    for (size_t b = 0; b < n / Q4_1_ELEMS; b++) {
        fit_importance(w ? w + b * Q4_1_ELEMS : NULL, importance);
        quantize_block(src + b * Q4_1_ELEMS, importance, &out[b]);
    }
}

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q4_1__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q4_1 *in = src;

    for (size_t b = 0; b < n / Q4_1_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d)),
                    m = half_to_f32(load_u16(in[b].m));
        float *out = dst + b * Q4_1_ELEMS;

        for (int j = 0; j < Q4_1_ELEMS / 2; j++) {
            out[j] = (float)(in[b].qs[j] & 15) * d + m;
            out[j + Q4_1_ELEMS / 2] = (float)(in[b].qs[j] >> 4) * d + m;
        }
    }
}
#endif
