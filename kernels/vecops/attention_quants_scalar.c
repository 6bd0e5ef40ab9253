/* SPDX-License-Identifier: MIT
 *
 * attention_quants_scalar.c - scores and mixes of quantised keys and values in plain C,
 *                             the reference
 *
 * Sums of scores run in double; within a block they are exact.
 */
#include "kernels/activations/activations.h"
#include "kernels/half.h"
#include "kernels/kernels.h"

enum { PANEL = KERN_PANEL_ROWS, BLOCK = 32 };

static uint16_t read_half(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static int8_t q8_0_at(const uint8_t *body, size_t i)
{
    return (int8_t)body[i];
}

static int8_t q4_0_at(const uint8_t *body, size_t i)
{
    return (int8_t)((body[i % 16] >> (i < 16 ? 0 : 4) & 15) - 8);
}

/* Scores of quantised keys: dword j of 16 positions, then dword j + 1, ...; bodies and
 * scales where panels of weights have them. */
static void dot_blocks(int8_t at(const uint8_t *, size_t), size_t body_bytes,
                       size_t n_panels, size_t d, const void *keys, size_t n_q,
                       const void *query, size_t q_stride, float *s, size_t s_stride)
{
    const size_t n_blocks = d / BLOCK, block_bytes = PANEL * body_bytes;
    const size_t panel_bytes = n_blocks * (block_bytes + 2 * PANEL);

    for (size_t t = 0; t < n_panels * PANEL; t++) {
        const uint8_t *panel = (const uint8_t *)keys + t / PANEL * panel_bytes;

        for (size_t q = 0; q < n_q; q++) {
            const char *x = (const char *)query + q * q_stride;
            double sum = 0;

            for (size_t b = 0; b < n_blocks; b++) {
                const uint8_t *scale =
                    panel + kern_panel_scales_at(block_bytes, 2 * PANEL, b);
                const uint8_t *quants =
                    panel + kern_panel_body_at(block_bytes, 2 * PANEL, n_blocks, b);
                uint8_t body[BLOCK];
                int32_t dot = 0;

                for (size_t i = 0; i < body_bytes; i++)
                    body[i] = quants[i / 4 * 4 * PANEL + t % PANEL * 4 + i % 4];
                for (size_t i = 0; i < BLOCK; i++)
                    dot += at(body, i) * act_q(x)[b * BLOCK + i];
                sum += (double)half_to_f32(read_half(scale + t % PANEL * 2)) *
                       (double)act_q8_32_d(x, d)[b] * dot;
            }
            s[q * s_stride + t] = (float)sum;
        }
    }
}

void kern_attn_dot_q8_0__scalar(size_t n_panels, size_t d, const void *keys, size_t n_q,
                                const void *query, size_t q_stride, float *s,
                                size_t s_stride)
{
    dot_blocks(q8_0_at, 32, n_panels, d, keys, n_q, query, q_stride, s, s_stride);
}

void kern_attn_dot_q4_0__scalar(size_t n_panels, size_t d, const void *keys, size_t n_q,
                                const void *query, size_t q_stride, float *s,
                                size_t s_stride)
{
    dot_blocks(q4_0_at, 16, n_panels, d, keys, n_q, query, q_stride, s, s_stride);
}

/* Quantised values: of a block 16 positions one after another; bodies and scales as of
 * keys. */
static void mix_blocks(int8_t at(const uint8_t *, size_t), size_t body_bytes, size_t n,
                       size_t d, const void *values, size_t n_q, const float *p,
                       size_t p_stride, float *out, size_t o_stride)
{
    const size_t n_blocks = d / BLOCK, block_bytes = PANEL * body_bytes;
    const size_t panel_bytes = n_blocks * (block_bytes + 2 * PANEL);

    for (size_t t = 0; t < n; t++) {
        const uint8_t *panel = (const uint8_t *)values + t / PANEL * panel_bytes;

        for (size_t i = 0; i < d; i++) {
            const size_t b = i / BLOCK;
            const uint8_t *body =
                panel + kern_panel_body_at(block_bytes, 2 * PANEL, n_blocks, b) +
                t % PANEL * body_bytes;
            const uint8_t *scale =
                panel + kern_panel_scales_at(block_bytes, 2 * PANEL, b) + t % PANEL * 2;
            const float v = half_to_f32(read_half(scale)) * (float)at(body, i % BLOCK);

            for (size_t q = 0; q < n_q; q++)
                out[q * o_stride + i] += p[q * p_stride + t] * v;
        }
    }
}

void kern_attn_mix_q8_0__scalar(size_t n, size_t d, const void *values, size_t n_q,
                                const float *p, size_t p_stride, float *out,
                                size_t o_stride)
{
    mix_blocks(q8_0_at, 32, n, d, values, n_q, p, p_stride, out, o_stride);
}

void kern_attn_mix_q4_0__scalar(size_t n, size_t d, const void *values, size_t n_q,
                                const float *p, size_t p_stride, float *out,
                                size_t o_stride)
{
    mix_blocks(q4_0_at, 16, n, d, values, n_q, p, p_stride, out, o_stride);
}
