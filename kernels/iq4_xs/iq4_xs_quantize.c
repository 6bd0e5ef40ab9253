/* SPDX-License-Identifier: MIT
 *
 * iq4_xs_quantize.c - reference quantisation and dequantisation of iq4_xs
 *
 * Each sub-block is fitted alone as iq4_nl; the scale of largest magnitude becomes
 * -32 (its sign goes into d), and around each other scale's nearest integer the
 * neighbours are tried with the d that f16 leaves.
 */
#include "kernels/iq4_xs/iq4_xs.h"

#include <string.h>

#include "kernels/iq4_nl/iq4_nl_fit.h"
#include "kernels/kernels.h"

/* The integer in -32..31 that suits x best when multiplied with d, among those next
 * to the unrounded scale. */
static int best_scale(const fit_vec *x, const fit_vec *w, float d, float scale)
{
    const int near =
        (int)fit_round(fit_clamp(fit_all(scale * fit_inverse(d)), -32, 31))[0];
    float least = INFINITY;
    int best = near;

    for (int s = near - 1; s <= near + 1; s++) {
        float error;

        if (s < -32 || s > 31)
            continue;
        error = fit_scale_error(iq4_nl_nearest, x, w, d * (float)s);
        if (error < least) {
            least = error;
            best = s;
        }
    }
    return best;
}

static void quantize_block(const float *src, const fit_vec *w, struct block_iq4_xs *out)
{
    fit_vec x[IQ4_XS_SUBS][FIT_VECS];
    float scale[IQ4_XS_SUBS], extreme = 0;

    for (int i = 0; i < IQ4_XS_SUBS; i++) {
        fit_load(src + FIT_N * i, x[i]);
        scale[i] = fit_scale(iq4_nl_nearest, x[i], w + FIT_VECS * i, iq4_nl_positions,
                             IQ4_NL_N_POSITIONS, FIT_REPEATS)
                       .d;
        if (fabsf(scale[i]) > fabsf(extreme))
            extreme = scale[i];
    }

    const uint16_t half = fit_half(extreme / -32);
    const float d = half_to_f32(half);

    memset(out, 0, sizeof(*out));
    memcpy(out->d, &half, sizeof(half));
    for (int i = 0; i < IQ4_XS_SUBS; i++) {
        const int s = best_scale(x[i], w + FIT_VECS * i, d, scale[i]);
        uint8_t codes[FIT_N];

        iq4_nl_codes(x[i], d * (float)s, codes);
        fit_pack_four(codes, out->qs + FIT_N / 2 * i);
        out->scales_l[i / 2] |= (uint8_t)(((s + 32) & 15) << i % 2 * 4);
        out->scales_h[i / 4] |= (uint8_t)((s + 32) >> 4 << i % 4 * 2);
    }
}

void KERN_NAME(quantize, iq4_xs)(const float *src, const float *w, void *dst, size_t n)
{
    struct block_iq4_xs *out = dst;
    fit_vec importance[IQ4_XS_SUBS * FIT_VECS];

    for (size_t b = 0; b < n / IQ4_XS_ELEMS; b++) {
        for (int i = 0; i < IQ4_XS_SUBS; i++)
            fit_importance(w ? w + b * IQ4_XS_ELEMS + FIT_N * i : NULL,
                           importance + FIT_VECS * i);
        quantize_block(src + b * IQ4_XS_ELEMS, importance, &out[b]);
    }
}

#ifdef KERN_LEVEL_scalar
void kern_dequantize_iq4_xs__scalar(const void *src, float *dst, size_t n)
{
    const struct block_iq4_xs *in = src;

    for (size_t b = 0; b < n / IQ4_XS_ELEMS; b++) {
        const float d = half_to_f32(load_u16(in[b].d));

        for (int i = 0; i < IQ4_XS_SUBS; i++) {
            const float scale = d * (float)iq4_xs_scale(&in[b], i);
            float *out = dst + b * IQ4_XS_ELEMS + 32 * i;

            for (int j = 0; j < 16; j++) {
                const uint8_t pair = in[b].qs[16 * i + j];

                out[j] = scale * (float)iq4_nl_values[pair & 15];
                out[j + 16] = scale * (float)iq4_nl_values[pair >> 4];
            }
        }
    }
}
#endif
