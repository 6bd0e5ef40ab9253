/* SPDX-License-Identifier: MIT
 *
 * coverage.c - many repeats out of one long sweep, and how often their intervals hold
 * the figure of all
 */
#include "research/coverage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "harness/base/format.h"
#include "harness/stats/stats.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/result_set.h"
#include "research/research.h"

/* Of a repeat, and disturbed ones that are replaced, as `bench sweep` has by default.
 */
#define LAUNCHES 3
#define REPLACED 1

#define N_DEALS 10 /* at random */

/* The rows of a point, in the order in which repeats take them. */
struct deck {
    size_t *row; /* [n] */
    size_t n, at;
};

struct dealing {
    struct deck *deck; /* [points] */
    size_t *rows;      /* of all decks: [n_rows] */
    double *half;      /* widths of each point's intervals, N_DEALS * [n_rows] of each,
                          and as many to sort them in */
    struct row *some;  /* [n_rows]: the rows of one repeat */
};

static struct coverage_point *find(const struct coverage *c, const char *point)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->v[i].point, point))
            return &c->v[i];
    return NULL;
}

static void shuffle(struct deck *d, uint64_t *random)
{
    d->at = 0;
    random_shuffle(d->row, d->n, sizeof *d->row, random);
}

/* The launches of each point, as they were measured or at random. */
static void sort_out(struct coverage *c, struct dealing *d, const struct row *rows,
                     size_t n_rows)
{
    size_t *at = d->rows;

    for (size_t i = 0; i < n_rows; i++) {
        struct coverage_point *p = find(c, rows[i].point);

        if (!p) {
            p = &c->v[c->n++];
            *p = (struct coverage_point){.point = rows[i].point};
        }
        p->n++;
    }
    for (size_t i = 0; i < c->n; i++) {
        d->deck[i].row = at;
        at += c->v[i].n;
    }
    for (size_t i = 0; i < n_rows; i++) {
        struct deck *deck = &d->deck[find(c, rows[i].point) - c->v];

        deck->row[deck->n++] = i;
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

/* One repeat of all points: each as a sweep of these launches alone would print it.
 * half: the widths of each point's intervals so far, [most] of each. */
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

/* The launches of one repeat of a point: so many, and another one for each that was
 * disturbed, of up to REPLACED. Returns how many; 0: too few are left. */
static size_t take(struct deck *d, const struct row *rows, size_t n_launches,
                   struct row *to)
{
    size_t n = 0, n_wanted = n_launches, n_replaced = 0;

    if (d->n - d->at < n_launches)
        return 0;
    for (; n < n_wanted && d->at < d->n; d->at++) {
        to[n] = rows[d->row[d->at]];
        if (row_trust(&to[n++]) == ROW_DISTURBED && n_replaced < REPLACED) {
            n_replaced++;
            n_wanted++;
        }
    }
    return n;
}

/* Repeats until one point has no launches left. most: as judge() takes it. */
static enum status deal_once(struct coverage *c, struct dealing *d,
                             const struct row *rows, size_t n_launches, size_t most,
                             struct err *err)
{
    enum status st = ST_OK;
    bool more = c->n > 0;

    while (more && st == ST_OK) {
        size_t n = 0;

        for (size_t i = 0; i < c->n && more; i++) {
            const size_t taken = take(&d->deck[i], rows, n_launches, d->some + n);

            more = taken > 0;
            n += taken;
        }
        if (more)
            st = judge(c, d->some, n, d->half, most, err);
    }
    return st;
}

static enum status deal(struct coverage *c, struct dealing *d, const struct row *rows,
                        size_t n_rows, size_t n_launches, bool spread, struct err *err)
{
    const size_t most = N_DEALS * n_rows;
    uint64_t random = 1;
    enum status st;

    sort_out(c, d, rows, n_rows);
    d->half = calloc((c->n + 1) * most + 1, sizeof *d->half);
    if (!d->half)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n_rows);
    st = find_truth(c, rows, n_rows, err);
    for (int k = 0; k < (spread ? N_DEALS : 1) && st == ST_OK; k++) {
        for (size_t i = 0; i < c->n && spread; i++)
            shuffle(&d->deck[i], &random);
        st = deal_once(c, d, rows, n_launches, most, err);
    }
    for (size_t i = 0; i < c->n && st == ST_OK; i++)
        c->v[i].half_width =
            stats_median(d->half + i * most, c->v[i].n_repeats, d->half + c->n * most);
    return st;
}

enum status coverage_of(struct coverage *out, const struct row *rows, size_t n_rows,
                        size_t n_launches, bool spread, struct err *err)
{
    struct dealing d = {calloc(n_rows + 1, sizeof(struct deck)),
                        calloc(n_rows + 1, sizeof(size_t)), NULL,
                        calloc(n_rows + 1, sizeof(struct row))};
    struct coverage c = {calloc(n_rows + 1, sizeof *c.v), 0};
    enum status st = d.deck && d.rows && d.some && c.v
                         ? deal(&c, &d, rows, n_rows, n_launches, spread, err)
                         : err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n_rows);

    free(d.deck);
    free(d.rows);
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
    struct result_set set;
    enum status st = result_set_open(&set, o->path, RESULT_LAST, err);

    for (int spread = 0; spread < 2 && st == ST_OK; spread++) {
        struct coverage c;

        st = coverage_of(&c, set.parts[0].rows, set.parts[0].n, n_launches, spread != 0,
                         err);
        if (st == ST_OK) {
            print(stdout, &c,
                  spread ? "launches of a repeat at random from the whole sweep, as "
                           "rounds place them"
                         : "launches of a repeat one after the other");
            coverage_free(&c);
        }
    }
    result_set_free(&set);
    return st;
}
