/* SPDX-License-Identifier: MIT
 *
 * vecops_scalar.c - vector operations in plain C, the reference
 *
 * Sums run in double, so that the other variants are measured against the better
 * number.
 */
#include <math.h>

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/vecops/gelu.h"
#include "kernels/vecops/hadamard.h"

void kern_rmsnorm__scalar(float *y, const float *x, const float *w, size_t n, float eps)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];

    const float scale = (float)(1.0 / sqrt(sum / (double)n + (double)eps));

    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * scale * w[i];
}

void kern_rope__scalar(float *v, const float *cs, size_t n)
{
    for (size_t i = 0; i + 1 < n; i += 2) {
        const float a = v[i], b = v[i + 1];

        v[i] = a * cs[i] - b * cs[i + 1];
        v[i + 1] = a * cs[i + 1] + b * cs[i];
    }
}

void kern_rope_neox__scalar(float *v, const float *cs, size_t n)
{
    const size_t half = n / 2;

    for (size_t i = 0; i < half; i++) {
        const float a = v[i], b = v[half + i];

        v[i] = a * cs[i] - b * cs[half + i];
        v[half + i] = a * cs[half + i] + b * cs[i];
    }
}

void kern_layernorm__scalar(float *y, const float *x, const float *w, const float *b,
                            size_t n, float eps)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];

    const double mean = sum / (double)n;

    for (size_t i = 0; i < n; i++)
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);

    const double scale = 1.0 / sqrt(squares / (double)n + (double)eps);

    for (size_t i = 0; i < n; i++)
        y[i] = (float)(((double)x[i] - mean) * scale) * w[i] + (b ? b[i] : 0.0f);
}

void kern_silu_mul__scalar(float *y, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}

static float gelu(float x)
{
    return x / (1.0f + expf(x * (GELU_1 + GELU_3 * x * x)));
}

void kern_gelu_mul__scalar(float *y, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = gelu(gate[i]) * up[i];
}

void kern_gelu__scalar(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = gelu(x[i]);
}

void kern_relu_squared__scalar(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= x[i] > 0.0f ? x[i] : 0.0f;
}

void kern_xielu__scalar(float *x, size_t n, float pos, float neg, float beta)
{
    for (size_t i = 0; i < n; i++) {
        const float a = x[i] > 0.0f ? x[i] : 0.0f, b = x[i] > 0.0f ? 0.0f : x[i];

        x[i] = pos * a * a + neg * (expm1f(b) - b) + beta * x[i];
    }
}

void kern_softcap__scalar(float *x, size_t n, float cap)
{
    for (size_t i = 0; i < n; i++)
        x[i] = cap * tanhf(x[i] / cap);
}

void kern_hadamard__scalar(float *x, size_t n)
{
    hadamard_blocks(x, n);
}

void kern_add_scaled__scalar(float *y, const float *x, float a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

void kern_l2norm__scalar(float *x, size_t n, float length, float eps)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];

    const double root = sqrt(sum);
    const float scale =
        (float)((double)length / (root > (double)eps ? root : (double)eps));

    for (size_t i = 0; i < n; i++)
        x[i] *= scale;
}

void kern_add__scalar(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}
