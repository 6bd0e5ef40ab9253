/* SPDX-License-Identifier: MIT
 *
 * attention_scalar.c - scores, weights and mixes of cached positions in plain C, the
 *                      reference; attention_quants_scalar.c has the quantised types
 *
 * Sums of scores run in double, as in vecops_scalar.c.
 */
#include <math.h>

#include "kernels/half.h"
#include "kernels/kernels.h"

enum { PANEL = KERN_PANEL_ROWS };

/* Element i of position t of keys [d], and of values. */
typedef float element_fn(const void *cache, size_t d, size_t t, size_t i);

static const uint16_t *panel_of(const void *cache, size_t d, size_t t)
{
    return (const uint16_t *)cache + t / PANEL * PANEL * d;
}

static float key_f16(const void *keys, size_t d, size_t t, size_t i)
{
    return half_to_f32(panel_of(keys, d, t)[i * PANEL + t % PANEL]);
}

static float value_f16(const void *values, size_t d, size_t t, size_t i)
{
    return half_to_f32(panel_of(values, d, t)[t % PANEL * d + i]);
}

static float key_bf16(const void *keys, size_t d, size_t t, size_t i)
{
    return bf16_to_f32(panel_of(keys, d, t)[(i / 2 * PANEL + t % PANEL) * 2 + i % 2]);
}

static float value_bf16(const void *values, size_t d, size_t t, size_t i)
{
    return bf16_to_f32(panel_of(values, d, t)[(t % PANEL / 2 * d + i) * 2 + t % 2]);
}

static void dot(element_fn *key, size_t n_panels, size_t d, const void *keys,
                size_t n_q, const void *query, size_t q_stride, float *s,
                size_t s_stride)
{
    for (size_t t = 0; t < n_panels * PANEL; t++)
        for (size_t q = 0; q < n_q; q++) {
            const float *x = (const float *)query + q * (q_stride / sizeof(float));
            double sum = 0;

            for (size_t i = 0; i < d; i++)
                sum += (double)x[i] * (double)key(keys, d, t, i);
            s[q * s_stride + t] = (float)sum;
        }
}

void kern_attn_dot_f16__scalar(size_t n_panels, size_t d, const void *keys, size_t n_q,
                               const void *query, size_t q_stride, float *s,
                               size_t s_stride)
{
    dot(key_f16, n_panels, d, keys, n_q, query, q_stride, s, s_stride);
}

void kern_attn_dot_bf16__scalar(size_t n_panels, size_t d, const void *keys, size_t n_q,
                                const void *query, size_t q_stride, float *s,
                                size_t s_stride)
{
    dot(key_bf16, n_panels, d, keys, n_q, query, q_stride, s, s_stride);
}

float kern_attn_weigh__scalar(float *s, size_t n_seen, size_t n, float *max, float *sum)
{
    const float before = *max;
    double total = 0;
    float keep = 1.0f;

    for (size_t i = 0; i < n_seen; i++)
        *max = fmaxf(*max, s[i]);
    for (size_t i = 0; i < n; i++) {
        s[i] = i < n_seen ? expf(s[i] - *max) : 0.0f;
        total += (double)s[i];
    }
    if (*max != before)
        keep = expf(before - *max);
    *sum = (float)((double)*sum * (double)keep + total);
    return keep;
}

static void mix(element_fn *value, size_t n, size_t d, const void *values, size_t n_q,
                const float *p, size_t p_stride, float *out, size_t o_stride)
{
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < d; i++) {
            const float v = value(values, d, t, i);

            for (size_t q = 0; q < n_q; q++)
                out[q * o_stride + i] += p[q * p_stride + t] * v;
        }
}

void kern_attn_mix_f16__scalar(size_t n, size_t d, const void *values, size_t n_q,
                               const float *p, size_t p_stride, float *out,
                               size_t o_stride)
{
    mix(value_f16, n, d, values, n_q, p, p_stride, out, o_stride);
}

void kern_attn_mix_bf16__scalar(size_t n, size_t d, const void *values, size_t n_q,
                                const float *p, size_t p_stride, float *out,
                                size_t o_stride)
{
    mix(value_bf16, n, d, values, n_q, p, p_stride, out, o_stride);
}
