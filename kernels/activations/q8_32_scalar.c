/* SPDX-License-Identifier: MIT
 *
 * q8_32_scalar.c - activations to q8_32, reference
 */
#include "kernels/activations/act_scalar.h"
#include "kernels/kernels.h"

void kern_quantize_act_q8_32__scalar(const float *src, void *dst, size_t k)
{
    int8_t *q = dst;
    float *d = (float *)act_q8_32_d(dst, k);
    float *s = (float *)act_q8_32_s(dst, k);
    int16_t *sums = (int16_t *)act_q8_32_sums(dst, k);

    for (size_t b = 0; b < k / 32; b++) {
        sums[2 * b] = sums[2 * b + 1] = 0;
        d[b] = act_quantize_block(src + b * 32, q + b * 32, 32);
        for (size_t i = 0; i < 32; i++)
            sums[2 * b + i / 16] = (int16_t)(sums[2 * b + i / 16] + q[b * 32 + i]);
        s[b] = d[b] * (float)(sums[2 * b] + sums[2 * b + 1]);
    }
}
