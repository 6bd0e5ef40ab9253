/* SPDX-License-Identifier: MIT
 *
 * conv_scalar.c - convolutions of recurrent layers in plain C, the reference
 */
#include <math.h>

#include "kernels/kernels.h"

void kern_conv_silu__scalar(size_t n, size_t n_taps, const float *w, const float *bias,
                            size_t n_cols, const float *const *x, float *y,
                            size_t y_stride)
{
    for (size_t j = 0; j < n_cols; j++)
        for (size_t i = 0; i < n; i++) {
            float sum = bias ? bias[i] : 0.0f;

            for (size_t t = 0; t < n_taps; t++)
                sum += w[i * n_taps + t] * x[j + t][i];
            y[j * y_stride + i] = sum / (1.0f + expf(-sum));
        }
}

void kern_short_conv__scalar(size_t n, size_t n_taps, const float *w, size_t n_cols,
                             float *const *u, const float *x, const float *f,
                             size_t stride, float *y, size_t y_stride)
{
    for (size_t j = 0; j < n_cols; j++)
        for (size_t i = 0; i < n; i++) {
            float sum = 0.0f;

            u[j + n_taps - 1][i] *= x[j * stride + i];
            for (size_t t = 0; t < n_taps; t++)
                sum += w[i * n_taps + t] * u[j + t][i];
            y[j * y_stride + i] = f[j * stride + i] * sum;
        }
}
