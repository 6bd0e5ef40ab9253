/* SPDX-License-Identifier: MIT
 *
 * prefetch_rule.c - medians, and a sign test against the setting in force
 */
#include "engine/forward/prefetch_rule.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* 2.5 standard deviations, sqrt(n) / 2 each, above half of n rounds: of two equal
 * settings one gets there by chance in 0.6 % of cases, and there are up to
 * eleven challengers. */
static size_t wins_needed(size_t n)
{
    return (size_t)ceil((double)n / 2 + 1.25 * sqrt((double)n));
}

/* Median of c's time in proportion to that of the one in force in the same round, and
 * in how many rounds it took less. */
static double compare(size_t n_rounds, int c, double time[][PREFETCH_MAX_CANDIDATES],
                      size_t *wins)
{
    double v[PREFETCH_MAX_ROUNDS];

    assert(n_rounds <= PREFETCH_MAX_ROUNDS);
    *wins = 0;
    for (size_t i = 0; i < n_rounds; i++) {
        v[i] = time[i][c] / time[i][0];
        *wins += v[i] < 1;
    }
    return median(v, n_rounds);
}

void prefetch_rank(size_t n_rounds, int n_candidates,
                   double time[][PREFETCH_MAX_CANDIDATES], int *order)
{
    double ratio[PREFETCH_MAX_CANDIDATES];
    size_t wins;

    for (int c = 1; c < n_candidates; c++) {
        int at = c - 1;

        ratio[c] = n_rounds ? compare(n_rounds, c, time, &wins) : 1;
        for (; at > 0 && ratio[order[at - 1]] > ratio[c]; at--)
            order[at] = order[at - 1];
        order[at] = c;
    }
}

int prefetch_choose(size_t n_rounds, int n_candidates,
                    double time[][PREFETCH_MAX_CANDIDATES])
{
    double best = 1 - PREFETCH_MARGIN;
    int chosen = 0;

    if (n_rounds < PREFETCH_MIN_ROUNDS)
        return 0;
    for (int c = 1; c < n_candidates; c++) {
        size_t wins;
        const double ratio = compare(n_rounds, c, time, &wins);

        if (wins >= wins_needed(n_rounds) && ratio < best) {
            best = ratio;
            chosen = c;
        }
    }
    return chosen;
}
