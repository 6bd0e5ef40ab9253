/* SPDX-License-Identifier: MIT
 *
 * q4_0_quantize.c - reference quantisation and dequantisation of q4_0
 *
 * The value of largest magnitude maps to about -8, the one quant that has no
 * counterpart on the other side, so that all 16 steps are used on its side; d may
 * therefore be negative. Moving that value a little off -8 lets the many others
 * fit better.
 */
#include "kernels/q4_0/q4_0.h"

#include <string.h>

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

#define N_REPEATS 4

static const float positions[] = {-8,    -8.3f, -8.6f, -8.9f, -7.7f,
                                  -7.4f, -7.1f, -6.8f, -6.5f};

SIMD_INLINE fit_vec nearest(fit_vec t)
{
    return fit_round(fit_clamp(t, -8, 7));
}

static void quantize_block(const float *src, const fit_vec *w, struct block_q4_0 *out)
{
    const int n_positions = sizeof(positions) / sizeof(positions[0]);
    fit_vec x[FIT_VECS];

    fit_load(src, x);

    const struct fit_scale s =
        fit_scale(nearest, x, w, positions, n_positions, N_REPEATS);
    const uint16_t half = fit_half(s.d);
    const float inverse = fit_inverse(half_to_f32(half));

    memcpy(out->d, &half, sizeof(half));
    for (int i = 0; i < FIT_VECS; i++)
        x[i] = nearest(x[i] * fit_all(inverse));
    for (int j = 0; j < Q4_0_ELEMS / 2; j++)
        out->qs[j] = (uint8_t)(((int)fit_at(x, j) + 8) |
                               ((int)fit_at(x, j + Q4_0_ELEMS / 2) + 8) << 4);
}

void KERN_NAME(quantize, q4_0)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_q4_0 *out = dst;
    fit_vec importance[FIT_VECS];

    for (size_t b = 0; b < n / Q4_0_ELEMS; b++) {
        fit_importance(w ? w + b * Q4_0_ELEMS : NULL, importance);
        quantize_block(src + b * Q4_0_ELEMS, importance, &out[b]);
    }
}

#ifdef KERN_LEVEL_scalar
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
#endif
