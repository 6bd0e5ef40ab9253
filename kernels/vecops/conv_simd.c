/* SPDX-License-Identifier: MIT
 *
 * conv_simd.c - convolutions of recurrent layers, every vector level
 *
 * A lane is a channel.
 */
#include "kernels/kernels.h"
#include "kernels/vecops/vec_float.h"

/* conv_silu's usual taps, short_conv's, and the most of both. */
enum { TAPS = 4, SHORT_TAPS = 3, MOST_TAPS = 4, LINE_VECS = 16 / V_LANES };

SIMD_INLINE vf silu(vf v)
{
    return v_div(v, v_add(v_set1_f(1.0f), v_exp(v_sub(v_zero_f(), v))));
}

/* ---- conv_silu ------------------------------------------------------------------ */

/* 16 channels with four taps. */
SIMD_INLINE void conv_16(const float *w, const float *bias, size_t n_cols,
                         const float *const *x, size_t i, float *y, size_t y_stride)
{
    vf taps[LINE_VECS][TAPS], first[LINE_VECS];

    SIMD_UNROLL
    for (size_t b = 0; b < LINE_VECS; b++) {
        vi rows[TAPS];

        v_rows_16((const uint8_t *)(w + (i + b * V_LANES) * TAPS), TAPS * sizeof *w,
                  rows);
        SIMD_UNROLL
        for (size_t t = 0; t < TAPS; t++)
            taps[b][t] = v_float_bits(rows[t]);
        first[b] = bias ? v_load_f(bias + i + b * V_LANES) : v_zero_f();
    }
    for (size_t j = 0; j < n_cols; j++) {
        SIMD_UNROLL
        for (size_t b = 0; b < LINE_VECS; b++) {
            const size_t at = i + b * V_LANES;
            vf sum = v_fma(taps[b][0], v_load_f(x[j] + at), first[b]);

            SIMD_UNROLL
            for (size_t t = 1; t < TAPS; t++)
                sum = v_fma(taps[b][t], v_load_f(x[j + t] + at), sum);
            v_store_f(y + j * y_stride + at, silu(sum));
        }
    }
}

/* At most V_LANES channels with any number of taps. */
static void conv_any(size_t n, size_t n_taps, const float *w, const float *bias,
                     size_t n_cols, const float *const *x, size_t i, float *y,
                     size_t y_stride)
{
    for (size_t j = 0; j < n_cols; j++) {
        float sum[V_LANES] = {0};

        if (bias)
            memcpy(sum, bias + i, n * sizeof *sum);
        for (size_t t = 0; t < n_taps; t++)
            for (size_t c = 0; c < n; c++)
                sum[c] += w[(i + c) * n_taps + t] * x[j + t][i + c];
        v_store_f(sum, silu(v_load_f(sum)));
        memcpy(y + j * y_stride + i, sum, n * sizeof *sum);
    }
}

void KERN_LEVEL_NAME(conv_silu)(size_t n, size_t n_taps, const float *w,
                                const float *bias, size_t n_cols, const float *const *x,
                                float *y, size_t y_stride)
{
    size_t i = 0;

    for (; n_taps == TAPS && i + 16 <= n; i += 16)
        conv_16(w, bias, n_cols, x, i, y, y_stride);
    for (; i < n; i += V_LANES)
        conv_any(n - i < V_LANES ? n - i : V_LANES, n_taps, w, bias, n_cols, x, i, y,
                 y_stride);
}

/* ---- short_conv ----------------------------------------------------------------- */

/* What one call computes of. */
struct products {
    const float *w;
    size_t n_cols;
    float *const *u;
    const float *x, *f;
    size_t stride;
    float *y;
    size_t y_stride;
};

/* A vector of channels with n_taps taps; the products of the last columns stay in
 * registers. */
SIMD_INLINE void short_vec(const size_t n_taps, const struct products *p, size_t i)
{
    float turned[MOST_TAPS][V_LANES];
    vf taps[MOST_TAPS], last[MOST_TAPS];

    SIMD_UNROLL
    for (size_t t = 0; t < n_taps; t++) {
        for (size_t c = 0; c < V_LANES; c++)
            turned[t][c] = p->w[(i + c) * n_taps + t];
        taps[t] = v_load_f(turned[t]);
    }
    SIMD_UNROLL
    for (size_t t = 0; t + 1 < n_taps; t++)
        last[t + 1] = v_load_f(p->u[t] + i);
    for (size_t j = 0; j < p->n_cols; j++) {
        float *u = p->u[j + n_taps - 1] + i;
        vf sum;

        SIMD_UNROLL
        for (size_t t = 0; t + 1 < n_taps; t++)
            last[t] = last[t + 1];
        last[n_taps - 1] = v_mul(v_load_f(u), v_load_f(p->x + j * p->stride + i));
        v_store_f(u, last[n_taps - 1]);
        sum = v_mul(taps[0], last[0]);
        SIMD_UNROLL
        for (size_t t = 1; t < n_taps; t++)
            sum = v_fma(taps[t], last[t], sum);
        v_store_f(p->y + j * p->y_stride + i,
                  v_mul(v_load_f(p->f + j * p->stride + i), sum));
    }
}

static void short_one(size_t n_taps, const struct products *p, size_t i)
{
    for (size_t j = 0; j < p->n_cols; j++) {
        float sum = 0.0f;

        p->u[j + n_taps - 1][i] *= p->x[j * p->stride + i];
        for (size_t t = 0; t < n_taps; t++)
            sum += p->w[i * n_taps + t] * p->u[j + t][i];
        p->y[j * p->y_stride + i] = p->f[j * p->stride + i] * sum;
    }
}

void KERN_LEVEL_NAME(short_conv)(size_t n, size_t n_taps, const float *w, size_t n_cols,
                                 float *const *u, const float *x, const float *f,
                                 size_t stride, float *y, size_t y_stride)
{
    const struct products p = {w, n_cols, u, x, f, stride, y, y_stride};
    size_t i = 0;

    for (; n_taps == SHORT_TAPS && i + V_LANES <= n; i += V_LANES)
        short_vec(SHORT_TAPS, &p, i);
    for (; n_taps == MOST_TAPS && i + V_LANES <= n; i += V_LANES)
        short_vec(MOST_TAPS, &p, i);
    for (; i < n; i++)
        short_one(n_taps, &p, i);
}
