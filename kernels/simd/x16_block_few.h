/* SPDX-License-Identifier: MIT
 *
 * x16_block_few.h - blocks of 32 times one or a few columns, straight from the block
 *
 * A column's products in a block are a chain of instructions that wait for each other.
 * Other columns', or those of another slice of the panel, keep the multipliers busy
 * meanwhile.
 */
#ifndef SLM_KERNELS_SIMD_X16_BLOCK_FEW_H
#define SLM_KERNELS_SIMD_X16_BLOCK_FEW_H

#include "kernels/simd/x16_block_rows.h"

/* Blocks of columns side by side: few addresses, and all of them near one register,
 * where columns far apart would need one each. */
struct x16_block_columns {
    int8_t q[X16_FEW][X16_BATCH * X16_BLOCK];
    float d[X16_FEW][X16_BATCH], s[X16_FEW][X16_BATCH];
    int32_t start[X16_FEW][2 * X16_BATCH];
};

/* Where a block's numbers of the first column are; each other column's are the size of
 * the columns before it on. */
struct x16_block_at {
    const int8_t *q;
    const float *d, *s;
    const int32_t *start;
};

struct x16_sums {
    vi part[X16_STRANDS][X16_FEW][2], sum[X16_STRANDS][X16_FEW];
    vi high[X16_STRANDS][X16_FEW]; /* of the second half, where it has a sum */
    vi last;                       /* product */
};

/* Passed by value: "constants that fold" in simd.h. */
struct x16_sink {
    int n_cols, run, is_signed, halves, strand;
    const int8_t *q; /* of the first column; X16_BATCH blocks are each */
    bool wide;
    struct x16_sums *to;
    vi *tile; /* or weights are kept here */
};

/* How many products of weights up to max to add up in a part: a power of two. */
#define X16_BLOCK_RUN(max, halves) \
    (V_RUN(max) >= 8 && !(halves) ? 8 : V_RUN(max) >= 4 ? 4 : V_RUN(max) >= 2 ? 2 : 1)

/* Both halves of a block come in ascending order, interleaved or one after the other.
 */
SIMD_INLINE void x16_block_emit(const struct x16_sink sink, int four, vi w)
{
    const int t = sink.strand;
    const bool high = sink.wide && four >= 4;
    const int run = high ? 4 : sink.run, half = run == 8 ? 0 : four / 4;
    struct x16_sums *to = sink.to;

    SIMD_UNROLL
    for (int c = 0; c < sink.n_cols; c++) {
        const int8_t *q = sink.q + X16_BATCH * X16_BLOCK * c;
        vi *sum = sink.halves && four >= 4 ? &to->high[t][c] : &to->sum[t][c];
        vi *part = &to->part[t][c][half];

        if (V_DOT32 && !high) {
            to->last = *sum = x16_dot(*sum, w, q, four, sink.is_signed);
            continue;
        }
        to->last = *part =
            x16_dot(four % run == 0 ? v_zero() : *part, w, q, four, sink.is_signed);
        if (high && four == 7)
            *sum = v_add32(*sum, v_sra32(*part, 4));
        if (!high && (four + 1) % run == 0)
            *sum = v_add32(*sum, v_dot_sum(*part));
    }
}

/* What is to be used later, of which a block prefetches the lines from first to end - 1
 * behind `at`; where end is first, nothing. */
struct x16_later {
    const uint8_t *at;
    size_t first, end;
    enum kern_prefetch_hint hint;
};

/* acc[slice][c] += one block of n_s slices times n columns. Wide weights cost every
 * column two instructions, others four for all columns. Lines are prefetched step
 * by step, each behind the products of the step before: see x16_prefetch_later(). */
SIMD_INLINE void x16_block_step(const struct x16_block_format *f, const int n_s,
                                const int n, const uint8_t *const *body,
                                const uint8_t *const *block_scales,
                                struct x16_block_at at, struct x16_later later,
                                vf (*acc)[X16_FEW])
{
    const size_t lines = later.end - later.first;
    struct x16_sums sums;
    struct x16_sink sink = {.n_cols = n,
                            .run = X16_BLOCK_RUN(f->max, f->halves),
                            .is_signed = f->is_signed,
                            .halves = f->halves,
                            .q = at.q,
                            .wide = V_WIDE && f->wide != NULL && n <= 2,
                            .to = &sums};

    SIMD_UNROLL
    for (int t = 0; t < n_s; t++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        const int32_t *start = at.start + 2 * X16_BATCH * c;

        sums.sum[t][c] = f->bias != 0 ? v_bcast_4(start) : v_zero();
        if (f->halves)
            sums.high[t][c] = f->bias != 0 ? v_bcast_4(start + 1) : v_zero();
    }
    SIMD_UNROLL
    for (int step = 0; step < f->steps; step++) {
        const size_t from = lines * (size_t)step / (size_t)f->steps;
        const size_t to = lines * (size_t)(step + 1) / (size_t)f->steps;

        if (from < to)
            x16_prefetch_lines(later.at, 64 * (ptrdiff_t)(later.first + from),
                               64 * (to - from), later.hint);
        SIMD_UNROLL
        for (int t = 0; t < n_s; t++) {
            sink.strand = t;
            if (sink.wide)
                f->wide(body[t], step, x16_block_emit, sink);
            else
                f->weights(body[t], step, x16_block_emit, sink);
        }
        if (lines != 0)
            v_made(sums.last);
    }
    SIMD_UNROLL
    for (int t = 0; t < n_s; t++) {
        vf d, m;

        f->scales(body[t], block_scales[t], &d, &m);
        SIMD_UNROLL
        for (int c = 0; c < n; c++) {
            const vf dx = v_set1_f(at.d[X16_BATCH * c]);

            acc[t][c] = v_fma(v_mul(v_to_float(sums.sum[t][c]), dx), d, acc[t][c]);
            if (f->has_m)
                acc[t][c] = v_fma(m, v_set1_f(at.s[X16_BATCH * c]), acc[t][c]);
            if (f->halves)
                acc[t][c] = v_fma(v_mul(v_to_float(sums.high[t][c]), dx), m, acc[t][c]);
        }
    }
}

/* The slices of one block, X16_AT_ONCE at a time. */
SIMD_INLINE void x16_block_slices(const struct x16_block_format *f, const int n,
                                  const uint8_t *body, const uint8_t *block_scales,
                                  struct x16_block_at at, struct x16_later later,
                                  vf (*acc)[X16_FEW])
{
    const struct x16_later nothing = {0};

    SIMD_UNROLL
    for (int s = 0; s < X16_SLICES; s += X16_AT_ONCE) {
        const uint8_t *bodies[X16_STRANDS], *slice_scales[X16_STRANDS];

        SIMD_UNROLL
        for (int t = 0; t < X16_AT_ONCE; t++) {
            const size_t slice = (size_t)(s + t);

            bodies[t] = body + slice * X16_SLICE_BYTES;
            slice_scales[t] = block_scales + slice * V_LANES * f->layout.scale_bytes;
        }
        x16_block_step(f, X16_AT_ONCE, n, bodies, slice_scales, at,
                       s == 0 ? later : nothing, acc + s);
    }
}

/* The numbers of the block that is i blocks on. */
SIMD_INLINE struct x16_block_at x16_block_next(const struct x16_block_format *f,
                                               struct x16_block_at at, size_t i)
{
    return (struct x16_block_at){at.q + X16_BLOCK * i, at.d + i, at.s + i,
                                 at.start + (size_t)x16_block_sums(f) * i};
}

/* All parts of a block of the file. Each prefetches its share of the lines. */
SIMD_INLINE void x16_block_whole(const struct x16_block_format *f, const int n,
                                 const uint8_t *body, const uint8_t *block_scales,
                                 struct x16_block_at at, struct x16_later later,
                                 vf (*acc)[X16_FEW])
{
    const size_t parts = x16_block_parts(f), lines = later.end - later.first;

    SIMD_UNROLL
    for (size_t p = 0; p < parts; p++) {
        const struct x16_later share = {later.at, later.first + lines * p / parts,
                                        later.first + lines * (p + 1) / parts,
                                        later.hint};

        x16_block_slices(f, n, body + x16_part_body(f, p),
                         block_scales + x16_part_scales(f, p), x16_block_next(f, at, p),
                         share, acc);
    }
}

/* A group of blocks, block scales at `w` and bodies behind them, times one column. Each
 * block prefetches its part of the lines that are to be used later. */
SIMD_INLINE void x16_block_group(const struct x16_block_format *f,
                                 const bool prefetches, const uint8_t *w,
                                 struct x16_block_at at, size_t offset,
                                 enum kern_prefetch_hint hint, vf (*acc)[X16_FEW])
{
    const size_t body_bytes = x16_body_bytes(&f->layout);
    const size_t scale_bytes = x16_scale_bytes(&f->layout);
    const size_t n = kern_panel_group(scale_bytes);
    const size_t lines = prefetches ? (n * (body_bytes + scale_bytes) + 63) / 64 : 0;
    const uint8_t *block_scales = w, *body = x16_forget(w + n * scale_bytes);

    SIMD_UNROLL
    for (size_t i = 0; i < n; i++) {
        const struct x16_later later = {w + offset, lines * i / n, lines * (i + 1) / n,
                                        hint};

        x16_block_whole(f, 1, body, block_scales,
                        x16_block_next(f, at, x16_block_parts(f) * i), later, acc);
        body = x16_forget(body + body_bytes);
        block_scales = x16_forget(block_scales + scale_bytes);
    }
}

/* ---- a few columns' batch -------------------------------------------------------- */

/* n blocks from b on of column c, to its places from i on. */
SIMD_INLINE void x16_block_some(const struct x16_block_format *f, const char *x,
                                size_t k, size_t b, size_t n, size_t c, size_t i,
                                struct x16_block_columns *to)
{
    x16_block_quants(f, x, b, n, to->q[c] + X16_BLOCK * i);
    memcpy(to->d[c] + i, act_q8_32_d(x, k) + b, n * sizeof(float));
    if (f->has_m)
        memcpy(to->s[c] + i, act_q8_32_s(x, k) + b, n * sizeof(float));
    x16_block_starts(f, x, k, b, n, to->start[c] + (size_t)x16_block_sums(f) * i);
}

/* n blocks from b on of column c. What is copied has a constant size: a full batch is a
 * dozen instructions, half of one is a block_scales of attention. */
SIMD_INLINE void x16_block_column(const struct x16_block_format *f, const char *x,
                                  size_t k, size_t b, size_t n, size_t c,
                                  struct x16_block_columns *to)
{
    const size_t half = X16_BATCH / 2;

    if (n == X16_BATCH) {
        x16_block_some(f, x, k, b, X16_BATCH, c, 0, to);
        return;
    }
    if (n >= half)
        x16_block_some(f, x, k, b, half, c, 0, to);
    for (size_t i = n >= half ? half : 0; i < n; i++)
        x16_block_some(f, x, k, b + i, 1, c, i, to);
}

/* Where n_blocks blocks from b on of n columns are: one column's where they lie, but
 * for the starts and quants in another order, more copied. */
SIMD_INLINE struct x16_block_at x16_block_batch(const struct x16_block_format *f,
                                                const int n, const char *const *x,
                                                size_t k, size_t b, size_t n_blocks,
                                                struct x16_block_columns *to)
{
    if (n == 1) {
        const int8_t *q = act_q(x[0]) + X16_BLOCK * b;

        x16_block_starts(f, x[0], k, b, n_blocks, to->start[0]);
        if (f->order != NULL) {
            x16_block_quants(f, x[0], b, n_blocks, to->q[0]);
            q = to->q[0];
        }
        return (struct x16_block_at){q, act_q8_32_d(x[0], k) + b,
                                     act_q8_32_s(x[0], k) + b, to->start[0]};
    }
    for (size_t c = 0; c < (size_t)n; c++)
        x16_block_column(f, x[c], k, b, n_blocks, c, to);
    return (struct x16_block_at){to->q[0], to->d[0], to->s[0], to->start[0]};
}

/* ---- panels ------------------------------------------------------------------------
 */

/* The same numbers, their addresses opaque to the compiler. */
SIMD_INLINE struct x16_block_at x16_block_forget(struct x16_block_at at)
{
    return (struct x16_block_at){(const void *)x16_forget((const void *)at.q),
                                 (const void *)x16_forget((const void *)at.d),
                                 (const void *)x16_forget((const void *)at.s),
                                 (const void *)x16_forget((const void *)at.start)};
}

/* At most X16_INTERLEAVED panels times n columns, of which n_cols are to be stored; the
 * panels are interleaved by groups of blocks. One column's full group is unrolled:
 * blocks are found by adding constants. prefetches: whether one column prefetches.
 * Several columns always do, with a distance of 0 what they are about to use: beside
 * their products that does no harm, and it saves a second copy of the code. */
SIMD_INLINE void x16_block_interleaved(const struct x16_block_format *f, const int n,
                                       const bool prefetches, size_t n_panels, size_t k,
                                       const uint8_t *w, size_t n_cols,
                                       const char *const *x, float *y, size_t y_stride,
                                       struct kern_prefetch prefetch)
{
    const size_t n_blocks = k / X16_BLOCK, parts = x16_block_parts(f);
    const size_t body_bytes = x16_body_bytes(&f->layout);
    const size_t scale_bytes = x16_scale_bytes(&f->layout);
    const size_t panel_bytes = n_blocks / parts * (body_bytes + scale_bytes);
    const size_t group = kern_panel_group(scale_bytes); /* of the file's blocks */
    vf acc[X16_INTERLEAVED][X16_SLICES][X16_FEW];

    for (size_t p = 0; p < n_panels; p++)
        SIMD_UNROLL
    for (int i = 0; i < X16_SLICES; i++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
        acc[p][i][c] = v_zero_f();
    for (size_t from = 0; from < n_blocks; from += X16_BATCH) {
        const size_t in_batch =
            n_blocks - from < X16_BATCH ? n_blocks - from : X16_BATCH;
        struct x16_block_columns columns __attribute__((aligned(64)));
        const struct x16_block_at batch =
            x16_block_batch(f, n, x, k, from, in_batch, &columns);

        for (size_t i = 0; i < in_batch / parts; i += group) {
            const size_t b = from / parts + i, left = in_batch / parts - i;
            const size_t some = left < group ? left : group;
            const size_t at = b * (body_bytes + scale_bytes);
            const size_t later =
                x16_prefetch_offset(at, prefetch.distance, n_panels, panel_bytes);

            for (size_t p = 0; p < n_panels; p++) {
                const uint8_t *blocks = x16_forget(w + p * panel_bytes + at);
                const struct x16_block_at column =
                    x16_block_forget(x16_block_next(f, batch, parts * i));
                vf of[X16_SLICES][X16_FEW];

                SIMD_UNROLL
                for (int s = 0; s < X16_SLICES; s++)
                    SIMD_UNROLL
                for (int c = 0; c < n; c++)
                    of[s][c] = acc[p][s][c];
                if (n == 1 && some == group)
                    x16_block_group(f, prefetches, blocks, column, later, prefetch.hint,
                                    of);
                else
                    for (size_t j = 0; j < some; j++) {
                        const uint8_t *body =
                            blocks + some * scale_bytes + j * body_bytes;
                        const size_t lines =
                            n == 1 ? 0 : (body_bytes + scale_bytes + 63) / 64;

                        x16_block_whole(
                            f, n, x16_forget(body),
                            x16_forget(blocks + j * scale_bytes),
                            x16_block_next(f, column, parts * j),
                            (struct x16_later){body + later, 0, lines, prefetch.hint},
                            of);
                    }
                SIMD_UNROLL
                for (int s = 0; s < X16_SLICES; s++)
                    SIMD_UNROLL
                for (int c = 0; c < n; c++)
                    acc[p][s][c] = of[s][c];
            }
        }
    }
    for (size_t p = 0; p < n_panels; p++)
        SIMD_UNROLL
    for (int i = 0; i < X16_SLICES; i++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
        if ((size_t)c < n_cols)
            v_store_f(y + (size_t)c * y_stride + p * X16_ROWS + (size_t)i * V_LANES,
                      acc[p][i][c]);
}

/* Panels times n columns; where n_cols is less, the last one is done again. */
SIMD_INLINE void x16_block_few(const struct x16_block_format *f, const int n,
                               const bool prefetches, size_t n_panels, size_t k,
                               const uint8_t *w, size_t n_cols, const char *x,
                               size_t x_stride, float *y, size_t y_stride,
                               struct kern_prefetch prefetch)
{
    const size_t panel_bytes =
        X16_ROWS * (k / x16_block_elems(f)) * f->layout.block_bytes;
    const char *column_at[X16_FEW];

    SIMD_UNROLL
    for (size_t c = 0; c < (size_t)n; c++)
        column_at[c] = x + (c < n_cols ? c : n_cols - 1) * x_stride;
    for (size_t p = 0, some; p < n_panels; p += some) {
        some = x16_interleaved(prefetch, n_panels - p);
        x16_block_interleaved(f, n, prefetches, some, k, w + p * panel_bytes, n_cols,
                              column_at, y + p * X16_ROWS, y_stride, prefetch);
    }
}

/* Rows in file order, one column, X16_BATCH blocks at a time through the stack. */
SIMD_INLINE void x16_block_rows(const struct x16_block_format *f, size_t n_rows,
                                size_t k, const void *w, size_t w_stride, const char *x,
                                float *y)
{
    const size_t parts = x16_block_parts(f), n_blocks = k / (X16_BLOCK * parts);
    const size_t batch = X16_BATCH / parts;
    uint8_t body[X16_BATCH * 2 * X16_BLOCK * X16_ROWS] __attribute__((aligned(64)));
    uint8_t block_scales[X16_BATCH * 4 * X16_ROWS] __attribute__((aligned(64)));

#if V_BLOCK_ROWS
    if (f->row != X16_ROW_NONE) {
        block_rows_gemv(f, n_rows, k, w, w_stride, x, y);
        return;
    }
#endif
    for (size_t i = 0; i < n_rows; i += X16_ROWS) {
        const struct x16_rows rows = x16_rows(w, w_stride, i, n_rows);
        vf acc[X16_SLICES][X16_FEW];

        SIMD_UNROLL
        for (int s = 0; s < X16_SLICES; s++)
            acc[s][0] = v_zero_f();
        for (size_t from = 0; from < n_blocks; from += batch) {
            const size_t in_batch = n_blocks - from < batch ? n_blocks - from : batch;
            struct x16_block_columns columns __attribute__((aligned(64)));
            const struct x16_block_at at =
                x16_block_batch(f, 1, &x, k, parts * from, parts * in_batch, &columns);

            for (size_t r = 0; r < X16_ROWS; r++)
                prefetch_lines(rows.first + r * w_stride + from * f->layout.block_bytes,
                               (ptrdiff_t)(X16_ROWS * w_stride),
                               batch * f->layout.block_bytes);
            for (size_t j = 0; j < in_batch; j++)
                x16_interleave(&f->layout, rows, (from + j) * f->layout.block_bytes,
                               body + j * x16_body_bytes(&f->layout),
                               block_scales + j * x16_scale_bytes(&f->layout));
            for (size_t j = 0; j < in_batch; j++)
                x16_block_whole(f, 1, body + j * x16_body_bytes(&f->layout),
                                block_scales + j * x16_scale_bytes(&f->layout),
                                x16_block_next(f, at, parts * j), (struct x16_later){0},
                                acc);
        }
        for (size_t s = 0; s < X16_SLICES; s++)
            x16_store(y, acc[s][0], i, s, n_rows);
    }
}

#endif
