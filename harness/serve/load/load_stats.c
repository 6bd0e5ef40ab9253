/* SPDX-License-Identifier: MIT
 *
 * load_stats.c - warm-up, quantiles, arrivals
 */
#include "harness/serve/load/load_stats.h"

#include <math.h>

#include "engine/base/random.h"
#include "harness/stats/stats.h"

#define BATCH 5

static double batch_mean(const double *v, size_t batch)
{
    double sum = 0;

    for (size_t i = 0; i < BATCH; i++)
        sum += v[batch * BATCH + i];
    return sum / BATCH;
}

/* The cut without its end that is as what follows: two of three means, or the first,
 * are well outside its range where it is not. A single one may be a moment's
 * disturbance. */
static size_t keep_alike(const double *v, size_t cut, size_t n_batches)
{
    double least = INFINITY, most = -INFINITY;

    for (size_t i = cut; i < n_batches; i++) {
        least = fmin(least, batch_mean(v, i));
        most = fmax(most, batch_mean(v, i));
    }
    const double margin = (most - least) / 2; /* few means have not shown all of it */

    for (; cut > 0; cut--) {
        int n_outside = 0;

        for (size_t i = cut; i > 0 && i + 3 > cut; i--) {
            const double m = batch_mean(v, i - 1);

            n_outside += m < least - margin || m > most + margin;
        }
        if (n_outside >= 2 || (n_outside && cut == 1))
            break;
    }
    return cut;
}

size_t load_mser5(const double *v, size_t n, bool *settled)
{
    const size_t n_batches = n / BATCH;
    double best = INFINITY, sum = 0, squares = 0;
    const double origin = n ? v[n - 1] : 0; /* so that large values cancel nothing */
    size_t cut = 0;

    *settled = true;
    if (n < LOAD_MSER_MIN)
        return 0;
    for (size_t d = n_batches; d-- > 0;) {
        const double m = batch_mean(v, d) - origin;
        const double left = (double)(n_batches - d);

        sum += m;
        squares += m * m;
        if (d > n_batches / 2)
            continue; /* of few means the error may be small by chance */
        const double error = fmax(0, squares - sum * sum / left) / (left * left);

        if (error <= best) {
            best = error;
            cut = d;
        }
    }
    const size_t kept = keep_alike(v, cut, n_batches), half = n_batches / 2;

    *settled = cut < half || kept < half / 2;
    return BATCH * (*settled ? kept : half);
}

size_t load_quantile_min(double q)
{
    const double side = fmax(q, 1 - q); /* the nearer end decides */

    return (size_t)ceil(log(0.05) / log(side) - 1e-9);
}

/* The ends' ranks, from 1, of the 95 % interval of quantile q of n values; 0 and n + 1
 * where no value is surely below it, or above. */
static void interval_ranks(size_t n, double q, size_t *lo, size_t *hi)
{
    const double mean = (double)n * q, far = 12 * sqrt(mean * (1 - q)) + 12;
    size_t i = mean > far ? (size_t)(mean - far) : 0;
    double below = 0; /* what is left out before i is nothing */

    *lo = i;
    *hi = n + 1;
    for (; i <= n; i++) {
        below += stats_binomial(i, n, q);
        if (below <= 0.025)
            *lo = i + 1;
        if (below >= 0.975) {
            *hi = i + 1;
            return;
        }
    }
}

static double finite_or_nan(double v)
{
    return isfinite(v) ? v : NAN;
}

struct load_quantile load_quantile(const double *v, size_t n, double q)
{
    struct load_quantile out = {NAN, NAN, NAN};
    size_t lo, hi;
    double at;

    if (n < load_quantile_min(q))
        return out;
    at = q * (double)(n - 1);
    out.value = isfinite(v[(size_t)ceil(at)]) ? stats_quantile_sorted(v, n, q) : NAN;
    interval_ranks(n, q, &lo, &hi);
    if (lo > 0)
        out.lo = finite_or_nan(v[lo - 1]);
    if (hi <= n)
        out.hi = finite_or_nan(v[hi - 1]);
    return out;
}

void load_poisson(double *at_s, size_t n, double rate, uint64_t seed)
{
    double t = 0;

    for (size_t i = 0; i < n; i++) {
        const double u = ((double)(random_bits(&seed) >> 11) + 0.5) * 0x1p-53;

        t -= log(u) / rate;
        at_s[i] = t;
    }
}
