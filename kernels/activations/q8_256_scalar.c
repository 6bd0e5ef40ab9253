/* SPDX-License-Identifier: MIT
 *
 * q8_256_scalar.c - activations to q8_256, reference
 */
#include "kernels/activations/act_scalar.h"
#include "kernels/kernels.h"

void kern_quantize_act_q8_256__scalar(const float *src, void *dst, size_t k)
{
    int8_t *q = dst;
    float *d = (float *)act_q8_256_d(dst, k);
    int16_t *sums = (int16_t *)act_q8_256_sums(dst, k);

    for (size_t b = 0; b < k / 256; b++)
        d[b] = act_quantize_block(src + b * 256, q + b * 256, 256);
    for (size_t j = 0; j < k / 16; j++) {
        int sum = 0;

        for (size_t i = 0; i < 16; i++)
            sum += q[j * 16 + i];
        sums[j] = (int16_t)sum;
    }
}
