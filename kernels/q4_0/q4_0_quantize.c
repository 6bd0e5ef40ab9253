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

#include "kernels/fit/fit.h"
#include "kernels/kernels.h"

static const float positions[] = {-8,    -8.3f, -8.6f, -8.9f, -7.7f,
                                  -7.4f, -7.1f, -6.8f, -6.5f};

SIMD_INLINE fit_vec nearest(fit_vec t)
{
    return fit_round(fit_clamp(t, -8, 7));
}

static void quantize_block(const float *src, const fit_vec *w, struct block_q4_0 *out)
{
    const int n_positions = sizeof(positions) / sizeof(positions[0]);
    uint8_t q[FIT_N];

    fit_quantize_scale(nearest, src, w, positions, n_positions, 8, out->d, q);
    fit_pack_four(q, out->qs);
}

FIT_QUANTIZE(q4_0)

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
