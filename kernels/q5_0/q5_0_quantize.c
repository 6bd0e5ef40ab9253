/* SPDX-License-Identifier: MIT
 *
 * q5_0_quantize.c - reference quantisation and dequantisation of q5_0
 *
 * The value of largest magnitude goes to about -16, the code without a
 * counterpart on the other side; d may therefore be negative.
 */
#include "kernels/q5_0/q5_0.h"

#include <string.h>

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

#define N_REPEATS 4

static const float positions[] = {-16,    -15.2f, -15.4f, -15.6f, -15.8f, -16.2f,
                                  -16.4f, -16.6f, -16.8f, -15,    -14.7f, -14.4f};

SIMD_INLINE fit_vec nearest(fit_vec t)
{
    return fit_round(fit_clamp(t, -16, 15));
}

static void quantize_block(const float *src, const fit_vec *w, struct block_q5_0 *out)
{
    const int n_positions = sizeof(positions) / sizeof(positions[0]);
    fit_vec x[FIT_VECS];

    fit_load(src, x);

    const struct fit_scale s =
        fit_scale(nearest, x, w, positions, n_positions, N_REPEATS);
    const uint16_t half = fit_half(s.d);
    const float inverse = fit_inverse(half_to_f32(half));
    uint8_t q[FIT_N];

    memcpy(out->d, &half, sizeof(half));
    for (int i = 0; i < FIT_VECS; i++)
        x[i] = nearest(x[i] * fit_all(inverse));
    for (int i = 0; i < FIT_N; i++)
        q[i] = (uint8_t)(fit_at(x, i) + 16);
    fit_pack_five(q, out->qs, out->qh);
}

void KERN_NAME(quantize, q5_0)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q5_0 *out = dst;
    fit_vec importance[FIT_VECS];

    for (size_t b = 0; b < n / Q5_0_ELEMS; b++) {
        fit_importance(w ? w + b * Q5_0_ELEMS : NULL, importance);
        quantize_block(src + b * Q5_0_ELEMS, importance, &out[b]);
    }
}

#ifdef KERN_LEVEL_scalar
void kern_dequantize_q5_0__scalar(const void *src, float *dst, size_t n)
{
    const struct block_q5_0 *in = src;

    for (size_t b = 0; b < n / Q5_0_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d));

        for (int i = 0; i < Q5_0_ELEMS; i++) {
            const int low = in[b].qs[i % 16] >> i / 16 * 4 & 15;
            const int high = in[b].qh[i / 8] >> i % 8 & 1;

            dst[b * Q5_0_ELEMS + i] = (float)((low | high << 4) - 16) * d;
        }
    }
}
#endif
