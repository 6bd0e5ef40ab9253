/* SPDX-License-Identifier: MIT
 *
 * x16_super.h - loops for super-blocks of 256 weights times q8_256 activations
 *
 *   weight = d * scale[s] * (q - bias) - dmin * min[s]       in sub-block s
 *
 * A super-block's products are integers; it is turned into floats once:
 *   dx * (d * sum_s scale[s] * dot(q - bias, x)_s - dmin * sum_s min[s] * sum(x)_s)
 * Each format argues in its own file why 32 bits hold these sums.
 *
 * The bias is taken off with the column's sums. Where a part is 32-bit sums
 * (V_DOT32) it starts from -bias * sum(x); else from zero, and scale[s] * sum(x)_s
 * is summed up beside it.
 */
#ifndef SLM_KERNELS_SIMD_X16_SUPER_H
#define SLM_KERNELS_SIMD_X16_SUPER_H

#include "kernels/simd/x16.h"

enum { X16_SUPER = 256 };

/* Of one slice of a super-block; 32-bit lanes. */
struct x16_scales {
    vi scale[16], min[16]; /* of every sub-block; 16-bit numbers */
    vf d, dmin;
};

typedef void x16_scales_fn(const uint8_t *body, const uint8_t *head,
                           struct x16_scales *out);

/* What a format says of itself; constants after inlining. */
struct x16_super_format {
    struct x16_layout layout;
    int n_subs; /* 1, 8 or 16 */
    int max;    /* of |weights| as emitted, for 16-bit parts */
    int bias;
    bool mins;
    bool is_signed; /* weights go to v_dot_s */
    x16_weights_fn *weights;
    x16_scales_fn *scales; /* head: the slice of head 0; x16_head() of others */
};

/* ---- the activations' side --------------------------------------------------------
 */

/* What one column's super-block contributes besides its quants. */
struct x16_column {
    int32_t start[16]; /* -bias * sum(x) of every sub-block */
    int16_t sums[16];  /* sum(x) of every sub-block; n_subs 1: zeros behind */
};

SIMD_INLINE void x16_column(const struct x16_super_format f, const char *x, size_t k,
                            size_t b, struct x16_column *out)
{
    const int16_t *sums = act_q8_256_sums(x, k) + 16 * b;

    if (f.bias == 0 && !f.mins)
        return;
    if (f.n_subs == 16) {
        memcpy(out->sums, sums, sizeof(out->sums));
    } else if (f.n_subs == 8) {
        for (int s = 0; s < 8; s++)
            out->sums[s] = (int16_t)(sums[2 * s] + sums[2 * s + 1]);
    } else {
        int all = 0;

        for (int s = 0; s < 16; s++)
            all += sums[s];
        out->sums[0] = (int16_t)all; /* at most 32512 */
        out->sums[1] = 0;
    }
    if (V_DOT32 && f.bias != 0)
        for (int s = 0; s < f.n_subs; s++)
            out->start[s] = -f.bias * out->sums[s];
}

/* sum_s v[s] * sums[s]. */
SIMD_INLINE vi x16_dot_sums(const vi *v, int n_subs, const struct x16_column *column)
{
    vi sum = v_zero();

    if (n_subs == 1)
        return v_dot_pairs(sum, v_pair(v[0], v_zero()), column->sums);
    SIMD_UNROLL
    for (int s = 0; s < n_subs; s += 2)
        sum = v_dot_pairs(sum, v_pair(v[s], v[s + 1]), column->sums + s);
    return sum;
}

/* ---- a few columns, straight from the block -------------------------------------- */

struct x16_sink {
    int n_cols, per_sub, run, biased, is_signed;
    const int8_t *q[8];
    const struct x16_column *column;
    vi scale[16], part[8][16], sum[8];
    vi *tile; /* or weights are kept here */
};

SIMD_INLINE void x16_super_emit(struct x16_sink *sink, int four, vi w)
{
    const int s = four / sink->per_sub, step = four % sink->per_sub;

    SIMD_UNROLL
    for (int c = 0; c < sink->n_cols; c++) {
        const int8_t *x = sink->q[c] + 4 * four;
        vi part = sink->part[c][s];

        if (step % sink->run == 0)
            part = V_DOT32 && sink->biased ? v_bcast_4(&sink->column[c].start[s])
                                           : v_zero();
#if V_SIGNED
        part = sink->is_signed ? v_dot_s(part, w, x) : v_dot_u(part, w, x);
#else
        part = v_dot_u(part, w, x);
#endif
        if ((step + 1) % sink->run == 0 || step + 1 == sink->per_sub)
            sink->sum[c] = v_add_scaled(sink->sum[c], part, sink->scale[s]);
        else
            sink->part[c][s] = part;
    }
}

/* acc[c] += one slice of one super-block times n columns. */
SIMD_INLINE void x16_super_step(const struct x16_super_format f, const int n,
                                const uint8_t *body, const uint8_t *head,
                                const char *const *x, size_t k, size_t b,
                                const struct x16_column *column, vf *acc)
{
    struct x16_sink sink;
    struct x16_scales sc;

    f.scales(body, head, &sc);
    sink.n_cols = n;
    sink.per_sub = 64 / f.n_subs;
    sink.run = V_RUN(f.max) < sink.per_sub ? V_RUN(f.max) : sink.per_sub;
    sink.biased = f.bias != 0;
    sink.is_signed = f.is_signed;
    sink.column = column;
    SIMD_UNROLL
    for (int s = 0; s < f.n_subs; s++)
        sink.scale[s] = v_scale(sc.scale[s]);
    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        sink.q[c] = act_q(x[c]) + X16_SUPER * b;
        sink.sum[c] = v_zero();
    }
    f.weights(body, x16_super_emit, &sink);
    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        const vf dx = v_set1_f(act_q8_256_d(x[c], k)[b]);
        vi sum = sink.sum[c];
        vf v;

        if (!V_DOT32 && f.bias != 0)
            sum = v_sub32(sum, v_mul32(v_set1_32(f.bias),
                                       x16_dot_sums(sc.scale, f.n_subs, &column[c])));
        v = v_mul(sc.d, v_to_float(sum));
        if (f.mins)
            v = v_fnma(sc.dmin, v_to_float(x16_dot_sums(sc.min, f.n_subs, &column[c])),
                       v);
        acc[c] = v_fma(dx, v, acc[c]);
    }
}

/* Panels times n columns; where n_cols is less, the last one is done again. */
SIMD_INLINE void x16_super_panels(const struct x16_super_format f, const int n,
                                  size_t n_panels, size_t k, const uint8_t *w,
                                  size_t n_cols, const char *x, size_t x_stride,
                                  float *y, size_t y_stride, size_t ahead)
{
    const size_t n_blocks = k / X16_SUPER;
    const size_t body_bytes = x16_body_bytes(f.layout);
    const size_t head_bytes = x16_head_bytes(f.layout);
    const char *column_at[8];

    SIMD_UNROLL
    for (size_t c = 0; c < (size_t)n; c++) /* the last one again where there is none */
        column_at[c] = x + (c < n_cols ? c : n_cols - 1) * x_stride;
    for (size_t p = 0; p < n_panels; p++) {
        const uint8_t *body = w, *head = w + n_blocks * body_bytes;
        vf acc[X16_SLICES][8];

        w = head + n_blocks * head_bytes;
        SIMD_UNROLL
        for (int s = 0; s < X16_SLICES; s++)
            SIMD_UNROLL
        for (int c = 0; c < n; c++)
            acc[s][c] = v_zero_f();
        for (size_t b = 0; b < n_blocks; b++) {
            struct x16_column column[8];

            SIMD_UNROLL
            for (int c = 0; c < n; c++)
                x16_column(f, column_at[c], k, b, &column[c]);
            if (ahead != 0) {
                prefetch_lines(body, (ptrdiff_t)ahead, body_bytes);
                if (head_bytes != 0)
                    prefetch_lines(head, (ptrdiff_t)ahead, head_bytes);
            }
            SIMD_UNROLL
            for (int s = 0; s < X16_SLICES; s++)
                x16_super_step(f, n, body + s * X16_SLICE_BYTES,
                               head + (size_t)s * V_LANES * f.layout.head_bytes,
                               column_at, k, b, column, acc[s]);
            body += body_bytes;
            head += head_bytes;
        }
        SIMD_UNROLL
        for (int s = 0; s < X16_SLICES; s++)
            SIMD_UNROLL
        for (int c = 0; c < n; c++)
            if ((size_t)c < n_cols)
                v_store_f(y + (size_t)c * y_stride + p * X16_ROWS + (size_t)s * V_LANES,
                          acc[s][c]);
    }
}

/* Rows in file order, one column. Rows that are used next lie 16 rows on. */
SIMD_INLINE void x16_super_rows(const struct x16_super_format f, size_t n_rows,
                                size_t k, const void *w, size_t w_stride, const char *x,
                                float *y)
{
    uint8_t body[X16_SUPER * X16_ROWS] __attribute__((aligned(64)));
    uint8_t head[4 * X16_ROWS] __attribute__((aligned(64)));

    for (size_t i = 0; i < n_rows; i += X16_ROWS) {
        const uint8_t *row[16];
        vf acc[X16_SLICES];

        x16_rows(w, w_stride, i, n_rows, row);
        SIMD_UNROLL
        for (int s = 0; s < X16_SLICES; s++)
            acc[s] = v_zero_f();
        for (size_t b = 0; b < k / X16_SUPER; b++) {
            const size_t at = b * f.layout.block_bytes;
            struct x16_column column;

            x16_column(f, x, k, b, &column);
            for (size_t r = 0; r < X16_ROWS; r++)
                prefetch_lines(row[r] + at, (ptrdiff_t)(X16_ROWS * w_stride),
                               f.layout.block_bytes);
            x16_interleave(f.layout, row, at, body, head);
            SIMD_UNROLL
            for (int s = 0; s < X16_SLICES; s++)
                x16_super_step(f, 1, body + s * X16_SLICE_BYTES,
                               head + (size_t)s * V_LANES * f.layout.head_bytes, &x, k,
                               b, &column, &acc[s]);
        }
        for (size_t s = 0; s < X16_SLICES; s++)
            x16_store(y, acc[s], i, s, n_rows);
    }
}

/* ---- many columns: a slice of a super-block is unpacked once for all ---------------
 */

struct x16_super_tile {
    vi w[64];
#if V_DOT32
    vf scale[16]; /* times d */
#else
    vi scale[16]; /* as v_scale() gives it */
#endif
    vi pairs[8]; /* minima, else (V_DOT32 0) scales if there is a bias */
    vf d, dmin;
};

SIMD_INLINE void x16_tile_emit(struct x16_sink *sink, int four, vi w)
{
    sink->tile[four] = w;
}

SIMD_INLINE void x16_super_unpack(const struct x16_super_format f, const uint8_t *body,
                                  const uint8_t *head, struct x16_super_tile *tile)
{
    struct x16_sink sink;
    struct x16_scales sc;
    const vi *paired = f.mins ? sc.min : sc.scale;

    f.scales(body, head, &sc);
    SIMD_UNROLL
    for (int s = 0; s < f.n_subs; s++)
#if V_DOT32
        tile->scale[s] = v_mul(sc.d, v_to_float(sc.scale[s]));
#else
        tile->scale[s] = v_scale(sc.scale[s]);
#endif
    if (f.mins || (!V_DOT32 && f.bias != 0)) {
        SIMD_UNROLL
        for (int s = 0; s < f.n_subs; s += 2)
            tile->pairs[s / 2] =
                v_pair(paired[s], f.n_subs == 1 ? v_zero() : paired[s + 1]);
    }
    tile->d = sc.d;
    if (f.mins)
        tile->dmin = sc.dmin;
    sink.tile = tile->w;
    f.weights(body, x16_tile_emit, &sink);
}

/* acc[c] += tile times n columns. */
SIMD_INLINE void x16_super_tile_columns(const struct x16_super_format f,
                                        const struct x16_super_tile *tile, const int n,
                                        const char *x, size_t x_stride, size_t k,
                                        size_t b, vf *acc)
{
    const int per_sub = 64 / f.n_subs;
    const int run = V_RUN(f.max) < per_sub ? V_RUN(f.max) : per_sub;
    const int8_t *q = act_q(x) + X16_SUPER * b;
    struct x16_column column[8];
#if V_DOT32
    vf sum[8];
#else
    vi sum[8];
#endif

    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        x16_column(f, x + (size_t)c * x_stride, k, b, &column[c]);
#if V_DOT32
        sum[c] = v_zero_f();
#else
        sum[c] = v_zero();
#endif
    }
    for (int s = 0; s < f.n_subs; s++) {
        for (int from = 0; from < per_sub; from += run) {
            const int to = from + run < per_sub ? from + run : per_sub;
            vi part[8];

            SIMD_UNROLL
            for (int c = 0; c < n; c++)
                part[c] =
                    V_DOT32 && f.bias != 0 ? v_bcast_4(&column[c].start[s]) : v_zero();
            SIMD_UNROLL
            for (int t = from; t < to; t++) {
                const int four = s * per_sub + t;

                SIMD_UNROLL
                for (int c = 0; c < n; c++) {
                    const int8_t *at = q + (size_t)c * x_stride + 4 * four;

#if V_SIGNED
                    part[c] = f.is_signed ? v_dot_s(part[c], tile->w[four], at)
                                          : v_dot_u(part[c], tile->w[four], at);
#else
                    part[c] = v_dot_u(part[c], tile->w[four], at);
#endif
                }
            }
            SIMD_UNROLL
            for (int c = 0; c < n; c++)
#if V_DOT32
                sum[c] = v_fma(v_to_float(part[c]), tile->scale[s], sum[c]);
#else
                sum[c] = v_add_scaled(sum[c], part[c], tile->scale[s]);
#endif
        }
    }
    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        const vf dx = v_set1_f(act_q8_256_d(x + (size_t)c * x_stride, k)[b]);
        vi beside = v_zero();
        vf v;

        if (f.mins || (!V_DOT32 && f.bias != 0)) {
            SIMD_UNROLL
            for (int s = 0; s < f.n_subs; s += 2)
                beside = v_dot_pairs(beside, tile->pairs[s / 2], column[c].sums + s);
        }
#if V_DOT32
        v = sum[c];
#else
        if (f.bias != 0)
            sum[c] = v_sub32(sum[c], v_mul32(v_set1_32(f.bias), beside));
        v = v_mul(tile->d, v_to_float(sum[c]));
#endif
        if (f.mins)
            v = v_fnma(tile->dmin, v_to_float(beside), v);
        acc[c] = v_fma(dx, v, acc[c]);
    }
}

/* One panel times at most X16_MAX_COLS columns; blocks either in place (row NULL)
 * or interleaved from rows. */
SIMD_INLINE void x16_super_tile_panel(const struct x16_super_format f, const uint8_t *w,
                                      const uint8_t *const *row, size_t k,
                                      size_t n_cols, const char *x, size_t x_stride,
                                      float *y, size_t y_stride, size_t n_rows)
{
    const size_t n_blocks = k / X16_SUPER;
    uint8_t body_buffer[X16_SUPER * X16_ROWS] __attribute__((aligned(64)));
    uint8_t head_buffer[4 * X16_ROWS] __attribute__((aligned(64)));
    vf acc[X16_SLICES][X16_MAX_COLS];
    struct x16_super_tile tile;

    for (size_t s = 0; s < X16_SLICES; s++)
        for (size_t c = 0; c < n_cols; c++)
            acc[s][c] = v_zero_f();
    for (size_t b = 0; b < n_blocks; b++) {
        const uint8_t *body = body_buffer, *head = head_buffer;

        if (row != NULL) {
            x16_interleave(f.layout, row, b * f.layout.block_bytes, body_buffer,
                           head_buffer);
        } else {
            body = w + b * x16_body_bytes(f.layout);
            head =
                w + n_blocks * x16_body_bytes(f.layout) + b * x16_head_bytes(f.layout);
        }
        for (size_t s = 0; s < X16_SLICES; s++) {
            size_t c = 0;

            x16_super_unpack(f, body + s * X16_SLICE_BYTES,
                             head + s * V_LANES * f.layout.head_bytes, &tile);
            for (; c + V_TILE_COLS <= n_cols; c += V_TILE_COLS)
                x16_super_tile_columns(f, &tile, V_TILE_COLS, x + c * x_stride,
                                       x_stride, k, b, acc[s] + c);
            for (; c < n_cols; c++)
                x16_super_tile_columns(f, &tile, 1, x + c * x_stride, x_stride, k, b,
                                       acc[s] + c);
        }
    }
    for (size_t s = 0; s < X16_SLICES; s++)
        for (size_t c = 0; c < n_cols; c++)
            x16_store(y + c * y_stride, acc[s][c], 0, s, n_rows);
}

/* ---- a format's kernels ------------------------------------------------------------
 */

SIMD_INLINE void x16_super_gemm(const struct x16_super_format f, size_t n_rows,
                                size_t k, const void *w, size_t w_stride, size_t n_cols,
                                const char *x, size_t x_stride, float *y,
                                size_t y_stride)
{
    for (size_t i = 0; i < n_rows; i += X16_ROWS) {
        const uint8_t *row[16];

        x16_rows(w, w_stride, i, n_rows, row);
        for (size_t c = 0; c < n_cols; c += X16_MAX_COLS)
            x16_super_tile_panel(
                f, NULL, row, k, n_cols - c < X16_MAX_COLS ? n_cols - c : X16_MAX_COLS,
                x + c * x_stride, x_stride, y + c * y_stride + i, y_stride, n_rows - i);
    }
}

SIMD_INLINE void x16_super_gemm_x16(const struct x16_super_format f, size_t n_panels,
                                    size_t k, const void *w, size_t n_cols,
                                    const char *x, size_t x_stride, float *y,
                                    size_t y_stride, size_t ahead)
{
    const size_t panel_bytes = X16_ROWS * (k / X16_SUPER) * f.layout.block_bytes;

    if (n_cols <= 4) {
        x16_super_panels(f, 4, n_panels, k, w, n_cols, x, x_stride, y, y_stride, ahead);
        return;
    }
    for (size_t p = 0; p < n_panels; p++)
        for (size_t c = 0; c < n_cols; c += X16_MAX_COLS)
            x16_super_tile_panel(f, (const uint8_t *)w + p * panel_bytes, NULL, k,
                                 n_cols - c < X16_MAX_COLS ? n_cols - c : X16_MAX_COLS,
                                 x + c * x_stride, x_stride,
                                 y + c * y_stride + p * X16_ROWS, y_stride, X16_ROWS);
}

/* Defines pack, gemv_x16, gemm_x16, gemv and gemm of a format for this level. */
#define X16_SUPER_KERNELS(name, format)                                        \
    X16_KERNELS(name, format, X16_SUPER, x16_super_panels, x16_super_gemm_x16, \
                x16_super_rows, x16_super_gemm)

#endif
