/* SPDX-License-Identifier: MIT
 *
 * x16_block_few.h - blocks of 32 times one or a few columns, straight from the block
 *
 * A column's products in a block are a chain of instructions that wait for each other.
 * Two blocks at a time, or two slices of a panel, keep the multipliers busy meanwhile.
 */
#ifndef SLM_KERNELS_SIMD_X16_BLOCK_FEW_H
#define SLM_KERNELS_SIMD_X16_BLOCK_FEW_H

#include "kernels/simd/x16_block_rows.h"

/* Where the numbers of one column's block are. */
struct x16_block_at {
    const int8_t *q;
    const float *d, *s;
    const int32_t *start;
};

struct x16_sink {
    int n_cols, run, biased, is_signed, strand;
    const int8_t *q[X16_STRANDS][X16_FEW];
    const int32_t *start[X16_STRANDS][X16_FEW];
    bool wide;
    vi part[X16_STRANDS][X16_FEW][2], sum[X16_STRANDS][X16_FEW];
    vi last;  /* product */
    vi *tile; /* or weights are kept here */
};

/* How many products of weights up to max to add up in a part: a power of two. */
#define X16_BLOCK_RUN(max) \
    (V_RUN(max) >= 8 ? 8 : V_RUN(max) >= 4 ? 4 : V_RUN(max) >= 2 ? 2 : 1)

/* Both halves of a block come in ascending order, in turns or one after the other. */
SIMD_INLINE void x16_block_emit(struct x16_sink *sink, int four, vi w)
{
    const int t = sink->strand;
    const bool high = sink->wide && four >= 4;
    const int run = high ? 4 : sink->run, half = run == 8 ? 0 : four / 4;

    SIMD_UNROLL
    for (int c = 0; c < sink->n_cols; c++) {
        const int8_t *q = sink->q[t][c];

        if (four == 0)
            sink->sum[t][c] = sink->biased ? v_bcast_4(sink->start[t][c]) : v_zero();
        if (V_DOT32 && !high) {
            sink->sum[t][c] = x16_dot(sink->sum[t][c], w, q, four, sink->is_signed);
            sink->last = sink->sum[t][c];
            continue;
        }
        if (four % run == 0)
            sink->part[t][c][half] = v_zero();
        sink->part[t][c][half] =
            x16_dot(sink->part[t][c][half], w, q, four, sink->is_signed);
        sink->last = sink->part[t][c][half];
        if (high && four == 7)
            sink->sum[t][c] =
                v_add32(sink->sum[t][c], v_sra32(sink->part[t][c][half], 4));
        if (!high && (four + 1) % run == 0)
            sink->sum[t][c] =
                v_add32(sink->sum[t][c], v_dot_sum(sink->part[t][c][half]));
    }
}

/* What is to be used later, of which a block asks for the lines from first to end - 1
 * behind `at`; where end is first, for nothing. */
struct x16_later {
    const uint8_t *at;
    size_t first, end;
};

/* acc[strand][c], or acc[0][c] where the strands are blocks of one slice, += one block
 * per strand times n columns. Wide weights cost every column two instructions, others
 * four for all columns. Lines are asked for step by step, not before the last step's
 * products are made: see x16_ask(). */
SIMD_INLINE void x16_block_step(const struct x16_block_format f, const int n_strands,
                                const bool one_slice, const int n,
                                const uint8_t *const *body, const uint8_t *const *head,
                                const struct x16_block_at (*at)[X16_FEW],
                                struct x16_later later, vf (*acc)[X16_FEW])
{
    const size_t lines = later.end - later.first;
    struct x16_sink sink;

    sink.n_cols = n;
    sink.run = X16_BLOCK_RUN(f.max);
    sink.biased = f.bias != 0;
    sink.is_signed = f.is_signed;
    sink.wide = V_WIDE && f.wide != NULL && n <= 2;
    SIMD_UNROLL
    for (int t = 0; t < n_strands; t++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++) {
        sink.q[t][c] = at[t][c].q;
        sink.start[t][c] = at[t][c].start;
    }
    SIMD_UNROLL
    for (int step = 0; step < f.steps; step++) {
        const size_t from = lines * (size_t)step / (size_t)f.steps;
        const size_t to = lines * (size_t)(step + 1) / (size_t)f.steps;

        if (from < to)
            prefetch_lines(later.at, 64 * (ptrdiff_t)(later.first + from),
                           64 * (to - from));
        SIMD_UNROLL
        for (int t = 0; t < n_strands; t++) {
            sink.strand = t;
            if (sink.wide)
                f.wide(body[t], step, x16_block_emit, &sink);
            else
                f.weights(body[t], step, x16_block_emit, &sink);
        }
        if (lines != 0)
            later.at = v_after(later.at, sink.last);
    }
    SIMD_UNROLL
    for (int t = 0; t < n_strands; t++) {
        const int slice = one_slice ? 0 : t;
        vf d, m;

        f.scales(body[t], head[t], &d, &m);
        SIMD_UNROLL
        for (int c = 0; c < n; c++) {
            const vf dx = v_set1_f(*at[t][c].d);

            acc[slice][c] =
                v_fma(v_mul(v_to_float(sink.sum[t][c]), dx), d, acc[slice][c]);
            if (f.has_m)
                acc[slice][c] = v_fma(m, v_set1_f(*at[t][c].s), acc[slice][c]);
        }
    }
}

/* ---- one column ------------------------------------------------------------------ */

/* The slices of one block, n_s (1 or 2) at a time. */
SIMD_INLINE void x16_block_slices(const struct x16_block_format f, const int n_s,
                                  const uint8_t *body, const uint8_t *head,
                                  const char *x, size_t k, size_t b,
                                  const int32_t *start, struct x16_later later,
                                  vf (*acc)[X16_FEW])
{
    const struct x16_later nothing = {0};

    struct x16_block_at at[X16_STRANDS][X16_FEW];

    SIMD_UNROLL
    for (int t = 0; t < n_s; t++)
        at[t][0] =
            (struct x16_block_at){act_q(x) + X16_BLOCK * b, act_q8_32_d(x, k) + b,
                                  act_q8_32_s(x, k) + b, start};
    SIMD_UNROLL
    for (int s = 0; s < X16_SLICES; s += n_s) {
        const uint8_t *bodies[X16_STRANDS], *heads[X16_STRANDS];

        SIMD_UNROLL
        for (int t = 0; t < n_s; t++) {
            const size_t slice = (size_t)(s + t);

            bodies[t] = body + slice * X16_SLICE_BYTES;
            heads[t] = head + slice * V_LANES * f.layout.head_bytes;
        }
        x16_block_step(f, n_s, false, 1, bodies, heads, at, s == 0 ? later : nothing,
                       acc + s);
    }
}

/* n blocks whose heads stand together at `at`, their bodies behind them. start: of the
 * first block, b. Blocks share out the lines that are to be used later. */
SIMD_INLINE void x16_block_group(const struct x16_block_format f, const size_t n,
                                 const bool prefetch, const uint8_t *at, const char *x,
                                 size_t k, size_t b, const int32_t *start, size_t ahead,
                                 vf (*acc)[X16_FEW])
{
    const size_t body_bytes = x16_body_bytes(f.layout);
    const size_t head_bytes = x16_head_bytes(f.layout);
    const size_t lines = prefetch ? (n * (body_bytes + head_bytes) + 63) / 64 : 0;
    const uint8_t *head = at, *body = x16_forget(at + n * head_bytes);

    SIMD_UNROLL
    for (size_t i = 0; i < n; i++) {
        const struct x16_later later = {at + ahead, lines * i / n, lines * (i + 1) / n};

        x16_block_slices(f, X16_AT_ONCE, body, head, x, k, b + i, start + i, later,
                         acc);
        body = x16_forget(body + body_bytes);
        head = x16_forget(head + head_bytes);
    }
}

/* At most X16_TURNS panels times one column, a group of blocks of each by turns. A full
 * group is unrolled: blocks are found by adding constants. */
SIMD_INLINE void x16_block_turns(const struct x16_block_format f, const bool prefetch,
                                 size_t n_panels, size_t k, const uint8_t *w,
                                 const char *x, float *y, size_t ahead)
{
    const size_t n_blocks = k / X16_BLOCK;
    const size_t body_bytes = x16_body_bytes(f.layout);
    const size_t head_bytes = x16_head_bytes(f.layout);
    const size_t panel_bytes = n_blocks * (body_bytes + head_bytes);
    const size_t group = kern_panel_group(head_bytes);
    vf acc[X16_TURNS][X16_SLICES];

    for (size_t p = 0; p < n_panels; p++)
        SIMD_UNROLL
    for (int i = 0; i < X16_SLICES; i++)
        acc[p][i] = v_zero_f();
    for (size_t from = 0; from < n_blocks; from += X16_BATCH) {
        const size_t in_batch =
            n_blocks - from < X16_BATCH ? n_blocks - from : X16_BATCH;
        int32_t start[X16_BATCH];

        x16_block_starts(f, x, k, from, in_batch, start);
        for (size_t i = 0; i < in_batch; i += group) {
            const size_t b = from + i, n = in_batch - i < group ? in_batch - i : group;
            const size_t at = b * (body_bytes + head_bytes);
            const size_t later = x16_turn_ahead(at, ahead, n_panels, panel_bytes);

            for (size_t p = 0; p < n_panels; p++) {
                const uint8_t *blocks = x16_forget(w + p * panel_bytes + at);
                const char *column = (const void *)x16_forget((const uint8_t *)x);
                const int32_t *starts =
                    (const void *)x16_forget((const uint8_t *)(start + i));
                vf of[X16_SLICES][X16_FEW];

                SIMD_UNROLL
                for (int s = 0; s < X16_SLICES; s++)
                    of[s][0] = acc[p][s];
                if (n == group)
                    x16_block_group(f, group, prefetch, blocks, column, k, b, starts,
                                    later, of);
                else
                    for (size_t j = 0; j < n; j++)
                        x16_block_slices(f, X16_AT_ONCE,
                                         blocks + n * head_bytes + j * body_bytes,
                                         blocks + j * head_bytes, column, k, b + j,
                                         starts + j, (struct x16_later){0}, of);
                SIMD_UNROLL
                for (int s = 0; s < X16_SLICES; s++)
                    acc[p][s] = of[s][0];
            }
        }
    }
    for (size_t p = 0; p < n_panels; p++)
        SIMD_UNROLL
    for (int i = 0; i < X16_SLICES; i++)
        v_store_f(y + p * X16_ROWS + (size_t)i * V_LANES, acc[p][i]);
}

SIMD_INLINE void x16_block_panels(const struct x16_block_format f, size_t n_panels,
                                  size_t k, const uint8_t *w, const char *x, float *y,
                                  size_t ahead)
{
    const size_t panel_bytes = X16_ROWS * (k / X16_BLOCK) * f.layout.block_bytes;

    for (size_t p = 0; p < n_panels; p += X16_TURNS) {
        const size_t n = n_panels - p < X16_TURNS ? n_panels - p : X16_TURNS;

        if (ahead != 0)
            x16_block_turns(f, true, n, k, w + p * panel_bytes, x, y + p * X16_ROWS,
                            ahead);
        else
            x16_block_turns(f, false, n, k, w + p * panel_bytes, x, y + p * X16_ROWS,
                            0);
    }
}

/* Rows in file order, one column, X16_BATCH blocks at a time through the stack. */
SIMD_INLINE void x16_block_rows(const struct x16_block_format f, size_t n_rows,
                                size_t k, const void *w, size_t w_stride, const char *x,
                                float *y)
{
    const size_t n_blocks = k / X16_BLOCK;
    uint8_t body[X16_BATCH * 2 * X16_BLOCK * X16_ROWS] __attribute__((aligned(64)));
    uint8_t head[X16_BATCH * 4 * X16_ROWS] __attribute__((aligned(64)));

#if V_BLOCK_ROWS
    if (f.row != X16_ROW_NONE) {
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
        for (size_t from = 0; from < n_blocks; from += X16_BATCH) {
            const size_t in_batch =
                n_blocks - from < X16_BATCH ? n_blocks - from : X16_BATCH;
            int32_t start[X16_BATCH];

            for (size_t r = 0; r < X16_ROWS; r++)
                prefetch_lines(rows.first + r * w_stride + from * f.layout.block_bytes,
                               (ptrdiff_t)(X16_ROWS * w_stride),
                               X16_BATCH * f.layout.block_bytes);
            for (size_t j = 0; j < in_batch; j++)
                x16_interleave(f.layout, rows, (from + j) * f.layout.block_bytes,
                               body + j * x16_body_bytes(f.layout),
                               head + j * x16_head_bytes(f.layout));
            x16_block_starts(f, x, k, from, in_batch, start);
            for (size_t j = 0; j < in_batch; j++)
                x16_block_slices(f, X16_AT_ONCE, body + j * x16_body_bytes(f.layout),
                                 head + j * x16_head_bytes(f.layout), x, k, from + j,
                                 start + j, (struct x16_later){0}, acc);
        }
        for (size_t s = 0; s < X16_SLICES; s++)
            x16_store(y, acc[s][0], i, s, n_rows);
    }
}

/* ---- a few columns, of vectors that are all rows of a panel ------------------------
 */

/* A batch of blocks of every column, side by side: few addresses, and all of them near
 * one register, where columns far apart would need one each. */
struct x16_block_columns {
    int8_t q[X16_FEW][X16_BATCH * X16_BLOCK];
    float d[X16_FEW][X16_BATCH], s[X16_FEW][X16_BATCH];
    int32_t start[X16_FEW][X16_BATCH];
};

/* n blocks from b on of column c. */
SIMD_INLINE void x16_block_some(const struct x16_block_format f, const char *x,
                                size_t k, size_t b, size_t n, size_t c,
                                struct x16_block_columns *to)
{
    memcpy(to->q[c], act_q(x) + X16_BLOCK * b, X16_BLOCK * n);
    memcpy(to->d[c], act_q8_32_d(x, k) + b, n * sizeof(float));
    if (f.has_m)
        memcpy(to->s[c], act_q8_32_s(x, k) + b, n * sizeof(float));
    x16_block_starts(f, x, k, b, n, to->start[c]);
}

/* The same, which is a dozen instructions where the batch is full. */
SIMD_INLINE void x16_block_column(const struct x16_block_format f, const char *x,
                                  size_t k, size_t b, size_t n, size_t c,
                                  struct x16_block_columns *to)
{
    if (n == X16_BATCH)
        x16_block_some(f, x, k, b, X16_BATCH, c, to);
    else
        x16_block_some(f, x, k, b, n, c, to);
}

/* acc[c] += the n_blocks blocks from b on, which are those from i on of a batch. */
SIMD_INLINE void x16_block_few_step(const struct x16_block_format f, const int n_blocks,
                                    const int n, size_t blocks_of_row, const uint8_t *w,
                                    size_t b, const struct x16_block_columns *columns,
                                    size_t i, size_t ahead, vf (*acc)[X16_FEW])
{
    struct x16_block_at at[X16_STRANDS][X16_FEW];
    const uint8_t *body[X16_STRANDS], *head[X16_STRANDS];

    SIMD_UNROLL
    for (int t = 0; t < n_blocks; t++) {
        const size_t j = i + (size_t)t;
        const void *quants = x16_forget((const uint8_t *)&columns->q[0][X16_BLOCK * j]);
        const void *floats = x16_forget((const uint8_t *)&columns->d[0][j]);

        body[t] = x16_body_of(f.layout, w, blocks_of_row, b + (size_t)t);
        head[t] = x16_heads_of(f.layout, w, b + (size_t)t);
        if (ahead != 0)
            prefetch_lines(body[t], (ptrdiff_t)ahead,
                           x16_body_bytes(f.layout) + x16_head_bytes(f.layout));
        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            at[t][c] = (struct x16_block_at){
                (const int8_t *)quants + X16_BATCH * X16_BLOCK * c,
                (const float *)floats + X16_BATCH * c,
                (const float *)floats + X16_BATCH * (X16_FEW + c),
                (const int32_t *)floats + X16_BATCH * (2 * X16_FEW + c)};
    }
    x16_block_step(f, n_blocks, true, n, body, head, at, (struct x16_later){0}, acc);
}

/* The batch from block b on of n columns. */
SIMD_INLINE void x16_block_batch(const struct x16_block_format f, const int n,
                                 const char *const *x, size_t k, size_t b,
                                 struct x16_block_columns *to)
{
    const size_t left = k / X16_BLOCK - b;

    for (size_t c = 0; c < (size_t)n; c++)
        x16_block_column(f, x[c], k, b, left < X16_BATCH ? left : X16_BATCH, c, to);
}

/* A panel times n columns, of which n_cols are to be stored. The batch that comes next,
 * after the last one the first, is copied while this one is multiplied: products would
 * wait for what was just stored. *turn says which of the two holds this one. */
SIMD_INLINE void x16_block_few_panel(const struct x16_block_format f, const int n,
                                     size_t k, const uint8_t *w, size_t n_cols,
                                     const char *const *x, float *y, size_t y_stride,
                                     size_t ahead, struct x16_block_columns *columns,
                                     size_t *turn)
{
    const size_t n_blocks = k / X16_BLOCK;
    vf acc[1][X16_FEW];

    SIMD_UNROLL
    for (int c = 0; c < n; c++)
        acc[0][c] = v_zero_f();
    for (size_t from = 0; from < n_blocks; from += X16_BATCH) {
        const size_t next = from + X16_BATCH < n_blocks ? from + X16_BATCH : 0;
        const size_t in_batch = next != 0 ? X16_BATCH : n_blocks - from;
        const struct x16_block_columns *now = &columns[*turn];
        size_t i = 0;

        *turn ^= 1;
        x16_block_batch(f, n, x, k, next, &columns[*turn]);
        for (; i + 2 <= in_batch; i += 2)
            x16_block_few_step(f, 2, n, n_blocks, w, from + i, now, i, ahead, acc);
        if (i < in_batch)
            x16_block_few_step(f, 1, n, n_blocks, w, from + i, now, i, ahead, acc);
    }
    SIMD_UNROLL
    for (int c = 0; c < n; c++)
        if ((size_t)c < n_cols)
            v_store_f(y + (size_t)c * y_stride, acc[0][c]);
}

/* Panels times n columns; where n_cols is less, the last one is done again. */
SIMD_INLINE void x16_block_few(const struct x16_block_format f, const int n,
                               size_t n_panels, size_t k, const uint8_t *w,
                               size_t n_cols, const char *x, size_t x_stride, float *y,
                               size_t y_stride, size_t ahead)
{
    const size_t panel_bytes = X16_ROWS * (k / X16_BLOCK) * f.layout.block_bytes;
    const char *column_at[X16_FEW];
    struct x16_block_columns columns[2] __attribute__((aligned(64)));
    size_t turn = 0;

    SIMD_UNROLL
    for (size_t c = 0; c < (size_t)n; c++)
        column_at[c] = x + (c < n_cols ? c : n_cols - 1) * x_stride;
    x16_block_batch(f, n, column_at, k, 0, &columns[0]);
    for (size_t p = 0; p < n_panels; p++)
        x16_block_few_panel(f, n, k, w + p * panel_bytes, n_cols, column_at,
                            y + p * X16_ROWS, y_stride, ahead, columns, &turn);
}

#endif
