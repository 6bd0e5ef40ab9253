/* SPDX-License-Identifier: MIT
 *
 * coverage.c - many repeats out of one long sweep, and how often their intervals hold
 * the figure of all
 */
#include "research/coverage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/stats.h"
#include "harness/result/report_rows.h"
#include "research/research.h"

#define LAUNCHES 3 /* of a repeat, as `bench sweep` has by default */

/* Rows of a point, and where each of them belongs. */
struct dealing {
    size_t *point;    /* [n_rows]: index of its point */
    size_t *ordinal;  /* [n_rows]: among the launches of its point */
    double *half;     /* [n_rows + scratch n_rows] */
    struct row *some; /* [n_rows]: the rows of one repeat */
};

static struct coverage_point *find(const struct coverage *c, const char *point)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->v[i].point, point))
            return &c->v[i];
    return NULL;
}

/* Launches of each point are numbered as they were measured. */
static void number(struct coverage *c, struct dealing *d, const struct row *rows,
                   size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++) {
        struct coverage_point *p = find(c, rows[i].point);

        if (!p) {
            p = &c->v[c->n++];
            *p = (struct coverage_point){.point = rows[i].point};
        }
        d->point[i] = (size_t)(p - c->v);
        d->ordinal[i] = p->n++;
    }
}

/* What all launches of each point say together. */
static enum status find_truth(struct coverage *c, const struct row *rows, size_t n_rows,
                              struct err *err)
{
    struct report_rows all;
    const enum status st = report_rows_pick(&all, rows, n_rows, err);

    if (st)
        return st;
    for (size_t i = 0; i < all.n; i++)
        find(c, all.v[i]->point)->truth = all.v[i]->tok_per_s;
    report_rows_free(&all);
    return ST_OK;
}

/* Repeat k of all points: each as a sweep of these launches alone would print it. half:
 * the widths of each point's intervals so far, [n_repeats] of most each. */
static enum status judge(struct coverage *c, const struct row *some, size_t n,
                         double *half, size_t most, struct err *err)
{
    struct report_rows picked;
    const enum status st = report_rows_pick(&picked, some, n, err);

    if (st)
        return st;
    for (size_t i = 0; i < picked.n; i++) {
        const struct row *r = picked.v[i];
        struct coverage_point *p = find(c, r->point);

        if (!isfinite(launches_half_width(r)))
            continue;
        half[(size_t)(p - c->v) * most + p->n_repeats++] = launches_half_width(r);
        p->n_disturbed += row_trust(r) == ROW_DISTURBED;
        p->n_covered += r->tok_per_s_lo <= p->truth && p->truth <= r->tok_per_s_hi;
    }
    report_rows_free(&picked);
    return ST_OK;
}

static bool belongs(const struct coverage *c, const struct dealing *d, size_t row,
                    size_t repeat, size_t n_launches, bool spread)
{
    const size_t n_repeats = c->v[d->point[row]].n / n_launches;
    const size_t i = d->ordinal[row];

    if (i >= n_repeats * n_launches)
        return false;
    return repeat == (spread ? i % n_repeats : i / n_launches);
}

static enum status deal(struct coverage *c, struct dealing *d, const struct row *rows,
                        size_t n_rows, size_t n_launches, bool spread, struct err *err)
{
    size_t most = 0;
    enum status st;

    number(c, d, rows, n_rows);
    st = find_truth(c, rows, n_rows, err);
    for (size_t i = 0; i < c->n; i++)
        most = c->v[i].n / n_launches > most ? c->v[i].n / n_launches : most;
    d->half = calloc(2 * most * c->n + 1, sizeof *d->half);
    if (st == ST_OK && !d->half)
        st = err_set(err, ST_NO_MEMORY, "no memory for %zu repeats", most);
    for (size_t k = 0; k < most && st == ST_OK; k++) {
        size_t n = 0;

        for (size_t i = 0; i < n_rows; i++)
            if (belongs(c, d, i, k, n_launches, spread))
                d->some[n++] = rows[i];
        st = judge(c, d->some, n, d->half, most, err);
    }
    for (size_t i = 0; i < c->n && st == ST_OK; i++)
        c->v[i].half_width =
            stats_median(d->half + i * most, c->v[i].n_repeats, d->half + most * c->n);
    return st;
}

enum status coverage_of(struct coverage *out, const struct row *rows, size_t n_rows,
                        size_t n_launches, bool spread, struct err *err)
{
    struct dealing d = {calloc(n_rows + 1, sizeof(size_t)),
                        calloc(n_rows + 1, sizeof(size_t)), NULL,
                        calloc(n_rows + 1, sizeof(struct row))};
    struct coverage c = {calloc(n_rows + 1, sizeof *c.v), 0};
    enum status st = d.point && d.ordinal && d.some && c.v
                         ? deal(&c, &d, rows, n_rows, n_launches, spread, err)
                         : err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n_rows);

    free(d.point);
    free(d.ordinal);
    free(d.half);
    free(d.some);
    if (st)
        coverage_free(&c);
    else
        *out = c;
    return st;
}

void coverage_free(struct coverage *c)
{
    free(c->v);
    *c = (struct coverage){0};
}

static void print(FILE *f, const struct coverage *c, const char *how)
{
    fprintf(f, "\n%s\n%-44s %9s %10s %8s %8s %10s\n", how, "point", "tok/s",
            "half width", "repeats", "covered", "disturbed");
    for (size_t i = 0; i < c->n; i++) {
        const struct coverage_point *p = &c->v[i];

        if (p->n_repeats)
            fprintf(f, "%-44s %9.4g %8.2f %% %8zu %6.1f %% %10zu\n",
                    format_path(p->point).text, p->truth, 100 * p->half_width,
                    p->n_repeats, 100 * (double)p->n_covered / (double)p->n_repeats,
                    p->n_disturbed);
    }
}

enum status research_coverage(const struct research_options *o, struct err *err)
{
    const size_t n_launches = o->n ? o->n : LAUNCHES;
    struct row *rows = NULL;
    size_t n_rows = 0;
    enum status st = report_rows_read(o->path, &rows, &n_rows, err);

    for (int spread = 0; spread < 2 && st == ST_OK; spread++) {
        struct coverage c;

        st = coverage_of(&c, rows, n_rows, n_launches, spread != 0, err);
        if (st == ST_OK) {
            print(stdout, &c,
                  spread ? "launches of a repeat spread over the whole sweep"
                         : "launches of a repeat one after the other");
            coverage_free(&c);
        }
    }
    free(rows);
    return st;
}
