/* SPDX-License-Identifier: MIT
 *
 * change.c - E-divisive with a permutation test
 */
#include "harness/decide/history/change.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "harness/stats/stats.h"

#define N_SHUFFLES 499

struct cut {
    size_t at;
    double q;
};

struct split {
    size_t *edge; /* [n_edges] 0 .. n: segments lie between */
    size_t n_edges;
    double *p;        /* [n_edges] of the cut at edge i */
    double *shuffled; /* [n] */
    double *scratch;  /* [n] */
};

/* Sum of the distances of v[at] to v[from..to). */
static double distances(const double *v, size_t at, size_t from, size_t to)
{
    double sum = 0;

    for (size_t i = from; i < to; i++)
        sum += fabs(v[at] - v[i]);
    return sum;
}

static double pairs(double n)
{
    return n * (n - 1) / 2;
}

/* The best cut of v[lo..hi); q 0 where it is too short. Values move from right to left
 * one by one, and the three sums of distances with them. */
static struct cut best_cut(const double *v, size_t lo, size_t hi)
{
    struct cut best = {lo, 0};
    double left = 0, between = 0, right = 0;

    for (size_t i = lo; i < hi; i++)
        right += distances(v, i, lo, i);
    for (size_t at = lo + 1; at < hi; at++) {
        const double to_left = distances(v, at - 1, lo, at - 1);
        const double to_right = distances(v, at - 1, at, hi);
        const double m = (double)(at - lo), n = (double)(hi - at);

        left += to_left;
        right -= to_right;
        between += to_right - to_left;
        if (m < CHANGE_MIN_SEGMENT || n < CHANGE_MIN_SEGMENT)
            continue;
        const double energy =
            2 * between / (m * n) - left / pairs(m) - right / pairs(n);
        const double q = energy * m * n / (m + n);
        if (q > best.q)
            best = (struct cut){at, q};
    }
    return best;
}

static struct cut best_of_all(const struct split *s, const double *v)
{
    struct cut best = {0, 0};

    for (size_t i = 0; i + 1 < s->n_edges; i++) {
        const struct cut c = best_cut(v, s->edge[i], s->edge[i + 1]);

        if (c.q > best.q)
            best = c;
    }
    return best;
}

/* The share of shuffled series, this one counted in, with a cut as good. Ends early
 * where it can no longer be small enough. */
static double chance(struct split *s, const double *v, size_t n, double q, double level,
                     uint64_t *random)
{
    size_t as_good = 1;

    for (int k = 0; k < N_SHUFFLES; k++) {
        memcpy(s->shuffled, v, n * sizeof *v);
        for (size_t i = 0; i + 1 < s->n_edges; i++)
            random_shuffle(s->shuffled + s->edge[i], s->edge[i + 1] - s->edge[i],
                           sizeof *s->shuffled, random);
        as_good += best_of_all(s, s->shuffled).q >= q;
        if ((double)as_good > level * (N_SHUFFLES + 1))
            return 1;
    }
    return (double)as_good / (N_SHUFFLES + 1);
}

static void insert(struct split *s, size_t at, double p)
{
    size_t i = s->n_edges++;

    for (; s->edge[i - 1] > at; i--) {
        s->edge[i] = s->edge[i - 1];
        s->p[i] = s->p[i - 1];
    }
    s->edge[i] = at;
    s->p[i] = p;
}

static double middle(const struct split *s, const double *v, size_t segment)
{
    const size_t from = s->edge[segment];

    return stats_median(v + from, s->edge[segment + 1] - from, s->scratch);
}

static void cut_up(struct split *s, const double *v, size_t n, size_t most,
                   double level, uint64_t seed)
{
    s->edge[0] = 0;
    s->edge[1] = n;
    s->n_edges = 2;
    while (s->n_edges < most + 2) {
        const struct cut c = best_of_all(s, v);
        const double p = c.q > 0 ? chance(s, v, n, c.q, level, &seed) : 1;

        if (p > level)
            return;
        insert(s, c.at, p);
    }
}

enum status change_points(struct change *out, size_t most, size_t *n_out,
                          const double *v, size_t n, double level, uint64_t seed,
                          struct err *err)
{
    struct split s = {.edge = malloc((most + 2) * sizeof *s.edge),
                      .p = calloc(most + 2, sizeof *s.p),
                      .shuffled = malloc(n * sizeof *s.shuffled + 1),
                      .scratch = malloc(n * sizeof *s.scratch + 1)};
    const bool allocated = s.edge && s.p && s.shuffled && s.scratch;

    assert(n <= CHANGE_MAX_POINTS);
    *n_out = 0;
    if (allocated && n >= 2 * CHANGE_MIN_SEGMENT) {
        cut_up(&s, v, n, most, level, seed);
        for (size_t i = 1; i + 1 < s.n_edges; i++)
            out[(*n_out)++] = (struct change){s.edge[i], s.p[i], middle(&s, v, i - 1),
                                              middle(&s, v, i)};
    }
    free(s.edge);
    free(s.p);
    free(s.shuffled);
    free(s.scratch);
    return allocated
               ? ST_OK
               : err_set(err, ST_NO_MEMORY, "no memory for a history of %zu values", n);
}
