/* SPDX-License-Identifier: MIT
 *
 * float_panel.h - many columns times weights that are floats of 16 or 32 bits
 *
 * Rows are interleaved into panels on the stack, a vector lane a row: floats, FP_DEPTH
 * elements at a time, so that every column finds them converted, and no sum goes across
 * lanes. A tile of FP_ROWS rows and FP_COLS columns is held in registers; an activation
 * is broadcast for all its rows. All panels of FP_GROUP rows use the columns of a tile
 * before the next columns come, whose activations lie side by side in the first-level
 * cache meanwhile.
 *
 * Each y is the sum of sums of FP_DEPTH products.
 */
#ifndef SLM_KERNELS_SIMD_FLOAT_PANEL_H
#define SLM_KERNELS_SIMD_FLOAT_PANEL_H

#include "kernels/simd/vec.h"

enum {
#if defined(KERN_LEVEL_avx512)
    /* Of 32 registers, 16 are sums, two weights and one an activation. */
    FP_VECS = 2,
    FP_COLS = 8,
    FP_LEAST = 96,
#elif defined(KERN_LEVEL_avx2)
    /* Of 16 registers, twelve are sums, two weights and one an activation. */
    FP_VECS = 2,
    FP_COLS = 6,
    FP_LEAST = 24,
#else
    /* A vector is four registers: of 32, 24 are sums, four weights, one an activation.
     */
    FP_VECS = 1,
    FP_COLS = 6,
    FP_LEAST = 96,
#endif
    /* FP_LEAST: columns; for fewer, interleaving the weights costs more than it saves.
     */
    FP_ROWS = FP_VECS * V_LANES,
    FP_GROUP = 128,
    FP_PANELS = FP_GROUP / FP_ROWS,
    FP_DEPTH = 128, /* panels of a group: 64 KiB */
};

/* Four bytes of each row, element i of which is e[i], i < 4 / elem_bytes. */
typedef void float_split_fn(vi four, vf e[2]);

SIMD_INLINE void fp_split_f32(vi four, vf e[2])
{
    e[0] = v_float_bits(four);
}

SIMD_INLINE void fp_split_f16(vi four, vf e[2])
{
    e[0] = v_half_low(four);
    e[1] = v_half_low(v_srl32(four, 16));
}

SIMD_INLINE void fp_split_bf16(vi four, vf e[2])
{
    e[0] = v_float_bits(v_sll32(four, 16));
    e[1] = v_float_bits(v_and(four, v_set1_32((int)0xffff0000)));
}

struct float_panel {
    float w[FP_DEPTH][FP_ROWS];
} __attribute__((aligned(64)));

/* 16 bytes of V_LANES rows: elements i to i + 16 / elem_bytes - 1 of vector v. */
SIMD_INLINE void fp_interleave_16(float_split_fn *split, const size_t elem_bytes,
                                  const uint8_t *at, size_t stride,
                                  struct float_panel *to, size_t i, size_t v)
{
    const size_t in_four = 4 / elem_bytes;
    vi four[4];

    v_rows_16(at, stride, four);
    SIMD_UNROLL
    for (size_t j = 0; j < 4; j++) {
        vf e[2];

        split(four[j], e);
        SIMD_UNROLL
        for (size_t h = 0; h < in_four; h++)
            v_store_f(&to->w[i + in_four * j + h][V_LANES * v], e[h]);
    }
}

/* n elements of V_LANES rows; where n is no multiple of 16 bytes, zeros follow. */
SIMD_INLINE void fp_interleave(float_split_fn *split, const size_t elem_bytes,
                               const uint8_t *rows, size_t stride, size_t n,
                               struct float_panel *to, size_t v)
{
    const size_t step = 16 / elem_bytes;
    size_t i = 0;

    for (; i + step <= n; i += step)
        fp_interleave_16(split, elem_bytes, rows + i * elem_bytes, stride, to, i, v);
    if (i < n) {
        uint8_t end[V_LANES][16] = {{0}};

        for (size_t r = 0; r < V_LANES; r++)
            memcpy(end[r], rows + r * stride + i * elem_bytes, (n - i) * elem_bytes);
        fp_interleave_16(split, elem_bytes, end[0], sizeof(end[0]), to, i, v);
    }
}

/* Elements of the columns of a tile, side by side: columns far apart would meet in few
 * sets of the first-level cache. */
struct float_panel_columns {
    float x[FP_COLS][FP_DEPTH];
} __attribute__((aligned(64)));

/* y = or += n elements of n_v vectors of a panel's rows times n_c columns. */
SIMD_INLINE void fp_tile(const int n_v, const int n_c, size_t n,
                         const struct float_panel *panel,
                         const struct float_panel_columns *x, float *y, size_t y_stride,
                         bool add)
{
    vf acc[FP_COLS][FP_VECS];

    SIMD_UNROLL
    for (int c = 0; c < n_c; c++)
        SIMD_UNROLL
    for (int v = 0; v < n_v; v++)
        acc[c][v] = v_zero_f();
    for (size_t i = 0; i < n; i++) {
        vf w[FP_VECS];

        SIMD_UNROLL
        for (int v = 0; v < n_v; v++)
            w[v] = v_float_bits(v_load(&panel->w[i][V_LANES * v]));
        SIMD_UNROLL
        for (int c = 0; c < n_c; c++) {
            const vf xi = v_float_bits(v_bcast_4(&x->x[c][i]));

            SIMD_UNROLL
            for (int v = 0; v < n_v; v++)
                acc[c][v] = v_fma(w[v], xi, acc[c][v]);
        }
    }
    SIMD_UNROLL
    for (int c = 0; c < n_c; c++) {
        SIMD_UNROLL
        for (int v = 0; v < n_v; v++) {
            float *at = y + (size_t)c * y_stride + (size_t)v * V_LANES;

            if (add)
                acc[c][v] = v_fma(v_float_bits(v_load(at)), v_set1_f(1), acc[c][v]);
            v_store_f(at, acc[c][v]);
        }
    }
}

struct float_panels {
    struct float_panel panel[FP_PANELS];
    size_t n_rows; /* of those in use; a multiple of V_LANES */
    size_t n;      /* elements */
};

/* y = or += all panels times n_c columns. The same elements of the n_next columns
 * behind them are prefetched meanwhile. */
SIMD_INLINE void fp_columns(const int n_c, const struct float_panels *p,
                            const uint8_t *x, size_t x_stride, size_t n_next, float *y,
                            size_t y_stride, bool add)
{
    struct float_panel_columns columns;
    size_t next = 0;

    for (size_t c = 0; c < (size_t)n_c; c++)
        if (p->n == FP_DEPTH)
            memcpy(columns.x[c], x + c * x_stride, sizeof(columns.x[c]));
        else
            memcpy(columns.x[c], x + c * x_stride, p->n * sizeof(float));
    x += (size_t)n_c * x_stride;
    for (size_t i = 0; i < p->n_rows; i += FP_ROWS) {
        const struct float_panel *panel = &p->panel[i / FP_ROWS];

        for (; next * p->n_rows < n_next * (i + FP_ROWS) && next < n_next; next++)
            for (size_t at = 0; at < p->n * sizeof(float); at += 64)
                __builtin_prefetch(x + next * x_stride + at, 0, 2);
        if (p->n_rows - i >= FP_ROWS)
            fp_tile(FP_VECS, n_c, p->n, panel, &columns, y + i, y_stride, add);
        else
            fp_tile(1, n_c, p->n, panel, &columns, y + i, y_stride, add);
    }
}

/* n_rows, a multiple of V_LANES, times n_cols columns. */
SIMD_INLINE void float_panel_gemm(float_split_fn *split, const size_t elem_bytes,
                                  size_t n_rows, size_t k, const uint8_t *w,
                                  size_t w_stride, size_t n_cols, const uint8_t *x,
                                  size_t x_stride, float *y, size_t y_stride)
{
    struct float_panels p;

    for (size_t i = 0; i < n_rows; i += FP_GROUP) {
        p.n_rows = n_rows - i < FP_GROUP ? n_rows - i : FP_GROUP;
        for (size_t e = 0; e < k; e += FP_DEPTH) {
            const uint8_t *rows = w + i * w_stride + e * elem_bytes;
            size_t c = 0;

            p.n = k - e < FP_DEPTH ? k - e : FP_DEPTH;
            for (size_t r = 0; r < p.n_rows; r += V_LANES)
                fp_interleave(split, elem_bytes, rows + r * w_stride, w_stride, p.n,
                              &p.panel[r / FP_ROWS], r % FP_ROWS / V_LANES);
#define FP_TILES(n_c)                                                   \
    for (; c + (n_c) <= n_cols; c += (n_c))                             \
    fp_columns(n_c, &p, x + c * x_stride + e * sizeof(float), x_stride, \
               n_cols - c - (n_c) < (n_c) ? n_cols - c - (n_c) : (n_c), \
               y + c * y_stride + i, y_stride, e > 0)
            FP_TILES(FP_COLS);
            if (FP_COLS > 4)
                FP_TILES(4);
            FP_TILES(2);
            FP_TILES(1);
#undef FP_TILES
        }
    }
}

#endif
