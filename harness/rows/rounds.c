/* SPDX-License-Identifier: MIT
 *
 * rounds.c - whether the machine was slower in one round of a sweep than in the others
 */
#include "harness/rows/rounds.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/stats/ranktest.h"
#include "harness/stats/stats.h"
#include "harness/rows/report_rows.h"

#define ALPHA 0.05

struct comparing {
    const struct row **v; /* [n], by point */
    size_t n;
    double *others;  /* [2 n], scratch: logarithms of one point */
    double *effects; /* [2 n], scratch: a logarithm per point */
    bool is_there[ROUNDS_MAX + 1], is_found[ROUNDS_MAX + 1];
};

static bool takes_part(const struct row *r, const struct row *like)
{
    return row_trust(r) == ROW_GOOD && r->limiter != LIMITER_PAGING &&
           r->attempt >= 1 && r->attempt <= ROUNDS_MAX &&
           (!like || !row_compare(r, like, FIELD_MODEL));
}

static enum status begin(struct comparing *c, const struct row *rows, size_t n_rows,
                         const struct row *like, struct err *err)
{
    c->v = malloc((n_rows + 1) * sizeof *c->v);
    c->others = malloc((2 * n_rows + 1) * sizeof *c->others);
    c->effects = malloc((2 * n_rows + 1) * sizeof *c->effects);
    if (!c->v || !c->others || !c->effects)
        return err_set(err, ST_NO_MEMORY, "no memory to compare the rounds of %zu rows",
                       n_rows);
    for (size_t i = 0; i < n_rows; i++)
        if (takes_part(&rows[i], like)) {
            c->v[c->n++] = &rows[i];
            c->is_there[rows[i].attempt] = true;
        }
    qsort(c->v, c->n, sizeof *c->v, row_by_point);
    return ST_OK;
}

/* Logarithm of the speed in that round over the median of other rounds, of the point of
 * v[n]; false: it was not measured in both. */
static bool point_effect(const struct comparing *c, const struct row *const *v,
                         size_t n, int round, double *effect)
{
    double speed = 0;
    size_t n_others = 0;

    for (size_t i = 0; i < n; i++) {
        if (v[i]->attempt == round)
            speed = v[i]->tok_per_s;
        else if (!c->is_found[v[i]->attempt])
            c->others[n_others++] = log(v[i]->tok_per_s);
    }
    if (!(speed > 0) || !n_others)
        return false;
    *effect = log(speed) - stats_median(c->others, n_others, c->others + n_others);
    return true;
}

/* The effect of a round, and the probability of one as clear by chance. */
static struct round_effect round_effect(const struct comparing *c, int round, double *p)
{
    double above = 1, below = 1;
    size_t n = 0;

    for (size_t i = 0, end; i < c->n; i = end) {
        for (end = i + 1; end < c->n && !strcmp(c->v[i]->point, c->v[end]->point);)
            end++;
        n += point_effect(c, c->v + i, end - i, round, &c->effects[n]);
    }
    rank_signs(c->effects, n, &above, &below);
    *p = fmin(1, 2 * fmin(above, below));
    return (struct round_effect){round,
                                 exp(stats_median(c->effects, n, c->effects + n)), n};
}

/* The round that differs most among those that are left; the slower one of two that
 * differ alike. False: none. */
static bool find(const struct comparing *c, struct round_effect *found)
{
    double largest = 0;
    int n_rounds = 0;

    for (int r = 1; r <= ROUNDS_MAX; r++)
        n_rounds += c->is_there[r] && !c->is_found[r];
    for (int r = 1; r <= ROUNDS_MAX && n_rounds > 1; r++) {
        double p;

        if (!c->is_there[r] || c->is_found[r])
            continue;
        const struct round_effect e = round_effect(c, r, &p);
        const double size = fabs(log(e.share));
        const bool is_largest =
            size > largest + 1e-9 || (size > largest - 1e-9 && e.share < found->share);

        if (p < ALPHA / n_rounds && fabs(e.share - 1) >= ROUND_MIN_EFFECT &&
            is_largest) {
            largest = size;
            *found = e;
        }
    }
    return largest > 0;
}

enum status rounds_compare(struct round_effect *out, size_t *n, const struct row *rows,
                           size_t n_rows, const struct row *like, struct err *err)
{
    struct comparing *c = calloc(1, sizeof *c);
    enum status st = c ? begin(c, rows, n_rows, like, err)
                       : err_set(err, ST_NO_MEMORY, "no memory to compare rounds");

    if (st == ST_OK)
        *n = 0;
    while (st == ST_OK && *n < ROUNDS_MAX && find(c, &out[*n]))
        c->is_found[out[(*n)++].round] = true;
    if (c) {
        free(c->v);
        free(c->others);
        free(c->effects);
    }
    free(c);
    return st;
}
