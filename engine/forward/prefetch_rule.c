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

int prefetch_choose(size_t n_rounds, int n_candidates,
                    double time[][PREFETCH_MAX_CANDIDATES])
{
    double v[PREFETCH_MAX_ROUNDS], best = 1 - PREFETCH_MARGIN;
    int chosen = 0;

    assert(n_rounds <= PREFETCH_MAX_ROUNDS);
    if (n_rounds < PREFETCH_MIN_ROUNDS)
        return 0;
    for (int c = 1; c < n_candidates; c++) {
        size_t wins = 0;

        for (size_t i = 0; i < n_rounds; i++) {
            v[i] = time[i][c] / time[i][0];
            wins += v[i] < 1;
        }
        const double ratio = median(v, n_rounds);

        if (wins >= wins_needed(n_rounds) && ratio < best) {
            best = ratio;
            chosen = c;
        }
    }
    return chosen;
}
