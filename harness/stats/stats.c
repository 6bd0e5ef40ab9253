/* SPDX-License-Identifier: MIT
 *
 * stats.c - medians, quantiles and intervals of measured samples, and counts of what
 * disturbed them
 *
 * Nothing here assumes a distribution: times per token are skewed, with a long
 * tail of interruptions, and a mean with a standard error would follow the tail.
 */
#include "harness/stats/stats.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"

#define DRIFT_MAX 256 /* samples used for the drift */
#define DRIFT_MIN 8   /* fewer samples give no slope */

/* A higher autocorrelation cannot be measured in a series that is not far longer than
 * its memory, and a series of almost equal values has one by rounding alone. */
#define MAX_AUTOCORRELATION 0.95

#define N_RESAMPLES 2000 /* of a bootstrap */

/* 1 / inverse normal CDF of 3/4: makes the MAD of a normal distribution its
 * standard deviation. */
#define MAD_TO_SIGMA 1.4826

int stats_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void stats_sort(double *v, size_t n)
{
    qsort(v, n, sizeof *v, stats_compare);
}

double stats_quantile_sorted(const double *v, size_t n, double q)
{
    assert(n >= 1);
    q = q < 0 ? 0 : q > 1 ? 1 : q;

    const double at = q * (double)(n - 1);
    const size_t below = (size_t)at;

    if (below + 1 >= n)
        return v[n - 1];
    return v[below] + (at - (double)below) * (v[below + 1] - v[below]);
}

double stats_median(const double *v, size_t n, double *scratch)
{
    if (n == 0)
        return 0;
    memmove(scratch, v, n * sizeof *v);
    stats_sort(scratch, n);
    return stats_quantile_sorted(scratch, n, 0.5);
}

/* Rank r (from 0) such that [v[r], v[n-1-r]] holds the median with at least 95 %
 * probability and no narrower symmetric pair does. The number of samples below
 * the median is binomial(n, 1/2), so the pair misses it with probability
 * 2 * P(X <= r). n >= STATS_INTERVAL_MIN */
static size_t interval_rank(size_t n)
{
    double log_p = -(double)n * log(2.0); /* log P(X = k), k = 0 */
    double below = exp(log_p);            /* P(X <= k) */
    size_t k = 0;

    while (2 * k + 2 < n) {
        log_p += log((double)(n - k)) - log((double)(k + 1));
        below += exp(log_p);
        if (below > 0.025)
            break;
        k++;
    }
    return k;
}

/* The sample that a share q of all is not above. */
static double percentile(const double *sorted, size_t n, double q)
{
    return sorted[(size_t)ceil(q * (double)n - 1e-9) - 1];
}

void stats_summary(struct stats *s, const double *v, size_t n, double *scratch)
{
    double sum = 0;

    memset(s, 0, sizeof *s);
    s->lo = s->hi = s->p95 = s->p99 = NAN;
    if (n == 0)
        return;
    memmove(scratch, v, n * sizeof *v);
    stats_sort(scratch, n);
    for (size_t i = 0; i < n; i++)
        sum += scratch[i];

    s->n = n;
    s->median = stats_quantile_sorted(scratch, n, 0.5);
    if (n >= STATS_INTERVAL_MIN) {
        const size_t r = interval_rank(n);

        s->lo = scratch[r];
        s->hi = scratch[n - 1 - r];
    }
    s->p50 = s->median;
    if (n >= STATS_P95_MIN)
        s->p95 = percentile(scratch, n, 0.95);
    if (n >= STATS_P99_MIN)
        s->p99 = percentile(scratch, n, 0.99);
    s->min = scratch[0];
    s->max = scratch[n - 1];
    s->mean = sum / (double)n;

    for (size_t i = 0; i < n; i++)
        scratch[i] = fabs(scratch[i] - s->median);
    s->mad = MAD_TO_SIGMA * stats_median(scratch, n, scratch);
}

/* Rank of x, from 0, in sorted[n], which contains it; for equal values their middle.
 */
static double rank_of(const double *sorted, size_t n, double x)
{
    size_t below = 0, end = n, above = n;

    while (below < end) {
        const size_t mid = (below + end) / 2;

        *(sorted[mid] < x ? &below : &end) = sorted[mid] < x ? mid + 1 : mid;
    }
    for (end = below; end < above;) {
        const size_t mid = (end + above) / 2;

        *(sorted[mid] <= x ? &end : &above) = sorted[mid] <= x ? mid + 1 : mid;
    }
    return ((double)below + (double)end - 1) / 2;
}

/* Lag-1 autocorrelation of the ranks of v[n]; sorted has the same values in order. */
static double rank_autocorrelation(const double *v, const double *sorted, size_t n)
{
    const double mean = ((double)n - 1) / 2;
    double before = 0, products = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        const double d = rank_of(sorted, n, v[i]) - mean;

        products += i ? d * before : 0;
        squares += d * d;
        before = d;
    }
    return squares > 0 ? products / squares : 0;
}

/* The estimate of an autocorrelation r is low by (1 + 3 r) / n where the mean is
 * estimated, too (Kendall 1954, "Note on bias in the estimation of autocorrelation").
 * For a normal series with autocorrelation rho, ranks have 6/pi asin(rho/2), and being
 * below the median, which is what decides the median's error, 2/pi asin(rho^k) at lag
 * k. */
static double dependence(const double *v, const double *sorted, size_t n)
{
    const double count = (double)n;
    double r, rho, power = 1, sum = 1;

    if (n < 4)
        return 1;
    r = (rank_autocorrelation(v, sorted, n) + 1 / count) / (1 - 3 / count);
    rho = 2 * sin(M_PI / 6 * fmin(fmax(r, 0), MAX_AUTOCORRELATION));
    for (size_t k = 1; k < n && power > 1e-6; k++) {
        power *= rho;
        sum += 2 * (1 - (double)k / count) * M_2_PI * asin(power);
    }
    return sum;
}

double stats_dependence(const double *v, size_t n, double *scratch)
{
    memmove(scratch, v, n * sizeof *v);
    stats_sort(scratch, n);
    return dependence(v, scratch, n);
}

/* The order statistic, of n sorted values, at the share of the distribution that rank r
 * of m has on average: (r + 1) / (m + 1). */
static double at_rank(const double *sorted, size_t n, double r, double m)
{
    const double at = (r + 1) / (m + 1) * ((double)n + 1) - 1;

    return stats_quantile_sorted(sorted, n, n > 1 ? at / ((double)n - 1) : 0);
}

void stats_series_interval(const double *v, size_t n, double *scratch, double *lo,
                           double *hi)
{
    const double worth = n ? (double)n / stats_dependence(v, n, scratch) : 0;
    const size_t m = (size_t)(worth + 1e-9), r = interval_rank(m);

    *lo = *hi = NAN;
    if (n < STATS_INTERVAL_MIN)
        return;
    if (m < STATS_INTERVAL_MIN) {
        *lo = scratch[0];
        *hi = scratch[n - 1];
        return;
    }
    *lo = at_rank(scratch, n, (double)r, (double)m);
    *hi = at_rank(scratch, n, (double)(m - 1 - r), (double)m);
}

/* ---- Student's t ----------------------------------------------------------------- */

#define T_STEPS 512 /* of Simpson's rule: an error below 1e-6 from df = 1 on */
#define T_LARGE 1e4 /* degrees of freedom that are as good as infinitely many */

/* The density of t at 0, times sqrt(df). */
static double t_density(double df)
{
    return exp(lgamma((df + 1) / 2) - lgamma(df / 2) - log(M_PI) / 2);
}

/* Probability of -t..t. With t = sqrt(df) tan(angle) the density is a power of the
 * cosine. */
static double t_within(double t, double df)
{
    const double end = atan(t / sqrt(df)), step = end / T_STEPS;
    double sum = 0;

    for (int i = 0; i <= T_STEPS; i++) {
        const double weight = i == 0 || i == T_STEPS ? 1 : i % 2 ? 4 : 2;

        sum += weight * pow(cos(i * step), df - 1);
    }
    return 2 * sum * step / 3 * t_density(df);
}

/* The probability grows ever more slowly with t, so Newton's steps from below stay
 * below. */
double stats_t_quantile(double df)
{
    double t = 1.9, step = 1; /* 1.96 is that of infinitely many */

    df = df < 1 ? 1 : df > T_LARGE ? T_LARGE : df;
    for (int i = 0; i < 40 && step > 1e-9; i++) {
        const double slope =
            2 * t_density(df) / sqrt(df) * pow(1 + t * t / df, -(df + 1) / 2);

        step = (0.95 - t_within(t, df)) / slope;
        t += step;
    }
    return t;
}

/* At most DRIFT_MAX of v[n], at equal distances. Returns how many. */
static size_t thin(double *picked, const double *v, size_t n)
{
    const size_t m = n < DRIFT_MAX ? n : DRIFT_MAX;

    for (size_t i = 0; i < m; i++)
        picked[i] = v[i * n / m];
    return m;
}

/* Theil-Sen slope per sample of v[n], from the picked[m] of them. */
static double slope(const double *picked, size_t m, size_t n, double *scratch)
{
    size_t n_slopes = 0;

    for (size_t i = 0; i < m; i++)
        for (size_t j = i + 1; j < m; j++)
            scratch[n_slopes++] =
                (picked[j] - picked[i]) / (double)(j * n / m - i * n / m);
    return stats_median(scratch, n_slopes, scratch);
}

double stats_drift(const double *v, size_t n, double *scratch)
{
    double picked[DRIFT_MAX];

    if (n < DRIFT_MIN)
        return 0;

    const size_t m = thin(picked, v, n);
    const double median = stats_median(picked, m, scratch);
    if (median == 0)
        return 0;
    return slope(picked, m, n, scratch) * (double)n / fabs(median);
}

/* Lag-1 correlation of the ranks of v[n], n >= DRIFT_MIN, a series around its trend.
 * Removing a trend from n samples lowers the estimate by about (2 + 4 rho) / n. With
 * few samples the estimate is uncertain, and one that is too low makes a trend of
 * noise: so its standard error is added. */
static double neighbours_alike(const double *v, size_t n, double *scratch)
{
    memmove(scratch, v, n * sizeof *v);
    stats_sort(scratch, n);

    const double seen = rank_autocorrelation(v, scratch, n);
    const double rho = ((double)n * seen + 2) / (double)(n - 4);
    const double error = sqrt(fmax(0, 1 - rho * rho) / (double)n);
    return fmin(fmax(rho + error, 0), MAX_AUTOCORRELATION);
}

void stats_drift_test(struct stats_drift *d, const double *v, size_t n, double *scratch)
{
    double picked[DRIFT_MAX], sum = 0;

    *d = (struct stats_drift){stats_drift(v, n, scratch), 1};
    if (n < DRIFT_MIN)
        return;

    const size_t m = thin(picked, v, n);
    const double per_pick = slope(picked, m, m, scratch), x = (double)m;
    for (size_t i = 0; i < m; i++)
        for (size_t j = i + 1; j < m; j++)
            sum += (picked[j] > picked[i]) - (picked[j] < picked[i]);
    for (size_t i = 0; i < m; i++)
        picked[i] -= per_pick * (double)i;

    const double rho = neighbours_alike(picked, m, scratch);
    const double variance = x * (x - 1) * (2 * x + 5) / 18 * (1 + rho) / (1 - rho);
    d->p = erfc(fmax(0, fabs(sum) - 1) / sqrt(2 * variance));
}

void stats_ratio_interval(const struct stats_pair *v, size_t n, uint64_t seed,
                          double *lo, double *hi)
{
    double ratio[N_RESAMPLES];

    *lo = *hi = NAN;
    if (n < 2)
        return;
    for (size_t i = 0; i < N_RESAMPLES; i++) {
        double a = 0, b = 0;

        for (size_t k = 0; k < n; k++) {
            const struct stats_pair *p = &v[random_bits(&seed) % n];

            a += p->a;
            b += p->b;
        }
        ratio[i] = a / b;
    }
    stats_sort(ratio, N_RESAMPLES);
    *lo = stats_quantile_sorted(ratio, N_RESAMPLES, 0.025);
    *hi = stats_quantile_sorted(ratio, N_RESAMPLES, 0.975);
}

double stats_binomial(size_t k, size_t n, double p)
{
    return exp(lgamma((double)n + 1) - lgamma((double)k + 1) -
               lgamma((double)(n - k) + 1) + (double)k * log(p) +
               (double)(n - k) * log1p(-p));
}

/* Probability of at most k of n events of probability p > k / n: from k down the terms
 * become smaller. */
static double binomial_below(size_t k, size_t n, double p)
{
    double term = stats_binomial(k, n, p), sum = term;

    for (size_t i = k; i > 0 && term > 1e-17 * sum; i--) {
        term *= (double)i * (1 - p) / ((double)(n - i + 1) * p);
        sum += term;
    }
    return sum;
}

double stats_binomial_upper(size_t k, size_t n)
{
    double lo = (double)k / (double)n, hi = 1;

    if (k == n)
        return 1;
    for (int i = 0; i < 60; i++) {
        const double mid = (lo + hi) / 2;

        *(binomial_below(k, n, mid) > 0.05 ? &lo : &hi) = mid;
    }
    return hi;
}

/* ---- disturbances ---------------------------------------------------------------- */

static void count_one(struct disturbances *d, const char *name, size_t len)
{
    for (size_t i = 0; i < DISTURBANCES_MAX; i++) {
        if (!d->n[i])
            snprintf(d->name[i], sizeof d->name[i], "%.*s", (int)len, name);
        if (strlen(d->name[i]) == len && !strncmp(d->name[i], name, len)) {
            d->n[i]++;
            return;
        }
    }
}

void disturbances_add(struct disturbances *d, const char *why, bool counted)
{
    d->n_rounds++;
    d->n_counted += counted;
    while (*why) {
        const size_t all = strcspn(why, ",");
        size_t len = strcspn(why, ",0123456789");

        while (len && why[len - 1] == ' ')
            len--;
        count_one(d, why, len);
        why += all;
        why += strspn(why, ", ");
    }
}

const char *disturbances_text(const struct disturbances *d, char *buf, size_t cap)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < DISTURBANCES_MAX && d->n[i] && used < cap; i++)
        used += (size_t)snprintf(buf + used, cap - used, "%s%s in %zu", i ? ", " : "",
                                 d->name[i], d->n[i]);
    if (d->n_counted && used < cap)
        snprintf(buf + used, cap - used,
                 "; %zu of these rounds were counted, since quiet ones were rare",
                 d->n_counted);
    return buf;
}
