/* SPDX-License-Identifier: MIT
 *
 * q8_256_neon.c - activations to q8_256 with NEON
 */
#include "kernels/activations/act_neon.h"
#include "kernels/kernels.h"

void kern_quantize_act_q8_256__neon(const float *src, void *dst, size_t k)
{
    int8_t *q = dst;
    float *d = (float *)act_q8_256_d(dst, k);
    int16_t *sums = (int16_t *)act_q8_256_sums(dst, k);

    for (size_t b = 0; b < k / 256; b++) {
        const float *x = src + b * 256;
        uint32x4_t largest = vdupq_n_u32(0);
        struct act_scale scale;

        for (size_t i = 0; i < 256; i += 16)
            largest = act_max_16(largest, x + i);
        scale = act_scale_of(act_max_lane(largest));
        d[b] = scale.d;
        for (size_t i = 0; i < 256; i += 16) {
            const int8x16_t v = act_round_16(x + i, scale.inverse);

            vst1q_s8(q + b * 256 + i, v);
            sums[b * 16 + i / 16] = vaddlvq_s8(v);
        }
    }
}
