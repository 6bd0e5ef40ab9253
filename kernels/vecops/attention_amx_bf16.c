/* SPDX-License-Identifier: MIT
 *
 * attention_amx_bf16.c - scores and mixes of f16 keys and values by tiles
 *
 * attn_dot: a row of a tile is an element of 16 positions, as panels have them.
 * attn_mix: it is 16 elements of a position. What is longer than is held of it is added
 * up in parts.
 */
#include "kernels/vecops/attention_amx.h"

static void dot_queries(size_t n_panels, size_t d, const uint16_t *keys, size_t nq,
                        const float *query, size_t stride, float *s, size_t s_stride)
{
    const size_t most = held_at_once(nq);
    struct held held;
    struct sums sums;
    converted c;

    for (size_t i = 0; i < d; i += most) {
        const size_t n = smaller(d - i, most);

        hold_rows(&held, nq, n, query + i, stride);
        for (size_t p = 0, m; p < n_panels; p += m) {
            m = smaller(n_panels - p, tiles_at_once(held.n_groups));
            struct halves h = {.at = keys + (p * d + i) * PANEL,
                               .block = PAIRS * PANEL,
                               .row = PANEL,
                               .second = SIDE * PANEL,
                               .n_whole = n / PAIRS,
                               .n_rows = n % PAIRS,
                               .mask = {0xffff, 0xffff},
                               .ahead = m * d * PANEL};

            set_tiles(&h, m, d * PANEL);
            multiply_tiles(false, &held, &h, c, &sums);
            for (size_t q = 0; q < nq; q += SIDE)
                for (size_t j = 0; j < m; j++)
                    add_rows(sums.of[q / SIDE][j], smaller(nq - q, SIDE),
                             s + q * s_stride + (p + j) * PANEL, s_stride);
        }
    }
}

void kern_attn_dot_f16__amx_bf16(size_t n_panels, size_t d, const void *keys,
                                 size_t n_q, const void *query, size_t q_stride,
                                 float *s, size_t s_stride)
{
    const size_t stride = q_stride / sizeof(float);

    amx_begin(SIDE, ROW_BYTES);
    for (size_t q = 0; q < n_q; q++)
        memset(s + q * s_stride, 0, n_panels * PANEL * sizeof *s);
    for (size_t q = 0; q < n_q; q += MAX_QUERIES)
        dot_queries(n_panels, d, keys, smaller(n_q - q, MAX_QUERIES),
                    (const float *)query + q * stride, stride, s + q * s_stride,
                    s_stride);
    amx_end();
}

static void mix_queries(size_t n, size_t d, const uint16_t *values, size_t nq,
                        const float *p, size_t p_stride, float *out, size_t o_stride)
{
    const size_t most = held_at_once(nq);
    struct held held;
    struct sums sums;
    converted c;

    for (size_t t = 0; t < n; t += most) {
        const size_t n_here = smaller(n - t, most);

        hold_rows(&held, nq, n_here, p + t, p_stride);
        for (size_t i = 0, m; i < d; i += m * SIDE) {
            m = smaller((d - i) / SIDE, tiles_at_once(held.n_groups));
            struct halves h = {.at = values + t * d + i,
                               .block = PAIRS * d,
                               .row = d,
                               .second = SIDE * d,
                               .n_whole = n_here / PAIRS,
                               .n_rows = n_here % PAIRS,
                               .mask = {0xffff, 0xffff},
                               .ahead = n * d};

            set_tiles(&h, m, SIDE);
            multiply_tiles(false, &held, &h, c, &sums);
            for (size_t q = 0; q < nq; q += SIDE)
                for (size_t j = 0; j < m; j++)
                    add_rows(sums.of[q / SIDE][j], smaller(nq - q, SIDE),
                             out + q * o_stride + i + j * SIDE, o_stride);
        }
    }
}

void kern_attn_mix_f16__amx_bf16(size_t n, size_t d, const void *values, size_t n_q,
                                 const float *p, size_t p_stride, float *out,
                                 size_t o_stride)
{
    amx_begin(SIDE, ROW_BYTES);
    for (size_t q = 0; q < n_q; q += MAX_QUERIES)
        mix_queries(n, d, values, smaller(n_q - q, MAX_QUERIES), p + q * p_stride,
                    p_stride, out + q * o_stride, o_stride);
    amx_end();
}
