/* SPDX-License-Identifier: MIT
 *
 * vecops_simd.c - vector operations that are written once for every vector level
 *
 * Ends shorter than a register are computed in a register's worth of memory, so that
 * nothing behind an operand is touched.
 */
#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/vecops/gelu.h"
#include "kernels/vecops/hadamard.h"
#include "kernels/vecops/vec_float.h"

/* n values, and zeros. */
SIMD_INLINE vf load_end(const float *p, size_t n)
{
    float lanes[V_LANES] = {0};

    memcpy(lanes, p, n * sizeof *p);
    return v_load_f(lanes);
}

SIMD_INLINE void store_end(float *p, vf v, size_t n)
{
    float lanes[V_LANES];

    v_store_f(lanes, v);
    memcpy(p, lanes, n * sizeof *p);
}

/* ---- norm ----------------------------------------------------------------------- */

SIMD_INLINE float sum_of(const float *x, size_t n)
{
    vf sum[4] = {v_zero_f(), v_zero_f(), v_zero_f(), v_zero_f()};
    size_t i = 0;

    for (; i + 4 * V_LANES <= n; i += 4 * V_LANES) {
        SIMD_UNROLL
        for (size_t j = 0; j < 4; j++)
            sum[j] = v_add(sum[j], v_load_f(x + i + j * V_LANES));
    }
    for (; i + V_LANES <= n; i += V_LANES)
        sum[0] = v_add(sum[0], v_load_f(x + i));
    if (i < n)
        sum[1] = v_add(sum[1], load_end(x + i, n - i));
    return v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3])));
}

/* Of the squares of x - mean. */
SIMD_INLINE float square_sum(const float *x, size_t n, float mean)
{
    const vf middle = v_set1_f(mean);
    vf sum[4] = {v_zero_f(), v_zero_f(), v_zero_f(), v_zero_f()};
    float rest = 0.0f;
    size_t i = 0;

    for (; i + 4 * V_LANES <= n; i += 4 * V_LANES) {
        SIMD_UNROLL
        for (size_t j = 0; j < 4; j++) {
            const vf d = v_sub(v_load_f(x + i + j * V_LANES), middle);

            sum[j] = v_fma(d, d, sum[j]);
        }
    }
    for (; i + V_LANES <= n; i += V_LANES) {
        const vf d = v_sub(v_load_f(x + i), middle);

        sum[0] = v_fma(d, d, sum[0]);
    }
    for (; i < n; i++)
        rest += (x[i] - mean) * (x[i] - mean);
    return v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]))) + rest;
}

void KERN_LEVEL_NAME(layernorm)(float *y, const float *x, const float *w,
                                const float *b, size_t n, float eps)
{
    const float mean = sum_of(x, n) / (float)n;
    const float scale = 1.0f / sqrtf(square_sum(x, n, mean) / (float)n + eps);
    const vf middle = v_set1_f(mean), factor = v_set1_f(scale);
    size_t i = 0;

    for (; i + V_LANES <= n; i += V_LANES) {
        const vf v = v_mul(v_sub(v_load_f(x + i), middle), factor);

        v_store_f(y + i, v_fma(v, v_load_f(w + i), b ? v_load_f(b + i) : v_zero_f()));
    }
    for (; i < n; i++)
        y[i] = (x[i] - mean) * scale * w[i] + (b ? b[i] : 0.0f);
}

void KERN_LEVEL_NAME(l2norm)(float *x, size_t n, float length, float eps)
{
    const float root = sqrtf(square_sum(x, n, 0.0f));
    const float scale = length / (root > eps ? root : eps);
    const vf factor = v_set1_f(scale);
    size_t i = 0;

    for (; i + V_LANES <= n; i += V_LANES)
        v_store_f(x + i, v_mul(v_load_f(x + i), factor));
    for (; i < n; i++)
        x[i] *= scale;
}

/* ---- sum ------------------------------------------------------------------------ */

void KERN_LEVEL_NAME(add_scaled)(float *y, const float *x, float a, size_t n)
{
    const vf factor = v_set1_f(a);
    size_t i = 0;

    for (; i + V_LANES <= n; i += V_LANES)
        v_store_f(y + i, v_fma(factor, v_load_f(x + i), v_load_f(y + i)));
    if (i < n)
        store_end(y + i, v_fma(factor, load_end(x + i, n - i), load_end(y + i, n - i)),
                  n - i);
}

/* ---- rotation ------------------------------------------------------------------- */

void KERN_LEVEL_NAME(rope_neox)(float *v, const float *cs, size_t n)
{
    const size_t half = n / 2;
    size_t i = 0;

    for (; i + V_LANES <= half; i += V_LANES) {
        const vf a = v_load_f(v + i), b = v_load_f(v + half + i);
        const vf c = v_load_f(cs + i), s = v_load_f(cs + half + i);

        v_store_f(v + i, v_fnma(b, s, v_mul(a, c)));
        v_store_f(v + half + i, v_fma(a, s, v_mul(b, c)));
    }
    for (; i < half; i++) {
        const float a = v[i], b = v[half + i];

        v[i] = a * cs[i] - b * cs[half + i];
        v[half + i] = a * cs[half + i] + b * cs[i];
    }
}

/* ---- activation functions ---------------------------------------------------------
 */

SIMD_INLINE vf gelu(vf x)
{
    const vf slope = v_fma(v_mul(x, x), v_set1_f(GELU_3), v_set1_f(GELU_1));

    return v_div(x, v_add(v_set1_f(1.0f), v_exp(v_mul(x, slope))));
}

void KERN_LEVEL_NAME(gelu_mul)(float *y, const float *gate, const float *up, size_t n)
{
    size_t i = 0;

    for (; i + V_LANES <= n; i += V_LANES)
        v_store_f(y + i, v_mul(gelu(v_load_f(gate + i)), v_load_f(up + i)));
    if (i < n)
        store_end(y + i,
                  v_mul(gelu(load_end(gate + i, n - i)), load_end(up + i, n - i)),
                  n - i);
}

void KERN_LEVEL_NAME(gelu)(float *y, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + V_LANES <= n; i += V_LANES)
        v_store_f(y + i, gelu(v_load_f(x + i)));
    if (i < n)
        store_end(y + i, gelu(load_end(x + i, n - i)), n - i);
}

SIMD_INLINE vf relu_squared(vf x)
{
    return v_mul(x, v_max_f(x, v_zero_f()));
}

void KERN_LEVEL_NAME(relu_squared)(float *x, size_t n)
{
    size_t i = 0;

    for (; i + V_LANES <= n; i += V_LANES)
        v_store_f(x + i, relu_squared(v_load_f(x + i)));
    if (i < n)
        store_end(x + i, relu_squared(load_end(x + i, n - i)), n - i);
}

/* exp sees no number above 0, so that it does not overflow. */
SIMD_INLINE vf xielu(vf x, vf pos, vf neg, vf beta)
{
    const vf a = v_max_f(x, v_zero_f()), b = v_sub(x, a);
    const vf below = v_sub(v_sub(v_exp(b), v_set1_f(1.0f)), b);

    return v_fma(v_mul(pos, a), a, v_fma(neg, below, v_mul(beta, x)));
}

void KERN_LEVEL_NAME(xielu)(float *x, size_t n, float pos, float neg, float beta)
{
    const vf p = v_set1_f(pos), m = v_set1_f(neg), l = v_set1_f(beta);
    size_t i = 0;

    for (; i + V_LANES <= n; i += V_LANES)
        v_store_f(x + i, xielu(v_load_f(x + i), p, m, l));
    if (i < n)
        store_end(x + i, xielu(load_end(x + i, n - i), p, m, l), n - i);
}

/* tanh z = 1 - 2 / (1 + exp 2z): right at both ends, where exp gives 0 or infinity. */
SIMD_INLINE vf cap_all(vf x, float cap)
{
    const vf e = v_exp(v_mul(x, v_set1_f(2.0f / cap)));

    return v_sub(v_set1_f(cap), v_div(v_set1_f(2.0f * cap), v_add(v_set1_f(1.0f), e)));
}

void KERN_LEVEL_NAME(softcap)(float *x, size_t n, float cap)
{
    size_t i = 0;

    for (; i + V_LANES <= n; i += V_LANES)
        v_store_f(x + i, cap_all(v_load_f(x + i), cap));
    if (i < n)
        store_end(x + i, cap_all(load_end(x + i, n - i), cap), n - i);
}

void KERN_LEVEL_NAME(hadamard)(float *x, size_t n)
{
    hadamard_blocks(x, n);
}
