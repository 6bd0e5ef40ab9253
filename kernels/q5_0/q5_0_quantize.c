/* SPDX-License-Identifier: MIT
 *
 * q5_0_quantize.c - reference quantisation and dequantisation of q5_0
 *
 * The value of largest magnitude goes to about -16, the code without a
 * counterpart on the other side; d may therefore be negative.
 */
#include "kernels/q5_0/q5_0.h"

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

static const float positions[] = {-16,    -15.2f, -15.4f, -15.6f, -15.8f, -16.2f,
                                  -16.4f, -16.6f, -16.8f, -15,    -14.7f, -14.4f};

SIMD_INLINE fit_vec nearest(fit_vec t)
{
    return fit_round(fit_clamp(t, -16, 15));
}

static void quantize_block(const float *src, const fit_vec *w, struct block_q5_0 *out)
{
    const int n_positions = sizeof(positions) / sizeof(positions[0]);
    uint8_t q[FIT_N];

    fit_quantize_scale(nearest, src, w, positions, n_positions, 16, out->d, q);
    fit_pack_five(q, out->qs, out->qh);
}

FIT_QUANTIZE(q5_0)

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
