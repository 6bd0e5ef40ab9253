/* SPDX-License-Identifier: MIT
 *
 * x16_int8.h - interleaved rows times many columns, requantised to bytes first
 *
 * 256 weights of a row become integers times one float: with d = max|w| / 127,
 *
 *   w ~ d * q,   -127 <= q <= 127,   |w - d * q| <= KERN_INT8_OFF * d
 *
 * Then a dot product is one chain of byte products, and a float step comes once in 256
 * weights, whatever scales and minima the format has. What that costs in exactness is
 * what an activation column of q8_256 costs, too, which has one scale per 256 as well.
 * Requantising takes as much time as products of a dozen columns; it is done once for
 * X16_INT8_COLS columns.
 *
 * It works on two weights of each row at a time, in 16-bit lanes: with factor, offset
 * of a sub-block (w = factor * (q - bias) + offset) in units of d / 256,
 *
 *   q * A + B,   A = round(factor),   B = round(offset) - bias * A + 128.5 * 256
 *
 * has the integer, 128 too large, in its upper byte. Range: that is 128.5 units of 256,
 * and at most 127 + 128 / 512 + 1 / 512 more or less: 320 to 65473. Only the result
 * must fit 16 bits, since products and sums that wrap are right modulo 2^16. The 128
 * make the weights unsigned, which the dot instruction wants; the columns' sums take
 * them off. Tiles take signed weights: without the 128, 16 bits wrap, and the upper
 * byte is the signed integer. Range of a sum: 256 * 255 * 127 < 2^23.
 *
 * Formats unpack as they define in x16_super_int8() and x16_block_int8(). Without a dot
 * instruction that gives 32-bit sums this does not pay: V_INT8.
 */
#ifndef SLM_KERNELS_SIMD_X16_INT8_H
#define SLM_KERNELS_SIMD_X16_INT8_H

#include "kernels/simd/x16.h"

#if V_INT8

/* A largest weight below this makes its 256 zeros. */
#define X16_INT8_TINY 0x1p-112f

/* KERN_INT8_OFF: half a step, and what A is off, times at most 128 for q - bias, and B:
 * 0.5 + 128 / 512 + 1 / 512. (An assertion of floats is none to clang.) */

enum {
    X16_INT8_FOURS = X16_PIECE / 4,
    X16_INT8_GROUP = V_LANES == 16 ? 8 : 4, /* columns whose sums fit the registers */
    X16_INT8_COLS = 256,                    /* columns that share requantised weights */
    X16_INT8_PIECES = 3 * X16_INT8_COLS,    /* of columns, prepared together */
    X16_INT8_BIAS = V_AMX ? 0 : 128, /* of bytes; tiles multiply signed ones, too */
};

/* Pieces of 256 values of columns, in the format's order: [piece of a column][column].
 */
struct x16_int8_columns {
    int8_t q[X16_INT8_PIECES][X16_PIECE] __attribute__((aligned(64)));
    int32_t start[X16_INT8_PIECES]; /* -128 * sum(q) */
    float d[X16_INT8_PIECES];
};

/* Requantises 256 weights of 16 rows, from `at` on: four of each row after four, slice
 * by slice, to w; each row's float to d. They are in a panel (rows NULL), whose next
 * weights between from and to it prefetches, or in rows in file order. */
typedef void x16_int8_fn(const uint8_t *panel, const struct x16_rows *rows, size_t k,
                         size_t at, size_t from, size_t to,
                         struct kern_prefetch prefetch, uint8_t *w, float *d);

/* The least and the largest byte of every lane. */
SIMD_INLINE vi x16_lane_min(vi v)
{
    v = v_min_u8(v, v_srl32(v, 16));
    v = v_min_u8(v, v_srl32(v, 8));
    return v_and(v, v_set1_32(255));
}

SIMD_INLINE vi x16_lane_largest(vi v)
{
    v = v_max_u8(v, v_srl32(v, 16));
    v = v_max_u8(v, v_srl32(v, 8));
    return v_and(v, v_set1_32(255));
}

/* The lower 16 bits of a lane in both its halves. */
SIMD_INLINE vi x16_both_halves(vi v)
{
    return v_or(v_and(v, v_set1_32(0xffff)), v_sll32(v, 16));
}

/* The largest magnitude of a slice's weights w[64], w = factor * (q - bias) + offset in
 * each of n_subs sub-blocks; offset NULL: none. */
SIMD_INLINE vf x16_int8_largest(const vi *w, const int n_subs, const int bias,
                                const vf *factor, const vf *offset)
{
    const int per_sub = X16_INT8_FOURS / n_subs;
    vf largest = v_zero_f(), poison = v_zero_f();

    for (int s = 0; s < n_subs; s++) {
        vi least = w[s * per_sub], most = least;
        vf low, high;

        SIMD_UNROLL_64
        for (int t = 1; t < per_sub; t++) {
            least = v_min_u8(least, w[s * per_sub + t]);
            most = v_max_u8(most, w[s * per_sub + t]);
        }
        low =
            v_mul(v_to_float(v_sub32(x16_lane_min(least), v_set1_32(bias))), factor[s]);
        high = v_mul(v_to_float(v_sub32(x16_lane_largest(most), v_set1_32(bias))),
                     factor[s]);
        if (offset != NULL) {
            low = v_add(low, offset[s]);
            high = v_add(high, offset[s]);
        }
        largest = v_max_f(v_max_f(largest, v_abs_f(low)), v_abs_f(high));
        poison = v_fma(low, v_zero_f(), poison); /* not a number where low is not */
    }
    return v_add(largest, poison);
}

/* A slice's weights to `to`, and the rows' d to d. A d that is not finite makes every
 * product not a number: all q are 0 then. */
SIMD_INLINE void x16_requantise(const vi *w, const int n_subs, const int bias,
                                const vf *factor, const vf *offset, uint8_t *to,
                                float *d)
{
    const int per_sub = X16_INT8_FOURS / n_subs;
    const vf largest = x16_int8_largest(w, n_subs, bias, factor, offset);
    const vf inverse =
        v_div(v_set1_f(127 * 256), v_max_f(v_set1_f(X16_INT8_TINY), largest));
    const vi even = v_set1_32(0x00ff00ff);

    v_store_f(d, v_mul(largest, v_set1_f(1.0f / 127)));
    for (int s = 0; s < n_subs; s++) {
        const vi times = v_round(v_mul(factor[s], inverse));
        const vi a = x16_both_halves(times);
        vi b = v_sub32(v_set1_32(X16_INT8_BIAS * 256 + 128),
                       v_mul32(times, v_set1_32(bias)));

        if (offset != NULL)
            b = v_add32(b, v_round(v_mul(offset[s], inverse)));
        b = x16_both_halves(b);
        SIMD_UNROLL
        for (int t = 0; t < (per_sub < 16 ? per_sub : 16); t++)
            for (int more = 0; more < per_sub; more += 16) {
                const int i = s * per_sub + more + t;
                const vi first = v_add16(v_mul16(v_and(w[i], even), a), b);
                const vi second = v_add16(v_mul16(v_srl16(w[i], 8), a), b);

                v_store(to + X16_SLICE_BYTES * i,
                        v_select(even, v_srl16(first, 8), second));
            }
    }
}

/* ---- columns ----------------------------------------------------------------------
 */

/* How many columns are multiplied, of n: zeros fill the last group. */
SIMD_INLINE size_t x16_int8_padded(size_t n_cols)
{
    return (n_cols + X16_INT8_GROUP - 1) / X16_INT8_GROUP * X16_INT8_GROUP;
}

/* Columns of n_cols that are taken at once, and, of n that are, pieces that are added
 * up apart from those before. */
SIMD_INLINE size_t x16_int8_at_once(size_t n_cols)
{
    const size_t n_turns = (n_cols + X16_INT8_COLS - 1) / X16_INT8_COLS;

    return x16_int8_padded((n_cols + n_turns - 1) / n_turns);
}

SIMD_INLINE size_t x16_int8_pieces(size_t n)
{
    return X16_INT8_PIECES / x16_int8_padded(n);
}

/* Values from `from` to `to` of n_cols q8_256 columns. order: that of each n_order (16
 * or 32) values, or NULL. */
SIMD_INLINE void x16_int8_prepare(const uint8_t *order, const int n_order, size_t k,
                                  size_t from, size_t to, size_t n_cols, const char *x,
                                  size_t x_stride, struct x16_int8_columns *out)
{
    const size_t n = x16_int8_padded(n_cols);

    for (size_t c = 0; c < n; c++)
        for (size_t at = from; at < to; at += X16_PIECE) {
            const size_t piece = (at - from) / X16_PIECE * n + c;
            const char *column = x + c * x_stride;
            int8_t *q = out->q[piece];
            int32_t eight[8];

            if (c >= n_cols) {
                memset(q, 0, X16_PIECE);
                out->start[piece] = 0;
                out->d[piece] = 0;
                continue;
            }
            if (order == NULL)
                for (size_t i = 0; i < X16_PIECE; i += sizeof(vi))
                    v_store(q + i, v_load(act_q(column) + at + i));
            else if (n_order == 16)
                for (size_t i = 0; i < X16_PIECE; i += sizeof(vi))
                    v_store(q + i, v_table16(v_load(act_q(column) + at + i),
                                             v_bcast_16(order)));
            else
                for (size_t i = 0; i < X16_PIECE; i += 32)
                    v_order_32(act_q(column) + at + i, order, q + i);
            v_sums_times(act_q8_256_sums(column, k) + at / 16, -X16_INT8_BIAS, eight);
            out->start[piece] = (eight[0] + eight[1] + eight[2] + eight[3]) +
                                (eight[4] + eight[5] + eight[6] + eight[7]);
            out->d[piece] = act_q8_256_d(column, k)[at / X16_PIECE];
        }
}

/* ---- products ---------------------------------------------------------------------
 */

/* acc[p][c] += a slice of V_TILE_PANELS panels times X16_INT8_GROUP columns. */
SIMD_INLINE void x16_int8_dots(const uint8_t (*w)[X16_PIECE * X16_ROWS],
                               const float (*row_d)[X16_ROWS],
                               const int8_t (*q)[X16_PIECE], const int32_t *start,
                               const float *d, vf (*acc)[X16_INT8_COLS])
{
    vi sum[V_TILE_PANELS][X16_INT8_GROUP];

    SIMD_UNROLL
    for (int p = 0; p < V_TILE_PANELS; p++)
        SIMD_UNROLL
    for (int c = 0; c < X16_INT8_GROUP; c++)
        sum[p][c] = v_bcast_4(&start[c]);
    for (int t = 0; t < X16_INT8_FOURS; t += 2)
        SIMD_UNROLL
    for (int i = t; i < t + 2; i++) {
        vi weights[V_TILE_PANELS];

        SIMD_UNROLL
        for (int p = 0; p < V_TILE_PANELS; p++)
            weights[p] = v_load(w[p] + X16_SLICE_BYTES * i);
        SIMD_UNROLL
        for (int c = 0; c < X16_INT8_GROUP; c++) {
            const vi x = v_bcast_4(q[c] + 4 * i);

            SIMD_UNROLL
            for (int p = 0; p < V_TILE_PANELS; p++) {
                sum[p][c] = v_dot_x(sum[p][c], weights[p], x);
                SIMD_OPAQUE(sum[p][c]);
            }
        }
    }
    SIMD_UNROLL
    for (int c = 0; c < X16_INT8_GROUP; c++)
        SIMD_UNROLL
    for (int p = 0; p < V_TILE_PANELS; p++)
        acc[p][c] = v_fma(v_mul(v_to_float(sum[p][c]), v_set1_f(d[c])),
                          v_float_bits(v_load(row_d[p])), acc[p][c]);
}

/* What a group's sums are about to be added to. */
SIMD_INLINE void x16_int8_prefetch(const float *y, size_t y_stride, size_t n_cols)
{
    for (size_t c = 0; c < n_cols; c++)
        for (size_t p = 0; p < V_TILE_PANELS; p++)
            __builtin_prefetch(y + c * y_stride + X16_ROWS * p, 1, 3);
}

/* V_TILE_PANELS panels, panel_bytes apart, or as often 16 rows in file order, times
 * n_cols prepared columns: see x16_tile_fn. */
SIMD_INLINE void x16_int8_panels(x16_int8_fn *requantise, size_t panel_bytes,
                                 const uint8_t *panel, const struct x16_rows *rows,
                                 size_t k, size_t from, size_t to, size_t n_cols,
                                 const struct x16_int8_columns *columns, float *y,
                                 size_t y_stride, size_t n_rows,
                                 struct kern_prefetch prefetch)
{
    const size_t n = x16_int8_padded(n_cols);
    uint8_t w[V_TILE_PANELS][X16_PIECE * X16_ROWS] __attribute__((aligned(64)));
    float d[V_TILE_PANELS][X16_ROWS];
    vf acc[X16_SLICES][V_TILE_PANELS][X16_INT8_COLS];

    for (size_t s = 0; s < X16_SLICES; s++)
        for (size_t p = 0; p < V_TILE_PANELS; p++)
            for (size_t c = 0; c < n; c++)
                acc[s][p][c] = v_zero_f();
    for (size_t at = from; at < to; at += X16_PIECE) {
        const size_t piece = (at - from) / X16_PIECE * n;

        for (size_t p = 0; p < V_TILE_PANELS; p++)
            requantise(panel + (X16_ROWS * p < n_rows ? p * panel_bytes : 0),
                       rows == NULL ? NULL : rows + p, k, at, from, to, prefetch, w[p],
                       d[p]);
        for (size_t s = 0; s < X16_SLICES; s++)
            for (size_t c = 0; c < n; c += X16_INT8_GROUP) {
                const size_t first = piece + c;
                const bool is_last = at + X16_PIECE >= to;
                const size_t left = n_cols - c;
                const size_t n_left = left < X16_INT8_GROUP ? left : X16_INT8_GROUP;
                float *out = y + c * y_stride;

                /* columns of y are often so far apart that they share a set of a cache:
                 * a few at a time, fetched and stored */
                if (is_last && s == 0)
                    x16_int8_prefetch(out, y_stride, n_left);
                x16_int8_dots(
                    (const void *)(w[0] + s * X16_INT8_FOURS * X16_SLICE_BYTES),
                    (const void *)(d[0] + s * V_LANES), columns->q + first,
                    columns->start + first, columns->d + first, (void *)&acc[s][0][c]);
                for (size_t p = 0; is_last && p < V_TILE_PANELS; p++)
                    x16_store_columns(out, y_stride, acc[s][p] + c, n_left,
                                      p * X16_ROWS, s, n_rows, from != 0);
            }
    }
}

typedef void x16_int8_prepare_fn(size_t k, size_t from, size_t to, size_t n_cols,
                                 const char *x, size_t x_stride,
                                 struct x16_int8_columns *out);
typedef void x16_int8_panels_fn(const uint8_t *panel, const struct x16_rows *rows,
                                size_t k, size_t from, size_t to, size_t n_cols,
                                const struct x16_int8_columns *columns, float *y,
                                size_t y_stride, size_t n_rows,
                                struct kern_prefetch prefetch);

/* See x16_gemm(). */
SIMD_INLINE void x16_int8_gemm(x16_int8_panels_fn *multiply,
                               x16_int8_prepare_fn *prepare, size_t panel_bytes,
                               size_t n_rows, size_t k, const uint8_t *w,
                               size_t w_stride, size_t n_cols, const char *x,
                               size_t x_stride, float *y, size_t y_stride,
                               struct kern_prefetch prefetch)
{
    const size_t at_once = x16_int8_at_once(n_cols);
    struct x16_int8_columns columns;

    for (size_t c = 0; c < n_cols; c += at_once) {
        const size_t n = n_cols - c < at_once ? n_cols - c : at_once;
        const size_t most = x16_int8_pieces(n) * X16_PIECE;

        for (size_t from = 0, to; from < k; from = to) {
            to = k - from < most ? k : from + most;
            prepare(k, from, to, n, x + c * x_stride, x_stride, &columns);
            for (size_t i = 0; i < n_rows; i += V_TILE_PANELS * X16_ROWS) {
                struct x16_rows rows[V_TILE_PANELS];

                for (size_t p = 0; panel_bytes == 0 && p < V_TILE_PANELS; p++) {
                    const size_t at = i + p * X16_ROWS;

                    rows[p] = x16_rows(w, w_stride, at < n_rows ? at : i, n_rows);
                }
                multiply(w + i / X16_ROWS * panel_bytes, panel_bytes == 0 ? rows : NULL,
                         k, from, to, n, &columns, y + c * y_stride + i, y_stride,
                         n_rows - i, prefetch);
            }
        }
    }
}

/* Defines gemm_int8 and gemm_x16_int8 of a format at this level. */
#define X16_INT8_KERNELS(name, format, block, requantise_fn, n_order)                 \
    static SIMD_NOINLINE void KERN_NAME(requantise, name)(                            \
        const uint8_t *panel, const struct x16_rows *rows, size_t k, size_t at,       \
        size_t from, size_t to, struct kern_prefetch prefetch, uint8_t *w, float *d)  \
    {                                                                                 \
        requantise_fn(&format, panel, rows, k, at, from, to, prefetch, w, d);         \
    }                                                                                 \
    static SIMD_NOINLINE void KERN_NAME(int8_prepare, name)(                          \
        size_t k, size_t from, size_t to, size_t n_cols, const char *x,               \
        size_t x_stride, struct x16_int8_columns *out)                                \
    {                                                                                 \
        x16_int8_prepare(format.order, n_order, k, from, to, n_cols, x, x_stride,     \
                         out);                                                        \
    }                                                                                 \
    static SIMD_NOINLINE void KERN_NAME(int8_panels, name)(                           \
        const uint8_t *panel, const struct x16_rows *rows, size_t k, size_t from,     \
        size_t to, size_t n_cols, const struct x16_int8_columns *columns, float *y,   \
        size_t y_stride, size_t n_rows, struct kern_prefetch prefetch)                \
    {                                                                                 \
        x16_int8_panels(KERN_NAME(requantise, name),                                  \
                        X16_ROWS *(k / (block)) * format.layout.block_bytes, panel,   \
                        rows, k, from, to, n_cols, columns, y, y_stride, n_rows,      \
                        prefetch);                                                    \
    }                                                                                 \
    void KERN_NAME(gemm_x16_int8, name)(                                              \
        size_t n_panels, size_t k, const void *w, size_t n_cols, const void *x,       \
        size_t x_stride, float *y, size_t y_stride, struct kern_prefetch prefetch)    \
    {                                                                                 \
        x16_int8_gemm(KERN_NAME(int8_panels, name), KERN_NAME(int8_prepare, name),    \
                      X16_ROWS *(k / (block)) * format.layout.block_bytes,            \
                      n_panels * X16_ROWS, k, w, 0, n_cols, x, x_stride, y, y_stride, \
                      x16_prefetch_several(prefetch));                                \
    }                                                                                 \
    void KERN_NAME(gemm_int8, name)(size_t n_rows, size_t k, const void *w,           \
                                    size_t w_stride, size_t n_cols, const void *x,    \
                                    size_t x_stride, float *y, size_t y_stride)       \
    {                                                                                 \
        x16_int8_gemm(KERN_NAME(int8_panels, name), KERN_NAME(int8_prepare, name), 0, \
                      n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride,       \
                      (struct kern_prefetch){0});                                     \
    }
#else
#define X16_INT8_KERNELS(name, format, block, requantise_fn, n_order)
#endif

#endif
