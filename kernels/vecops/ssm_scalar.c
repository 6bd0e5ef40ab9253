/* SPDX-License-Identifier: MIT
 *
 * ssm_scalar.c - the scan of Mamba-2 in plain C, the reference
 */
#include "kernels/kernels.h"

void kern_ssm_scan__scalar(size_t d_key, size_t d_value, size_t n, float *s,
                           const float *b, const float *c, size_t key_stride,
                           const float *x, size_t x_stride, const float *keep,
                           const float *rate, float skip, float *out, size_t out_stride)
{
    for (size_t j = 0; j < n; j++) {
        const float *bj = b + j * key_stride, *cj = c + j * key_stride;
        const float *xj = x + j * x_stride;
        float *y = out + j * out_stride;

        for (size_t e = 0; e < d_value; e++)
            y[e] = skip * xj[e];
        for (size_t i = 0; i < d_key; i++)
            for (size_t e = 0; e < d_value; e++) {
                float *at = &s[i * d_value + e];

                *at = keep[j] * *at + bj[i] * (rate[j] * xj[e]);
                y[e] += cj[i] * *at;
            }
    }
}
