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

/* Of one slice of a super-block. pairs: two 16-bit minima per lane, those of sub-blocks
 * 4i and 4i + 2 in pairs[2i], of 4i + 1 and 4i + 3 in pairs[2i + 1], which is how they
 * come out of the bytes of a dword (x16_pairs_u8()). */
struct x16_scales {
    vi scale[16]; /* of every sub-block, in scale form */
    vi pairs[8];
    vf d, dmin;
};

SIMD_INLINE void x16_pairs_u8(vi four, vi *pairs)
{
    const vi even = v_set1_32(0x00ff00ff);

    pairs[0] = v_and(four, even);
    pairs[1] = v_and(v_srl16(four, 8), even);
}

typedef void x16_scales_fn(const uint8_t *body, const uint8_t *head,
                           struct x16_scales *out);

/* In place of weights, for one column where V_WIDE: leaves the products with scales,
 * biases off, in sink->to->sum[sink->strand][0]. */
typedef void x16_products_fn(const uint8_t *body, struct x16_sink *sink);

/* What a format says of itself; constants after inlining. */
struct x16_super_format {
    struct x16_layout layout;
    int n_subs; /* 1, 8 or 16 */
    int max;    /* of |weights| as emitted, for 16-bit parts */
    int bias;
    bool mins;
    bool is_signed; /* weights go to v_dot_s */
    /* Weights of two panels at a time do not overflow the registers: most vectors go
     * straight from memory through one instruction into a product. */
    bool light;
    /* Weights are emitted in another order within every 16: place i has weight
     * order[i]. NULL: as they are. */
    const uint8_t *order;
    int steps; /* of weights, at most 64 */
    x16_weights_fn *weights;
    x16_products_fn *products; /* or NULL */
    /* Or, for v_dot_u where V_WIDE: the same weights shifted to the left, below 256;
     * NULL if that is no shorter. Hexadecimal digit s of shifts, from the right: by how
     * many bits, in sub-block s. */
    x16_weights_fn *wide;
    uint64_t shifts;
    x16_scales_fn *scales; /* head: the slice of head 0; x16_head() of others */
};

/* ---- the activations' side --------------------------------------------------------
 */

/* What one column's super-block contributes besides its quants. */
struct x16_column {
    int32_t start[16];   /* -bias * sum(x) of every sub-block */
    int16_t sums[16];    /* sum(x) of every sub-block, in the order of pairs */
    int8_t q[X16_SUPER]; /* the quants in the format's order, if it has one */
};

/* The quants of block b in the format's order. */
SIMD_INLINE const int8_t *x16_column_q(const struct x16_super_format f, const char *x,
                                       size_t b, const struct x16_column *column)
{
    return f.order != NULL ? column->q : act_q(x) + X16_SUPER * b;
}

SIMD_INLINE void x16_column(const struct x16_super_format f, bool wide, const char *x,
                            size_t k, size_t b, struct x16_column *out)
{
    const int16_t *sums = act_q8_256_sums(x, k) + 16 * b;

    if (f.order != NULL) {
        const vi order = v_bcast_16(f.order);

        SIMD_UNROLL
        for (size_t i = 0; i < X16_SUPER; i += sizeof(vi))
            v_store(out->q + i, v_table16(v_load(act_q(x) + X16_SUPER * b + i), order));
    }
    if (f.bias == 0 && !f.mins)
        return;
    if (f.n_subs == 1) {
        int all = 0;

        for (int s = 0; s < 16; s++)
            all += sums[s];
        out->start[0] = -f.bias * all * (wide ? 1 << (f.shifts & 15) : 1);
        out->sums[0] = (int16_t)all; /* at most 32512 */
        out->sums[1] = 0;
        return;
    }
    for (int s = 0; s < f.n_subs; s++) {
        const int sum = f.n_subs == 16 ? sums[s] : sums[2 * s] + sums[2 * s + 1];

        out->start[s] = -f.bias * sum * (wide ? 1 << (f.shifts >> 4 * s & 15) : 1);
        out->sums[s % 4 == 1 ? s + 1 : s % 4 == 2 ? s - 1 : s] = (int16_t)sum;
    }
}

/* The same for x16_super_step(). Reordered quants are to be kept in memory: a compiler
 * else shuffles out of registers what dot products broadcast from memory at no cost. */
SIMD_INLINE void x16_few_column(const struct x16_super_format f, const char *x,
                                size_t k, size_t b, struct x16_column *out)
{
    x16_column(f, V_WIDE && f.wide != NULL, x, k, b, out);
    if (f.order != NULL)
        __asm__("" : "+m"(*out));
}

/* Scales as pairs, for the bias; the order of pairs does not matter if n_subs is 1. */
SIMD_INLINE void x16_pair_scales(const vi *scale, int n_subs, vi *pairs)
{
#if V_DOT32
    (void)scale, (void)n_subs, (void)pairs; /* the bias is in the parts' starts */
#else
    SIMD_UNROLL
    for (int s = 0; s < n_subs; s += 4) {
        pairs[s / 2] = n_subs == 1 ? scale[0] : v_mix(scale[s], scale[s + 2]);
        if (n_subs > 1)
            pairs[s / 2 + 1] = v_mix(scale[s + 1], scale[s + 3]);
    }
#endif
}

/* sum_s of the paired numbers times sum(x)_s. */
SIMD_INLINE vi x16_dot_sums(const vi *pairs, int n_subs,
                            const struct x16_column *column)
{
    vi sum = v_zero();

    SIMD_UNROLL
    for (int s = 0; s < n_subs; s += 2)
        sum = v_dot_pairs(sum, pairs[s / 2], column->sums + s);
    return sum;
}

/* ---- a few columns, straight from the block -------------------------------------- */

struct x16_sums {
    vi scale[X16_STRANDS][16], part[X16_STRANDS][4][16], sum[X16_STRANDS][4];
};

/* The sums stand apart: where a vector is a struct of registers, GCC forgets the
 * constants beside it in one struct. */
struct x16_sink {
    int n_cols, per_sub, run, biased, is_signed, strand;
    const int8_t *q[4];
    const struct x16_column *column;
    uint64_t shifts;
    struct x16_sums *to;
    vi *tile; /* or weights are kept here */
};

SIMD_INLINE void x16_super_emit(struct x16_sink *sink, int four, vi w)
{
    const int s = four / sink->per_sub, step = four % sink->per_sub;
    const int t = sink->strand, shift = (int)(sink->shifts >> 4 * s & 15);

    SIMD_UNROLL
    for (int c = 0; c < sink->n_cols; c++) {
        vi part = sink->to->part[t][c][s];

        if (step % sink->run == 0)
            part = V_DOT32 && sink->biased ? v_bcast_4(&sink->column[c].start[s])
                                           : v_zero();
        part = x16_dot(part, w, sink->q[c] + 4 * four, sink->is_signed);
        if (step + 1 == sink->per_sub && shift != 0)
            part = v_sra32(part, shift);
        if ((step + 1) % sink->run == 0 || step + 1 == sink->per_sub)
            sink->to->sum[t][c] =
                v_add_scaled(sink->to->sum[t][c], part, sink->to->scale[t][s]);
        else
            sink->to->part[t][c][s] = part;
    }
}

/* Every strand's sum of products with scales. */
SIMD_INLINE void x16_super_sums(const struct x16_super_format f, const int n_strands,
                                const uint8_t *const *body, struct x16_sink *sink)
{
    const bool whole = V_WIDE && f.products != NULL && sink->n_cols == 1;
    const int steps = whole ? 1 : f.steps;

    SIMD_UNROLL_64
    for (int step = 0; step < steps; step++) {
        SIMD_UNROLL
        for (int t = 0; t < n_strands; t++) {
            sink->strand = t;
            if (whole)
                f.products(body[t], sink);
            else if (V_WIDE && f.wide != NULL)
                f.wide(body[t], step, x16_super_emit, sink);
            else
                f.weights(body[t], step, x16_super_emit, sink);
        }
    }
}

/* acc[strand][c] += one super-block of n_strands slices times n columns; x, column and
 * b say which of the columns. */
SIMD_INLINE void x16_super_step(const struct x16_super_format f, const int n_strands,
                                const int n, const uint8_t *const *body,
                                const uint8_t *const *head, const char *const *x,
                                size_t k, size_t b, const struct x16_column *column,
                                vf (*acc)[4])
{
    struct x16_scales sc[X16_STRANDS];
    vi scale_pairs[X16_STRANDS][8];
    struct x16_sums sums;
    struct x16_sink sink;

    sink.n_cols = n;
    sink.per_sub = 64 / f.n_subs;
    sink.run = V_RUN(f.max) < sink.per_sub ? V_RUN(f.max) : sink.per_sub;
    sink.biased = f.bias != 0;
    sink.is_signed = f.is_signed;
    sink.shifts = V_WIDE ? f.shifts : 0;
    sink.column = column;
    sink.to = &sums;
    SIMD_UNROLL
    for (int c = 0; c < n; c++)
        sink.q[c] = x16_column_q(f, x[c], b, &column[c]);
    SIMD_UNROLL
    for (int t = 0; t < n_strands; t++) {
        f.scales(body[t], head[t], &sc[t]);
        if (f.bias != 0)
            x16_pair_scales(sc[t].scale, f.n_subs, scale_pairs[t]);
        SIMD_UNROLL
        for (int s = 0; s < f.n_subs; s++)
            sums.scale[t][s] = sc[t].scale[s];
        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            sums.sum[t][c] = v_zero();
    }
    x16_super_sums(f, n_strands, body, &sink);
    SIMD_UNROLL
    for (int t = 0; t < n_strands; t++) {
        SIMD_UNROLL
        for (int c = 0; c < n; c++) {
            const vf dx = v_set1_f(act_q8_256_d(x[c], k)[b]);
            vi sum = sums.sum[t][c];
            vf v;

            if (!V_DOT32 && f.bias != 0)
                sum = v_sub32(
                    sum, v_mul32(v_set1_32(f.bias),
                                 x16_dot_sums(scale_pairs[t], f.n_subs, &column[c])));
            v = v_mul(sc[t].d, v_to_float(sum));
            if (f.mins)
                v = v_fnma(sc[t].dmin,
                           v_to_float(x16_dot_sums(sc[t].pairs, f.n_subs, &column[c])),
                           v);
            acc[t][c] = v_fma(dx, v, acc[t][c]);
        }
    }
}

/* n_p (1 or 2) panels times n columns, n_s (1 or 2) slices at a time. */
SIMD_INLINE void x16_super_panel(const struct x16_super_format f, const int n_p,
                                 const int n_s, const int n, size_t k, const uint8_t *w,
                                 size_t n_cols, const char *const *x, float *y,
                                 size_t y_stride, size_t ahead)
{
    const size_t n_blocks = k / X16_SUPER;
    const size_t body_bytes = x16_body_bytes(f.layout);
    const size_t head_bytes = x16_head_bytes(f.layout);
    const size_t panel_bytes = n_blocks * (body_bytes + head_bytes);
    vf acc[2 * X16_SLICES][4]; /* [panel, slice] */

    SIMD_UNROLL
    for (int i = 0; i < n_p * X16_SLICES; i++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
        acc[i][c] = v_zero_f();
    for (size_t b = 0; b < n_blocks; b++) {
        const uint8_t *first = w + b * body_bytes;
        const uint8_t *heads = w + n_blocks * body_bytes + b * head_bytes;
        struct x16_column column[4];

        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            x16_few_column(f, x[c], k, b, &column[c]);
        if (ahead != 0) {
            SIMD_UNROLL
            for (int p = 0; p < n_p; p++) {
                prefetch_lines(first + (size_t)p * panel_bytes, (ptrdiff_t)ahead,
                               body_bytes);
                if (head_bytes != 0)
                    prefetch_lines(heads + (size_t)p * panel_bytes, (ptrdiff_t)ahead,
                                   head_bytes);
            }
        }
        SIMD_UNROLL
        for (int s = 0; s < X16_SLICES; s += n_s) {
            const uint8_t *body[X16_STRANDS], *head[X16_STRANDS];

            SIMD_UNROLL
            for (int t = 0; t < n_p * n_s; t++) {
                const size_t p = n_p == 2 ? (size_t)t * panel_bytes : 0;
                const size_t slice = (size_t)(n_s == 2 ? s + t : s);

                body[t] = first + p + slice * X16_SLICE_BYTES;
                head[t] = heads + p + slice * V_LANES * f.layout.head_bytes;
            }
            x16_super_step(f, n_p * n_s, n, body, head, x, k, b, column, acc + s);
        }
    }
    SIMD_UNROLL
    for (int i = 0; i < n_p * X16_SLICES; i++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
        if ((size_t)c < n_cols)
            v_store_f(y + (size_t)c * y_stride + (size_t)i * V_LANES, acc[i][c]);
}

/* Panels times n columns; where n_cols is less, the last one is done again. */
SIMD_INLINE void x16_super_panels(const struct x16_super_format f, const int n,
                                  size_t n_panels, size_t k, const uint8_t *w,
                                  size_t n_cols, const char *x, size_t x_stride,
                                  float *y, size_t y_stride, size_t ahead)
{
    const size_t panel_bytes = X16_ROWS * (k / X16_SUPER) * f.layout.block_bytes;
    const char *column_at[4];
    size_t p = 0;

    SIMD_UNROLL
    for (size_t c = 0; c < (size_t)n; c++)
        column_at[c] = x + (c < n_cols ? c : n_cols - 1) * x_stride;
    /* two streams keep the hardware prefetchers busy: asking besides only costs */
    if (n == 1 && V_TWO_PANELS && f.light)
        for (; p + 2 <= n_panels; p += 2)
            x16_super_panel(f, 2, 1, n, k, w + p * panel_bytes, n_cols, column_at,
                            y + p * X16_ROWS, y_stride, 0);
    for (; p < n_panels; p++)
        x16_super_panel(f, 1, n == 1 && X16_SLICES > 1 ? 2 : 1, n, k,
                        w + p * panel_bytes, n_cols, column_at, y + p * X16_ROWS,
                        y_stride, ahead);
}

/* Rows in file order, one column. Rows that are used next lie 16 rows on. */
SIMD_INLINE void x16_super_rows(const struct x16_super_format f, size_t n_rows,
                                size_t k, const void *w, size_t w_stride, const char *x,
                                float *y)
{
    uint8_t body[X16_SUPER * X16_ROWS] __attribute__((aligned(64)));
    uint8_t head[4 * X16_ROWS] __attribute__((aligned(64)));

    for (size_t i = 0; i < n_rows; i += X16_ROWS) {
        const struct x16_rows rows = x16_rows(w, w_stride, i, n_rows);
        vf acc[X16_SLICES][4];

        SIMD_UNROLL
        for (int s = 0; s < X16_SLICES; s++)
            acc[s][0] = v_zero_f();
        for (size_t b = 0; b < k / X16_SUPER; b++) {
            const size_t at = b * f.layout.block_bytes;
            struct x16_column column;

            x16_few_column(f, x, k, b, &column);
            for (size_t r = 0; r < X16_ROWS; r++)
                prefetch_lines(rows.first + r * w_stride + at,
                               (ptrdiff_t)(X16_ROWS * w_stride), f.layout.block_bytes);
            x16_interleave(f.layout, rows, at, body, head);
            SIMD_UNROLL
            for (int s = 0; s < X16_SLICES; s += X16_AT_ONCE) {
                const uint8_t *bodies[X16_STRANDS], *heads[X16_STRANDS];

                SIMD_UNROLL
                for (int t = 0; t < X16_AT_ONCE; t++) {
                    bodies[t] = body + (s + t) * X16_SLICE_BYTES;
                    heads[t] = head + (size_t)(s + t) * V_LANES * f.layout.head_bytes;
                }
                x16_super_step(f, X16_AT_ONCE, 1, bodies, heads, &x, k, b, &column,
                               acc + s);
            }
        }
        for (size_t s = 0; s < X16_SLICES; s++)
            x16_store(y, acc[s][0], i, s, n_rows);
    }
}

/* ---- many columns: a slice of a super-block is unpacked once for all ---------------
 */

struct x16_super_tile {
    vi w[64];
#if V_DOT32
    vf scale[16]; /* times d */
#else
    vi scale[16]; /* in scale form */
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

    f.scales(body, head, &sc);
    SIMD_UNROLL
    for (int s = 0; s < f.n_subs; s++)
#if V_DOT32
        tile->scale[s] = v_mul(sc.d, v_to_float(sc.scale[s]));
#else
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
    SIMD_UNROLL_64
    for (int step = 0; step < f.steps; step++)
        f.weights(body, step, x16_tile_emit, &sink);
}

/* acc[c] += tile times n columns. */
SIMD_INLINE void x16_super_tile_columns(const struct x16_super_format f,
                                        const struct x16_super_tile *tile, const int n,
                                        const char *x, size_t x_stride, size_t k,
                                        size_t b, vf *acc)
{
    const int per_sub = 64 / f.n_subs;
    const int run = V_RUN(f.max) < per_sub ? V_RUN(f.max) : per_sub;
    struct x16_column column[8];
    const int8_t *q = x16_column_q(f, x, b, column);
    const size_t q_stride = f.order != NULL ? sizeof(column[0]) : x_stride;
#if V_DOT32
    vf sum[8];
#else
    vi sum[8];
#endif

    SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        x16_column(f, false, x + (size_t)c * x_stride, k, b, &column[c]);
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
                for (int c = 0; c < n; c++)
                    part[c] = x16_dot(part[c], tile->w[four],
                                      q + (size_t)c * q_stride + 4 * four, f.is_signed);
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

        if (f.mins || (!V_DOT32 && f.bias != 0))
            beside = x16_dot_sums(tile->pairs, f.n_subs, &column[c]);
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

/* One panel times at most X16_MAX_COLS columns; blocks either in place (rows NULL)
 * or interleaved from rows. */
SIMD_INLINE void x16_super_tile_panel(const struct x16_super_format f, const uint8_t *w,
                                      const struct x16_rows *rows, size_t k,
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

        if (rows != NULL) {
            x16_interleave(f.layout, *rows, b * f.layout.block_bytes, body_buffer,
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
        const struct x16_rows rows = x16_rows(w, w_stride, i, n_rows);

        for (size_t c = 0; c < n_cols; c += X16_MAX_COLS)
            x16_super_tile_panel(f, NULL, &rows, k,
                                 n_cols - c < X16_MAX_COLS ? n_cols - c : X16_MAX_COLS,
                                 x + c * x_stride, x_stride, y + c * y_stride + i,
                                 y_stride, n_rows - i);
    }
}

SIMD_INLINE void x16_super_gemm_x16(const struct x16_super_format f, size_t n_panels,
                                    size_t k, const void *w, size_t n_cols,
                                    const char *x, size_t x_stride, float *y,
                                    size_t y_stride, size_t ahead)
{
    const size_t panel_bytes = X16_ROWS * (k / X16_SUPER) * f.layout.block_bytes;

    /* weights are read from a cache the second time */
    if (V_FEW_COLS > 1 && n_cols <= (f.light ? 2 : 1) * V_FEW_COLS) {
        for (size_t p = 0; p < n_panels; p++)
            for (size_t c = 0; c < n_cols; c += V_FEW_COLS)
                x16_super_panels(
                    f, V_FEW_COLS, 1, k, (const uint8_t *)w + p * panel_bytes,
                    n_cols - c < V_FEW_COLS ? n_cols - c : V_FEW_COLS, x + c * x_stride,
                    x_stride, y + c * y_stride + p * X16_ROWS, y_stride,
                    c == 0 ? ahead : 0);
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
