/* SPDX-License-Identifier: MIT
 *
 * x16_block_tile.h - blocks of 32 times many columns, through an unpacked tile
 */
#ifndef SLM_KERNELS_SIMD_X16_BLOCK_TILE_H
#define SLM_KERNELS_SIMD_X16_BLOCK_TILE_H

#include "kernels/simd/x16_block_few.h"
#include "kernels/simd/x16_int8.h"
#include "kernels/simd/x16_pairs.h"

/* ---- many columns: a slice of some blocks is unpacked once for all -----------------
 */

struct x16_block_tile {
    vi w[X16_BATCH][8];
    vf d[X16_BATCH][X16_HALVES], m[X16_BATCH][X16_HALVES];
};

SIMD_INLINE void x16_tile_emit(const struct x16_sink sink, int four, vi w)
{
    x16_tile_put(sink.tile, four, w);
}

#if !V_PAIRS
/* acc[p][c] += n_tiled blocks of V_TILE_PANELS tiles times n columns. */
SIMD_INLINE void x16_block_tile_columns(const struct x16_block_format *f,
                                        const struct x16_block_tile *tile,
                                        size_t n_tiled, const int n,
                                        const struct x16_column *column,
                                        vf (*acc)[X16_MAX_COLS])
{
    const int sums = x16_block_sums(f);
    vf sum[V_TILE_PANELS][8];

    SIMD_UNROLL
    for (int p = 0; p < V_TILE_PANELS; p++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
        sum[p][c] = acc[p][c];
    for (size_t i = 0; i < n_tiled; i++) {
        SIMD_UNROLL
        for (int h = 0; h < sums; h++) {
            vi dot[V_TILE_PANELS][8];
#if V_TILE_PANELS == 1
            const int run = X16_BLOCK_RUN(f->max, f->halves);
            vi part[8];
#endif

            SIMD_UNROLL
            for (int p = 0; p < V_TILE_PANELS; p++)
                SIMD_UNROLL
            for (int c = 0; c < n; c++)
                dot[p][c] =
                    f->bias != 0
                        ? v_bcast_4(&column[c].start[(size_t)sums * i + (size_t)h])
                        : v_zero();
            SIMD_UNROLL
            for (int t = 8 / sums * h; t < 8 / sums * (h + 1); t++) {
                SIMD_UNROLL
                for (int c = 0; c < n; c++) {
                    const int8_t *at = column[c].q + X16_BLOCK * i;

#if V_TILE_PANELS > 1
                    const vi xs = v_bcast_4(at + 4 * t);

                    SIMD_UNROLL
                    for (int p = 0; p < V_TILE_PANELS; p++)
                        dot[p][c] = v_dot_x(dot[p][c], tile[p].w[i][t], xs);
#else
                    if (V_DOT32) {
                        dot[0][c] =
                            x16_dot(dot[0][c], tile->w[i][t], at, t, f->is_signed);
                        continue;
                    }
                    if (t % run == 0)
                        part[c] = v_zero();
                    part[c] = x16_dot(part[c], tile->w[i][t], at, t, f->is_signed);
                    if ((t + 1) % run == 0)
                        dot[0][c] = v_add32(dot[0][c], v_dot_sum(part[c]));
#endif
                }
            }
            SIMD_UNROLL
            for (int p = 0; p < V_TILE_PANELS; p++)
                SIMD_UNROLL
            for (int c = 0; c < n; c++) {
                const vf scale = h == 0 ? tile[p].d[i][0] : tile[p].m[i][0];

                sum[p][c] =
                    v_fma(v_mul(v_to_float(dot[p][c]), v_set1_f(column[c].d[i])), scale,
                          sum[p][c]);
                if (f->has_m)
                    sum[p][c] =
                        v_fma(tile[p].m[i][0], v_set1_f(column[c].s[i]), sum[p][c]);
            }
        }
        if (V_TILE_SUMS_APART)
            SIMD_IN_MEMORY(sum);
    }
    SIMD_UNROLL
    for (int p = 0; p < V_TILE_PANELS; p++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
        acc[p][c] = sum[p][c];
}
#else
/* acc[c] += n_tiled blocks times n columns, which are at at[c]; n is even. */
SIMD_INLINE void x16_block_tile_pairs(const struct x16_block_format *f,
                                      const struct x16_block_tile *tile, size_t n_tiled,
                                      const int n, const struct x16_column *const *at,
                                      vf *acc)
{
    const int sums = x16_block_sums(f);
    vf sum[V_TILE_COLS / 2][2];

    for (int half = 0; half < 2; half++) {
        vf total[V_TILE_COLS / 2];

        SIMD_UNROLL
        for (int p = 0; p < n / 2; p++)
            total[p] = v_zero_f();
        for (size_t i = 0; i < n_tiled; i++) {
            const int8_t *q[V_TILE_COLS];

            SIMD_UNROLL
            for (int c = 0; c < n; c++)
                q[c] = at[c]->q + X16_BLOCK * i;
            SIMD_UNROLL
            for (int h = 0; h < sums; h++) {
                const size_t start = (size_t)sums * i + (size_t)h;
                const int first = 8 / sums * h;
                vi dot[V_TILE_COLS / 2];

                SIMD_UNROLL
                for (int p = 0; p < n / 2; p++)
                    dot[p] = f->bias != 0
                                 ? v_pair_column_ints(&at[2 * p]->start[start],
                                                      &at[2 * p + 1]->start[start])
                                 : v_zero();
                x16_pair_dots(dot, tile->w[i] + first, half, 8 / sums, n, q, first);
                SIMD_UNROLL
                for (int p = 0; p < n / 2; p++) {
                    const struct x16_column *x0 = at[2 * p], *x1 = at[2 * p + 1];
                    const vf dx = v_pair_column_floats(&x0->d[i], &x1->d[i]);

                    total[p] =
                        v_fma(v_mul(v_to_float(dot[p]), dx),
                              h == 0 ? tile->d[i][half] : tile->m[i][half], total[p]);
                    if (f->has_m)
                        total[p] =
                            v_fma(tile->m[i][half],
                                  v_pair_column_floats(&x0->s[i], &x1->s[i]), total[p]);
                }
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

/* acc[p][c] += n_tiled blocks of V_TILE_PANELS tiles times n_cols columns. */
SIMD_INLINE void x16_block_tile_all(const struct x16_block_format *f,
                                    const struct x16_block_tile *tile, size_t n_tiled,
                                    size_t n_cols, const struct x16_column *columns,
                                    vf (*acc)[X16_MAX_COLS])
{
    size_t c = 0;

#if V_PAIRS
    for (; c < n_cols; c += V_TILE_COLS) {
        const struct x16_column *at[V_TILE_COLS];

        if (x16_pair_group(columns, c, n_cols, at) == 2)
            x16_block_tile_pairs(f, tile, n_tiled, 2, at, acc[0] + c);
        else
            x16_block_tile_pairs(f, tile, n_tiled, V_TILE_COLS, at, acc[0] + c);
    }
#else
#define X16_FRAME(n)                                                              \
    x16_block_tile_columns(f, tile, n_tiled, n,                                   \
                           (const void *)x16_forget((const void *)(columns + c)), \
                           (void *)(acc[0] + c))
    X16_TILE_GROUPS(n_cols, c, X16_FRAME)
#undef X16_FRAME
#endif
}

/* See x16_columns_fn. What is copied of a full piece has a constant size. */
SIMD_INLINE void x16_block_prepare(const struct x16_block_format *f, size_t k,
                                   size_t from, size_t to, size_t n_cols, const char *x,
                                   size_t x_stride, struct x16_column *out)
{
    for (size_t c = 0; c < n_cols; c++)
        for (size_t at = from; at < to; at += X16_PIECE) {
            struct x16_column *column = &out[(at - from) / X16_PIECE * n_cols + c];

            if (to - at >= X16_PIECE)
                x16_block_piece(f, x + c * x_stride, k, at / X16_BLOCK, X16_BATCH,
                                column);
            else
                x16_block_piece(f, x + c * x_stride, k, at / X16_BLOCK,
                                (to - at) / X16_BLOCK, column);
        }
}

/* V_TILE_PANELS panels times at most X16_MAX_COLS columns: see x16_tile_fn. */
SIMD_INLINE void x16_block_tile_panel(const struct x16_block_format *f,
                                      const uint8_t *w, const struct x16_rows *rows,
                                      size_t k, size_t from, size_t to, size_t n_cols,
                                      const struct x16_column *columns, float *y,
                                      size_t y_stride, size_t n_rows,
                                      struct kern_prefetch prefetch)
{
    const size_t parts = x16_block_parts(f), n_blocks = k / X16_BLOCK / parts;
    const size_t first = from / X16_BLOCK, end = to / X16_BLOCK;
    const size_t body_bytes = x16_body_bytes(&f->layout);
    const size_t scale_bytes = x16_scale_bytes(&f->layout);
    const size_t panel_bytes = n_blocks * (body_bytes + scale_bytes);
    uint8_t body_buffer[V_TILE_PANELS][X16_BATCH * 2 * X16_BLOCK * X16_ROWS]
        __attribute__((aligned(64)));
    uint8_t scale_buffer[V_TILE_PANELS][X16_BATCH * 4 * X16_ROWS]
        __attribute__((aligned(64)));
    vf acc[X16_SLICES * V_TILE_PANELS][X16_MAX_COLS];
    struct x16_block_tile tile[V_TILE_PANELS];

    for (size_t s = 0; s < X16_SLICES * V_TILE_PANELS; s++)
        for (size_t c = 0; c < X16_TILE_SUMS(n_cols); c++)
            acc[s][c] = v_zero_f();
    for (size_t b = first; b < end; b += X16_BATCH) {
        const size_t n_tiled = end - b < X16_BATCH ? end - b : X16_BATCH;

        for (size_t s = 0; s < X16_SLICES; s++) {
            for (size_t j = 0; j < n_tiled * V_TILE_PANELS; j++) {
                const size_t p = j / n_tiled, i = j % n_tiled;
                const size_t whole = i / parts, part = i % parts; /* of the batch */
                const uint8_t *at = body_buffer[p] + whole * body_bytes;
                const uint8_t *block_scales = scale_buffer[p] + whole * scale_bytes;
                const struct x16_sink sink = {.tile = tile[p].w[i]};
                vf d, m;

                if (rows == NULL) {
                    const uint8_t *panel =
                        w + (X16_ROWS * p < n_rows ? p * panel_bytes : 0);

                    at = x16_body_of(&f->layout, panel, n_blocks, b / parts + whole);
                    block_scales = x16_scales_of(&f->layout, panel, b / parts + whole);
                    if (prefetch.distance != 0 && s == 0 && part == 0)
                        x16_prefetch_next(&f->layout, panel, n_blocks, first / parts,
                                          end / parts, b / parts + whole,
                                          n_tiled / parts, prefetch.hint);
                } else if (s == 0 && part == 0) {
                    x16_interleave(&f->layout, rows[p],
                                   (b / parts + whole) * f->layout.block_bytes,
                                   body_buffer[p] + whole * body_bytes,
                                   scale_buffer[p] + whole * scale_bytes);
                }
                at += x16_part_body(f, part) + s * X16_SLICE_BYTES;
                block_scales +=
                    x16_part_scales(f, part) + s * V_LANES * f->layout.scale_bytes;

                SIMD_UNROLL
                for (int step = 0; step < f->steps; step++)
                    f->weights(at, step, x16_tile_emit, sink);
                f->scales(at, block_scales, &d, &m);
                x16_tile_floats(d, tile[p].d[i]);
                if (f->has_m || f->halves)
                    x16_tile_floats(m, tile[p].m[i]);
            }
            x16_block_tile_all(f, tile, n_tiled, n_cols,
                               columns + (b - first) / X16_BATCH * n_cols,
                               acc + s * V_TILE_PANELS);
        }
    }
    for (size_t s = 0; s < X16_SLICES; s++)
        for (size_t p = 0; p < V_TILE_PANELS; p++)
            x16_store_columns(y, y_stride, acc[s * V_TILE_PANELS + p], n_cols,
                              p * X16_ROWS, s, n_rows, from != 0);
}

#if V_INT8
/* Eight blocks of a panel or of rows, requantised: see x16_int8_fn. */
SIMD_INLINE void x16_block_int8(const struct x16_block_format *f, const uint8_t *panel,
                                const struct x16_rows *rows, size_t k, size_t at,
                                size_t from, size_t to, struct kern_prefetch prefetch,
                                uint8_t *w, float *d)
{
    const size_t parts = x16_block_parts(f), n_blocks = k / X16_BLOCK / parts;
    const size_t n = X16_BATCH / parts, b = at / X16_BLOCK / parts;
    const size_t body_bytes = x16_body_bytes(&f->layout);
    const size_t scale_bytes = x16_scale_bytes(&f->layout);
    const int sums = x16_block_sums(f);
    uint8_t body_buffer[X16_BATCH * 2 * X16_BLOCK * X16_ROWS]
        __attribute__((aligned(64)));
    uint8_t scale_buffer[X16_BATCH * 4 * X16_ROWS] __attribute__((aligned(64)));
    const uint8_t *body[X16_BATCH], *block_scales[X16_BATCH];

    for (size_t i = 0; i < n; i++) {
        if (rows != NULL) {
            body[i] = body_buffer + i * body_bytes;
            block_scales[i] = scale_buffer + i * scale_bytes;
            x16_interleave(&f->layout, *rows, (b + i) * f->layout.block_bytes,
                           body_buffer + i * body_bytes,
                           scale_buffer + i * scale_bytes);
            continue;
        }
        body[i] = x16_body_of(&f->layout, panel, n_blocks, b + i);
        block_scales[i] = x16_scales_of(&f->layout, panel, b + i);
        if (prefetch.distance != 0)
            x16_prefetch_next(&f->layout, panel, n_blocks, from / X16_BLOCK / parts,
                              to / X16_BLOCK / parts, b + i, n, prefetch.hint);
    }
    for (size_t s = 0; s < X16_SLICES; s++) {
        vi weights[X16_INT8_FOURS];
        vf factor[16], offset[16];

        for (size_t i = 0; i < X16_BATCH; i++) {
            const uint8_t *from_body =
                body[i / parts] + x16_part_body(f, i % parts) + s * X16_SLICE_BYTES;
            const uint8_t *from_scales = block_scales[i / parts] +
                                         x16_part_scales(f, i % parts) +
                                         s * V_LANES * f->layout.scale_bytes;
            const struct x16_sink sink = {.tile = weights + 8 * i};
            vf m;

            SIMD_UNROLL
            for (int step = 0; step < f->steps; step++)
                f->weights(from_body, step, x16_tile_emit, sink);
            f->scales(from_body, from_scales, &factor[(size_t)sums * i], &m);
            if (f->halves)
                factor[2 * i + 1] = m;
            else if (f->has_m)
                offset[i] = m;
        }
        x16_requantise(weights, X16_BATCH * sums, f->bias, factor,
                       f->has_m ? offset : NULL,
                       w + s * X16_INT8_FOURS * X16_SLICE_BYTES, d + s * V_LANES);
    }
}
#endif

#endif
