/* SPDX-License-Identifier: MIT
 *
 * x16_amx_steps.h - a piece of two unpacked panels times all columns, by tiles
 *
 * A step multiplies a group of columns while the sums of the step before are added up.
 * It is the same for super-blocks (x16_super_amx.h) and for 256 weights of any format
 * that became bytes times one float (x16_int8_amx.h).
 */
#ifndef SLM_KERNELS_SIMD_X16_AMX_STEPS_H
#define SLM_KERNELS_SIMD_X16_AMX_STEPS_H

#include "kernels/simd/x16_amx.h"
#include "kernels/simd/x16_super_format.h"

/* Weights of one panel, times their scales. */
struct amx_super {
    vi low[64], high[64]; /* tiles B, one behind the other */
    vi pairs[8];          /* minima */
    vf d, dmin;
};

/* Whether scales are cut, not products. */
SIMD_INLINE bool amx_has_digits(const struct x16_super_format *f)
{
    return f->mins && !f->narrow;
}

/* Whether weights are requantised ones: see x16_int8_amx.h. */
SIMD_INLINE bool amx_is_requantised(const struct x16_super_format *f)
{
    return f->scales == NULL;
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
    size_t n_added; /* columns of a group */
};

/* What adding up needs of a panel, in registers: loaded once for all columns, since
 * loads fill the time. */
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
                               const struct amx_super_factors *by,
                               struct amx_super_sums *sums, size_t at,
                               const struct amx_side *side, size_t c, const size_t n,
                               struct amx_acc *acc)
{
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
            if (amx_is_requantised(f)) { /* in the order of x16_int8_dots() */
                acc->v[p][i] = v_fma(v_mul(v_to_float(sum), d), by[p].d, acc->v[p][i]);
                continue;
            }
            v = v_mul(by[p].d, v_to_float(sum));
            if (f->mins)
                v = v_fnma(by[p].dmin, v_to_float(mins[p]), v);
            acc->v[p][i] = v_fma(v, d, acc->v[p][i]);
        }
    }
}

/* Quarter i of adding up the step of the groups from g on. */
SIMD_INLINE void amx_super_add_part(const struct x16_super_format *f,
                                    const struct amx_super_factors *by,
                                    const struct amx_super_turn *t, size_t g,
                                    struct amx_super_sums *sums, size_t i)
{
    const size_t n = AMX_GROUP / AMX_CHUNKS * amx_super_groups(f);
    const size_t c = i * n % AMX_GROUP, at = g + i * n / AMX_GROUP;

    if (at >= t->columns->n_groups || c >= t->n_added)
        return;
    amx_super_add(f, by, sums, at - g, t->side + at, c, n, t->acc + at);
}

/* Chunk i of a step's groups, whose quants are at q, times both panels; two: the second
 * group exists. */
SIMD_INLINE void amx_super_chunk(const struct x16_super_format *f,
                                 const struct amx_super *panels, const int8_t *const *q,
                                 size_t q_stride, size_t i, bool two)
{
    AMX_LOAD(4, q[0] + AMX_CHUNK * i, q_stride);
    AMX_LOAD(6, panels[0].low + 16 * i, 64);
    AMX_LOAD(7, panels[1].low + 16 * i, 64);
    if (f->narrow) {
        if (two)
            AMX_LOAD(5, q[1] + AMX_CHUNK * i, q_stride);
        AMX_DOT_S(0, 4, 6);
        AMX_DOT_S(2, 4, 7);
        if (two) {
            AMX_DOT_S(1, 5, 6);
            AMX_DOT_S(3, 5, 7);
        }
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
                                const struct amx_super_factors *by,
                                const struct amx_super_turn *t, size_t g,
                                struct amx_super_sums *sums, const bool adds,
                                struct amx_super_sums *before)
{
    const bool two = g + 1 < t->columns->n_groups;
    const int8_t *const q[] = {amx_quants(t->columns, g, t->at),
                               amx_quants(t->columns, two ? g + 1 : g, t->at)};

    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
    SIMD_UNROLL
    for (size_t i = 0; i < AMX_CHUNKS; i++) {
        amx_super_chunk(f, t->panels, q, t->columns->stride, i, two);
        if (adds)
            amx_super_add_part(f, by, t, g - amx_super_groups(f), before, i);
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
    struct amx_super_factors by[AMX_PANELS];
    struct amx_super_sums sums[2];
    size_t g, i = 0;

    SIMD_UNROLL
    for (size_t p = 0; p < AMX_PANELS; p++)
        by[p] = amx_super_factors(f, t->panels + p);
    amx_super_step(f, by, t, 0, &sums[0], false, NULL);
    for (g = n; g < t->columns->n_groups; g += n) {
        i ^= 1;
        amx_super_step(f, by, t, g, &sums[i], true, &sums[i ^ 1]);
    }
    SIMD_UNROLL
    for (size_t part = 0; part < AMX_CHUNKS; part++)
        amx_super_add_part(f, by, t, g - n, &sums[i], part);
}

#endif
