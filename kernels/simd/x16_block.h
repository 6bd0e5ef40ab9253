/* SPDX-License-Identifier: MIT
 *
 * x16_block.h - loops for blocks of 32 weights times q8_32 activations
 *
 *   weight = d * (q - bias) + m          d, m: floats of the block
 *
 * A block's products are integers: dot(q - bias, x) = dot(q, x) - bias * sum(x) is
 * exact, then  acc += d * (dx * dot) + m * (dx * sum(x)). Where a part is 32-bit sums
 * (V_DOT32) it starts from -bias * sum(x), else that is added at its end.
 */
#ifndef SLM_KERNELS_SIMD_X16_BLOCK_H
#define SLM_KERNELS_SIMD_X16_BLOCK_H

#include "kernels/simd/x16_block_rows.h"
#include "kernels/simd/x16_pairs.h"

/* ---- a few columns, straight from the block -------------------------------------- */

struct x16_sink {
    int n_cols, run, biased, is_signed, strand;
    const int8_t *q[4];
    const int32_t *start[4];
    bool wide;
    vi part[X16_STRANDS][4][2], sum[X16_STRANDS][4];
    vi *tile; /* or weights are kept here */
};

/* How many products of weights up to max to add up in a part: a power of two. */
#define X16_BLOCK_RUN(max) \
    (V_RUN(max) >= 8 ? 8 : V_RUN(max) >= 4 ? 4 : V_RUN(max) >= 2 ? 2 : 1)

/* Both halves of a block come in ascending order, in turns or one after the other. */
SIMD_INLINE void x16_block_emit(struct x16_sink *sink, int four, vi w)
{
    const int t = sink->strand;
    const bool high = sink->wide && four >= 4;
    const int run = high ? 4 : sink->run, half = run == 8 ? 0 : four / 4;

    SIMD_UNROLL
    for (int c = 0; c < sink->n_cols; c++) {
        const int8_t *q = sink->q[c];

        if (four == 0)
            sink->sum[t][c] = sink->biased ? v_bcast_4(sink->start[c]) : v_zero();
        if (V_DOT32 && !high) {
            sink->sum[t][c] = x16_dot(sink->sum[t][c], w, q, four, sink->is_signed);
            continue;
        }
        if (four % run == 0)
            sink->part[t][c][half] = v_zero();
        sink->part[t][c][half] =
            x16_dot(sink->part[t][c][half], w, q, four, sink->is_signed);
        if (high && four == 7)
            sink->sum[t][c] =
                v_add32(sink->sum[t][c], v_sra32(sink->part[t][c][half], 4));
        if (!high && (four + 1) % run == 0)
            sink->sum[t][c] =
                v_add32(sink->sum[t][c], v_dot_sum(sink->part[t][c][half]));
    }
}

/* acc[strand][c] += one block of n_strands slices times n columns. */
SIMD_INLINE void x16_block_step(const struct x16_block_format f, const int n_strands,
                                const int n, const uint8_t *const *body,
                                const uint8_t *const *head, const char *const *x,
                                size_t k, size_t b, int32_t (*start)[X16_BATCH],
                                size_t in_batch, vf (*acc)[4])
{
    struct x16_sink sink;

    sink.n_cols = n;
    sink.run = X16_BLOCK_RUN(f.max);
    sink.biased = f.bias != 0;
    sink.is_signed = f.is_signed;
    sink.wide = V_WIDE && f.wide != NULL;
    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        sink.q[c] = act_q(x[c]) + X16_BLOCK * b;
        sink.start[c] = &start[c][in_batch];
    }
    SIMD_UNROLL
    for (int step = 0; step < f.steps; step++) {
        SIMD_UNROLL
        for (int t = 0; t < n_strands; t++) {
            sink.strand = t;
            if (sink.wide)
                f.wide(body[t], step, x16_block_emit, &sink);
            else
                f.weights(body[t], step, x16_block_emit, &sink);
        }
    }
    SIMD_UNROLL
    for (int t = 0; t < n_strands; t++) {
        vf d, m;

        f.scales(body[t], head[t], &d, &m);
        SIMD_UNROLL
        for (int c = 0; c < n; c++) {
            const vf dx = v_set1_f(act_q8_32_d(x[c], k)[b]);

            acc[t][c] = v_fma(v_mul(v_to_float(sink.sum[t][c]), dx), d, acc[t][c]);
            if (f.has_m)
                acc[t][c] = v_fma(m, v_set1_f(act_q8_32_s(x[c], k)[b]), acc[t][c]);
        }
    }
}

/* The slices of one block, n_s (1 or 2) at a time. */
SIMD_INLINE void x16_block_slices(const struct x16_block_format f, const int n_s,
                                  const int n, const uint8_t *body, const uint8_t *head,
                                  const char *const *x, size_t k, size_t b,
                                  int32_t (*start)[X16_BATCH], size_t in_batch,
                                  vf (*acc)[4])
{
    SIMD_UNROLL
    for (int s = 0; s < X16_SLICES; s += n_s) {
        const uint8_t *bodies[X16_STRANDS], *heads[X16_STRANDS];

        SIMD_UNROLL
        for (int t = 0; t < n_s; t++) {
            const size_t slice = (size_t)(s + t);

            bodies[t] = body + slice * X16_SLICE_BYTES;
            heads[t] = head + slice * V_LANES * f.layout.head_bytes;
        }
        x16_block_step(f, n_s, n, bodies, heads, x, k, b, start, in_batch, acc + s);
    }
}

/* A panel times n columns, n_s (1 or 2) slices at a time. */
SIMD_INLINE void x16_block_panel(const struct x16_block_format f, const int n_s,
                                 const int n, size_t k, const uint8_t *w, size_t n_cols,
                                 const char *const *x, float *y, size_t y_stride,
                                 size_t ahead)
{
    const size_t n_blocks = k / X16_BLOCK;
    vf acc[X16_SLICES][4];

    SIMD_UNROLL
    for (int i = 0; i < X16_SLICES; i++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
        acc[i][c] = v_zero_f();
    for (size_t from = 0; from < n_blocks; from += X16_BATCH) {
        const size_t in_batch =
            n_blocks - from < X16_BATCH ? n_blocks - from : X16_BATCH;
        int32_t start[4][X16_BATCH];

        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            x16_block_starts(f, x[c], k, from, in_batch, start[c]);
        for (size_t i = 0; i < in_batch; i++) {
            const uint8_t *body = x16_body_of(f.layout, w, n_blocks, from + i);

            if (ahead != 0)
                prefetch_lines(body, (ptrdiff_t)ahead,
                               x16_body_bytes(f.layout) + x16_head_bytes(f.layout));
            x16_block_slices(f, n_s, n, body, x16_heads_of(f.layout, w, from + i), x, k,
                             from + i, start, i, acc);
        }
    }
    SIMD_UNROLL
    for (int i = 0; i < X16_SLICES; i++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
        if ((size_t)c < n_cols)
            v_store_f(y + (size_t)c * y_stride + (size_t)i * V_LANES, acc[i][c]);
}

/* Panels times n columns; where n_cols is less, the last one is done again. */
SIMD_INLINE void x16_block_panels(const struct x16_block_format f, const int n,
                                  size_t n_panels, size_t k, const uint8_t *w,
                                  size_t n_cols, const char *x, size_t x_stride,
                                  float *y, size_t y_stride, size_t ahead)
{
    const size_t panel_bytes = X16_ROWS * (k / X16_BLOCK) * f.layout.block_bytes;
    const char *column_at[4];

    SIMD_UNROLL
    for (size_t c = 0; c < (size_t)n; c++)
        column_at[c] = x + (c < n_cols ? c : n_cols - 1) * x_stride;
    for (size_t p = 0; p < n_panels; p++)
        x16_block_panel(f, n == 1 && X16_SLICES > 1 ? 2 : 1, n, k, w + p * panel_bytes,
                        n_cols, column_at, y + p * X16_ROWS, y_stride, ahead);
}

/* Rows in file order, one column, X16_BATCH blocks at a time through the stack. */
SIMD_INLINE void x16_block_rows(const struct x16_block_format f, size_t n_rows,
                                size_t k, const void *w, size_t w_stride, const char *x,
                                float *y)
{
    const size_t n_blocks = k / X16_BLOCK;
    uint8_t body[X16_BATCH * 2 * X16_BLOCK * X16_ROWS] __attribute__((aligned(64)));
    uint8_t head[X16_BATCH * 4 * X16_ROWS] __attribute__((aligned(64)));

#if V_BLOCK_ROWS
    if (f.row != X16_ROW_NONE) {
        block_rows_gemv(f, n_rows, k, w, w_stride, x, y);
        return;
    }
#endif
    for (size_t i = 0; i < n_rows; i += X16_ROWS) {
        const struct x16_rows rows = x16_rows(w, w_stride, i, n_rows);
        vf acc[X16_SLICES][4];

        SIMD_UNROLL
        for (int s = 0; s < X16_SLICES; s++)
            acc[s][0] = v_zero_f();
        for (size_t from = 0; from < n_blocks; from += X16_BATCH) {
            const size_t in_batch =
                n_blocks - from < X16_BATCH ? n_blocks - from : X16_BATCH;
            int32_t start[1][X16_BATCH];

            for (size_t r = 0; r < X16_ROWS; r++)
                prefetch_lines(rows.first + r * w_stride + from * f.layout.block_bytes,
                               (ptrdiff_t)(X16_ROWS * w_stride),
                               X16_BATCH * f.layout.block_bytes);
            for (size_t j = 0; j < in_batch; j++)
                x16_interleave(f.layout, rows, (from + j) * f.layout.block_bytes,
                               body + j * x16_body_bytes(f.layout),
                               head + j * x16_head_bytes(f.layout));
            x16_block_starts(f, x, k, from, in_batch, start[0]);
            for (size_t j = 0; j < in_batch; j++)
                x16_block_slices(f, X16_AT_ONCE, 1, body + j * x16_body_bytes(f.layout),
                                 head + j * x16_head_bytes(f.layout), &x, k, from + j,
                                 start, j, acc);
        }
        for (size_t s = 0; s < X16_SLICES; s++)
            x16_store(y, acc[s][0], i, s, n_rows);
    }
}

/* ---- many columns: a slice of some blocks is unpacked once for all -----------------
 */

struct x16_block_tile {
    vi w[X16_BATCH][8];
    vf d[X16_BATCH][X16_HALVES], m[X16_BATCH][X16_HALVES];
};

SIMD_INLINE void x16_tile_emit(struct x16_sink *sink, int four, vi w)
{
    x16_tile_put(sink->tile, four, w);
}

#if !V_PAIRS
/* acc[c] += n_tiled blocks from b on times n columns. */
SIMD_INLINE void x16_block_tile_columns(const struct x16_block_format f,
                                        const struct x16_block_tile *tile,
                                        size_t n_tiled, const int n, const char *x,
                                        size_t x_stride, size_t k, size_t b, vf *acc)
{
    const int run = X16_BLOCK_RUN(f.max);
    int32_t start[8][X16_BATCH];
    vf sum[8];

    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        x16_block_starts(f, x + (size_t)c * x_stride, k, b, n_tiled, start[c]);
        sum[c] = acc[c];
    }
    for (size_t i = 0; i < n_tiled; i++) {
        const int8_t *q = act_q(x) + X16_BLOCK * (b + i);
        vi part[8], dot[8];

        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            dot[c] = f.bias != 0 ? v_bcast_4(&start[c][i]) : v_zero();
        SIMD_UNROLL
        for (int t = 0; t < 8; t++) {
            SIMD_UNROLL
            for (int c = 0; c < n; c++) {
                const int8_t *at = q + (size_t)c * x_stride;

                if (V_DOT32) {
                    dot[c] = x16_dot(dot[c], tile->w[i][t], at, t, f.is_signed);
                    continue;
                }
                if (t % run == 0)
                    part[c] = v_zero();
                part[c] = x16_dot(part[c], tile->w[i][t], at, t, f.is_signed);
                if ((t + 1) % run == 0)
                    dot[c] = v_add32(dot[c], v_dot_sum(part[c]));
            }
        }
        SIMD_UNROLL
        for (int c = 0; c < n; c++) {
            const char *column = x + (size_t)c * x_stride;
            const vf dx = v_set1_f(act_q8_32_d(column, k)[b + i]);

            sum[c] = v_fma(v_mul(v_to_float(dot[c]), dx), tile->d[i][0], sum[c]);
            if (f.has_m)
                sum[c] = v_fma(tile->m[i][0], v_set1_f(act_q8_32_s(column, k)[b + i]),
                               sum[c]);
        }
    }
    SIMD_UNROLL
    for (int c = 0; c < n; c++)
        acc[c] = sum[c];
}
#else
/* acc[c] += n_tiled blocks from b on times n columns, which are at at[c]; n is even. */
SIMD_INLINE void x16_block_tile_pairs(const struct x16_block_format f,
                                      const struct x16_block_tile *tile, size_t n_tiled,
                                      const int n, const char *const *at, size_t k,
                                      size_t b, vf *acc)
{
    int32_t start[V_TILE_COLS][X16_BATCH];
    vf sum[V_TILE_COLS / 2][2];

    SIMD_UNROLL
    for (int c = 0; c < n; c++)
        x16_block_starts(f, at[c], k, b, n_tiled, start[c]);
    for (int half = 0; half < 2; half++) {
        vf total[V_TILE_COLS / 2];

        SIMD_UNROLL
        for (int p = 0; p < n / 2; p++)
            total[p] = v_zero_f();
        for (size_t i = 0; i < n_tiled; i++) {
            const int8_t *q[V_TILE_COLS];
            vi dot[V_TILE_COLS / 2];

            SIMD_UNROLL
            for (int c = 0; c < n; c++)
                q[c] = act_q(at[c]) + X16_BLOCK * (b + i);
            SIMD_UNROLL
            for (int p = 0; p < n / 2; p++)
                dot[p] = f.bias != 0 ? v_pair_column_ints(&start[2 * p][i],
                                                          &start[2 * p + 1][i])
                                     : v_zero();
            x16_pair_dots(dot, tile->w[i], half, X16_BLOCK / 4, n, q, 0);
            SIMD_UNROLL
            for (int p = 0; p < n / 2; p++) {
                const char *x0 = at[2 * p], *x1 = at[2 * p + 1];
                const vf dx = v_pair_column_floats(act_q8_32_d(x0, k) + b + i,
                                                   act_q8_32_d(x1, k) + b + i);

                total[p] =
                    v_fma(v_mul(v_to_float(dot[p]), dx), tile->d[i][half], total[p]);
                if (f.has_m)
                    total[p] = v_fma(tile->m[i][half],
                                     v_pair_column_floats(act_q8_32_s(x0, k) + b + i,
                                                          act_q8_32_s(x1, k) + b + i),
                                     total[p]);
            }
        }
        SIMD_UNROLL
        for (int p = 0; p < n / 2; p++)
            sum[p][half] = total[p];
    }
    SIMD_UNROLL
    for (int p = 0; p < n / 2; p++) {
        vf v[2];

        v_part_columns(sum[p][0], sum[p][1], &v[0], &v[1]);
        acc[2 * p] = v_add(acc[2 * p], v[0]);
        acc[2 * p + 1] = v_add(acc[2 * p + 1], v[1]);
    }
}
#endif

/* acc[c] += n_tiled blocks from b on times n_cols columns. */
SIMD_INLINE void x16_block_tile_all(const struct x16_block_format f,
                                    const struct x16_block_tile *tile, size_t n_tiled,
                                    size_t n_cols, const char *x, size_t x_stride,
                                    size_t k, size_t b, vf *acc)
{
    size_t c = 0;

#if V_PAIRS
    for (; c < n_cols; c += V_TILE_COLS) {
        const char *at[V_TILE_COLS];

        if (x16_pair_group(x, x_stride, c, n_cols, at) == 2)
            x16_block_tile_pairs(f, tile, n_tiled, 2, at, k, b, acc + c);
        else
            x16_block_tile_pairs(f, tile, n_tiled, V_TILE_COLS, at, k, b, acc + c);
    }
#else
    for (; c + V_TILE_COLS <= n_cols; c += V_TILE_COLS)
        x16_block_tile_columns(f, tile, n_tiled, V_TILE_COLS, x + c * x_stride,
                               x_stride, k, b, acc + c);
    for (; c < n_cols; c++)
        x16_block_tile_columns(f, tile, n_tiled, 1, x + c * x_stride, x_stride, k, b,
                               acc + c);
#endif
}

/* One panel times at most X16_MAX_COLS columns; blocks either in place (rows NULL)
 * or interleaved from rows. */
SIMD_INLINE void x16_block_tile_panel(const struct x16_block_format f, const uint8_t *w,
                                      const struct x16_rows *rows, size_t k,
                                      size_t n_cols, const char *x, size_t x_stride,
                                      float *y, size_t y_stride, size_t n_rows)
{
    const size_t n_blocks = k / X16_BLOCK;
    const size_t body_bytes = x16_body_bytes(f.layout);
    const size_t head_bytes = x16_head_bytes(f.layout);
    uint8_t body_buffer[X16_BATCH * 2 * X16_BLOCK * X16_ROWS]
        __attribute__((aligned(64)));
    uint8_t head_buffer[X16_BATCH * 4 * X16_ROWS] __attribute__((aligned(64)));
    vf acc[X16_SLICES][X16_MAX_COLS];
    struct x16_block_tile tile;

    for (size_t s = 0; s < X16_SLICES; s++)
        for (size_t c = 0; c < X16_TILE_SUMS(n_cols); c++)
            acc[s][c] = v_zero_f();
    for (size_t b = 0; b < n_blocks; b += X16_BATCH) {
        const size_t n_tiled = n_blocks - b < X16_BATCH ? n_blocks - b : X16_BATCH;

        for (size_t i = 0; rows != NULL && i < n_tiled; i++)
            x16_interleave(f.layout, *rows, (b + i) * f.layout.block_bytes,
                           body_buffer + i * body_bytes, head_buffer + i * head_bytes);
        for (size_t s = 0; s < X16_SLICES; s++) {
            for (size_t i = 0; i < n_tiled; i++) {
                const uint8_t *at = body_buffer + i * body_bytes;
                const uint8_t *head = head_buffer + i * head_bytes;
                struct x16_sink sink;
                vf d, m;

                if (rows == NULL) {
                    at = x16_body_of(f.layout, w, n_blocks, b + i);
                    head = x16_heads_of(f.layout, w, b + i);
                }
                at += s * X16_SLICE_BYTES;
                head += s * V_LANES * f.layout.head_bytes;

                sink.tile = tile.w[i];
                SIMD_UNROLL
                for (int step = 0; step < f.steps; step++)
                    f.weights(at, step, x16_tile_emit, &sink);
                f.scales(at, head, &d, &m);
                x16_tile_floats(d, tile.d[i]);
                if (f.has_m)
                    x16_tile_floats(m, tile.m[i]);
            }
            x16_block_tile_all(f, &tile, n_tiled, n_cols, x, x_stride, k, b, acc[s]);
        }
    }
    for (size_t s = 0; s < X16_SLICES; s++)
        for (size_t c = 0; c < n_cols; c++)
            x16_store(y + c * y_stride, acc[s][c], 0, s, n_rows);
}

/* ---- a format's kernels ------------------------------------------------------------
 */

SIMD_INLINE void x16_block_gemm(const struct x16_block_format f, size_t n_rows,
                                size_t k, const void *w, size_t w_stride, size_t n_cols,
                                const char *x, size_t x_stride, float *y,
                                size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i += X16_ROWS) {
        const struct x16_rows rows = x16_rows(w, w_stride, i, n_rows);

        for (size_t c = 0; c < n_cols; c += X16_MAX_COLS)
            x16_block_tile_panel(f, NULL, &rows, k,
                                 n_cols - c < X16_MAX_COLS ? n_cols - c : X16_MAX_COLS,
                                 x + c * x_stride, x_stride, y + c * y_stride + i,
                                 y_stride, n_rows - i);
    }
}

SIMD_INLINE void x16_block_gemm_x16(const struct x16_block_format f, size_t n_panels,
                                    size_t k, const void *w, size_t n_cols,
                                    const char *x, size_t x_stride, float *y,
                                    size_t y_stride, size_t ahead)
{
    const size_t panel_bytes = X16_ROWS * (k / X16_BLOCK) * f.layout.block_bytes;

    /* weights are read from a cache the second time */
    if (V_FEW_COLS > 1 && n_cols <= 2 * V_FEW_COLS) {
        for (size_t p = 0; p < n_panels; p++)
            for (size_t c = 0; c < n_cols; c += V_FEW_COLS)
                x16_block_panels(
                    f, V_FEW_COLS, 1, k, (const uint8_t *)w + p * panel_bytes,
                    n_cols - c < V_FEW_COLS ? n_cols - c : V_FEW_COLS, x + c * x_stride,
                    x_stride, y + c * y_stride + p * X16_ROWS, y_stride,
                    c == 0 ? ahead : 0);
        return;
    }
    for (size_t p = 0; p < n_panels; p++)
        for (size_t c = 0; c < n_cols; c += X16_MAX_COLS)
            x16_block_tile_panel(f, (const uint8_t *)w + p * panel_bytes, NULL, k,
                                 n_cols - c < X16_MAX_COLS ? n_cols - c : X16_MAX_COLS,
                                 x + c * x_stride, x_stride,
                                 y + c * y_stride + p * X16_ROWS, y_stride, X16_ROWS);
}

/* Defines pack, gemv_x16, gemm_x16, gemv and gemm of a format for this level. */
#define X16_BLOCK_KERNELS(name, format)                                        \
    X16_KERNELS(name, format, X16_BLOCK, x16_block_panels, x16_block_gemm_x16, \
                x16_block_rows, x16_block_gemm)

#endif
