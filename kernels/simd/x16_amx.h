/* SPDX-License-Identifier: MIT
 *
 * x16_amx.h - interleaved rows times several columns, by tiles: columns in groups
 *
 * The counterpart of x16_gemm() for a level of tiles. A group is 16 columns, which
 * tiles A load from where the quants are; the last group ends with the last column and
 * takes again some of the group before it. Less columns than a group are tiles of as
 * many rows, which cost by their rows. Weights are unpacked once for all groups.
 * Formats say how in x16_super_amx.h (super-blocks of 256), x16_block_amx.h (blocks of
 * 32) and x16_int8_amx.h (either, requantised).
 */
#ifndef SLM_KERNELS_SIMD_X16_AMX_H
#define SLM_KERNELS_SIMD_X16_AMX_H

#include "kernels/simd/amx.h"
#include "kernels/simd/x16.h"

enum {
    AMX_GROUP = 16, /* columns */
    AMX_CHUNK = 64, /* weights of a row in a tile */
    AMX_CHUNKS = X16_PIECE / AMX_CHUNK,
    AMX_MAX_GROUPS = 32, /* that share unpacked weights */
    AMX_MIN_GROUPS = 8,  /* as many should, however long rows are */
    AMX_PIECES = 256,    /* of groups, whose quants stay in the second-level cache */
    AMX_PANELS = 2,      /* panels that share a group's tiles */
    AMX_SUMS = 8,        /* columns whose sums are added up together, at most */
};

/* What a piece of a group's columns brings besides quants. */
struct amx_side {
    union {
        int16_t sums[AMX_GROUP * 16]; /* as in struct x16_column, of all sub-blocks */
        float s[8][AMX_GROUP];        /* of every block */
    };
    float d[8][AMX_GROUP];
};

/* How a product is cut: columns that are taken at once, and weights of a row. */
struct amx_cut {
    size_t n_cols, k;
    /* Each part of the rows is added up from zero, as vectors do it; else a part
     * continues the sums of the part before, and results do not depend on the cut. */
    bool apart;
    size_t n_pieces; /* of requantised weights: those that vectors add up apart */
};

struct amx_columns {
    const char *x; /* the first column, its layout of k values */
    size_t stride, n_cols, n_groups;
    const int8_t *q;       /* quants from the first one prepared on, `stride` apart */
    struct amx_side *side; /* [piece][group] */
    const struct amx_cut *cut;
};

/* The first column of a group. */
SIMD_INLINE size_t amx_first(const struct amx_columns *c, size_t g)
{
    const size_t at = g * AMX_GROUP;

    return at + AMX_GROUP <= c->n_cols ? at
           : c->n_cols > AMX_GROUP     ? c->n_cols - AMX_GROUP
                                       : 0;
}

SIMD_INLINE const int8_t *amx_quants(const struct amx_columns *c, size_t g, size_t at)
{
    return c->q + amx_first(c, g) * c->stride + at;
}

/* Columns of a group that are added up: all, or, of less than a group, those that exist
 * and what fills their last AMX_SUMS. */
SIMD_INLINE size_t amx_added(const struct amx_columns *c)
{
    return c->n_cols < AMX_GROUP ? (c->n_cols + AMX_SUMS - 1) / AMX_SUMS * AMX_SUMS
                                 : (size_t)AMX_GROUP;
}

/* Column j of group g; a column that only fills up the group is the first one. */
SIMD_INLINE const char *amx_column(const struct amx_columns *c, size_t g, size_t j)
{
    const size_t at = amx_first(c, g) + j;

    return c->x + (at < c->n_cols ? at : 0) * c->stride;
}

/* How `left` of n_cols columns and rows of k weights are cut; in_panels: rows are. */
typedef struct amx_cut amx_cut_fn(size_t k, size_t n_cols, size_t left, bool in_panels);

/* Fills in the sides of pieces from `from` to `to`. */
typedef void amx_sides_fn(size_t k, size_t from, size_t to,
                          const struct amx_columns *columns);

/* As x16_tile_fn, of AMX_PANELS panels and the columns of a cut. */
typedef void amx_panels_fn(const uint8_t *panel, const struct x16_rows *rows, size_t k,
                           size_t from, size_t to, const struct amx_columns *columns,
                           float *y, size_t y_stride, size_t n_rows,
                           struct kern_prefetch prefetch);

/* n in about equal parts of at most `most`. */
SIMD_INLINE size_t amx_equal_parts(size_t n, size_t most)
{
    const size_t n_parts = (n + most - 1) / most;

    return (n + n_parts - 1) / n_parts;
}

/* The usual cut: rows as a whole, and of columns whole groups, as many as the
 * second-level cache holds the quants of; at least AMX_MIN_GROUPS, for which long rows
 * are cut. What sums are added to is read and written for every part of a row, and
 * those lines of y are far apart: so rows are cut last. */
SIMD_INLINE struct amx_cut amx_usual_cut(size_t k, size_t n_cols, size_t left,
                                         bool in_panels)
{
    const size_t n_pieces = k / X16_PIECE;
    size_t groups = AMX_PIECES / n_pieces, at_once;

    (void)left, (void)in_panels;
    groups = groups > AMX_MAX_GROUPS   ? AMX_MAX_GROUPS
             : groups < AMX_MIN_GROUPS ? AMX_MIN_GROUPS
                                       : groups;
    at_once = amx_equal_parts(n_cols, groups * AMX_GROUP);
    groups = (at_once + AMX_GROUP - 1) / AMX_GROUP;
    return (struct amx_cut){.n_cols = groups * AMX_GROUP,
                            .k = X16_PIECE *
                                 amx_equal_parts(n_pieces, AMX_PIECES / groups)};
}

/* See x16_gemm(). bytes_k: of the tiles A. */
SIMD_INLINE void amx_gemm(amx_panels_fn *multiply, amx_sides_fn *prepare,
                          amx_cut_fn *cut_of, size_t bytes_k, size_t panel_bytes,
                          size_t n_rows, size_t k, const uint8_t *w, size_t w_stride,
                          size_t n_cols, const char *x, size_t x_stride, float *y,
                          size_t y_stride, struct kern_prefetch prefetch)
{
    struct amx_side side[AMX_PIECES];
    size_t n = n_cols;

    for (size_t c = 0; c < n_cols; c += n) {
        const struct amx_cut cut = cut_of(k, n_cols, n_cols - c, panel_bytes != 0);
        struct amx_columns columns = {
            .x = x + c * x_stride, .stride = x_stride, .side = side, .cut = &cut};

        n = n_cols - c < cut.n_cols ? n_cols - c : cut.n_cols;
        columns.n_cols = n;
        columns.n_groups = (n + AMX_GROUP - 1) / AMX_GROUP;
        amx_begin(n < AMX_GROUP ? n : AMX_GROUP, bytes_k);
        for (size_t from = 0, to; from < k; from = to) {
            to = k - from < cut.k ? k : from + cut.k;
            columns.q = act_q(columns.x) + from;
            prepare(k, from, to, &columns);
            for (size_t i = 0; i < n_rows; i += AMX_PANELS * X16_ROWS) {
                struct x16_rows rows[AMX_PANELS];

                for (size_t p = 0; panel_bytes == 0 && p < AMX_PANELS; p++) {
                    const size_t at = i + p * X16_ROWS;

                    rows[p] = x16_rows(w, w_stride, at < n_rows ? at : i, n_rows);
                }
                multiply(w + i / X16_ROWS * panel_bytes, panel_bytes == 0 ? rows : NULL,
                         k, from, to, &columns, y + c * y_stride + i, y_stride,
                         n_rows - i, prefetch);
            }
        }
    }
    amx_end();
}

/* Sums of a group's columns with each panel. */
struct amx_acc {
    vf v[AMX_PANELS][AMX_GROUP];
};

/* Lanes that are rows of panel p. */
SIMD_INLINE __mmask16 amx_rows(size_t p, size_t n_rows)
{
    const size_t n = n_rows > p * X16_ROWS ? n_rows - p * X16_ROWS : 0;

    return (__mmask16)(n < X16_ROWS ? (1u << n) - 1 : 0xffff);
}

/* acc = zeros, or y, where a part of the rows continues the one before. */
SIMD_INLINE void amx_start(const struct amx_columns *columns, size_t from,
                           const float *y, size_t y_stride, size_t n_rows,
                           struct amx_acc *acc)
{
    const bool continues = from != 0 && !columns->cut->apart;

    for (size_t g = 0; g < columns->n_groups; g++)
        for (size_t c = 0; c < AMX_GROUP; c++) {
            const size_t at = amx_first(columns, g) + c;

            for (size_t p = 0; p < AMX_PANELS; p++)
                acc[g].v[p][c] =
                    continues && at < columns->n_cols
                        ? _mm512_maskz_loadu_ps(amx_rows(p, n_rows),
                                                y + at * y_stride + p * X16_ROWS)
                        : v_zero_f();
        }
}

/* y = acc, or, where parts are added up apart, y += acc: columns that the group before
 * has stay out. */
SIMD_INLINE void amx_store(const struct amx_columns *columns, size_t from,
                           const struct amx_acc *acc, float *y, size_t y_stride,
                           size_t n_rows)
{
    for (size_t g = 0; g < columns->n_groups; g++) {
        const size_t at = g * AMX_GROUP, before = at - amx_first(columns, g);
        const size_t left = columns->n_cols - at;
        const size_t n = left < AMX_GROUP ? left : AMX_GROUP;

        for (size_t p = 0; p < AMX_PANELS; p++)
            x16_store_columns(y + at * y_stride, y_stride, acc[g].v[p] + before, n,
                              p * X16_ROWS, 0, n_rows,
                              from != 0 && columns->cut->apart);
    }
}

/* Block b of panel p of those at w, whose bodies and block scales are read where they
 * are, or put together from rows in file order into the two buffers. */
SIMD_INLINE void amx_block(const struct x16_layout *l, const uint8_t *w,
                           const struct x16_rows *rows, size_t p, size_t n_blocks,
                           size_t first, size_t end, size_t b, size_t n_rows,
                           struct kern_prefetch prefetch, uint8_t *body_buffer,
                           uint8_t *scale_buffer, const uint8_t **body,
                           const uint8_t **block_scales)
{
    const size_t panel_bytes = X16_ROWS * n_blocks * l->block_bytes;

    if (rows == NULL) {
        const uint8_t *panel = w + (X16_ROWS * p < n_rows ? p * panel_bytes : 0);

        *body = x16_body_of(l, panel, n_blocks, b);
        *block_scales = x16_scales_of(l, panel, b);
        if (prefetch.distance != 0)
            x16_prefetch_next(l, panel, n_blocks, first, end, b, 1, KERN_PREFETCH_T1);
        return;
    }
    x16_interleave(l, rows[p], b * l->block_bytes, body_buffer, scale_buffer);
    *body = body_buffer;
    *block_scales = scale_buffer;
}

/* n <= 32 weights, which a format emits in another order, in that of the columns'
 * quants: byte j of dword t is then weight 4t + j, which stood at the place p that has
 * it. */
SIMD_INLINE void amx_reorder(const uint8_t *order, const int n, vi *w)
{
    vi out[8];

    SIMD_UNROLL
    for (int t = 0; t < n / 4; t++) {
        out[t] = v_zero();
        SIMD_UNROLL
        for (int j = 0; j < 4; j++) {
            int p = 0;

            SIMD_UNROLL_64
            for (int at = 0; at < n; at++)
                p = order[at] == 4 * t + j ? at : p;
            out[t] = v_select(v_set1_32((int)(0xffu << 8 * j)),
                              p % 4 < j ? v_sll32(w[p / 4], 8 * (j - p % 4))
                                        : v_srl32(w[p / 4], 8 * (p % 4 - j)),
                              out[t]);
        }
    }
    SIMD_UNROLL
    for (int t = 0; t < n / 4; t++)
        w[t] = out[t];
}

/* Defines two kernels of a format at this level, gemm_x16 and gemm, or others that
 * take the same. */
#define AMX_KERNELS(name, op_x16, op, format, block, bytes_k, cut_fn, sides_fn,        \
                    panels_fn)                                                         \
    static SIMD_NOINLINE void KERN_NAME(op##_sides, name)(                             \
        size_t k, size_t from, size_t to, const struct amx_columns *columns)           \
    {                                                                                  \
        sides_fn(&format, k, from, to, columns);                                       \
    }                                                                                  \
    static SIMD_NOINLINE void KERN_NAME(op##_panels, name)(                            \
        const uint8_t *panel, const struct x16_rows *rows, size_t k, size_t from,      \
        size_t to, const struct amx_columns *columns, float *y, size_t y_stride,       \
        size_t n_rows, struct kern_prefetch prefetch)                                  \
    {                                                                                  \
        panels_fn(&format, panel, rows, k, from, to, columns, y, y_stride, n_rows,     \
                  prefetch);                                                           \
    }                                                                                  \
    void KERN_NAME(op_x16, name)(                                                      \
        size_t n_panels, size_t k, const void *w, size_t n_cols, const void *x,        \
        size_t x_stride, float *y, size_t y_stride, struct kern_prefetch prefetch)     \
    {                                                                                  \
        amx_gemm(KERN_NAME(op##_panels, name), KERN_NAME(op##_sides, name), cut_fn,    \
                 bytes_k, X16_ROWS *(k / (block)) * format.layout.block_bytes,         \
                 n_panels * X16_ROWS, k, w, 0, n_cols, x, x_stride, y, y_stride,       \
                 prefetch);                                                            \
    }                                                                                  \
    void KERN_NAME(op, name)(size_t n_rows, size_t k, const void *w, size_t w_stride,  \
                             size_t n_cols, const void *x, size_t x_stride, float *y,  \
                             size_t y_stride)                                          \
    {                                                                                  \
        amx_gemm(KERN_NAME(op##_panels, name), KERN_NAME(op##_sides, name), cut_fn,    \
                 bytes_k, 0, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride, \
                 (struct kern_prefetch){0});                                           \
    }

#endif
