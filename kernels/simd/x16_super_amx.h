/* SPDX-License-Identifier: MIT
 *
 * x16_super_amx.h - super-blocks of 256 weights times several columns, by tiles
 *
 * Weights are multiplied with the integer scales of their sub-blocks before, so that
 * products of a whole super-block are one sum in 32 bits, as x16_super.h has it. A
 * weight times its scale needs up to 14 bits with its sign: it is cut into a low
 * unsigned byte and a high signed one, of which each gets tiles of its own, exactly:
 *
 *   sum_i x_i * (scale * weight)_i = sum_i x_i * low_i + 256 * sum_i x_i * high_i
 *
 * Of `narrow` formats it fits one signed byte, then there is but one product. Range:
 * |sum_i x_i * low_i| <= 256 * 127 * 255 = 8290560; the sum of both is the one that the
 * format argues to fit.
 *
 * Scales of formats with minima are six bits, and weights have no bias: scales are cut
 * in two digits of three bits instead, since a weight of at most 31 times 7 fits an
 * unsigned byte, and one multiplication of a word by a digit makes two of them:
 *
 *   sum_i x_i * (scale * weight)_i = sum_i x_i * low_i + 8 * sum_i x_i * high_i
 */
#ifndef SLM_KERNELS_SIMD_X16_SUPER_AMX_H
#define SLM_KERNELS_SIMD_X16_SUPER_AMX_H

#include "kernels/simd/x16_amx.h"
#include "kernels/simd/x16_super_few.h"

struct amx_super {
    vi low[64], high[64]; /* tiles B, one behind the other */
    vi pairs[8];          /* minima */
    vf d, dmin;
};

SIMD_INLINE void amx_super_emit(const struct x16_sink sink, int four, vi w)
{
    sink.tile[four] = w;
}

/* The products of four weights (biased, in bytes) and a scale (in both words of every
 * dword), of even and of odd bytes. */
SIMD_INLINE void amx_scaled(const struct x16_super_format *f, vi w, vi scale, vi *even,
                            vi *odd)
{
    *even = v_and(w, v_set1_32(0x00ff00ff));
    *odd = v_srl16(w, 8);
    if (f->bias != 0) {
        *even = _mm512_sub_epi16(*even, _mm512_set1_epi16((short)f->bias));
        *odd = _mm512_sub_epi16(*odd, _mm512_set1_epi16((short)f->bias));
    }
    *even = _mm512_mullo_epi16(*even, scale);
    *odd = _mm512_mullo_epi16(*odd, scale);
}

/* The lower bytes of both, side by side again; the upper ones. */
SIMD_INLINE vi amx_low(vi even, vi odd)
{
    return v_select(v_set1_32(0x00ff00ff), even, _mm512_slli_epi16(odd, 8));
}

SIMD_INLINE vi amx_high(vi even, vi odd)
{
    return v_select(v_set1_32(0x00ff00ff), v_srl16(even, 8), odd);
}

/* Whether scales are cut, not products. */
SIMD_INLINE bool amx_has_digits(const struct x16_super_format *f)
{
    return f->mins && !f->narrow;
}

/* Four biased weights times a scale, in place. */
SIMD_INLINE void amx_super_scale(const struct x16_super_format *f, vi scale, vi *low,
                                 vi *high)
{
    vi even, odd;

    if (amx_has_digits(f)) {
        *high = _mm512_mullo_epi16(*low, v_srl16(scale, 3));
        *low = _mm512_mullo_epi16(*low, v_and(scale, v_set1_32(0x00070007)));
        return;
    }
    amx_scaled(f, *low, scale, &even, &odd);
    *low = amx_low(even, odd);
    if (!f->narrow)
        *high = amx_high(even, odd);
}

SIMD_INLINE void amx_super_unpack(const struct x16_super_format *f, const uint8_t *body,
                                  const uint8_t *block_scales, struct amx_super *out)
{
    const int n_subs = f->unscaled ? 1 : f->n_subs, per_sub = 64 / n_subs;
    const struct x16_sink sink = {.tile = out->low};
    struct x16_scales sc;

    f->scales(body, block_scales, &sc);
    out->d = f->narrow < 0 ? v_mul(sc.d, v_set1_f(-1)) : sc.d;
    if (f->mins) {
        memcpy(out->pairs, sc.pairs, sizeof(out->pairs));
        out->dmin = sc.dmin;
    }
    SIMD_UNROLL_64
    for (int step = 0; step < f->steps; step++)
        f->weights(body, step, amx_super_emit, sink);
    SIMD_UNROLL
    for (int s = 0; s < n_subs; s++) {
        vi scale = f->unscaled ? v_set1_32(0x00010001)
                               : v_select(v_set1_32(0xffff), sc.scale[s],
                                          v_sll32(sc.scale[s], 16));

        if (f->narrow < 0)
            scale = _mm512_sub_epi16(v_zero(), scale);
        for (int t = s * per_sub; t < (s + 1) * per_sub; t++)
            amx_super_scale(f, scale, out->low + t, out->high + t);
    }
}

/* Super-block b of a column as number j of group g. */
SIMD_INLINE void amx_super_column(const struct x16_super_format *f, const char *x,
                                  size_t k, size_t b, struct amx_group *g, size_t j)
{
    SIMD_UNROLL
    for (size_t i = 0; i < AMX_CHUNKS; i++) {
        const vi v = v_load(act_q(x) + X16_SUPER * b + AMX_CHUNK * i);

        v_store(g->q[i][j], f->order != NULL ? v_table16(v, v_bcast_16(f->order)) : v);
    }
    if (f->mins) {
        struct x16_column column;

        x16_column(f, f->n_subs, false, false, x, k, b, &column);
        memcpy(g->sums[j], column.sums, sizeof(g->sums[j]));
    }
    g->d[j][0] = act_q8_256_d(x, k)[b];
}

/* See amx_columns_fn. */
SIMD_INLINE void amx_super_columns(const struct x16_super_format *f, size_t k,
                                   size_t from, size_t to, size_t n_cols, const char *x,
                                   size_t x_stride, struct amx_group *out)
{
    const size_t n_groups = amx_groups(n_cols);

    for (size_t c = 0; c < n_groups * AMX_GROUP; c++)
        for (size_t b = from / X16_SUPER; b < to / X16_SUPER; b++) {
            const size_t j = c % AMX_GROUP;
            struct amx_group *g =
                out + (b - from / X16_SUPER) * n_groups + c / AMX_GROUP;

            if (c < n_cols)
                amx_super_column(f, x + c * x_stride, k, b, g, j);
            else
                amx_put_zeros(g, j);
        }
}

/* Sums of one group and all panels: of lower and, where there are, of upper bytes. */
struct amx_super_sums {
    int32_t v[AMX_PANELS][2][AMX_GROUP][16] __attribute__((aligned(64)));
};

enum { AMX_ADDED = AMX_GROUP / AMX_CHUNKS }; /* columns added at a time */

/* The minima of the panels' sub-blocks times sums of AMX_ADDED columns from c on. */
SIMD_INLINE void amx_super_mins(const struct x16_super_format *f,
                                const struct amx_super *panels,
                                const struct amx_group *g, size_t c,
                                vi (*mins)[AMX_ADDED])
{
    SIMD_UNROLL
    for (int i = 0; i < AMX_ADDED; i++) {
        vi sum[AMX_PANELS] = {v_zero(), v_zero()};

        SIMD_UNROLL
        for (int s = 0; s < f->n_subs; s += 2) {
            const vi two = v_bcast_4(g->sums[c + (size_t)i] + s);

            SIMD_UNROLL
            for (int p = 0; p < AMX_PANELS; p++)
                sum[p] = _mm512_dpwssd_epi32(sum[p], panels[p].pairs[s / 2], two);
        }
        mins[0][i] = sum[0];
        mins[1][i] = sum[1];
    }
}

/* acc[panel][column] += what the sums say of AMX_ADDED columns from c on. */
SIMD_INLINE void amx_super_add(const struct x16_super_format *f,
                               const struct amx_super *panels,
                               const struct amx_super_sums *sums,
                               const struct amx_group *g, size_t c, vf *const *acc)
{
    vi mins[AMX_PANELS][AMX_ADDED];

    if (f->mins)
        amx_super_mins(f, panels, g, c, mins);
    SIMD_UNROLL
    for (size_t j = 0; j < (size_t)(AMX_PANELS * AMX_ADDED); j++) {
        const size_t p = j / AMX_ADDED, i = j % AMX_ADDED;
        vi sum = v_load(sums->v[p][0][c + i]);
        vf v;

        if (!f->narrow)
            sum = v_add32(
                sum, v_sll32(v_load(sums->v[p][1][c + i]), amx_has_digits(f) ? 3 : 8));
        v = v_mul(panels[p].d, v_to_float(sum));
        if (f->mins)
            v = v_fnma(panels[p].dmin, v_to_float(mins[p][i]), v);
        acc[p][c + i] = v_fma(v, v_set1_f(g->d[c + i][0]), acc[p][c + i]);
    }
}

/* Chunk i of group g times both panels. */
SIMD_INLINE void amx_super_chunk(const struct x16_super_format *f,
                                 const struct amx_super *panels,
                                 const struct amx_group *g, size_t i)
{
    AMX_LOAD(4, g->q[i], AMX_CHUNK);
    AMX_LOAD(6, panels[0].low + 16 * i, 64);
    AMX_LOAD(7, panels[1].low + 16 * i, 64);
    if (f->narrow) {
        AMX_DOT_S(0, 4, 6);
        AMX_DOT_S(2, 4, 7);
        return;
    }
    AMX_DOT_U(0, 4, 6);
    AMX_DOT_U(2, 4, 7);
    AMX_LOAD(6, panels[0].high + 16 * i, 64);
    AMX_LOAD(7, panels[1].high + 16 * i, 64);
    if (amx_has_digits(f)) {
        AMX_DOT_U(1, 4, 6);
        AMX_DOT_U(3, 4, 7);
    } else {
        AMX_DOT_S(1, 4, 6);
        AMX_DOT_S(3, 4, 7);
    }
}

/* Multiplies group g and adds what `before`, the group before it, has come to: both
 * at once keep tiles and vectors busy. NULL: there is none before. */
SIMD_INLINE void amx_super_step(const struct x16_super_format *f,
                                const struct amx_super *panels,
                                const struct amx_group *g, struct amx_super_sums *sums,
                                const struct amx_group *before,
                                const struct amx_super_sums *sums_before,
                                vf *const *acc)
{
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
    SIMD_UNROLL
    for (size_t i = 0; i < AMX_CHUNKS; i++) {
        amx_super_chunk(f, panels, g, i);
        if (before != NULL)
            amx_super_add(f, panels, sums_before, before, i * AMX_ADDED, acc);
    }
    AMX_STORE(0, sums->v[0][0]);
    AMX_STORE(2, sums->v[1][0]);
    if (!f->narrow) {
        AMX_STORE(1, sums->v[0][1]);
        AMX_STORE(3, sums->v[1][1]);
    }
}

/* acc[panel][column] += the super-blocks of the panels times n_groups groups. y: where
 * the results will be stored next, or NULL. */
SIMD_INLINE void amx_super_all(const struct x16_super_format *f,
                               const struct amx_super *panels, size_t n_groups,
                               const struct amx_group *columns, vf (*acc)[AMX_MAX_COLS],
                               const float *y, size_t y_stride)
{
    struct amx_super_sums sums[2];
    vf *at[AMX_PANELS] = {acc[0], acc[1]};

    amx_super_step(f, panels, columns, &sums[0], NULL, NULL, at);
    for (size_t g = 1; g < n_groups; g++) {
        amx_super_step(f, panels, columns + g, &sums[g % 2], columns + g - 1,
                       &sums[(g + 1) % 2], at);
        at[0] += AMX_GROUP;
        at[1] += AMX_GROUP;
        if (y != NULL)
            amx_prefetch_results(y + (g - 1) * AMX_GROUP * y_stride, y_stride);
    }
    SIMD_UNROLL
    for (size_t i = 0; i < AMX_CHUNKS; i++)
        amx_super_add(f, panels, &sums[(n_groups + 1) % 2], columns + n_groups - 1,
                      i * AMX_ADDED, at);
}

/* See amx_panels_fn. */
SIMD_INLINE void amx_super_panels(const struct x16_super_format *f, const uint8_t *w,
                                  const struct x16_rows *rows, size_t k, size_t from,
                                  size_t to, size_t n_cols,
                                  const struct amx_group *columns, float *y,
                                  size_t y_stride, size_t n_rows,
                                  struct kern_prefetch prefetch)
{
    const size_t n_blocks = k / X16_SUPER, first = from / X16_SUPER,
                 end = to / X16_SUPER, n_groups = amx_groups(n_cols);
    uint8_t body_buffer[X16_SUPER * X16_ROWS] __attribute__((aligned(64)));
    uint8_t scale_buffer[4 * X16_ROWS] __attribute__((aligned(64)));
    vf acc[AMX_PANELS][AMX_MAX_COLS];
    struct amx_super panels[AMX_PANELS];

    for (size_t p = 0; p < AMX_PANELS; p++)
        for (size_t c = 0; c < n_groups * AMX_GROUP; c++)
            acc[p][c] = v_zero_f();
    for (size_t b = first; b < end; b++) {
        for (size_t p = 0; p < AMX_PANELS; p++) {
            const uint8_t *body, *block_scales;

            amx_block(&f->layout, w, rows, p, n_blocks, first, end, b, n_rows, prefetch,
                      body_buffer, scale_buffer, &body, &block_scales);
            amx_super_unpack(f, body, block_scales, &panels[p]);
        }
        amx_super_all(f, panels, n_groups, columns + (b - first) * n_groups, acc,
                      b + 1 == end ? y : NULL, y_stride);
    }
    for (size_t p = 0; p < AMX_PANELS; p++)
        x16_store_columns(y, y_stride, acc[p], n_cols, p * X16_ROWS, 0, n_rows,
                          from != 0);
}

#endif
