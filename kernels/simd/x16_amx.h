/* SPDX-License-Identifier: MIT
 *
 * x16_amx.h - interleaved rows times several columns, by tiles: columns in groups
 *
 * The counterpart of x16_gemm() for a level of tiles. Columns are put into groups of
 * 16, which are tiles A, once for all rows; what the last group lacks is zero. Weights
 * are unpacked once for all groups. Formats say how in x16_super_amx.h (super-blocks of
 * 256) and x16_block_amx.h (blocks of 32).
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
    AMX_PIECES = 128,   /* of groups, that are prepared together: 640 KiB of stack */
    AMX_PANELS = 2,     /* panels that share a group's tiles */
};

/* A piece of the columns of a group. */
struct amx_group {
    int8_t q[AMX_CHUNKS][AMX_GROUP][AMX_CHUNK] __attribute__((aligned(64)));
    union {
        int16_t sums[AMX_GROUP][16]; /* as in struct x16_column */
        float s[AMX_GROUP][8];
    };
    float d[AMX_GROUP][8];
};

/* One column's piece, which `column` holds, as number j of its group. */
SIMD_INLINE void amx_put_column(struct amx_group *g, size_t j,
                                const struct x16_column *column)
{
    SIMD_UNROLL
    for (size_t i = 0; i < AMX_CHUNKS; i++)
        memcpy(g->q[i][j], column->q + AMX_CHUNK * i, AMX_CHUNK);
    memcpy(g->sums[j], column->sums, sizeof(g->sums[j]));
    memcpy(g->d[j], column->d, sizeof(g->d[j]));
}

SIMD_INLINE void amx_put_zeros(struct amx_group *g, size_t j)
{
    SIMD_UNROLL
    for (size_t i = 0; i < AMX_CHUNKS; i++)
        memset(g->q[i][j], 0, AMX_CHUNK);
    memset(g->sums[j], 0, sizeof(g->sums[j]));
    memset(g->d[j], 0, sizeof(g->d[j]));
}

SIMD_INLINE size_t amx_groups(size_t n_cols)
{
    return (n_cols + AMX_GROUP - 1) / AMX_GROUP;
}

/* As x16_columns_fn: out[piece][group]. */
typedef void amx_columns_fn(size_t k, size_t from, size_t to, size_t n_cols,
                            const char *x, size_t x_stride, struct amx_group *out);

/* As x16_tile_fn, of AMX_PANELS panels and at most AMX_MAX_COLS columns. */
typedef void amx_panels_fn(const uint8_t *panel, const struct x16_rows *rows, size_t k,
                           size_t from, size_t to, size_t n_cols,
                           const struct amx_group *columns, float *y, size_t y_stride,
                           size_t n_rows, struct kern_prefetch prefetch);

/* See x16_gemm(). bytes_k: of the tiles A. */
SIMD_INLINE void amx_gemm(amx_panels_fn *multiply, amx_columns_fn *prepare,
                          size_t bytes_k, size_t panel_bytes, size_t n_rows, size_t k,
                          const uint8_t *w, size_t w_stride, size_t n_cols,
                          const char *x, size_t x_stride, float *y, size_t y_stride,
                          struct kern_prefetch prefetch)
{
    const size_t n_turns = (n_cols + AMX_MAX_COLS - 1) / AMX_MAX_COLS;
    const size_t at_once = (n_cols + n_turns - 1) / n_turns;
    struct amx_group columns[AMX_PIECES];

    amx_begin(AMX_GROUP, bytes_k);
    for (size_t c = 0; c < n_cols; c += at_once) {
        const size_t n = n_cols - c < at_once ? n_cols - c : at_once;
        const size_t most = AMX_PIECES / amx_groups(n) * X16_PIECE;

        for (size_t from = 0, to; from < k; from = to) {
            to = k - from < most ? k : from + most;
            prepare(k, from, to, n, x + c * x_stride, x_stride, columns);
            for (size_t i = 0; i < n_rows; i += AMX_PANELS * X16_ROWS) {
                struct x16_rows rows[AMX_PANELS];

                for (size_t p = 0; panel_bytes == 0 && p < AMX_PANELS; p++) {
                    const size_t at = i + p * X16_ROWS;

                    rows[p] = x16_rows(w, w_stride, at < n_rows ? at : i, n_rows);
                }
                multiply(w + i / X16_ROWS * panel_bytes, panel_bytes == 0 ? rows : NULL,
                         k, from, to, n, columns, y + c * y_stride + i, y_stride,
                         n_rows - i, prefetch);
            }
        }
    }
    amx_end();
}

/* Brings the places of a group's results in a pair of panels near before they are
 * stored: there are many, a stride apart. */
SIMD_INLINE void amx_prefetch_results(const float *y, size_t y_stride)
{
    SIMD_UNROLL
    for (size_t c = 0; c < AMX_GROUP; c++) {
        __builtin_prefetch(y + c * y_stride, 1);
        __builtin_prefetch(y + c * y_stride + X16_ROWS, 1);
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

/* Defines gemm_x16 and gemm of a format at this level. */
#define AMX_KERNELS(name, format, block, bytes_k, columns_fn, panels_fn)           \
    static SIMD_NOINLINE void KERN_NAME(columns, name)(                            \
        size_t k, size_t from, size_t to, size_t n_cols, const char *x,            \
        size_t x_stride, struct amx_group *out)                                    \
    {                                                                              \
        columns_fn(&format, k, from, to, n_cols, x, x_stride, out);                \
    }                                                                              \
    static SIMD_NOINLINE void KERN_NAME(panels, name)(                             \
        const uint8_t *panel, const struct x16_rows *rows, size_t k, size_t from,  \
        size_t to, size_t n_cols, const struct amx_group *columns, float *y,       \
        size_t y_stride, size_t n_rows, struct kern_prefetch prefetch)             \
    {                                                                              \
        panels_fn(&format, panel, rows, k, from, to, n_cols, columns, y, y_stride, \
                  n_rows, prefetch);                                               \
    }                                                                              \
    void KERN_NAME(gemm_x16, name)(                                                \
        size_t n_panels, size_t k, const void *w, size_t n_cols, const void *x,    \
        size_t x_stride, float *y, size_t y_stride, struct kern_prefetch prefetch) \
    {                                                                              \
        amx_gemm(KERN_NAME(panels, name), KERN_NAME(columns, name), bytes_k,       \
                 X16_ROWS *(k / (block)) * format.layout.block_bytes,              \
                 n_panels * X16_ROWS, k, w, 0, n_cols, x, x_stride, y, y_stride,   \
                 prefetch);                                                        \
    }                                                                              \
    void KERN_NAME(gemm, name)(size_t n_rows, size_t k, const void *w,             \
                               size_t w_stride, size_t n_cols, const void *x,      \
                               size_t x_stride, float *y, size_t y_stride)         \
    {                                                                              \
        amx_gemm(KERN_NAME(panels, name), KERN_NAME(columns, name), bytes_k, 0,    \
                 n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride,         \
                 (struct kern_prefetch){0});                                       \
    }

#endif
