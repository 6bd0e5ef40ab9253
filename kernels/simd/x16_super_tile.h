/* SPDX-License-Identifier: MIT
 *
 * x16_super_tile.h - super-blocks times many columns, through an unpacked tile
 */
#ifndef SLM_KERNELS_SIMD_X16_SUPER_TILE_H
#define SLM_KERNELS_SIMD_X16_SUPER_TILE_H

#include "kernels/simd/x16_pairs.h"
#include "kernels/simd/x16_super_few.h"

/* ---- many columns: a slice of a super-block is unpacked once for all ---------------
 */

/* Columns are copied for a tile, in the format's order, where there are many registers
 * of rows or the columns stand in pairs; else the tile's weights are put back. */
enum { X16_TILE_ORDERED = V_PAIRS || V_TILE_COLS > 4 };

struct x16_super_tile {
    vi w[64];
#if V_DOT32
    vf scale[X16_HALVES * 16]; /* times d */
#else
    vi scale[16]; /* in scale form */
#endif
    vi pairs[8]; /* minima, else (V_DOT32 0) scales if there is a bias */
    vf d, dmin;
};

SIMD_INLINE void x16_tile_emit(struct x16_sink *sink, int four, vi w)
{
    x16_tile_put(sink->tile, four, w);
    if (sink->restore != NULL && four % 4 == 3)
        sink->restore(sink->tile + four - 3);
}

SIMD_INLINE void x16_super_unpack(const struct x16_super_format f, const uint8_t *body,
                                  const uint8_t *block_scales,
                                  struct x16_super_tile *tile)
{
    struct x16_sink sink;
    struct x16_scales sc;
#if V_DOT32
    vf factor[16];
#endif

    f.scales(body, block_scales, &sc);
#if V_DOT32
    x16_factors(f, &sc, factor);
    SIMD_UNROLL
    for (int s = 0; s < f.n_subs; s++)
        x16_tile_floats(factor[s], tile->scale + X16_HALVES * s);
#else
    SIMD_UNROLL
    for (int s = 0; s < f.n_subs; s++)
        tile->scale[s] = sc.scale[s];
#endif
    if (f.bias != 0)
        x16_pair_scales(sc.scale, f.n_subs, tile->pairs);
    if (f.mins) {
        memcpy(tile->pairs, sc.pairs, sizeof(tile->pairs));
        tile->dmin = sc.dmin;
    }
    tile->d = sc.d;
    sink.tile = tile->w;
    sink.signs_apart = false;
    sink.restore = X16_TILE_ORDERED ? NULL : f.restore;
    SIMD_UNROLL_64
    for (int step = 0; step < f.steps; step++)
        if (V_WIDE && f.wide != NULL)
            f.wide(body, step, x16_tile_emit, &sink);
        else
            f.weights(body, step, x16_tile_emit, &sink);
}

#if !V_PAIRS
/* acc[p][c] += V_TILE_PANELS tiles times n columns from column c on. */
SIMD_INLINE void x16_super_tile_columns(const struct x16_super_format f,
                                        const struct x16_super_tile *tile, const int n,
                                        const char *x, size_t x_stride, size_t k,
                                        size_t b, vf (*acc)[X16_MAX_COLS], size_t first)
{
    const int per_sub = 64 / f.n_subs;
    const int run = V_RUN(f.max) < per_sub ? V_RUN(f.max) : per_sub;
    struct x16_column column[8] __attribute__((aligned(64)));
#if V_DOT32
    vf sum[V_TILE_PANELS][8];
#else
    vi sum[V_TILE_PANELS][8];
#endif

    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        x16_column(f, V_WIDE && f.wide != NULL, X16_TILE_ORDERED,
                   x + (size_t)c * x_stride, k, b, &column[c]);
    }
    SIMD_UNROLL
    for (int p = 0; p < V_TILE_PANELS; p++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
#if V_DOT32
        sum[p][c] = v_zero_f();
#else
        sum[p][c] = v_zero();
#endif
    SIMD_IN_MEMORY(column); /* read again for each product */
    for (int s = 0; s < f.n_subs; s++) {
        for (int from = 0; from < per_sub; from += run) {
            const int to = from + run < per_sub ? from + run : per_sub;
            vi part[V_TILE_PANELS][8];

            SIMD_UNROLL
            for (int p = 0; p < V_TILE_PANELS; p++)
                SIMD_UNROLL
            for (int c = 0; c < n; c++)
                part[p][c] =
                    V_DOT32 && f.bias != 0 ? v_bcast_4(&column[c].start[s]) : v_zero();
            SIMD_UNROLL
            for (int t = from; t < to; t++) {
                SIMD_UNROLL
                for (int c = 0; c < n; c++) {
                    const int8_t *q =
                        X16_TILE_ORDERED
                            ? column[c].q
                            : act_q(x + (size_t)c * x_stride) + X16_SUPER * b;

#if V_TILE_PANELS > 1
                    const vi xs = v_bcast_4(q + 4 * (s * per_sub + t));

                    SIMD_UNROLL
                    for (int p = 0; p < V_TILE_PANELS; p++)
                        part[p][c] =
                            v_dot_x(part[p][c], tile[p].w[s * per_sub + t], xs);
#else
                    part[0][c] = x16_dot(part[0][c], tile->w[s * per_sub + t],
                                         q + 4 * s * per_sub, t, f.is_signed);
#endif
                }
            }
            SIMD_UNROLL
            for (int p = 0; p < V_TILE_PANELS; p++)
                SIMD_UNROLL
            for (int c = 0; c < n; c++)
#if V_DOT32
                sum[p][c] = v_fma(v_to_float(part[p][c]), tile[p].scale[s], sum[p][c]);
#else
                sum[p][c] = v_add_scaled(sum[p][c], part[p][c], tile[p].scale[s]);
#endif
        }
    }
    SIMD_UNROLL
    for (int p = 0; p < V_TILE_PANELS; p++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        const vf dx = v_set1_f(act_q8_256_d(x + (size_t)c * x_stride, k)[b]);
        vi beside = v_zero();
        vf v;

        if (f.mins || (!V_DOT32 && f.bias != 0))
            beside = x16_dot_sums(tile[p].pairs, f.n_subs, &column[c]);
#if V_DOT32
        v = sum[p][c];
#else
        if (f.bias != 0)
            sum[p][c] = v_sub32(sum[p][c], v_mul32(v_set1_32(f.bias), beside));
        v = v_mul(tile[p].d, v_to_float(sum[p][c]));
#endif
        if (f.mins)
            v = v_fnma(tile[p].dmin, v_to_float(beside), v);
        acc[p][first + (size_t)c] = v_fma(dx, v, acc[p][first + (size_t)c]);
    }
}
#else
/* acc[c] += tile times n columns, which are at at[c]; n is even. */
SIMD_INLINE void x16_super_tile_pairs(const struct x16_super_format f,
                                      const struct x16_super_tile *tile, const int n,
                                      const char *const *at, size_t k, size_t b,
                                      vf *acc)
{
    const int per_sub = 64 / f.n_subs;
    struct x16_column column[V_TILE_COLS];
    const int8_t *q[V_TILE_COLS];
    vf sum[V_TILE_COLS / 2][2], rows[V_TILE_COLS];

    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        x16_column(f, false, true, at[c], k, b, &column[c]);
        q[c] = column[c].q;
    }
    for (int half = 0; half < 2; half++) {
        vf total[V_TILE_COLS / 2];

        SIMD_UNROLL
        for (int p = 0; p < n / 2; p++)
            total[p] = v_zero_f();
        for (int s = 0; s < f.n_subs; s++) {
            vi part[V_TILE_COLS / 2];

            SIMD_UNROLL
            for (int p = 0; p < n / 2; p++)
                part[p] = f.bias != 0 ? v_pair_column_ints(&column[2 * p].start[s],
                                                           &column[2 * p + 1].start[s])
                                      : v_zero();
            x16_pair_dots(part, tile->w + s * per_sub, half, per_sub, n, q,
                          s * per_sub);
            SIMD_UNROLL
            for (int p = 0; p < n / 2; p++)
                total[p] =
                    v_fma(v_to_float(part[p]), tile->scale[2 * s + half], total[p]);
        }
        SIMD_UNROLL
        for (int p = 0; p < n / 2; p++)
            sum[p][half] = total[p];
    }
    SIMD_UNROLL
    for (int p = 0; p < n / 2; p++)
        v_part_columns(sum[p][0], sum[p][1], &rows[2 * p], &rows[2 * p + 1]);
    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        if (f.mins)
            rows[c] = v_fnma(
                tile->dmin, v_to_float(x16_dot_sums(tile->pairs, f.n_subs, &column[c])),
                rows[c]);
        acc[c] = v_fma(v_set1_f(act_q8_256_d(at[c], k)[b]), rows[c], acc[c]);
    }
}
#endif

/* acc[p][c] += V_TILE_PANELS tiles times n_cols columns. */
SIMD_INLINE void x16_super_tile_all(const struct x16_super_format f,
                                    const struct x16_super_tile *tile, size_t n_cols,
                                    const char *x, size_t x_stride, size_t k, size_t b,
                                    vf (*acc)[X16_MAX_COLS])
{
    size_t c = 0;

#if V_PAIRS
    for (; c < n_cols; c += V_TILE_COLS) {
        const char *at[V_TILE_COLS];

        if (x16_pair_group(x, x_stride, c, n_cols, at) == 2)
            x16_super_tile_pairs(f, tile, 2, at, k, b, acc[0] + c);
        else
            x16_super_tile_pairs(f, tile, V_TILE_COLS, at, k, b, acc[0] + c);
    }
#else
#define X16_FRAME(n) \
    x16_super_tile_columns(f, tile, n, x + c * x_stride, x_stride, k, b, acc, c)
    for (; c + V_TILE_COLS <= n_cols; c += V_TILE_COLS)
        X16_FRAME(V_TILE_COLS);
    X16_TILE_REST(n_cols, c, X16_FRAME)
#undef X16_FRAME
#endif
}

/* V_TILE_PANELS panels times at most X16_MAX_COLS columns: see x16_tile_fn. */
SIMD_INLINE void x16_super_tile_panel(const struct x16_super_format f, const uint8_t *w,
                                      const struct x16_rows *rows, size_t k,
                                      size_t n_cols, const char *x, size_t x_stride,
                                      float *y, size_t y_stride, size_t n_rows,
                                      struct kern_prefetch prefetch)
{
    const size_t n_blocks = k / X16_SUPER;
    const size_t panel_bytes = X16_ROWS * n_blocks * f.layout.block_bytes;
    uint8_t body_buffer[V_TILE_PANELS][X16_SUPER * X16_ROWS]
        __attribute__((aligned(64)));
    uint8_t scale_buffer[V_TILE_PANELS][4 * X16_ROWS] __attribute__((aligned(64)));
    vf acc[X16_SLICES * V_TILE_PANELS][X16_MAX_COLS];
    struct x16_super_tile tile[V_TILE_PANELS];

    for (size_t s = 0; s < X16_SLICES * V_TILE_PANELS; s++)
        for (size_t c = 0; c < X16_TILE_SUMS(n_cols); c++)
            acc[s][c] = v_zero_f();
    for (size_t b = 0; b < n_blocks; b++)
        for (size_t s = 0; s < X16_SLICES; s++) {
            for (size_t p = 0; p < V_TILE_PANELS; p++) {
                const uint8_t *body = body_buffer[p], *block_scales = scale_buffer[p];

                if (rows == NULL) {
                    const uint8_t *panel =
                        w + (X16_ROWS * p < n_rows ? p * panel_bytes : 0);

                    body = x16_body_of(f.layout, panel, n_blocks, b);
                    block_scales = x16_scales_of(f.layout, panel, b);
                    if (prefetch.distance != 0 && s == 0)
                        x16_prefetch_lines(body, (ptrdiff_t)prefetch.distance,
                                           x16_body_bytes(f.layout) +
                                               x16_scale_bytes(f.layout),
                                           prefetch.hint);
                } else if (s == 0) {
                    x16_interleave(f.layout, rows[p], b * f.layout.block_bytes,
                                   body_buffer[p], scale_buffer[p]);
                }
                x16_super_unpack(f, body + s * X16_SLICE_BYTES,
                                 block_scales + s * V_LANES * f.layout.scale_bytes,
                                 &tile[p]);
            }
            x16_super_tile_all(f, tile, n_cols, x, x_stride, k, b,
                               acc + s * V_TILE_PANELS);
        }
    for (size_t s = 0; s < X16_SLICES * V_TILE_PANELS; s++)
        for (size_t c = 0; c < n_cols; c++)
            x16_store(y + c * y_stride, acc[s][c], 0, s, n_rows);
}

#endif
