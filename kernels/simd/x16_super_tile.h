/* SPDX-License-Identifier: MIT
 *
 * x16_super_tile.h - super-blocks times many columns, through an unpacked tile
 */
#ifndef SLM_KERNELS_SIMD_X16_SUPER_TILE_H
#define SLM_KERNELS_SIMD_X16_SUPER_TILE_H

#include "kernels/simd/x16_int8.h"
#include "kernels/simd/x16_pairs.h"
#include "kernels/simd/x16_super_few.h"

/* ---- many columns: a slice of a super-block is unpacked once for all ---------------
 */

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

/* Sub-blocks of a tile; where they are summed in parts of 16 bits, one for all would
 * not help. */
SIMD_INLINE int x16_tile_subs(const struct x16_super_format *f)
{
    return V_DOT32 && f->unscaled ? 1 : f->n_subs;
}

SIMD_INLINE bool x16_tile_wide(const struct x16_super_format *f)
{
    return V_WIDE && f->wide != NULL && x16_tile_subs(f) > 1;
}

SIMD_INLINE void x16_tile_emit(const struct x16_sink sink, int four, vi w)
{
    x16_tile_put(sink.tile, four, w);
}

SIMD_INLINE void x16_super_unpack(const struct x16_super_format *f, const uint8_t *body,
                                  const uint8_t *block_scales,
                                  struct x16_super_tile *tile)
{
    const int n_subs = x16_tile_subs(f);
    const struct x16_sink sink = {.tile = tile->w};
    struct x16_scales sc;
#if V_DOT32
    vf factor[16];
#endif

    f->scales(body, block_scales, &sc);
#if V_DOT32
    x16_factors(f, n_subs, x16_tile_wide(f), &sc, factor);
    SIMD_UNROLL
    for (int s = 0; s < n_subs; s++)
        x16_tile_floats(factor[s], tile->scale + X16_HALVES * s);
#else
    SIMD_UNROLL
    for (int s = 0; s < n_subs; s++)
        tile->scale[s] = sc.scale[s];
    if (f->bias != 0)
        x16_pair_scales(sc.scale, n_subs, tile->pairs);
#endif
    if (f->mins) {
        memcpy(tile->pairs, sc.pairs, sizeof(tile->pairs));
        tile->dmin = sc.dmin;
    }
    tile->d = sc.d;
    SIMD_UNROLL_64
    for (int step = 0; step < f->steps; step++)
        if (x16_tile_wide(f))
            f->wide(body, step, x16_tile_emit, sink);
        else
            f->weights(body, step, x16_tile_emit, sink);
}

#if !V_PAIRS
/* sum[p][c] = the products of tile p's pairs with column c's sums. */
SIMD_INLINE void x16_tile_dot_sums(const struct x16_super_tile *tile, const int n_subs,
                                   const int n, const struct x16_column *column,
                                   vi (*sum)[8])
{
    SIMD_UNROLL
    for (int p = 0; p < V_TILE_PANELS; p++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
        sum[p][c] = v_zero();
    SIMD_UNROLL
    for (int s = 0; s < n_subs; s += 2) {
        vi pairs[V_TILE_PANELS];

        SIMD_UNROLL
        for (int p = 0; p < V_TILE_PANELS; p++)
            pairs[p] = tile[p].pairs[s / 2];
        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            SIMD_UNROLL
        for (int p = 0; p < V_TILE_PANELS; p++)
            sum[p][c] = v_dot_pairs(sum[p][c], pairs[p], column[c].sums + s);
    }
}

/* acc[p][c] += V_TILE_PANELS tiles times n columns. */
SIMD_INLINE void x16_super_tile_columns(const struct x16_super_format *f,
                                        const struct x16_super_tile *tile, const int n,
                                        const struct x16_column *column,
                                        vf (*acc)[X16_MAX_COLS])
{
    const int n_subs = x16_tile_subs(f), per_sub = 64 / n_subs;
    /* fours that are unrolled, and (V_DOT32 0) fit a part */
    const int run = V_RUN(f->max) < per_sub ? V_RUN(f->max)
                    : per_sub < 16          ? per_sub
                                            : 16;
#if V_DOT32
    vf sum[V_TILE_PANELS][8];
#else
    vi sum[V_TILE_PANELS][8];
#endif
    vi beside[V_TILE_PANELS][8];

    /* Otherwise minima and scales of the tile would stay in registers for all groups of
     * columns, which the products need. */
    SIMD_OPAQUE_ADDRESS(tile);
    SIMD_UNROLL
    for (int p = 0; p < V_TILE_PANELS; p++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
#if V_DOT32
        sum[p][c] = v_zero_f();
#else
        sum[p][c] = v_zero();
#endif
    for (int s = 0; s < n_subs; s++) {
        vi part[V_TILE_PANELS][8];

#if V_DOT32
        SIMD_UNROLL
        for (int p = 0; p < V_TILE_PANELS; p++)
            SIMD_UNROLL
        for (int c = 0; c < n; c++)
            part[p][c] = f->bias != 0 ? v_bcast_4(&column[c].start[s]) : v_zero();
#endif
        for (int from = 0; from < per_sub; from += run) {
            const int to = from + run < per_sub ? from + run : per_sub;

#if !V_DOT32
            SIMD_UNROLL
            for (int p = 0; p < V_TILE_PANELS; p++)
                SIMD_UNROLL
            for (int c = 0; c < n; c++)
                part[p][c] = v_zero();
#endif
            SIMD_UNROLL
            for (int t = from; t < to; t++) {
                SIMD_UNROLL
                for (int c = 0; c < n; c++) {
#if V_TILE_PANELS > 1
                    const vi xs = v_bcast_4(column[c].q + 4 * (s * per_sub + t));

                    SIMD_UNROLL
                    for (int p = 0; p < V_TILE_PANELS; p++)
                        part[p][c] =
                            v_dot_x(part[p][c], tile[p].w[s * per_sub + t], xs);
#else
                    part[0][c] =
                        x16_dot(part[0][c], tile->w[s * per_sub + t],
                                column[c].q + 4 * s * per_sub, t, f->is_signed);
#endif
                }
            }
#if !V_DOT32
            SIMD_UNROLL
            for (int p = 0; p < V_TILE_PANELS; p++)
                SIMD_UNROLL
            for (int c = 0; c < n; c++)
                sum[p][c] = v_add_scaled(sum[p][c], part[p][c], tile[p].scale[s]);
#endif
        }
#if V_DOT32
        SIMD_UNROLL
        for (int p = 0; p < V_TILE_PANELS; p++)
            SIMD_UNROLL
        for (int c = 0; c < n; c++)
            sum[p][c] = v_fma(v_to_float(part[p][c]), tile[p].scale[s], sum[p][c]);
        if (V_TILE_SUMS_APART)
            SIMD_IN_MEMORY(sum);
#endif
    }
    if (V_DOT32 && f->mins)
        x16_tile_dot_sums(tile, n_subs, n, column, beside);
    SIMD_UNROLL
    for (int p = 0; p < V_TILE_PANELS; p++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        vf v;

#if V_DOT32
        v = sum[p][c];
#else
        if (f->mins || f->bias != 0)
            beside[p][c] = x16_dot_sums(tile[p].pairs, n_subs, &column[c]);
        if (f->bias != 0)
            sum[p][c] = v_sub32(sum[p][c], v_mul32(v_set1_32(f->bias), beside[p][c]));
        v = v_mul(tile[p].d, v_to_float(sum[p][c]));
#endif
        if (f->mins)
            v = v_fnma(tile[p].dmin, v_to_float(beside[p][c]), v);
        acc[p][c] = v_fma(v, v_set1_f(column[c].d[0]), acc[p][c]);
    }
}
#else
/* acc[c] += tile times n columns, which are at at[c]; n is even. */
SIMD_INLINE void x16_super_tile_pairs(const struct x16_super_format *f,
                                      const struct x16_super_tile *tile, const int n,
                                      const struct x16_column *const *at, vf *acc)
{
    const int n_subs = x16_tile_subs(f), per_sub = 64 / n_subs;
    const int8_t *q[V_TILE_COLS];
    vf sum[V_TILE_COLS / 2][2], rows[V_TILE_COLS];

    SIMD_UNROLL
    for (int c = 0; c < n; c++)
        q[c] = at[c]->q;
    for (int half = 0; half < 2; half++) {
        vf total[V_TILE_COLS / 2];

        SIMD_UNROLL
        for (int p = 0; p < n / 2; p++)
            total[p] = v_zero_f();
        for (int s = 0; s < n_subs; s++) {
            vi part[V_TILE_COLS / 2];

            SIMD_UNROLL
            for (int p = 0; p < n / 2; p++)
                part[p] = f->bias != 0 ? v_pair_column_ints(&at[2 * p]->start[s],
                                                            &at[2 * p + 1]->start[s])
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
        if (f->mins)
            rows[c] = v_fnma(tile->dmin,
                             v_to_float(x16_dot_sums(tile->pairs, f->n_subs, at[c])),
                             rows[c]);
        acc[c] = v_fma(v_set1_f(at[c]->d[0]), rows[c], acc[c]);
    }
}
#endif

/* acc[p][c] += V_TILE_PANELS tiles times n_cols columns. */
SIMD_INLINE void x16_super_tile_all(const struct x16_super_format *f,
                                    const struct x16_super_tile *tile, size_t n_cols,
                                    const struct x16_column *columns,
                                    vf (*acc)[X16_MAX_COLS])
{
    size_t c = 0;

#if V_PAIRS
    for (; c < n_cols; c += V_TILE_COLS) {
        const struct x16_column *at[V_TILE_COLS];

        if (x16_pair_group(columns, c, n_cols, at) == 2)
            x16_super_tile_pairs(f, tile, 2, at, acc[0] + c);
        else
            x16_super_tile_pairs(f, tile, V_TILE_COLS, at, acc[0] + c);
    }
#else
#define X16_FRAME(n)                                                              \
    x16_super_tile_columns(f, tile, n,                                            \
                           (const void *)x16_forget((const void *)(columns + c)), \
                           (void *)(acc[0] + c))
    X16_TILE_GROUPS(n_cols, c, X16_FRAME)
#undef X16_FRAME
#endif
}

/* See x16_columns_fn. */
SIMD_INLINE void x16_super_columns(const struct x16_super_format *f, size_t k,
                                   size_t from, size_t to, size_t n_cols, const char *x,
                                   size_t x_stride, struct x16_column *out)
{
    for (size_t c = 0; c < n_cols; c++)
        for (size_t b = from / X16_SUPER; b < to / X16_SUPER; b++) {
            const char *at = x + c * x_stride;
            struct x16_column *column = &out[(b - from / X16_SUPER) * n_cols + c];

            x16_column(f, x16_tile_subs(f), x16_tile_wide(f), true, at, k, b, column);
            column->d[0] = act_q8_256_d(at, k)[b];
        }
}

/* V_TILE_PANELS panels times at most X16_MAX_COLS columns: see x16_tile_fn. The next
 * super-block goes to the second-level cache: its 36 lines or more are asked for at
 * once, beside loads of the columns, which need the first level and its few outstanding
 * misses. */
SIMD_INLINE void x16_super_tile_panel(const struct x16_super_format *f,
                                      const uint8_t *w, const struct x16_rows *rows,
                                      size_t k, size_t from, size_t to, size_t n_cols,
                                      const struct x16_column *columns, float *y,
                                      size_t y_stride, size_t n_rows,
                                      struct kern_prefetch prefetch)
{
    const size_t n_blocks = k / X16_SUPER, first = from / X16_SUPER,
                 end = to / X16_SUPER;
    const size_t panel_bytes = X16_ROWS * n_blocks * f->layout.block_bytes;
    uint8_t body_buffer[V_TILE_PANELS][X16_SUPER * X16_ROWS]
        __attribute__((aligned(64)));
    uint8_t scale_buffer[V_TILE_PANELS][4 * X16_ROWS] __attribute__((aligned(64)));
    vf acc[X16_SLICES * V_TILE_PANELS][X16_MAX_COLS];
    struct x16_super_tile tile[V_TILE_PANELS];

    for (size_t s = 0; s < X16_SLICES * V_TILE_PANELS; s++)
        for (size_t c = 0; c < X16_TILE_SUMS(n_cols); c++)
            acc[s][c] = v_zero_f();
    for (size_t b = first; b < end; b++)
        for (size_t s = 0; s < X16_SLICES; s++) {
            for (size_t p = 0; p < V_TILE_PANELS; p++) {
                const uint8_t *body = body_buffer[p], *block_scales = scale_buffer[p];

                if (rows == NULL) {
                    const uint8_t *panel =
                        w + (X16_ROWS * p < n_rows ? p * panel_bytes : 0);

                    body = x16_body_of(&f->layout, panel, n_blocks, b);
                    block_scales = x16_scales_of(&f->layout, panel, b);
                    if (prefetch.distance != 0 && s == 0)
                        x16_prefetch_next(&f->layout, panel, n_blocks, first, end, b, 1,
                                          KERN_PREFETCH_T1);
                } else if (s == 0) {
                    x16_interleave(&f->layout, rows[p], b * f->layout.block_bytes,
                                   body_buffer[p], scale_buffer[p]);
                }
                x16_super_unpack(f, body + s * X16_SLICE_BYTES,
                                 block_scales + s * V_LANES * f->layout.scale_bytes,
                                 &tile[p]);
            }
            x16_super_tile_all(f, tile, n_cols, columns + (b - first) * n_cols,
                               acc + s * V_TILE_PANELS);
        }
    for (size_t s = 0; s < X16_SLICES; s++)
        for (size_t p = 0; p < V_TILE_PANELS; p++)
            x16_store_columns(y, y_stride, acc[s * V_TILE_PANELS + p], n_cols,
                              p * X16_ROWS, s, n_rows, from != 0);
}

#if V_INT8
/* A slice of a super-block, requantised: see x16_int8_fn. */
SIMD_INLINE void x16_super_requantise(const struct x16_super_format *f,
                                      const uint8_t *body, const uint8_t *block_scales,
                                      uint8_t *to, float *d)
{
    const int n_subs = x16_tile_subs(f);
    vi w[X16_INT8_FOURS];
    const struct x16_sink sink = {.tile = w};
    struct x16_scales sc;
    vf factor[16], offset[16];

    f->scales(body, block_scales, &sc);
    x16_factors(f, n_subs, false, &sc, factor);
    if (f->mins) {
        SIMD_UNROLL
        for (int s = 0; s < n_subs; s++) {
            const vi two = sc.pairs[s / 4 * 2 + s % 2];
            const vi min = s % 4 < 2 ? v_sll32(two, 16) : two;

            offset[s] = v_fnma(sc.dmin, v_to_float(v_sra32(min, 16)), v_zero_f());
        }
    }
    SIMD_UNROLL_64
    for (int step = 0; step < f->steps; step++)
        f->weights(body, step, x16_tile_emit, sink);
    x16_requantise(w, n_subs, f->bias, factor, f->mins ? offset : NULL, to, d);
}

SIMD_INLINE void x16_super_int8(const struct x16_super_format *f, const uint8_t *panel,
                                const struct x16_rows *rows, size_t k, size_t at,
                                size_t from, size_t to, struct kern_prefetch prefetch,
                                uint8_t *w, float *d)
{
    const size_t n_blocks = k / X16_SUPER, b = at / X16_SUPER;
    uint8_t body_buffer[X16_SUPER * X16_ROWS] __attribute__((aligned(64)));
    uint8_t scale_buffer[4 * X16_ROWS] __attribute__((aligned(64)));
    const uint8_t *body = body_buffer, *block_scales = scale_buffer;

    if (rows != NULL) {
        x16_interleave(&f->layout, *rows, b * f->layout.block_bytes, body_buffer,
                       scale_buffer);
    } else {
        body = x16_body_of(&f->layout, panel, n_blocks, b);
        block_scales = x16_scales_of(&f->layout, panel, b);
        if (prefetch.distance != 0)
            x16_prefetch_next(&f->layout, panel, n_blocks, from / X16_SUPER,
                              to / X16_SUPER, b, 1, KERN_PREFETCH_T1);
    }
    for (size_t s = 0; s < X16_SLICES; s++)
        x16_super_requantise(f, body + s * X16_SLICE_BYTES,
                             block_scales + s * V_LANES * f->layout.scale_bytes,
                             w + s * X16_INT8_FOURS * X16_SLICE_BYTES, d + s * V_LANES);
}
#endif

#endif
