/* SPDX-License-Identifier: MIT
 *
 * x16.h - sixteen interleaved rows: the layout, and how rows are put into it
 *
 * A *panel* is 16 rows of a weight matrix, interleaved so that a vector lane is a
 * row: there are no sums across lanes, no scale is shuffled to where it is needed, and
 * memory is read in one stream instead of sixteen. It is as large as the 16 rows are.
 * Each format names two parts of its block:
 *
 *   body          a run of dwords, body_bytes long (quants, packed scales, ...)
 *   block scales  n_scales 16-bit or 8-bit fields besides: d, dmin, ...
 *
 * Blocks form groups of kern_panel_group(): as many as fill a cache line with their
 * block scales. With one 16-bit scale a group is two blocks:
 *
 *   panel   | scales of blocks 0, 1 | body of block 0 | body of block 1 |
 *           | scales of blocks 2, 3 | body of block 2 | body of block 3 | ...
 *
 *   scales  | scale 0 of row 0 | ... of row 15 | scale 1 of row 0 | ...
 *           of one block: 16 * n_scales * scale_bytes
 *   body    | dword 0 of row 0 | dword 0 of row 1 | ... of row 15 | dword 1 of
 *           row 0 | ...           16 * body_bytes
 *
 * So bodies start at multiples of 64 bytes from the panel's start, but those of a last
 * group that is incomplete, and vectors do not straddle cache lines.
 *
 * A vector has V_LANES lanes: all 16 rows, or the panel is processed in slices of 8 or
 * 4 rows. Rows in file order are interleaved into a small buffer on the stack, block by
 * block, and then processed like a panel; one column has shorter ways (*_rows.h).
 *
 * The loops are in x16_block.h (blocks of 32) and x16_super.h (256).
 */
#ifndef SLM_KERNELS_SIMD_X16_H
#define SLM_KERNELS_SIMD_X16_H

#include <stdbool.h>

#include "kernels/activations/activations.h"
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/vec.h"

enum {
    X16_ROWS = KERN_PANEL_ROWS,
    X16_SLICES = X16_ROWS / V_LANES,
    X16_SLICE_BYTES = 4 * V_LANES, /* a slice's part of an interleaved dword */
    X16_MAX_COLS = 128,            /* columns that share an unpacked tile */
    X16_PIECE = 256,               /* weights of a row, quants of a column, in a tile */
    X16_PIECES = 4 * X16_MAX_COLS, /* of columns that are prepared together */

    /* For one column two slices of a panel are interleaved step by step, so that an
     * activation is loaded once for both. */
    X16_STRANDS = 2,
    X16_AT_ONCE = X16_SLICES > 1 ? 2 : 1, /* slices of a panel, for one column */
    X16_FEW = 8, /* columns; more go through an unpacked tile */

    /* Panels are interleaved, too, some blocks of each (struct kern_prefetch): as many
     * as these at most. What is prepared of the columns is used for all of them. */
    X16_INTERLEAVED = KERN_MAX_INTERLEAVED,
};

/* Panels to interleave next, of n that are left. */
SIMD_INLINE size_t x16_interleaved(struct kern_prefetch prefetch, size_t n)
{
    const size_t most = kern_panels_interleaved(prefetch);

    return n < most ? n : most;
}

/* Where to prefetch while byte `at` of one of n interleaved panels is used, in bytes
 * behind it: `distance`, or, where that is beyond the panel, the same position of the
 * panel that follows the last of the n. */
SIMD_INLINE size_t x16_prefetch_offset(size_t at, size_t distance, size_t n_panels,
                                       size_t panel_bytes)
{
    return distance + (at + distance < panel_bytes ? 0 : (n_panels - 1) * panel_bytes);
}

/* Prefetches the line at p (it need not be readable) with the hint. A volatile
 * statement: the compiler leaves it where it is. A hint that is no constant is T0 or T1
 * (x16_prefetch_several()), and if the compiler knew that it stays the same it would
 * copy the loop around it. On x86 the branch is hidden in one statement, so that the
 * compiler orders the other instructions as if there were none; T1 is placed outside
 * the loop. */
SIMD_INLINE void x16_prefetch_line(const void *p, enum kern_prefetch_hint hint)
{
#ifdef __x86_64__
    const char *line = p;

    if (!__builtin_constant_p(hint))
        __asm__ volatile("cmpl %2, %1\n\t"
                         "je 1f\n\t"
                         "prefetcht0 %0\n"
                         "2:\n\t"
                         ".subsection 1\n"
                         "1:\n\t"
                         "prefetcht1 %0\n\t"
                         "jmp 2b\n\t"
                         ".previous"
                         :
                         : "m"(*line), SIMD_REGISTER_OR_MEMORY(hint),
                           "i"(KERN_PREFETCH_T1)
                         : "cc");
    else if (hint == KERN_PREFETCH_NTA)
        __asm__ volatile("prefetchnta %0" : : "m"(*line));
    else if (hint == KERN_PREFETCH_T1)
        __asm__ volatile("prefetcht1 %0" : : "m"(*line));
    else
        __asm__ volatile("prefetcht0 %0" : : "m"(*line));
    if (__builtin_constant_p(hint) && hint == KERN_PREFETCH_2T0)
        __asm__ volatile("prefetcht0 %0" : : "m"(line[-KERN_PREFETCH_AGAIN]));
#else
    if (!__builtin_constant_p(hint))
        SIMD_OPAQUE_ADDRESS(hint);
    if (hint == KERN_PREFETCH_T1)
        __builtin_prefetch(p, 0, 2);
    else if (hint == KERN_PREFETCH_NTA)
        __builtin_prefetch(p, 0, 0);
    else
        __builtin_prefetch(p, 0, 3);
    if (hint == KERN_PREFETCH_2T0)
        __builtin_prefetch((const char *)p - KERN_PREFETCH_AGAIN, 0, 3);
#endif
}

/* prefetch_lines() with a hint. */
SIMD_INLINE void x16_prefetch_lines(const void *p, ptrdiff_t offset, size_t bytes,
                                    enum kern_prefetch_hint hint)
{
    const uintptr_t at = (uintptr_t)p + (uintptr_t)offset;

    SIMD_UNROLL
    for (size_t i = 0; i < bytes; i += 64)
        x16_prefetch_line((const void *)(at + i), hint);
}

/* Of a block in the file's order. body_bytes is a multiple of 4, at least 16. */
struct x16_layout {
    size_t block_bytes, body_at, body_bytes;
    size_t n_scales, scale_bytes; /* scale_bytes: 2 or 1, of each */
    size_t scale_at[4];
    /* The place in a panel's body of dword j of the file's: where it is read. NULL: j.
     */
    size_t (*place)(size_t j);
};

/* Block scale h of one block, from its first. */
SIMD_INLINE const uint8_t *x16_scale_of(const struct x16_layout *l,
                                        const uint8_t *block_scales, size_t h)
{
    return block_scales + X16_ROWS * l->scale_bytes * h;
}

/* Bytes of one block's body, of its block scales, in a panel. */
SIMD_INLINE size_t x16_body_bytes(const struct x16_layout *l)
{
    return X16_ROWS * l->body_bytes;
}

SIMD_INLINE size_t x16_scale_bytes(const struct x16_layout *l)
{
    return X16_ROWS * l->scale_bytes * l->n_scales;
}

SIMD_INLINE size_t x16_place(const struct x16_layout *l, size_t j)
{
    return l->place != NULL ? l->place(j) : j;
}

/* p, opaque to the compiler ("steering the compiler" in simd.h): if it knew how p was
 * made it would move the loads of a block about until registers overflow. */
SIMD_INLINE const uint8_t *x16_forget(const uint8_t *p)
{
    SIMD_OPAQUE_ADDRESS(p);
    return p;
}

/* Block b of n_blocks in a panel. */
SIMD_INLINE const uint8_t *x16_body_of(const struct x16_layout *l, const uint8_t *panel,
                                       size_t n_blocks, size_t b)
{
    return x16_forget(
        panel + kern_panel_body_at(x16_body_bytes(l), x16_scale_bytes(l), n_blocks, b));
}

SIMD_INLINE const uint8_t *x16_scales_of(const struct x16_layout *l,
                                         const uint8_t *panel, size_t b)
{
    return x16_forget(panel +
                      kern_panel_scales_at(x16_body_bytes(l), x16_scale_bytes(l), b));
}

/* Sixteen rows in file order, `stride` bytes apart; of the last ones of a matrix
 * fewer may exist. */
struct x16_rows {
    const uint8_t *first;
    size_t stride, n;
};

SIMD_INLINE struct x16_rows x16_rows(const void *w, size_t w_stride, size_t i,
                                     size_t n_rows)
{
    return (struct x16_rows){(const uint8_t *)w + i * w_stride, w_stride,
                             n_rows - i < X16_ROWS ? n_rows - i : X16_ROWS};
}

/* The blocks at `at` of sixteen rows. */
SIMD_INLINE void x16_interleave_full(const struct x16_layout *l, const uint8_t *at,
                                     size_t stride, uint8_t *body,
                                     uint8_t *block_scales)
{
    for (size_t s = 0; s < X16_SLICES; s++) {
        const uint8_t *rows = at + s * V_LANES * stride + l->body_at;
        uint8_t *to = body + s * X16_SLICE_BYTES;

        SIMD_UNROLL
        for (size_t j = 0; j < l->body_bytes; j += 16) {
            /* the last 16 bytes may overlap those before */
            const size_t from = j + 16 <= l->body_bytes ? j : l->body_bytes - 16;
            vi v[4];

            v_rows_16(rows + from, stride, v);
            SIMD_UNROLL
            for (size_t i = 0; i < 4; i++)
                v_store(to + 64 * x16_place(l, from / 4 + i), v[i]);
        }
    }
    for (size_t h = 0; h < l->n_scales; h++) {
        const uint8_t *rows = at + l->scale_at[h];

        SIMD_UNROLL
        for (size_t r = 0; r < X16_ROWS; r++)
            memcpy(block_scales + (h * X16_ROWS + r) * l->scale_bytes,
                   rows + r * stride, l->scale_bytes);
    }
}

/* The same where rows may be missing: the last one takes their places. */
SIMD_INLINE void x16_interleave(const struct x16_layout *l, const struct x16_rows rows,
                                size_t at, uint8_t *body, uint8_t *block_scales)
{
    const uint8_t *blocks = rows.first + at;
    uint8_t copy[X16_ROWS][KERN_MAX_BLOCK_BYTES];
    size_t stride = rows.stride;

    if (rows.n < X16_ROWS) {
        for (size_t r = 0; r < X16_ROWS; r++)
            memcpy(copy[r], blocks + (r < rows.n ? r : rows.n - 1) * stride,
                   l->block_bytes);
        blocks = copy[0];
        stride = sizeof(copy[0]);
    }
    x16_interleave_full(l, blocks, stride, body, block_scales);
}

SIMD_INLINE void x16_pack(const struct x16_layout *l, size_t n_blocks, const void *rows,
                          size_t w_stride, void *panel)
{
    uint8_t *at = panel;

    for (size_t b = 0; b < n_blocks; b++)
        x16_interleave_full(
            l, (const uint8_t *)rows + b * l->block_bytes, w_stride,
            at + kern_panel_body_at(x16_body_bytes(l), x16_scale_bytes(l), n_blocks, b),
            at + kern_panel_scales_at(x16_body_bytes(l), x16_scale_bytes(l), b));
}

/* One row of a panel as it was. */
SIMD_INLINE void x16_unpack(const struct x16_layout *l, size_t n_blocks,
                            const uint8_t *panel, size_t row, uint8_t *dst)
{
    const size_t body_bytes = x16_body_bytes(l), scale_bytes = x16_scale_bytes(l);

    for (size_t b = 0; b < n_blocks; b++, dst += l->block_bytes) {
        const uint8_t *body =
            panel + kern_panel_body_at(body_bytes, scale_bytes, n_blocks, b) + 4 * row;
        const uint8_t *scales =
            panel + kern_panel_scales_at(body_bytes, scale_bytes, b);

        for (size_t j = 0; j < l->body_bytes / 4; j++)
            memcpy(dst + l->body_at + 4 * j, body + 4 * X16_ROWS * x16_place(l, j), 4);
        for (size_t h = 0; h < l->n_scales; h++)
            memcpy(dst + l->scale_at[h], scales + (h * X16_ROWS + row) * l->scale_bytes,
                   l->scale_bytes);
    }
}

/* y[i..] = the lanes of slice s that are rows below n_rows. */
SIMD_INLINE void x16_store(float *y, vf v, size_t i, size_t s, size_t n_rows)
{
    const size_t first = i + s * V_LANES;

    if (first + V_LANES <= n_rows)
        v_store_f(y + first, v);
    else if (first < n_rows)
        v_store_some(y + first, v, n_rows - first);
}

/* ---- what a format's code is given ---------------------------------------------- */

struct x16_sink;

/* Takes four weights of each row of the slice: weights 4 * four .. 4 * four + 3 of
 * the block. A format gives all of a sub-block's in ascending order, sub-blocks in
 * any. */
typedef void x16_emit_fn(const struct x16_sink sink, int four, vi w);

/* Unpacks the weights of one block in steps; a step is no more than shares its loads.
 * body is the slice's first dword, dword j of the block is at body + 64 * j. */
typedef void x16_weights_fn(const uint8_t *body, int step, x16_emit_fn *emit,
                            const struct x16_sink sink);

/* part + the dot products of fours w with four `four` of the quants q, of which sixteen
 * at a time may be read; is_signed where V_SIGNED. */
SIMD_INLINE vi x16_dot(vi part, vi w, const int8_t *q, int four, int is_signed)
{
#if V_DOT_OF_16
    (void)is_signed;
    return v_dot_of_16(part, w, q + 16 * (four / 4), four % 4);
#elif V_SIGNED
    return is_signed ? v_dot_s(part, w, q + 4 * four) : v_dot_u(part, w, q + 4 * four);
#else
    (void)is_signed;
    return v_dot_u(part, w, q + 4 * four);
#endif
}

/* ---- many columns ----------------------------------------------------------------
 */

/* A piece of one column, and what it contributes besides its quants. Of many columns
 * pieces are prepared once for all panels: what a tile reads of them is one stream,
 * where columns as they are lie in as many pages each as they have arrays. */
struct x16_column {
    /* The quants, in the format's order if it has one. Aligned, since a store across
     * cache lines delays the loads of what it stores. */
    int8_t q[X16_PIECE] __attribute__((aligned(64)));
    int32_t start[16]; /* -bias * sum(x) of every block or sub-block */
    union {
        int16_t sums[16]; /* sum(x) of every sub-block, in the order of pairs */
        float s[8];       /* of every block */
    };
    float d[8]; /* of every block, or one; of many columns only */
};

/* Prepares quants from `from` to `to` of n_cols columns, at most X16_PIECES pieces:
 * out[piece of a column][column], n_cols of each. */
typedef void x16_columns_fn(size_t k, size_t from, size_t to, size_t n_cols,
                            const char *x, size_t x_stride, struct x16_column *out);

/* y = the elements from `from` to `to`, which an x16_columns_fn has prepared of the
 * columns, of V_TILE_PANELS panels, or of as often 16 rows in file order where `rows`
 * is not NULL, times at most X16_MAX_COLS columns, through unpacked tiles; added to y
 * unless from is 0. Of the rows the first n_rows exist; where that leaves a panel
 * without any, the first is taken again. A format has one such function, not inlined:
 * there is much of it, and gemm and gemm_x16 share it. */
typedef void x16_tile_fn(const uint8_t *panel, const struct x16_rows *rows, size_t k,
                         size_t from, size_t to, size_t n_cols,
                         const struct x16_column *columns, float *y, size_t y_stride,
                         size_t n_rows, struct kern_prefetch prefetch);

/* How many of n_cols columns to take at once: equal parts. */
SIMD_INLINE size_t x16_cols_at_once(size_t n_cols)
{
    const size_t n = (n_cols + X16_MAX_COLS - 1) / X16_MAX_COLS;

    return (n_cols + n - 1) / n;
}

/* n_rows rows times n_cols columns; of panels n_rows is a multiple of X16_ROWS, of rows
 * in file order panel_bytes is 0. All rows take the same pieces of the same columns
 * before the next ones come: those lie one behind the other in the second-level cache,
 * where all columns of a prompt would not. Weights, of which there are fewer bytes for
 * as much work, come again, for the next columns. */
SIMD_INLINE void x16_gemm(x16_tile_fn *tile, x16_columns_fn *prepare,
                          size_t panel_bytes, size_t n_rows, size_t k, const uint8_t *w,
                          size_t w_stride, size_t n_cols, const char *x,
                          size_t x_stride, float *y, size_t y_stride,
                          struct kern_prefetch prefetch)
{
    const size_t at_once = x16_cols_at_once(n_cols);
    struct x16_column columns[X16_PIECES];

    for (size_t c = 0; c < n_cols; c += at_once) {
        const size_t n = n_cols - c < at_once ? n_cols - c : at_once;
        const size_t most = X16_PIECES / n * X16_PIECE;

        for (size_t from = 0, to; from < k; from = to) {
            to = k - from < most ? k : from + most;
            prepare(k, from, to, n, x + c * x_stride, x_stride, columns);
            for (size_t i = 0; i < n_rows; i += V_TILE_PANELS * X16_ROWS) {
                struct x16_rows rows[V_TILE_PANELS];

                for (size_t p = 0; panel_bytes == 0 && p < V_TILE_PANELS; p++) {
                    const size_t at = i + p * X16_ROWS;

                    rows[p] = x16_rows(w, w_stride, at < n_rows ? at : i, n_rows);
                }
                tile(w + i / X16_ROWS * panel_bytes, panel_bytes == 0 ? rows : NULL, k,
                     from, to, n, columns, y + c * y_stride + i, y_stride, n_rows - i,
                     prefetch);
            }
        }
    }
}

/* Prefetches block b + n of a panel while block b is unpacked, or, where that is not
 * below `end`, block `first` of the panel that follows V_TILE_PANELS on. A constant
 * hint is hidden: with the bare prefetches at T1, 32 columns of q4_K took 1.2 times as
 * long on a Zen 5 as with the jumps there. */
SIMD_INLINE void x16_prefetch_next(const struct x16_layout *l, const uint8_t *panel,
                                   size_t n_blocks, size_t first, size_t end, size_t b,
                                   size_t n, enum kern_prefetch_hint hint)
{
    const size_t body = x16_body_bytes(l), scales = x16_scale_bytes(l);
    const uint8_t *next = panel;

    if (b + n < end)
        b += n;
    else {
        next += V_TILE_PANELS * n_blocks * (body + scales);
        b = first + (b + n - end);
    }
    SIMD_OPAQUE_ADDRESS(hint);
    x16_prefetch_lines(next, (ptrdiff_t)kern_panel_body_at(body, scales, n_blocks, b),
                       body + scales, hint);
}

/* y = acc[c] of n_cols columns, as x16_store(), or, where `add`, y += acc[c]. */
SIMD_INLINE void x16_store_columns(float *y, size_t y_stride, const vf *acc,
                                   size_t n_cols, size_t i, size_t s, size_t n_rows,
                                   bool add)
{
    const size_t first = i + s * V_LANES;

    for (size_t c = 0; c < n_cols; c++) {
        float *to = y + c * y_stride;
        vf v = acc[c];

        if (add && first < n_rows) {
            float old[V_LANES] = {0};
            const float *from = to + first;

            if (first + V_LANES > n_rows) {
                memcpy(old, from, (n_rows - first) * sizeof(float));
                from = old;
            }
            v = v_fma(v, v_set1_f(1), v_float_bits(v_load(from)));
        }
        x16_store(to, v, i, s, n_rows);
    }
}

/* Several columns may read a panel again, and NTA keeps it for one reading only. */
SIMD_INLINE struct kern_prefetch x16_prefetch_several(struct kern_prefetch prefetch)
{
    if (prefetch.hint != KERN_PREFETCH_T1)
        prefetch.hint = KERN_PREFETCH_T0;
    return prefetch;
}

/* Few columns. Five and more are read in their own way: four panels side by side, each
 * line prefetched twice. That is 1.04 to 1.2 times as fast on a Zen 5; with fewer
 * columns, what suits one is faster. */
SIMD_INLINE struct kern_prefetch x16_prefetch_few(size_t n_cols,
                                                  struct kern_prefetch prefetch)
{
    if (n_cols <= 4 || prefetch.distance == 0)
        return x16_prefetch_several(prefetch);
    return (struct kern_prefetch){4096, KERN_PREFETCH_2T0, KERN_MAX_INTERLEAVED};
}

/* The way of n columns (constant) at a time; the compiler knows the hint of five. */
SIMD_INLINE struct kern_prefetch x16_prefetch_frame(const size_t n,
                                                    struct kern_prefetch prefetch)
{
    if (n > 4)
        prefetch.hint = KERN_PREFETCH_2T0;
    return prefetch;
}

/* One column in a copy of the loop for hint h: a branch at every line takes up to a
 * third of the time of weights that are in a cache. */
#define X16_HINTED(format, panels_fn, prefetches, h)                            \
    prefetch.hint = KERN_PREFETCH_##h;                                          \
    panels_fn(&format, 1, prefetches, n_panels, k, w, 1, x, 0, y, 0, prefetch); \
    return

/* Defines the six kernels of a format at this level from the frame that suits it. With
 * a distance of 0 one column prefetches what it is about to use: beside the work of a
 * format that is not light that does no harm, and it saves a further copy of the code.
 */
#define X16_KERNELS(name, format, block, panels_fn, few_max, few_fn, rows_fn,          \
                    columns_fn, tile_fn)                                               \
    void KERN_NAME(pack, name)(size_t k, const void *rows, size_t w_stride,            \
                               void *panel)                                            \
    {                                                                                  \
        x16_pack(&format.layout, k / (block), rows, w_stride, panel);                  \
    }                                                                                  \
    void KERN_NAME(unpack, name)(size_t k, const void *panel, size_t row, void *dst)   \
    {                                                                                  \
        x16_unpack(&format.layout, k / (block), panel, row, dst);                      \
    }                                                                                  \
    void KERN_NAME(gemv_x16, name)(size_t n_panels, size_t k, const void *w,           \
                                   const void *x, float *y,                            \
                                   struct kern_prefetch prefetch)                      \
    {                                                                                  \
        if (prefetch.distance == 0 && format.light) {                                  \
            X16_HINTED(format, panels_fn, false, T0);                                  \
        }                                                                              \
        switch (prefetch.hint) {                                                       \
        case KERN_PREFETCH_T1:                                                         \
            X16_HINTED(format, panels_fn, true, T1);                                   \
        case KERN_PREFETCH_NTA:                                                        \
            X16_HINTED(format, panels_fn, true, NTA);                                  \
        case KERN_PREFETCH_2T0:                                                        \
            X16_HINTED(format, panels_fn, true, 2T0);                                  \
        default:                                                                       \
            X16_HINTED(format, panels_fn, true, T0);                                   \
        }                                                                              \
    }                                                                                  \
    static SIMD_NOINLINE void KERN_NAME(columns, name)(                                \
        size_t k, size_t from, size_t to, size_t n_cols, const char *x,                \
        size_t x_stride, struct x16_column *out)                                       \
    {                                                                                  \
        columns_fn(&format, k, from, to, n_cols, x, x_stride, out);                    \
    }                                                                                  \
    static SIMD_NOINLINE void KERN_NAME(tile, name)(                                   \
        const uint8_t *panel, const struct x16_rows *rows, size_t k, size_t from,      \
        size_t to, size_t n_cols, const struct x16_column *columns, float *y,          \
        size_t y_stride, size_t n_rows, struct kern_prefetch prefetch)                 \
    {                                                                                  \
        tile_fn(&format, panel, rows, k, from, to, n_cols, columns, y, y_stride,       \
                n_rows, prefetch);                                                     \
    }                                                                                  \
    void KERN_NAME(gemm_x16, name)(                                                    \
        size_t n_panels, size_t k, const void *w, size_t n_cols, const void *x,        \
        size_t x_stride, float *y, size_t y_stride, struct kern_prefetch prefetch)     \
    {                                                                                  \
        if (n_cols == 1)                                                               \
            KERN_NAME(gemv_x16, name)(n_panels, k, w, x, y, prefetch);                 \
        else if (V_FEW_COLS > 1 && n_cols <= (few_max))                                \
            few_fn(&format, n_panels, k, w, n_cols, x, x_stride, y, y_stride,          \
                   x16_prefetch_few(n_cols, prefetch));                                \
        else                                                                           \
            x16_gemm(KERN_NAME(tile, name), KERN_NAME(columns, name),                  \
                     X16_ROWS *(k / (block)) * format.layout.block_bytes,              \
                     n_panels * X16_ROWS, k, w, 0, n_cols, x, x_stride, y, y_stride,   \
                     x16_prefetch_several(prefetch));                                  \
    }                                                                                  \
    void KERN_NAME(gemv, name)(size_t n_rows, size_t k, const void *w,                 \
                               size_t w_stride, const void *x, float *y)               \
    {                                                                                  \
        rows_fn(&format, n_rows, k, w, w_stride, x, y);                                \
    }                                                                                  \
    void KERN_NAME(gemm, name)(size_t n_rows, size_t k, const void *w,                 \
                               size_t w_stride, size_t n_cols, const void *x,          \
                               size_t x_stride, float *y, size_t y_stride)             \
    {                                                                                  \
        if (n_cols == 1)                                                               \
            KERN_NAME(gemv, name)(n_rows, k, w, w_stride, x, y);                       \
        else                                                                           \
            x16_gemm(KERN_NAME(tile, name), KERN_NAME(columns, name), 0, n_rows, k, w, \
                     w_stride, n_cols, x, x_stride, y, y_stride,                       \
                     (struct kern_prefetch){0});                                       \
    }

#endif
