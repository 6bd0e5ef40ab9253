/* SPDX-License-Identifier: MIT
 *
 * x16_int8_amx.h - requantised rows (x16_int8.h) times many columns, by tiles
 *
 * 256 weights are bytes times one float, so a super-block's tiles are all there is to
 * multiply: two groups of columns with two panels. Weights are signed here, and put
 * into the order of the columns, which tiles load from where they are.
 *
 * Sums of 256 are exact, each float step is that of x16_int8_dots(), and columns and
 * rows are cut where x16_int8_gemm() cuts them: what it adds up in y is added up in
 * `total`. So results are those of vectors bit for bit, and which of the two multiplies
 * may be a question of time.
 */
#ifndef SLM_KERNELS_SIMD_X16_INT8_AMX_H
#define SLM_KERNELS_SIMD_X16_INT8_AMX_H

#include "kernels/simd/x16_amx_steps.h"
#include "kernels/simd/x16_int8.h"

/* One product in 256 weights, and no minima. */
static const struct x16_super_format amx_requantised = {.n_subs = 1, .narrow = 1};

/* See amx_cut_fn. */
SIMD_INLINE struct amx_cut amx_int8_cut(size_t k, size_t n_cols, size_t left,
                                        bool in_panels)
{
    const size_t at_once = x16_int8_at_once(n_cols);
    const size_t n = left < at_once ? left : at_once;
    const size_t n_pieces = x16_int8_pieces(n);
    const size_t most = AMX_PIECES / ((n + AMX_GROUP - 1) / AMX_GROUP);

    (void)in_panels;
    return (struct amx_cut){
        .n_cols = at_once,
        .k = X16_PIECE * (k / X16_PIECE <= most ? most : most / n_pieces * n_pieces),
        .n_pieces = n_pieces};
}

/* See amx_sides_fn. */
SIMD_INLINE void amx_int8_sides(size_t k, size_t from, size_t to,
                                const struct amx_columns *columns)
{
    const size_t n_groups = columns->n_groups, first = from / X16_PIECE;

    for (size_t g = 0; g < n_groups; g++)
        for (size_t j = 0; j < amx_added(columns); j++)
            for (size_t b = first; b < to / X16_PIECE; b++)
                columns->side[(b - first) * n_groups + g].d[0][j] =
                    act_q8_256_d(amx_column(columns, g, j), k)[b];
}

/* A panel's 64 vectors in the columns' order: see amx_reorder(). */
SIMD_INLINE void amx_int8_order(const uint8_t *order, const int n_order, vi *w)
{
    for (int t = 0; order != NULL && t < X16_INT8_FOURS; t += n_order / 4)
        amx_reorder(order, n_order, w + t);
}

/* total += part, which becomes 0; total = part at the beginning of the rows. */
SIMD_INLINE void amx_int8_add_up(size_t n_groups, bool is_first, struct amx_acc *total,
                                 struct amx_acc *part)
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t p = 0; p < AMX_PANELS; p++)
            for (size_t c = 0; c < AMX_GROUP; c++) {
                vf *to = &total[g].v[p][c], *v = &part[g].v[p][c];

                *to = is_first ? *v : v_add(*v, *to);
                *v = v_zero_f();
            }
}

/* See amx_panels_fn. requantise: see x16_int8_fn. */
SIMD_INLINE void
amx_int8_panels(x16_int8_fn *requantise, const uint8_t *order, const int n_order,
                size_t panel_bytes, const uint8_t *w, const struct x16_rows *rows,
                size_t k, size_t from, size_t to, const struct amx_columns *columns,
                float *y, size_t y_stride, size_t n_rows, struct kern_prefetch prefetch)
{
    const size_t n_groups = columns->n_groups, n_pieces = columns->cut->n_pieces;
    struct amx_acc total[X16_INT8_COLS / AMX_GROUP], part[X16_INT8_COLS / AMX_GROUP];
    struct amx_super panels[AMX_PANELS];

    amx_start(columns, from, y, y_stride, n_rows, total);
    for (size_t g = 0; g < n_groups; g++)
        for (size_t c = 0; c < AMX_GROUP; c++)
            part[g].v[0][c] = part[g].v[1][c] = v_zero_f();
    for (size_t at = from; at < to; at += X16_PIECE) {
        const size_t piece = at / X16_PIECE;
        const struct amx_super_turn turn = {.panels = panels,
                                            .columns = columns,
                                            .at = at - from,
                                            .side = columns->side +
                                                    (at - from) / X16_PIECE * n_groups,
                                            .acc = part,
                                            .n_added = columns->n_cols};

        for (size_t p = 0; p < AMX_PANELS; p++) {
            requantise(w + (X16_ROWS * p < n_rows ? p * panel_bytes : 0),
                       rows == NULL ? NULL : rows + p, k, at, from, to, prefetch,
                       (uint8_t *)panels[p].low, (float *)&panels[p].d);
            amx_int8_order(order, n_order, panels[p].low);
        }
        amx_super_all(&amx_requantised, &turn);
        if ((piece + 1) % n_pieces == 0 || at + X16_PIECE >= k)
            amx_int8_add_up(n_groups, piece < n_pieces, total, part);
    }
    amx_store(columns, from, total, y, y_stride, n_rows);
}

/* Defines gemm_int8 and gemm_x16_int8 of a format at this level. n_order: the places of
 * its order. */
#define AMX_INT8_KERNELS(name, format, block, requantise_fn, n_order)                  \
    static SIMD_NOINLINE void KERN_NAME(requantise, name)(                             \
        const uint8_t *panel, const struct x16_rows *rows, size_t k, size_t at,        \
        size_t from, size_t to, struct kern_prefetch prefetch, uint8_t *w, float *d)   \
    {                                                                                  \
        requantise_fn(&format, panel, rows, k, at, from, to, prefetch, w, d);          \
    }                                                                                  \
    SIMD_INLINE void KERN_NAME(int8_sides, name)(const void *unused, size_t k,         \
                                                 size_t from, size_t to,               \
                                                 const struct amx_columns *columns)    \
    {                                                                                  \
        (void)unused;                                                                  \
        amx_int8_sides(k, from, to, columns);                                          \
    }                                                                                  \
    SIMD_INLINE void KERN_NAME(int8_panels, name)(                                     \
        const void *unused, const uint8_t *panel, const struct x16_rows *rows,         \
        size_t k, size_t from, size_t to, const struct amx_columns *columns, float *y, \
        size_t y_stride, size_t n_rows, struct kern_prefetch prefetch)                 \
    {                                                                                  \
        (void)unused;                                                                  \
        amx_int8_panels(KERN_NAME(requantise, name), format.order, n_order,            \
                        X16_ROWS *(k / (block)) * format.layout.block_bytes, panel,    \
                        rows, k, from, to, columns, y, y_stride, n_rows, prefetch);    \
    }                                                                                  \
    AMX_KERNELS(name, gemm_x16_int8, gemm_int8, format, block, AMX_CHUNK,              \
                amx_int8_cut, KERN_NAME(int8_sides, name),                             \
                KERN_NAME(int8_panels, name))

#endif
