/* SPDX-License-Identifier: MIT
 *
 * delta_scalar.c - the gated delta rule in plain C, the reference
 */
#include <string.h>

#include "kernels/kernels.h"

/* One token; out has u until the state has learnt it. */
static void step(size_t d, float *restrict s, const float *restrict q,
                 const float *restrict k, const float *restrict v, float keep,
                 float rate, float *restrict out)
{
    memcpy(out, v, d * sizeof *out);
    for (size_t i = 0; i < d; i++)
        for (size_t e = 0; e < d; e++)
            out[e] -= keep * k[i] * s[i * d + e];
    for (size_t i = 0; i < d; i++)
        for (size_t e = 0; e < d; e++)
            s[i * d + e] = keep * s[i * d + e] + k[i] * (rate * out[e]);
    memset(out, 0, d * sizeof *out);
    for (size_t i = 0; i < d; i++)
        for (size_t e = 0; e < d; e++)
            out[e] += q[i] * s[i * d + e];
}

void kern_delta_rule__scalar(size_t d, size_t n, float *s, const float *q,
                             const float *k, const float *v, size_t stride,
                             const float *keep, const float *rate, float *out,
                             size_t out_stride)
{
    for (size_t j = 0; j < n; j++)
        step(d, s, q + j * stride, k + j * stride, v + j * stride, keep[j], rate[j],
             out + j * out_stride);
}
