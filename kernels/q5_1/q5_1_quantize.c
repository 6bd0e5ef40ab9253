/* SPDX-License-Identifier: MIT
 *
 * q5_1_quantize.c - reference quantisation and dequantisation of q5_1
 */
#include "kernels/q5_1/q5_1.h"

#include <string.h>

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

#define N_REPEATS 4

static void quantize_block(const float *src, const fit_vec *w, struct block_q5_1 *out)
{
    fit_vec x[FIT_VECS];

    fit_load(src, x);

    const struct fit_line line = fit_line(x, w, 31, N_REPEATS);
    const uint16_t half_d = fit_half(line.d), half_m = fit_half(line.m);
    uint8_t q[FIT_N];

    memcpy(out->d, &half_d, sizeof(half_d));
    memcpy(out->m, &half_m, sizeof(half_m));
    fit_line_codes(x, half_to_f32(half_d), half_to_f32(half_m), 31, q);
    fit_pack_five(q, out->qs, out->qh);
}

void KERN_NAME(quantize, q5_1)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q5_1 *out = dst;
    fit_vec importance[FIT_VECS];

    for (size_t b = 0; b < n / Q5_1_ELEMS; b++) {
        fit_importance(w ? w + b * Q5_1_ELEMS : NULL, importance);
        quantize_block(src + b * Q5_1_ELEMS, importance, &out[b]);
    }
}

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q5_1__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q5_1 *in = src;

    for (size_t b = 0; b < n / Q5_1_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d)),
                    m = half_to_f32(load_u16(in[b].m));

        for (int i = 0; i < Q5_1_ELEMS; i++) {
            const int low = in[b].qs[i % 16] >> i / 16 * 4 & 15;
            const int high = in[b].qh[i / 8] >> i % 8 & 1;

            dst[b * Q5_1_ELEMS + i] = (float)(low | high << 4) * d + m;
        }
    }
}
#endif
