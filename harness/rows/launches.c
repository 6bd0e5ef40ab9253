/* SPDX-License-Identifier: MIT
 *
 * launches.c - several launches of one point as one row
 */
#include "harness/rows/launches.h"

#include <math.h>
#include <stdlib.h>

#include "harness/stats/stats.h"
#include "harness/rows/report_rows.h"

/* Standard deviations from the middle of a normal distribution to the ends of a 95 %
 * interval. */
#define Z_95 1.96

static const struct row_figure figures[] = {ROW_FIGURE(tok_per_s),
                                            ROW_FIGURE(spec_speedup), ROW_FIGURE(mbu),
                                            ROW_FIGURE(ttft_s)};
#define N_FIGURES (sizeof figures / sizeof figures[0])

/* Without an interval: the median of the launches that have them. */
static const size_t plain[] = {
    offsetof(struct row, lat_p50_ms), offsetof(struct row, lat_p95_ms),
    offsetof(struct row, lat_p99_ms), offsetof(struct row, ttft_warm_s),
    offsetof(struct row, load_s)};
#define N_PLAIN (sizeof plain / sizeof plain[0])
#define N_KINDS (POINT_SPECULATE + 1)

/* Points of a few samples, which page from disk, scatter more than others. */
enum trust_class { CLASS_GOOD, CLASS_PARTIAL, N_CLASSES };

static void set(struct row *r, size_t offset, double v)
{
    *(double *)((char *)r + offset) = v;
}

/* Launches that the point's figure is made of, the first ones of the group. */
static size_t count_used(const struct launch_group *g)
{
    const enum row_trust trust = row_trust(g->v[0]);
    size_t n = 1;

    if (trust != ROW_GOOD && trust != ROW_PARTIAL)
        return 1;
    while (n < g->n && row_trust(g->v[n]) == trust)
        n++;
    return n;
}

/* ---- one figure of one point ----------------------------------------------------- */

struct scatter {
    double median;       /* of the logarithms */
    struct variance own; /* of a launch's logarithm */
    double within;       /* variance of a launch's median by its own interval */
    bool is_known;       /* all launches have the figure */
};

/* Width of a launch's interval as a standard deviation of the logarithm; 0: none. */
static double own_sigma(const struct row *r, const struct row_figure *f)
{
    const double lo = row_at(r, f->lo), hi = row_at(r, f->hi);

    return lo > 0 && hi > lo ? log(hi / lo) / (2 * Z_95) : 0;
}

/* scratch: [2 n]. */
static struct scatter scatter_of(const struct row *const *v, size_t n,
                                 const struct row_figure *f, double *scratch)
{
    struct scatter s = {.is_known = true};
    double mean = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        const double x = row_at(v[i], f->mid);

        s.is_known &= x > 0 && isfinite(x);
        scratch[i] = s.is_known ? log(x) : 0;
        mean += scratch[i] / (double)n;
        s.within += pow(own_sigma(v[i], f), 2) / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        squares += pow(scratch[i] - mean, 2);
    s.own = (struct variance){n > 1 ? squares / (double)(n - 1) : 0, (double)n - 1};
    s.median = stats_median(scratch, n, scratch + n);
    return s;
}

/* Standard error of the median of n normal values over that of their mean. */
static double median_error(size_t n)
{
    static const double of[] = {1, 1, 1, 1.160, 1.092, 1.198, 1.135, 1.214};

    return n < sizeof of / sizeof of[0] ? of[n] : sqrt(M_PI_2);
}

/* The quantile of the last degrees of freedom: points of one sweep have almost all the
 * same number of launches. */
struct quantile {
    double df, t;
};

static double t_quantile(struct quantile *last, double df)
{
    if (last->df != df)
        *last = (struct quantile){df, stats_t_quantile(df)};
    return last->t;
}

/* Half the interval of the logarithm, from n launches. */
static double half_width(const struct scatter *s, size_t n,
                         const struct variance_prior *prior, struct quantile *last)
{
    const bool is_alone = n == 1 && prior->sum_df < LAUNCHES_MIN_DF;
    const struct variance v = variance_moderate(prior, s->own);
    const double scale = median_error(n) / sqrt((double)n);
    const double within = Z_95 * scale * sqrt(s->within);

    if (is_alone || v.df <= 0)
        return within;
    return fmax(within, t_quantile(last, v.df) * scale * sqrt(v.var));
}

/* The ends of a single launch's own interval, which need not lie alike, stay where they
 * are farther out. */
static void set_figure(struct row *r, const struct row_figure *f, double median,
                       double half, bool is_single)
{
    const double lo = row_at(r, f->lo), hi = row_at(r, f->hi);

    if (!is_single)
        set(r, f->mid, exp(median));
    set(r, f->lo, is_single ? fmin(lo, exp(median - half)) : exp(median - half));
    set(r, f->hi, is_single ? fmax(hi, exp(median + half)) : exp(median + half));
}

/* ---- all points ------------------------------------------------------------------ */

struct combining {
    struct launches *out;
    const struct launch_group *points;
    size_t n;
    double *scratch;           /* [2 * most launches of a point] */
    struct variance *variance; /* [n] */
    struct variance_prior prior[N_FIGURES][N_KINDS][N_CLASSES];
    struct quantile last;
};

static bool has_kind(const struct row *r)
{
    return r->kind >= 0 && r->kind < N_KINDS;
}

static enum trust_class class_of(const struct row *r)
{
    return row_trust(r) == ROW_GOOD      ? CLASS_GOOD
           : row_trust(r) == ROW_PARTIAL ? CLASS_PARTIAL
                                         : N_CLASSES;
}

/* How launches scatter, of all undisturbed points of that kind and class. */
static void fit_prior(struct combining *c, size_t figure, int kind, enum trust_class of)
{
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        const struct launch_group *g = &c->points[i];
        const size_t used = c->out[i].n_used;

        if (g->v[0]->kind != kind || used < 2 || class_of(g->v[0]) != of)
            continue;
        const struct scatter s = scatter_of(g->v, used, &figures[figure], c->scratch);
        if (s.is_known)
            c->variance[n++] = s.own;
    }
    c->prior[figure][kind][of] = variance_prior_fit(c->variance, n);
}

static const struct row *nearest(const struct row *const *v, size_t n, double median)
{
    const struct row *best = v[0];

    for (size_t i = 1; i < n; i++)
        if (fabs(log(v[i]->tok_per_s) - median) < fabs(log(best->tok_per_s) - median))
            best = v[i];
    return best;
}

static int64_t largest(const struct launch_group *g, size_t offset)
{
    int64_t most = FIELD_NO_INT;

    for (size_t i = 0; i < g->n; i++) {
        const int64_t v = *(const int64_t *)((const char *)g->v[i] + offset);

        if ((i == 0 || row_trust(g->v[i]) > ROW_FAILED) && v > most)
            most = v;
    }
    return most;
}

/* Whether another launch had more than the first one. */
static bool is_memory_combined(const struct launch_group *g)
{
    const struct row *r = g->v[0];

    return largest(g, offsetof(struct row, mem_peak_bytes)) > r->mem_peak_bytes ||
           largest(g, offsetof(struct row, mem_resident_bytes)) > r->mem_resident_bytes;
}

static void set_plain(struct row *r, const struct row *const *v, size_t n,
                      double *scratch)
{
    for (size_t k = 0; k < N_PLAIN; k++) {
        size_t m = 0;

        for (size_t i = 0; i < n; i++)
            if (isfinite(row_at(v[i], plain[k])))
                scratch[m++] = row_at(v[i], plain[k]);
        if (m)
            set(r, plain[k], stats_median(scratch, m, scratch + n));
    }
}

/* Whether other launches contribute to the point's figure. */
static bool is_combined(const struct combining *c, size_t i)
{
    const struct row *r = c->points[i].v[0];

    if (c->out[i].n_used > 1)
        return true;
    return row_trust(r) == ROW_GOOD && has_kind(r) &&
           c->prior[0][r->kind][CLASS_GOOD].sum_df >= LAUNCHES_MIN_DF;
}

static enum status combine(struct combining *c, size_t i, struct err *err)
{
    const struct launch_group *g = &c->points[i];
    struct launches *out = &c->out[i];
    const size_t used = out->n_used;
    static const struct variance_prior none = {0};

    out->row = g->v[0];
    if (!is_combined(c, i) && !is_memory_combined(g))
        return ST_OK;
    out->own = malloc(sizeof *out->own);
    if (!out->own)
        return err_set(err, ST_NO_MEMORY, "no memory to combine %zu launches", g->n);
    *out->own = *g->v[0];
    if (used > 1)
        *out->own = *nearest(g->v, used,
                             scatter_of(g->v, used, &figures[0], c->scratch).median);
    out->own->mem_peak_bytes = largest(g, offsetof(struct row, mem_peak_bytes));
    out->own->mem_resident_bytes = largest(g, offsetof(struct row, mem_resident_bytes));
    if (is_combined(c, i))
        set_plain(out->own, g->v, used, c->scratch);
    for (size_t k = 0; k < N_FIGURES && is_combined(c, i); k++) {
        const struct scatter s = scatter_of(g->v, used, &figures[k], c->scratch);
        const struct variance_prior *prior =
            has_kind(g->v[0]) && class_of(g->v[0]) != N_CLASSES
                ? &c->prior[k][g->v[0]->kind][class_of(g->v[0])]
                : &none;

        if (s.is_known)
            set_figure(out->own, &figures[k], s.median,
                       half_width(&s, used, prior, &c->last), used == 1);
    }
    out->row = out->own;
    return ST_OK;
}

static enum status begin(struct combining *c, struct err *err)
{
    size_t most = 1;

    for (size_t i = 0; i < c->n; i++) {
        const struct launch_group *g = &c->points[i];
        struct launches *out = &c->out[i];

        *out = (struct launches){.n_used = count_used(g)};
        for (size_t k = out->n_used; k < g->n; k++)
            out->n_left_out += row_trust(g->v[k]) > ROW_FAILED;
        most = out->n_used > most ? out->n_used : most;
    }
    c->scratch = malloc(2 * most * sizeof *c->scratch);
    c->variance = malloc((c->n + 1) * sizeof *c->variance);
    return c->scratch && c->variance
               ? ST_OK
               : err_set(err, ST_NO_MEMORY, "no memory for the launches of %zu points",
                         c->n);
}

enum status launches_combine(struct launches *out, const struct launch_group *points,
                             size_t n, struct err *err)
{
    struct combining c = {.out = out, .points = points, .n = n};
    enum status st = begin(&c, err);

    for (size_t k = 0; k < N_FIGURES && st == ST_OK; k++)
        for (int kind = 0; kind < N_KINDS; kind++)
            for (int of = 0; of < N_CLASSES; of++)
                fit_prior(&c, k, kind, (enum trust_class)of);
    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = combine(&c, i, err);
    free(c.scratch);
    free(c.variance);
    if (st)
        launches_free(out, n);
    return st;
}

void launches_free(struct launches *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(v[i].own);
        v[i].own = NULL;
    }
}

double launches_half_width(const struct row *r)
{
    if (!(r->tok_per_s > 0 && r->tok_per_s_lo > 0 && r->tok_per_s_hi > 0))
        return INFINITY;
    return (r->tok_per_s_hi - r->tok_per_s_lo) / 2 / r->tok_per_s;
}
