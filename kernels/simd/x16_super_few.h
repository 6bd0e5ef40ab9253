/* SPDX-License-Identifier: MIT
 *
 * x16_super_few.h - super-blocks times one or a few columns, straight from the block
 */
#ifndef SLM_KERNELS_SIMD_X16_SUPER_FEW_H
#define SLM_KERNELS_SIMD_X16_SUPER_FEW_H

#include "kernels/simd/x16_super_format.h"

/* ---- a few columns, straight from the block -------------------------------------- */

struct x16_sums {
    vi scale[X16_STRANDS][16], part[X16_STRANDS][X16_FEW][16],
        sum[X16_STRANDS][X16_FEW];
    vi other[X16_STRANDS][16]; /* of one column: its second chain */
    vi last;                   /* product */
    vf total[X16_FEW];
};

/* Passed by value: "constants that fold" in simd.h. */
struct x16_sink {
    int n_cols, per_sub, run, chains, biased, is_signed, strand;
    bool signs_apart; /* x16_emit_signs(): products, not weights, take them */
    const int8_t *q;  /* of the first column; each is a struct x16_column behind it */
    const struct x16_column *column;
    uint64_t shifts;
    struct x16_sums *to;
    const vf *factor; /* of a sub-block's products, for x16_in_floats() */
    /* To be used later: X16_INTERLEAVED times n_lines lines; n_lines 0: nothing. */
    const uint8_t *const *later;
    size_t n_lines;
    enum kern_prefetch_hint hint;
    vi *tile; /* or weights are kept here */
};

/* The first strand prefetches part `part` of n_parts of what is to be used later, each
 * part behind the product `made` in the part before (v_made()): compilers would move
 * all prefetches to the front, where many at once delay the loads behind them. */
SIMD_INLINE void x16_prefetch_later(const struct x16_sink sink, int part, int n_parts,
                                    vi made)
{
    const size_t lines = X16_INTERLEAVED * sink.n_lines;
    const size_t first = lines * (size_t)part / (size_t)n_parts;
    const size_t end = lines * (size_t)(part + 1) / (size_t)n_parts;
    const size_t max = (lines + (size_t)n_parts - 1) / (size_t)n_parts;

    if (sink.strand > 0)
        return;
    SIMD_UNROLL
    for (size_t i = first; i < first + max; i++) {
        if (i >= end)
            continue;
        if (part > 0)
            v_made(made);
        x16_prefetch_line(sink.later[i / sink.n_lines] + 64 * (i % sink.n_lines),
                          sink.hint);
    }
}

/* Whether n columns' products meet the scales as floats: then scales are turned into
 * floats once for all of them, and an integer product with 32 bits, which is two
 * instructions, is not needed. */
SIMD_INLINE bool x16_in_floats(const int n)
{
    return V_DOT32 && n > 1;
}

/* x16_dot() with column c; signs: of weights that are magnitudes, or NULL. */
SIMD_INLINE vi x16_sink_dot(const struct x16_sink sink, vi part, vi w, const vi *signs,
                            int c, int four)
{
    const int8_t *q = sink.q + sizeof(struct x16_column) * (size_t)c;

#if V_SIGNS_APART
    if (signs != NULL)
        return v_dot_signs(part, w, *signs, q + 4 * four);
#endif
    (void)signs;
    return x16_dot(part, w, q, four, sink.is_signed);
}

SIMD_INLINE void x16_super_take(const struct x16_sink sink, int four, vi w,
                                const vi *signs)
{
    const int s = four / sink.per_sub, step = four % sink.per_sub;
    const int t = sink.strand, shift = (int)(sink.shifts >> 4 * s & 15);

    SIMD_UNROLL
    for (int c = 0; c < sink.n_cols; c++) {
        vi part = sink.to->part[t][c][s];

        if (sink.chains == 2 && step % 2 != 0) {
            vi *other = &sink.to->other[t][s];

            *other =
                x16_sink_dot(sink, step == 1 ? v_zero() : *other, w, signs, c, four);
            sink.to->last = *other;
            if (step + 1 < sink.per_sub)
                continue;
            sink.to->sum[t][c] = v_add_scaled(sink.to->sum[t][c], v_add32(part, *other),
                                              sink.to->scale[t][s]);
            continue;
        }
        if (step % sink.run == 0)
            part =
                V_DOT32 && sink.biased ? v_bcast_4(&sink.column[c].start[s]) : v_zero();
        part = x16_sink_dot(sink, part, w, signs, c, four);
        sink.to->last = part;
        if (x16_in_floats(sink.n_cols)) {
            if (step + 1 == sink.per_sub)
                sink.to->total[c] =
                    v_fma(v_to_float(part), sink.factor[s], sink.to->total[c]);
            else
                sink.to->part[t][c][s] = part;
            continue;
        }
        if (step + 1 == sink.per_sub && shift != 0)
            part = v_sra32(part, shift);
        if ((step + 1) % sink.run == 0 || step + 1 == sink.per_sub)
            sink.to->sum[t][c] =
                v_add_scaled(sink.to->sum[t][c], part, sink.to->scale[t][s]);
        else
            sink.to->part[t][c][s] = part;
    }
}

SIMD_INLINE void x16_super_emit(const struct x16_sink sink, int four, vi w)
{
    x16_super_take(sink, four, w, NULL);
}

/* emit() of magnitudes m, at most 127, and signs: minus where bits has the one bit that
 * sel has. bias: the format's. */
SIMD_INLINE void x16_emit_signs(vi m, vi bits, vi sel, int bias, int four,
                                x16_emit_fn *emit, const struct x16_sink sink)
{
#if V_SIGNS_APART
    if (sink.signs_apart) {
        const vi signs = v_signs(bits, sel);

        x16_super_take(sink, four, m, &signs);
        return;
    }
#endif
    if (bias != 0)
        m = v_add8(m, v_set1_8(bias));
    emit(sink, four, v_minus_where(m, v_set1_8(2 * bias), bits, sel));
}

/* emit() of weights -1, 0 and 1, where V_SIGNED. */
SIMD_INLINE void x16_emit_units(vi w, int four, x16_emit_fn *emit,
                                const struct x16_sink sink)
{
    if (V_SIGNS_APART && sink.signs_apart)
        x16_super_take(sink, four, v_set1_8(1), &w);
    else
        emit(sink, four, w);
}

/* Every strand's sum of products with scales. */
SIMD_INLINE void x16_super_sums(const struct x16_super_format *f, const int n_strands,
                                const uint8_t *const *body, struct x16_sink sink)
{
    const bool whole = V_WIDE && f->products != NULL && sink.n_cols == 1;
    const int steps = whole ? 1 : f->steps;

    SIMD_UNROLL_64
    for (int step = 0; step < steps; step++) {
        sink.strand = 0;
        if (!whole)
            x16_prefetch_later(sink, step, f->steps, sink.to->last);
        SIMD_UNROLL
        for (int t = 0; t < n_strands; t++) {
            sink.strand = t;
            if (whole)
                f->products(body[t], sink);
            else if (V_WIDE && f->wide != NULL)
                f->wide(body[t], step, x16_super_emit, sink);
            else
                f->weights(body[t], step, x16_super_emit, sink);
        }
    }
}

/* The scales of n_subs sub-blocks times d, and less by how much wide weights are
 * shifted. They are kept in memory (SIMD_IN_MEMORY): an instruction takes them from
 * there. */
SIMD_INLINE void x16_factors(const struct x16_super_format *f, const int n_subs,
                             bool wide, const struct x16_scales *sc, vf *factor)
{
    SIMD_UNROLL
    for (int s = 0; s < n_subs; s++) {
        const int shift = wide ? (int)(f->shifts >> 4 * s & 15) : 0;

        factor[s] = v_mul(v_mul(sc->d, v_set1_f(1.0f / (float)(1 << shift))),
                          v_to_float(sc->scale[s]));
    }
}

/* Lines of a quarter of a super-block in a panel. */
SIMD_INLINE size_t x16_quarter_lines(const struct x16_layout *l)
{
    return (x16_body_bytes(l) + x16_scale_bytes(l) + 64 * X16_INTERLEAVED - 1) /
           (64 * X16_INTERLEAVED);
}

/* acc[strand][c] += one super-block of n_strands slices times n columns; x, column and
 * b say which of the columns. later: quarters to prefetch, or NULL. */
SIMD_INLINE void x16_super_step(const struct x16_super_format *f, const int n_strands,
                                const int n, const uint8_t *const *body,
                                const uint8_t *const *block_scales,
                                const char *const *x, size_t k, size_t b,
                                const struct x16_column *column,
                                const uint8_t *const *later,
                                enum kern_prefetch_hint hint, vf (*acc)[X16_FEW])
{
    struct x16_scales sc[X16_STRANDS];
    vi scale_pairs[X16_STRANDS][8];
    vf factor[16];
    struct x16_sums sums;
    const uint8_t *ahead[X16_INTERLEAVED];
    const int per_sub = 64 / f->n_subs;
    const struct x16_sink sink = {
        .n_cols = n,
        .per_sub = per_sub,
        .run = V_RUN(f->max) < per_sub ? V_RUN(f->max) : per_sub,
        .chains = V_DOT32 && f->two_chains && n == 1 ? 2 : 1,
        .biased = f->bias != 0,
        .is_signed = f->is_signed,
        .signs_apart = V_SIGNS_APART,
        .q = n > 1 || f->order != NULL ? column->q : act_q(x[0]) + X16_SUPER * b,
        .column = column,
        .shifts = V_WIDE ? f->shifts : 0,
        .to = &sums,
        .factor = factor,
        .later = ahead,
        .n_lines = later != NULL ? x16_quarter_lines(&f->layout) : 0,
        .hint = hint,
    };

    SIMD_UNROLL
    for (int i = 0; i < X16_INTERLEAVED; i++)
        ahead[i] = later != NULL ? later[i] : NULL;
    SIMD_UNROLL
    for (int c = 0; c < n; c++)
        sums.total[c] = v_zero_f();
    SIMD_UNROLL
    for (int t = 0; t < n_strands; t++) {
        f->scales(body[t], block_scales[t], &sc[t]);
        if (f->bias != 0)
            x16_pair_scales(sc[t].scale, f->n_subs, scale_pairs[t]);
        SIMD_UNROLL
        for (int s = 0; s < f->n_subs; s++)
            sums.scale[t][s] = sc[t].scale[s];
        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            sums.sum[t][c] = v_zero();
    }
    if (x16_in_floats(n)) {
        x16_factors(f, f->n_subs, V_WIDE && f->wide != NULL, &sc[0], factor);
        SIMD_IN_MEMORY(factor);
    }
    x16_super_sums(f, n_strands, body, sink);
    SIMD_UNROLL
    for (int t = 0; t < n_strands; t++) {
        SIMD_UNROLL
        for (int c = 0; c < n; c++) {
            const vf dx = v_set1_f(act_q8_256_d(x[c], k)[b]);
            vi sum = sums.sum[t][c];
            vf v;

            if (!V_DOT32 && f->bias != 0)
                sum = v_sub32(
                    sum, v_mul32(v_set1_32(f->bias),
                                 x16_dot_sums(scale_pairs[t], f->n_subs, &column[c])));
            v = x16_in_floats(n) ? sums.total[c] : v_mul(sc[t].d, v_to_float(sum));
            if (f->mins)
                v = v_fnma(sc[t].dmin,
                           v_to_float(x16_dot_sums(sc[t].pairs, f->n_subs, &column[c])),
                           v);
            acc[t][c] = v_fma(dx, v, acc[t][c]);
        }
    }
}

/* Super-block b of a panel times n columns, n_s (1 or 2) slices at a time. */
SIMD_INLINE void x16_super_block(const struct x16_super_format *f, const int n_s,
                                 const int n, const uint8_t *bodies,
                                 const uint8_t *block_scales, const char *const *x,
                                 size_t k, size_t b, const struct x16_column *column,
                                 const uint8_t *const *later,
                                 enum kern_prefetch_hint hint, vf (*acc)[X16_FEW])
{
    SIMD_UNROLL
    for (int s = 0; s < X16_SLICES; s += n_s) {
        const uint8_t *body[X16_STRANDS], *slice_scales[X16_STRANDS];

        SIMD_UNROLL
        for (int t = 0; t < n_s; t++) {
            const size_t slice = (size_t)(s + t);

            body[t] = bodies + slice * X16_SLICE_BYTES;
            slice_scales[t] = block_scales + slice * V_LANES * f->layout.scale_bytes;
        }
        x16_super_step(f, n_s, n, body, slice_scales, x, k, b, column,
                       s == 0 ? later : NULL, hint, acc + s);
    }
}

/* At most X16_INTERLEAVED panels times n columns, of which n_cols are to be stored; the
 * panels are interleaved by super-blocks. If `prefetches` is true, each panel's
 * super-block prefetches a quarter of all panels' super-blocks that come later: a
 * super-block in one piece would be one stream again. */
SIMD_INLINE void x16_super_interleaved(const struct x16_super_format *f, const int n,
                                       const bool prefetches, size_t n_panels, size_t k,
                                       const uint8_t *w, size_t n_cols,
                                       const char *const *x, float *y, size_t y_stride,
                                       struct kern_prefetch prefetch)
{
    const size_t n_blocks = k / X16_SUPER;
    const size_t panel_bytes = X16_ROWS * n_blocks * f->layout.block_bytes;
    const size_t body_bytes = x16_body_bytes(&f->layout);
    const size_t scale_bytes = x16_scale_bytes(&f->layout);
    const size_t quarter = 64 * x16_quarter_lines(&f->layout);
    vf acc[X16_INTERLEAVED][X16_SLICES][X16_FEW];

    for (size_t p = 0; p < n_panels; p++)
        SIMD_UNROLL
    for (int i = 0; i < X16_SLICES; i++)
        SIMD_UNROLL
    for (int c = 0; c < n; c++)
        acc[p][i][c] = v_zero_f();
    for (size_t b = 0; b < n_blocks; b++) {
        const size_t at = kern_panel_body_at(body_bytes, scale_bytes, n_blocks, b);
        const size_t scales_at = kern_panel_scales_at(body_bytes, scale_bytes, b);
        const uint8_t *next =
            w + at + x16_prefetch_offset(at, prefetch.distance, n_panels, panel_bytes);
        struct x16_column column[X16_FEW] __attribute__((aligned(64)));

        SIMD_UNROLL
        for (int c = 0; c < n; c++)
            x16_few_column(f, n, x[c], k, b, &column[c]);
        for (size_t p = 0; p < n_panels; p++) {
            const uint8_t *panel = w + p * panel_bytes, *later[X16_INTERLEAVED];
            const char *column_at[X16_FEW];
            vf of[X16_SLICES][X16_FEW];

            SIMD_UNROLL
            for (int c = 0; c < n; c++)
                column_at[c] = (const void *)x16_forget((const uint8_t *)x[c]);
            SIMD_UNROLL
            for (size_t i = 0; i < X16_INTERLEAVED; i++)
                later[i] = n_panels == X16_INTERLEAVED
                               ? next + i * panel_bytes + p * quarter
                               : next + p * panel_bytes + i * quarter;
            SIMD_UNROLL
            for (int i = 0; i < X16_SLICES; i++)
                SIMD_UNROLL
            for (int c = 0; c < n; c++)
                of[i][c] = acc[p][i][c];
            x16_super_block(f, X16_AT_ONCE, n, x16_forget(panel + at),
                            x16_forget(panel + scales_at), column_at, k, b,
                            (const void *)x16_forget((const uint8_t *)column),
                            prefetches ? later : NULL, prefetch.hint, of);
            SIMD_UNROLL
            for (int i = 0; i < X16_SLICES; i++)
                SIMD_UNROLL
            for (int c = 0; c < n; c++)
                acc[p][i][c] = of[i][c];
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
SIMD_INLINE void x16_super_few(const struct x16_super_format *f, const int n,
                               const bool prefetches, size_t n_panels, size_t k,
                               const uint8_t *w, size_t n_cols, const char *x,
                               size_t x_stride, float *y, size_t y_stride,
                               struct kern_prefetch prefetch)
{
    const size_t panel_bytes = X16_ROWS * (k / X16_SUPER) * f->layout.block_bytes;
    const char *column_at[X16_FEW];

    SIMD_UNROLL
    for (size_t c = 0; c < (size_t)n; c++)
        column_at[c] = x + (c < n_cols ? c : n_cols - 1) * x_stride;
    for (size_t p = 0, some; p < n_panels; p += some) {
        some = x16_interleaved(prefetch, n_panels - p);
        x16_super_interleaved(f, n, prefetches, some, k, w + p * panel_bytes, n_cols,
                              column_at, y + p * X16_ROWS, y_stride, prefetch);
    }
}

/* Rows in file order, one column. Rows that are used next lie 16 rows on. */
SIMD_INLINE void x16_super_rows(const struct x16_super_format *f, size_t n_rows,
                                size_t k, const void *w, size_t w_stride, const char *x,
                                float *y)
{
    uint8_t body[X16_SUPER * X16_ROWS] __attribute__((aligned(64)));
    uint8_t block_scales[4 * X16_ROWS] __attribute__((aligned(64)));

    for (size_t i = 0; i < n_rows; i += X16_ROWS) {
        const struct x16_rows rows = x16_rows(w, w_stride, i, n_rows);
        vf acc[X16_SLICES][X16_FEW];

        SIMD_UNROLL
        for (int s = 0; s < X16_SLICES; s++)
            acc[s][0] = v_zero_f();
        for (size_t b = 0; b < k / X16_SUPER; b++) {
            const size_t at = b * f->layout.block_bytes;
            struct x16_column column;

            x16_few_column(f, 1, x, k, b, &column);
            for (size_t r = 0; r < X16_ROWS; r++)
                prefetch_lines(rows.first + r * w_stride + at,
                               (ptrdiff_t)(X16_ROWS * w_stride), f->layout.block_bytes);
            x16_interleave(&f->layout, rows, at, body, block_scales);
            SIMD_UNROLL
            for (int s = 0; s < X16_SLICES; s += X16_AT_ONCE) {
                const uint8_t *bodies[X16_STRANDS], *slice_scales[X16_STRANDS];

                SIMD_UNROLL
                for (int t = 0; t < X16_AT_ONCE; t++) {
                    bodies[t] = body + (s + t) * X16_SLICE_BYTES;
                    slice_scales[t] = block_scales +
                                      (size_t)(s + t) * V_LANES * f->layout.scale_bytes;
                }
                x16_super_step(f, X16_AT_ONCE, 1, bodies, slice_scales, &x, k, b,
                               &column, NULL, KERN_PREFETCH_T0, acc + s);
            }
        }
        for (size_t s = 0; s < X16_SLICES; s++)
            x16_store(y, acc[s][0], i, s, n_rows);
    }
}

#endif
