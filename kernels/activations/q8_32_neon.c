/* SPDX-License-Identifier: MIT
 *
 * q8_32_neon.c - activations to q8_32 with NEON
 */
#include "kernels/activations/act_neon.h"
#include "kernels/kernels.h"

void kern_quantize_act_q8_32__neon(const float *src, void *dst, size_t k)
{
    int8_t *q = dst;
    float *d = (float *)act_q8_32_d(dst, k);
    float *s = (float *)act_q8_32_s(dst, k);
    int16_t *sums = (int16_t *)act_q8_32_sums(dst, k);

    for (size_t b = 0; b < k / 32; b++) {
        const float *x = src + b * 32;
        const struct act_scale scale = act_scale_of(
            act_max_lane(act_max_16(act_max_16(vdupq_n_u32(0), x), x + 16)));
        const int8x16_t v0 = act_round_16(x, scale.inverse);
        const int8x16_t v1 = act_round_16(x + 16, scale.inverse);

        vst1q_s8(q + b * 32, v0);
        vst1q_s8(q + b * 32 + 16, v1);
        d[b] = scale.d;
        sums[2 * b] = vaddlvq_s8(v0);
        sums[2 * b + 1] = vaddlvq_s8(v1);
        s[b] = scale.d * (float)(sums[2 * b] + sums[2 * b + 1]);
    }
}
