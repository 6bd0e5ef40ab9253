/* SPDX-License-Identifier: MIT
 *
 * q2_0_fit.h - quantisation and dequantisation of q2_0 and q2_0_128; FIT_N is the block
 *
 * Codes stand for -1, 0, 1 and 2, and d may be negative: the side with the weight of
 * largest magnitude gets 2. Blocks of few large weights are best cut far below those;
 * ternary ones have their largest at 1.
 */
#ifndef SLM_KERNELS_Q2_0_FIT_H
#define SLM_KERNELS_Q2_0_FIT_H

#include "kernels/fit/fit.h"
#include "kernels/half.h"
#include "kernels/q2_0/q2_0.h"

SIMD_INLINE fit_vec q2_0_nearest(fit_vec t)
{
    return fit_round(fit_clamp(t, -1, 2));
}

SIMD_INLINE void q2_0_fit(const float *src, const fit_vec *w, uint8_t d[2],
                          uint8_t qs[FIT_N / 4])
{
    static const float positions[] = {1,  1.4f,  1.8f,  2.2f,  2.6f,  3,  3.6f,  4.4f,
                                      -1, -1.4f, -1.8f, -2.2f, -2.6f, -3, -3.6f, -4.4f};
    const int n_positions = sizeof(positions) / sizeof(positions[0]);
    uint8_t q[FIT_N];

    fit_quantize_scale(q2_0_nearest, src, w, positions, n_positions, 1, d, q);
    for (int i = 0; i < FIT_N / 4; i++)
        qs[i] = (uint8_t)(q[4 * i] | q[4 * i + 1] << 2 | q[4 * i + 2] << 4 |
                          q[4 * i + 3] << 6);
}

#define Q2_0_QUANTIZE(name)                                        \
    static void quantize_block(const float *src, const fit_vec *w, \
                               struct block_##name *out)           \
    {                                                              \
        q2_0_fit(src, w, out->d, out->qs);                         \
    }                                                              \
    FIT_QUANTIZE(name)

#define Q2_0_DEQUANTIZE(name, elems)                                             \
    void kern_dequantize_##name##__scalar(const void *src, float *dst, size_t n) \
    {                                                                            \
        const struct block_##name *in = src;                                     \
                                                                                 \
        for (size_t b = 0; b < n / (elems); b++) {                               \
            const float d = half_to_f32(load_u16(in[b].d));                      \
                                                                                 \
            for (int i = 0; i < (elems); i++)                                    \
                *dst++ = (float)q2_0_value(in[b].qs, i) * d;                     \
        }                                                                        \
    }

#endif
