/* SPDX-License-Identifier: MIT
 *
 * x16_amx.h - interleaved rows times several columns, by tiles: columns in groups
 *
 * The counterpart of x16_gemm() for a level of tiles. A group is 16 columns, which
 * tiles A load from where the quants are; the last group ends with the last column and
 * takes again some of the group before it. Weights are unpacked once for all groups.
 * Formats say how in x16_super_amx.h (super-blocks of 256) and x16_block_amx.h (blocks
 * of 32).
 */
#ifndef SLM_KERNELS_SIMD_X16_AMX_H
#define SLM_KERNELS_SIMD_X16_AMX_H

#include "kernels/simd/amx.h"
#include "kernels/simd/x16.h"

enum {
    AMX_GROUP = 16, /* columns */
    AMX_CHUNK = 64, /* weights of a row in a tile */
    AMX_CHUNKS = X16_PIECE / AMX_CHUNK,
    AMX_MAX_COLS = 512, /* columns that share unpacked weights */
    AMX_MAX_GROUPS = AMX_MAX_COLS / AMX_GROUP,
    AMX_PIECES = 128, /* of groups, whose quants stay in the second-level cache */
    AMX_PANELS = 2,   /* panels that share a group's tiles */
    AMX_FEW_K = 1024, /* of less columns than a group, which are copied */
};

/* What a piece of a group's columns brings besides quants. */
struct amx_side {
    union {
        int16_t sums[AMX_GROUP * 16]; /* as in struct x16_column, of all sub-blocks */
        float s[8][AMX_GROUP];        /* of every block */
    };
    float d[8][AMX_GROUP];
};

struct amx_columns {
    const char *x; /* the first column, its layout of k values */
    size_t stride, n_cols, n_groups;
    const int8_t *q; /* quants from the first one prepared on, of at least a group */
    size_t q_stride;
    struct amx_side *side; /* [piece][group] */
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
    return c->q + amx_first(c, g) * c->q_stride + at;
}

/* Fills in the sides of pieces from `from` to `to`. */
typedef void amx_sides_fn(size_t k, size_t from, size_t to,
                          const struct amx_columns *columns);

/* As x16_tile_fn, of AMX_PANELS panels and at most AMX_MAX_COLS columns. */
typedef void amx_panels_fn(const uint8_t *panel, const struct x16_rows *rows, size_t k,
                           size_t from, size_t to, const struct amx_columns *columns,
                           float *y, size_t y_stride, size_t n_rows,
                           struct kern_prefetch prefetch);

/* Columns to take at once: about equal parts, whole groups. */
SIMD_INLINE size_t amx_cols_at_once(size_t n_cols)
{
    const size_t n_turns = (n_cols + AMX_MAX_COLS - 1) / AMX_MAX_COLS;
    const size_t part = (n_cols + n_turns - 1) / n_turns;

    return (part + AMX_GROUP - 1) / AMX_GROUP * AMX_GROUP;
}

/* Quants of less columns than a group, from `from` to `to`, and zeros. */
SIMD_INLINE void amx_copy_few(const char *x, size_t x_stride, size_t n_cols,
                              size_t from, size_t to, int8_t (*out)[AMX_FEW_K])
{
    for (size_t c = 0; c < AMX_GROUP; c++)
        if (c < n_cols)
            memcpy(out[c], act_q(x + c * x_stride) + from, to - from);
        else
            memset(out[c], 0, to - from);
}

/* See x16_gemm(). bytes_k: of the tiles A. */
SIMD_INLINE void amx_gemm(amx_panels_fn *multiply, amx_sides_fn *prepare,
                          size_t bytes_k, size_t panel_bytes, size_t n_rows, size_t k,
                          const uint8_t *w, size_t w_stride, size_t n_cols,
                          const char *x, size_t x_stride, float *y, size_t y_stride,
                          struct kern_prefetch prefetch)
{
    const size_t at_once = amx_cols_at_once(n_cols);
    struct amx_side side[AMX_PIECES];
    int8_t few[AMX_GROUP][AMX_FEW_K] __attribute__((aligned(64)));

    amx_begin(AMX_GROUP, bytes_k);
    for (size_t c = 0; c < n_cols; c += at_once) {
        const size_t n = n_cols - c < at_once ? n_cols - c : at_once;
        struct amx_columns columns = {.x = x + c * x_stride,
                                      .stride = x_stride,
                                      .n_cols = n,
                                      .n_groups = (n + AMX_GROUP - 1) / AMX_GROUP,
                                      .q_stride = x_stride,
                                      .side = side};
        const size_t most = n < AMX_GROUP ? (size_t)AMX_FEW_K
                                          : AMX_PIECES / columns.n_groups * X16_PIECE;

        for (size_t from = 0, to; from < k; from = to) {
            to = k - from < most ? k : from + most;
            columns.q = act_q(columns.x) + from;
            if (n < AMX_GROUP) {
                amx_copy_few(columns.x, x_stride, n, from, to, few);
                columns.q = few[0];
                columns.q_stride = sizeof(few[0]);
            }
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

SIMD_INLINE void amx_clear(struct amx_acc *acc, size_t n_groups)
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t c = 0; c < AMX_GROUP; c++)
            acc[g].v[0][c] = acc[g].v[1][c] = v_zero_f();
}

/* y = acc, or, where `add`, y += acc: columns that the group before has stay out. */
SIMD_INLINE void amx_store(const struct amx_columns *columns, const struct amx_acc *acc,
                           float *y, size_t y_stride, size_t n_rows, bool add)
{
    for (size_t g = 0; g < columns->n_groups; g++) {
        const size_t at = g * AMX_GROUP, before = at - amx_first(columns, g);
        const size_t left = columns->n_cols - at;
        const size_t n = left < AMX_GROUP ? left : AMX_GROUP;

        for (size_t p = 0; p < AMX_PANELS; p++)
            x16_store_columns(y + at * y_stride, y_stride, acc[g].v[p] + before, n,
                              p * X16_ROWS, 0, n_rows, add);
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

/* Defines gemm_x16 and gemm of a format at this level. */
#define AMX_KERNELS(name, format, block, bytes_k, sides_fn, panels_fn)                \
    static SIMD_NOINLINE void KERN_NAME(sides, name)(                                 \
        size_t k, size_t from, size_t to, const struct amx_columns *columns)          \
    {                                                                                 \
        sides_fn(&format, k, from, to, columns);                                      \
    }                                                                                 \
    static SIMD_NOINLINE void KERN_NAME(panels, name)(                                \
        const uint8_t *panel, const struct x16_rows *rows, size_t k, size_t from,     \
        size_t to, const struct amx_columns *columns, float *y, size_t y_stride,      \
        size_t n_rows, struct kern_prefetch prefetch)                                 \
    {                                                                                 \
        panels_fn(&format, panel, rows, k, from, to, columns, y, y_stride, n_rows,    \
                  prefetch);                                                          \
    }                                                                                 \
    void KERN_NAME(gemm_x16, name)(                                                   \
        size_t n_panels, size_t k, const void *w, size_t n_cols, const void *x,       \
        size_t x_stride, float *y, size_t y_stride, struct kern_prefetch prefetch)    \
    {                                                                                 \
        amx_gemm(KERN_NAME(panels, name), KERN_NAME(sides, name), bytes_k,            \
                 X16_ROWS *(k / (block)) * format.layout.block_bytes,                 \
                 n_panels * X16_ROWS, k, w, 0, n_cols, x, x_stride, y, y_stride,      \
                 prefetch);                                                           \
    }                                                                                 \
    void KERN_NAME(gemm, name)(size_t n_rows, size_t k, const void *w,                \
                               size_t w_stride, size_t n_cols, const void *x,         \
                               size_t x_stride, float *y, size_t y_stride)            \
    {                                                                                 \
        amx_gemm(KERN_NAME(panels, name), KERN_NAME(sides, name), bytes_k, 0, n_rows, \
                 k, w, w_stride, n_cols, x, x_stride, y, y_stride,                    \
                 (struct kern_prefetch){0});                                          \
    }

#endif
