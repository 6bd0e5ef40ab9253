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
    for (int t = 0; f->order != NULL && t < 64; t += 4)
        amx_reorder(f->order, 16, out->low + t);
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

/* See amx_sides_fn. */
SIMD_INLINE void amx_super_sides(const struct x16_super_format *f, size_t k,
                                 size_t from, size_t to,
                                 const struct amx_columns *columns)
{
    const size_t first = from / X16_SUPER, n_groups = columns->n_groups;

    for (size_t g = 0; g < n_groups; g++)
        for (size_t j = 0; j < AMX_GROUP; j++) {
            const size_t c = amx_first(columns, g) + j;
            const char *x =
                columns->x + (c < columns->n_cols ? c : 0) * columns->stride;

            for (size_t b = first; b < to / X16_SUPER; b++) {
                struct amx_side *side = columns->side + (b - first) * n_groups + g;
                struct x16_column column;

                side->d[0][j] = act_q8_256_d(x, k)[b];
                if (!f->mins)
                    continue;
                x16_column(f, f->n_subs, false, false, x, k, b, &column);
                memcpy(side->sums + j * (size_t)f->n_subs, column.sums,
                       (size_t)f->n_subs * sizeof(int16_t));
            }
        }
}

/* A step multiplies a group with both panels, lower bytes apart from upper ones, or, of
 * narrow formats, two groups. */
struct amx_super_sums {
    int32_t v[AMX_PANELS][2][AMX_GROUP][16] __attribute__((aligned(64)));
};

SIMD_INLINE size_t amx_super_groups(const struct x16_super_format *f)
{
    return f->narrow ? 2 : 1;
}

/* A super-block of both panels times all columns. */
struct amx_super_turn {
    const struct amx_super *panels;
    const struct amx_columns *columns;
    size_t at; /* of the quants */
    const struct amx_side *side;
    struct amx_acc *acc;
};

/* What adding up needs of a panel, in registers. */
struct amx_super_factors {
    vi pairs[8];
    vf d, dmin;
};

SIMD_INLINE struct amx_super_factors amx_super_factors(const struct x16_super_format *f,
                                                       const struct amx_super *panel)
{
    struct amx_super_factors out = {.d = panel->d};

    SIMD_OPAQUE(out.d);
    if (!f->mins)
        return out;
    out.dmin = panel->dmin;
    SIMD_OPAQUE(out.dmin);
    SIMD_UNROLL
    for (int i = 0; i < f->n_subs / 2; i++)
        out.pairs[i] = v_keep(panel->pairs[i]);
    return out;
}

/* acc += what the sums say of n columns, from c on, with both panels: those in
 * sums->v[.][at], and those of upper bytes in sums->v[.][1]. What is read of a column
 * is read once for both panels: loads, not products, fill the time (1.09 to 1.15 times
 * as fast with 512 columns). */
SIMD_INLINE void amx_super_add(const struct x16_super_format *f,
                               const struct amx_super *panels,
                               struct amx_super_sums *sums, size_t at,
                               const struct amx_side *side, size_t c, const size_t n,
                               struct amx_acc *acc)
{
    struct amx_super_factors by[AMX_PANELS];

    SIMD_UNROLL
    for (size_t p = 0; p < AMX_PANELS; p++)
        by[p] = amx_super_factors(f, panels + p);
    SIMD_UNROLL
    for (size_t i = c; i < c + n; i++) {
        const vf d = v_set1_f(side->d[0][i]);
        vi mins[AMX_PANELS] = {v_zero(), v_zero()};

        if (f->mins) {
            const int16_t *two = side->sums + i * (size_t)f->n_subs;

            SIMD_UNROLL
            for (int s = 0; s < f->n_subs; s += 2) {
                int32_t both;

                memcpy(&both, two + s, sizeof(both));
                SIMD_UNROLL
                for (size_t p = 0; p < AMX_PANELS; p++)
                    mins[p] = _mm512_dpwssd_epi32(mins[p], by[p].pairs[s / 2],
                                                  v_set1_32(both));
            }
        }
        SIMD_UNROLL
        for (size_t p = 0; p < AMX_PANELS; p++) {
            vi sum = v_load(sums->v[p][at][i]);
            vf v;

            if (!f->narrow)
                sum = v_add32(
                    sum, v_sll32(v_load(sums->v[p][1][i]), amx_has_digits(f) ? 3 : 8));
            v = v_mul(by[p].d, v_to_float(sum));
            if (f->mins)
                v = v_fnma(by[p].dmin, v_to_float(mins[p]), v);
            acc->v[p][i] = v_fma(v, d, acc->v[p][i]);
        }
    }
}

/* Quarter i of adding up the step of the groups from g on. */
SIMD_INLINE void amx_super_add_part(const struct x16_super_format *f,
                                    const struct amx_super_turn *t, size_t g,
                                    struct amx_super_sums *sums, size_t i)
{
    const size_t n = AMX_GROUP / AMX_CHUNKS * amx_super_groups(f);
    const size_t c = i * n % AMX_GROUP, at = g + i * n / AMX_GROUP;

    if (at >= t->columns->n_groups)
        return;
    amx_super_add(f, t->panels, sums, at - g, t->side + at, c, n, t->acc + at);
}

/* Chunk i of a step's groups, whose quants are at q, times both panels. */
SIMD_INLINE void amx_super_chunk(const struct x16_super_format *f,
                                 const struct amx_super *panels, const int8_t *const *q,
                                 size_t q_stride, size_t i)
{
    AMX_LOAD(4, q[0] + AMX_CHUNK * i, q_stride);
    AMX_LOAD(6, panels[0].low + 16 * i, 64);
    AMX_LOAD(7, panels[1].low + 16 * i, 64);
    if (f->narrow) {
        AMX_LOAD(5, q[1] + AMX_CHUNK * i, q_stride);
        AMX_DOT_S(0, 4, 6);
        AMX_DOT_S(2, 4, 7);
        AMX_DOT_S(1, 5, 6);
        AMX_DOT_S(3, 5, 7);
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

/* Multiplies the groups from g on and, where `adds`, adds up the step before, whose
 * sums are *before: both at once keep tiles and vectors busy. */
SIMD_INLINE void amx_super_step(const struct x16_super_format *f,
                                const struct amx_super_turn *t, size_t g,
                                struct amx_super_sums *sums, const bool adds,
                                struct amx_super_sums *before)
{
    const size_t last = t->columns->n_groups - 1;
    const int8_t *const q[] = {amx_quants(t->columns, g, t->at),
                               amx_quants(t->columns, g < last ? g + 1 : g, t->at)};

    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
    SIMD_UNROLL
    for (size_t i = 0; i < AMX_CHUNKS; i++) {
        amx_super_chunk(f, t->panels, q, t->columns->q_stride, i);
        if (adds)
            amx_super_add_part(f, t, g - amx_super_groups(f), before, i);
    }
    AMX_STORE(0, sums->v[0][0]);
    AMX_STORE(1, sums->v[0][1]);
    AMX_STORE(2, sums->v[1][0]);
    AMX_STORE(3, sums->v[1][1]);
}

SIMD_INLINE void amx_super_all(const struct x16_super_format *f,
                               const struct amx_super_turn *t)
{
    const size_t n = amx_super_groups(f);
    struct amx_super_sums sums[2];
    size_t g, i = 0;

    amx_super_step(f, t, 0, &sums[0], false, NULL);
    for (g = n; g < t->columns->n_groups; g += n) {
        i ^= 1;
        amx_super_step(f, t, g, &sums[i], true, &sums[i ^ 1]);
    }
    SIMD_UNROLL
    for (size_t part = 0; part < AMX_CHUNKS; part++)
        amx_super_add_part(f, t, g - n, &sums[i], part);
}

/* See amx_panels_fn. */
SIMD_INLINE void amx_super_panels(const struct x16_super_format *f, const uint8_t *w,
                                  const struct x16_rows *rows, size_t k, size_t from,
                                  size_t to, const struct amx_columns *columns,
                                  float *y, size_t y_stride, size_t n_rows,
                                  struct kern_prefetch prefetch)
{
    const size_t n_blocks = k / X16_SUPER, first = from / X16_SUPER,
                 end = to / X16_SUPER;
    uint8_t body_buffer[X16_SUPER * X16_ROWS] __attribute__((aligned(64)));
    uint8_t scale_buffer[4 * X16_ROWS] __attribute__((aligned(64)));
    struct amx_acc acc[AMX_MAX_GROUPS];
    struct amx_super panels[AMX_PANELS];

    amx_clear(acc, columns->n_groups);
    for (size_t b = first; b < end; b++) {
        const struct amx_super_turn turn = {.panels = panels,
                                            .columns = columns,
                                            .at = (b - first) * X16_SUPER,
                                            .side = columns->side +
                                                    (b - first) * columns->n_groups,
                                            .acc = acc};

        for (size_t p = 0; p < AMX_PANELS; p++) {
            const uint8_t *body, *block_scales;

            amx_block(&f->layout, w, rows, p, n_blocks, first, end, b, n_rows, prefetch,
                      body_buffer, scale_buffer, &body, &block_scales);
            amx_super_unpack(f, body, block_scales, &panels[p]);
        }
        amx_super_all(f, &turn);
    }
    amx_store(columns, acc, y, y_stride, n_rows, from != 0);
}

#endif
