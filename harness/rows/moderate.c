/* SPDX-License-Identifier: MIT
 *
 * moderate.c - variances of small groups, moderated by those of all groups
 */
#include "harness/rows/launches.h"

#include <math.h>

/* A variance below this share of the mean is equality by rounding; its logarithm would
 * outweigh all others. */
#define MIN_SHARE 1e-4

/* Few groups cannot show whether they scatter alike: the prior is worth no more than
 * this share of the degrees of freedom that it comes from. With all of them, four
 * points, one with twice the scatter of the others, have intervals that hold the truth
 * of that one 86 times in 100. */
#define KNOWN_SHARE 0.25

/* Derivatives of log gamma: recurrence up to where the asymptotic series (Abramowitz
 * and Stegun, 6.3.18 and 6.4.12) is exact to 1e-9. */
#define SERIES_FROM 8

static double digamma(double x)
{
    double sum = 0;

    for (; x < SERIES_FROM; x++)
        sum -= 1 / x;

    const double y = 1 / (x * x);
    return sum + log(x) - 1 / (2 * x) -
           y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y / 240)));
}

static double trigamma(double x)
{
    double sum = 0;

    for (; x < SERIES_FROM; x++)
        sum += 1 / (x * x);

    const double y = 1 / (x * x);
    return sum + 1 / x + y / 2 +
           y / x * (1.0 / 6 - y * (1.0 / 30 - y * (1.0 / 42 - y / 30)));
}

/* x > 0 with trigamma(x) = y, y > 0: it falls from infinity to 0. */
static double trigamma_inverse(double y)
{
    double lo = 1e-6, hi = 1e6;

    for (int i = 0; i < 100; i++) {
        const double mid = sqrt(lo * hi);

        *(trigamma(mid) > y ? &lo : &hi) = mid;
    }
    return sqrt(lo * hi);
}

/* Mean of the variances, weighted by their degrees of freedom. */
static double pooled(const struct variance *v, size_t n, double *sum_df,
                     size_t *n_known)
{
    double sum = 0;

    *sum_df = 0;
    *n_known = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i].df > 0) {
            sum += v[i].df * v[i].var;
            *sum_df += v[i].df;
            ++*n_known;
        }
    return *sum_df > 0 ? sum / *sum_df : 0;
}

/* Logarithm of a sample variance without what its degrees of freedom alone make of it.
 */
static double log_variance(const struct variance *v, double mean)
{
    const double var = fmax(v->var, MIN_SHARE * mean);

    return log(var) - digamma(v->df / 2) + log(v->df / 2);
}

/* Mean and variance of these logarithms give location and width of the prior: the part
 * of their variance that degrees of freedom do not explain is trigamma(df / 2). */
struct variance_prior variance_prior_fit(const struct variance *v, size_t n)
{
    struct variance_prior prior = {0};
    double mean = 0, spread = 0, explained = 0;
    size_t n_known;
    const double pool = pooled(v, n, &prior.sum_df, &n_known);

    if (!n_known || !(pool > 0))
        return (struct variance_prior){0};
    prior.var = pool;
    prior.df = INFINITY;
    for (size_t i = 0; i < n; i++)
        if (v[i].df > 0)
            mean += log_variance(&v[i], pool) / (double)n_known;
    for (size_t i = 0; i < n; i++)
        if (v[i].df > 0) {
            const double d = log_variance(&v[i], pool) - mean;

            spread += n_known > 1 ? d * d / (double)(n_known - 1) : 0;
            explained += trigamma(v[i].df / 2) / (double)n_known;
        }
    if (spread > explained) {
        prior.df = 2 * trigamma_inverse(spread - explained);
        prior.var = exp(mean + digamma(prior.df / 2) - log(prior.df / 2));
    }
    prior.df = fmin(prior.df, KNOWN_SHARE * prior.sum_df);
    return prior;
}

struct variance variance_moderate(const struct variance_prior *prior,
                                  struct variance own)
{
    struct variance out = own;

    if (own.df <= 0)
        out = (struct variance){prior->var, prior->df};
    else if (isinf(prior->df))
        out = (struct variance){prior->var, INFINITY};
    else if (prior->df > 0)
        out = (struct variance){(prior->df * prior->var + own.df * own.var) /
                                    (prior->df + own.df),
                                prior->df + own.df};
    if (prior->df > 0)
        out.df = fmin(out.df, prior->sum_df);
    return out;
}
