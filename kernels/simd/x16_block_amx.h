/* SPDX-License-Identifier: MIT
 *
 * x16_block_amx.h - blocks of 32 weights times several columns, by tiles
 *
 * Every block has a float scale, so its products are sums of their own: tiles of 32
 * weights, or of 16 where halves have scales of their own. Weights are signed bytes,
 * the bias off. Range: a sum is at most 32 * 128 * 127 = 520192.
 */
#ifndef SLM_KERNELS_SIMD_X16_BLOCK_AMX_H
#define SLM_KERNELS_SIMD_X16_BLOCK_AMX_H

#include "kernels/simd/x16_amx.h"
#include "kernels/simd/x16_block_tile.h" /* requantises */

enum { AMX_UNITS = 4 }; /* sums that are computed while as many are added */

/* Blocks of one panel. */
struct amx_blocks {
    vi w[X16_BATCH][8]; /* tiles B */
    vf d[X16_BATCH], m[X16_BATCH];
};

SIMD_INLINE void amx_block_emit(const struct x16_sink sink, int four, vi w)
{
    sink.tile[four] = w;
}

SIMD_INLINE void amx_block_unpack(const struct x16_block_format *f, const uint8_t *body,
                                  const uint8_t *block_scales, struct amx_blocks *out,
                                  size_t i)
{
    const struct x16_sink sink = {.tile = out->w[i]};

    SIMD_UNROLL
    for (int step = 0; step < f->steps; step++)
        f->weights(body, step, amx_block_emit, sink);
    if (f->order != NULL)
        amx_reorder(f->order, X16_BLOCK, out->w[i]);
    if (f->bias != 0)
        SIMD_UNROLL
    for (int t = 0; t < 8; t++)
        out->w[i][t] = _mm512_sub_epi8(out->w[i][t], v_set1_8((char)f->bias));
    f->scales(body, block_scales, &out->d[i], &out->m[i]);
}

/* See amx_sides_fn. */
SIMD_INLINE void amx_block_sides(const struct x16_block_format *f, size_t k,
                                 size_t from, size_t to,
                                 const struct amx_columns *columns)
{
    const size_t n_groups = columns->n_groups;

    for (size_t g = 0; g < n_groups; g++)
        for (size_t j = 0; j < amx_added(columns); j++) {
            const char *x = amx_column(columns, g, j);

            for (size_t b = from / X16_BLOCK; b < to / X16_BLOCK; b++) {
                const size_t at = b - from / X16_BLOCK;
                struct amx_side *side = columns->side + at / X16_BATCH * n_groups + g;

                side->d[at % X16_BATCH][j] = act_q8_32_d(x, k)[b];
                if (f->has_m)
                    side->s[at % X16_BATCH][j] = act_q8_32_s(x, k)[b];
            }
        }
}

/* Columns and rows are cut as vectors cut them (x16_gemm(), and few columns of panels
 * as a whole), and float steps are theirs: results are the same bit for bit, and which
 * of the two multiplies may be a question of time. */
SIMD_INLINE struct amx_cut amx_block_cut(size_t k, size_t n_cols, size_t left,
                                         bool in_panels)
{
    const size_t at_once = x16_cols_at_once(n_cols);
    const size_t n = left < at_once ? left : at_once;
    const size_t n_pieces = n > 1 ? X16_PIECES / n : (size_t)AMX_PIECES;

    (void)k;
    if (in_panels && n_cols <= X16_FEW)
        return (struct amx_cut){n_cols, AMX_PIECES * X16_PIECE, false, 0};
    return (struct amx_cut){at_once, n_pieces * X16_PIECE, true, 0};
}

struct amx_block_sums {
    int32_t v[AMX_UNITS][AMX_GROUP][16] __attribute__((aligned(64)));
};

/* acc[n columns] += unit u, of block and half, of which *sums has the products. */
SIMD_INLINE void amx_block_add(const struct x16_block_format *f,
                               const struct amx_blocks *panel, size_t u,
                               int32_t (*sums)[16], const struct amx_side *side,
                               const size_t n, vf *acc)
{
    const size_t i = f->halves ? u / 2 : u;
    const vf d = f->halves && u % 2 != 0 ? panel->m[i] : panel->d[i];

    SIMD_UNROLL
    for (size_t c = 0; c < n; c++) {
        const vf v = v_mul(v_to_float(v_load(sums[c])), v_set1_f(side->d[i][c]));

        acc[c] = v_fma(v, d, acc[c]);
        if (f->has_m)
            acc[c] = v_fma(panel->m[i], v_set1_f(side->s[i][c]), acc[c]);
    }
}

/* The products of AMX_UNITS units from u on. */
SIMD_INLINE void amx_block_multiply(const struct x16_block_format *f,
                                    const struct amx_blocks *panel, const int8_t *q,
                                    size_t q_stride, size_t u,
                                    struct amx_block_sums *sums)
{
    const size_t each = f->halves ? 16 : 32; /* weights */

#define AMX_UNIT(c, a, b, at)                         \
    do {                                              \
        AMX_ZERO(c);                                  \
        AMX_LOAD(a, q + (at)*each, q_stride);         \
        AMX_LOAD(b, panel->w[0] + (at)*each / 4, 64); \
        AMX_DOT_S(c, a, b);                           \
    } while (0)
    AMX_UNIT(0, 4, 6, u);
    AMX_UNIT(1, 5, 7, u + 1);
    AMX_UNIT(2, 4, 6, u + 2);
    AMX_UNIT(3, 5, 7, u + 3);
#undef AMX_UNIT
    AMX_STORE(0, sums->v[0]);
    AMX_STORE(1, sums->v[1]);
    AMX_STORE(2, sums->v[2]);
    AMX_STORE(3, sums->v[3]);
}

/* acc[n columns] += a whole batch of one panel times a group: products of some units
 * while those before are added. */
SIMD_INLINE void amx_block_batch(const struct x16_block_format *f,
                                 const struct amx_blocks *panel, const int8_t *q,
                                 size_t q_stride, const struct amx_side *side,
                                 const size_t n, vf *acc)
{
    const size_t n_units = X16_BATCH * (size_t)x16_block_sums(f);
    struct amx_block_sums sums[2];
    vf sum[AMX_GROUP];

    SIMD_UNROLL
    for (size_t c = 0; c < n; c++)
        sum[c] = acc[c];
    amx_block_multiply(f, panel, q, q_stride, 0, &sums[0]);
    SIMD_UNROLL
    for (size_t u = 0; u < n_units; u += AMX_UNITS) {
        struct amx_block_sums *now = &sums[u / AMX_UNITS % 2];

        if (u + AMX_UNITS < n_units)
            amx_block_multiply(f, panel, q, q_stride, u + AMX_UNITS,
                               &sums[(u / AMX_UNITS + 1) % 2]);
        SIMD_UNROLL
        for (size_t i = 0; i < AMX_UNITS; i++)
            amx_block_add(f, panel, u + i, now->v[i], side, n, sum);
    }
    SIMD_UNROLL
    for (size_t c = 0; c < n; c++)
        acc[c] = sum[c];
}

/* As amx_block_batch() of n_blocks, which are less. */
SIMD_INLINE void amx_block_rest(const struct x16_block_format *f,
                                const struct amx_blocks *panel, size_t n_blocks,
                                const int8_t *q, size_t q_stride,
                                const struct amx_side *side, const size_t n, vf *acc)
{
    const size_t each = f->halves ? 16 : 32;
    int32_t sums[AMX_GROUP][16] __attribute__((aligned(64)));

    for (size_t u = 0; u < n_blocks * (size_t)x16_block_sums(f); u++) {
        AMX_ZERO(0);
        AMX_LOAD(4, q + u * each, q_stride);
        AMX_LOAD(6, panel->w[0] + u * each / 4, 64);
        AMX_DOT_S(0, 4, 6);
        AMX_STORE(0, sums);
        amx_block_add(f, panel, u, sums, side, n, acc);
    }
}

/* acc[n columns] += n_blocks of one panel times a group. */
SIMD_INLINE void amx_block_group(const struct x16_block_format *f,
                                 const struct amx_blocks *panel, size_t n_blocks,
                                 const int8_t *q, size_t q_stride,
                                 const struct amx_side *side, const size_t n, vf *acc)
{
    if (n_blocks < X16_BATCH)
        amx_block_rest(f, panel, n_blocks, q, q_stride, side, n, acc);
    else
        amx_block_batch(f, panel, q, q_stride, side, n, acc);
}

/* See amx_panels_fn. */
SIMD_INLINE void amx_block_panels(const struct x16_block_format *f, const uint8_t *w,
                                  const struct x16_rows *rows, size_t k, size_t from,
                                  size_t to, const struct amx_columns *columns,
                                  float *y, size_t y_stride, size_t n_rows,
                                  struct kern_prefetch prefetch)
{
    const size_t parts = x16_block_parts(f), n_file = k / X16_BLOCK / parts;
    const size_t first = from / X16_BLOCK, end = to / X16_BLOCK;
    const size_t n_groups = columns->n_groups;
    uint8_t body_buffer[4 * X16_BLOCK * X16_ROWS] __attribute__((aligned(64)));
    uint8_t scale_buffer[8 * X16_ROWS] __attribute__((aligned(64)));
    struct amx_acc acc[X16_MAX_COLS / AMX_GROUP];
    struct amx_blocks panels[AMX_PANELS];

    amx_start(columns, from, y, y_stride, n_rows, acc);
    for (size_t b = first; b < end; b += X16_BATCH) {
        const size_t n = end - b < X16_BATCH ? end - b : X16_BATCH;
        const struct amx_side *side =
            columns->side + (b - first) / X16_BATCH * n_groups;

        for (size_t p = 0; p < AMX_PANELS; p++) {
            const uint8_t *body = NULL, *block_scales = NULL;

            for (size_t i = 0; i < n; i++) {
                const size_t part = i % parts;

                if (part == 0)
                    amx_block(&f->layout, w, rows, p, n_file, first / parts,
                              end / parts, (b + i) / parts, n_rows, prefetch,
                              body_buffer, scale_buffer, &body, &block_scales);
                amx_block_unpack(f, body + x16_part_body(f, part),
                                 block_scales + x16_part_scales(f, part), &panels[p],
                                 i);
            }
        }
        for (size_t g = 0; g < n_groups; g++) {
            const int8_t *q = amx_quants(columns, g, (b - first) * X16_BLOCK);

            for (size_t p = 0; p < AMX_PANELS; p++)
                if (columns->n_cols <= AMX_SUMS)
                    amx_block_group(f, &panels[p], n, q, columns->stride, side + g,
                                    AMX_SUMS, acc[g].v[p]);
                else
                    amx_block_group(f, &panels[p], n, q, columns->stride, side + g,
                                    AMX_GROUP, acc[g].v[p]);
        }
    }
    amx_store(columns, from, acc, y, y_stride, n_rows);
}

#endif
