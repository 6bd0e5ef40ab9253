/* SPDX-License-Identifier: MIT
 *
 * stats.h - medians, quantiles and intervals of measured samples
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_STATS_STATS_H
#define SLM_HARNESS_STATS_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

/* For fewer samples even the range holds the median with less than 95 % probability:
 * it misses it with 2 * 2^-n. */
#define STATS_INTERVAL_MIN 6

/* At least three samples are expected above a percentile: with fewer it would be about
 * the maximum, which grows with the number of samples. */
#define STATS_P95_MIN 60
#define STATS_P99_MIN 300

struct stats {
    size_t n;
    double median;
    double lo, hi; /* 95 % confidence interval of the median, from order
                      statistics (no assumption about the distribution); NaN for
                      n < STATS_INTERVAL_MIN */
    double p50;
    double p95, p99; /* the sample of that rank; NaN for n < STATS_P95_MIN, _P99_MIN */
    double min, max, mean;
    double mad; /* median absolute deviation, times 1.4826 */
};

/* Ascending. */
void stats_sort(double *v, size_t n);

/* Quantile q in [0,1] of v[n], n >= 1, already sorted; linear interpolation
 * between order statistics (Hyndman & Fan type 7). */
double stats_quantile_sorted(const double *v, size_t n, double q);

int stats_compare(const void *a, const void *b); /* of doubles, for qsort() */

double stats_median(const double *v, size_t n, double *scratch /* [n] */);

/* Everything above. v[n] is not changed; scratch[n] is. n = 0 gives zeros, and NaN
 * where more samples are needed. */
void stats_summary(struct stats *s, const double *v, size_t n, double *scratch);

/* How many successive values of v[n] the information of one independent value takes,
 * for the median: 1 where they are independent. From the lag-1 autocorrelation of their
 * ranks, as if they were autoregressive of order 1. scratch is [n]. */
double stats_dependence(const double *v, size_t n, double *scratch /* [n] */);

/* 95 % confidence interval of the median of v[n], in the order they were measured, that
 * also holds where successive values are alike: order statistics for as many
 * independent values as these are worth; the range where that are fewer than
 * STATS_INTERVAL_MIN. NAN of fewer values. */
void stats_series_interval(const double *v, size_t n, double *scratch /* [n] */,
                           double *lo, double *hi);

/* 97.5 % quantile of Student's t distribution; df may be a fraction; below 1: as 1. */
double stats_t_quantile(double df);

/* Drift over a run: Theil-Sen slope times n, relative to the median: -0.1 means
 * the last sample was about 10 % below the first. 0 for n < 8. scratch holds
 * n * (n - 1) / 2 doubles for n <= 256; longer series are thinned to 256. */
#define STATS_DRIFT_SCRATCH (256 * 255 / 2)
double stats_drift(const double *v, size_t n, double *scratch);

struct stats_drift {
    double drift; /* as stats_drift() has it */
    double p;     /* two-sided: how often a series without a trend has one like it */
};

/* Mann's and Kendall's test for a trend, with its variance enlarged for samples that
 * resemble their neighbours (a first-order autoregressive series; the factor is that of
 * Bayley and Hammersley 1946, the correlation that of ranks around the trend, corrected
 * for its bias and taken at the upper end of its standard error). p is 1 for n < 8.
 * scratch and thinning as stats_drift(). */
void stats_drift_test(struct stats_drift *d, const double *v, size_t n,
                      double *scratch);

/* Two figures that belong together. */
struct stats_pair {
    double a, b;
};

/* 95 % interval of sum(a) / sum(b) over n pairs: the bootstrap over pairs (percentiles
 * of 2000 resamples drawn by seed). NaN for n < 2. */
void stats_ratio_interval(const struct stats_pair *v, size_t n, uint64_t seed,
                          double *lo, double *hi);

/* Probability of k of n events that have probability p each. */
double stats_binomial(size_t k, size_t n, double p);

/* Upper end of the one-sided 95 % interval of a probability that k of n events were
 * seen of (Clopper and Pearson 1934). n >= 1 */
double stats_binomial_upper(size_t k, size_t n);

/* ---- what has disturbed the rounds of a comparison, how often -------------------- */

/* A disturbed round is left out and measured again. Where there is no time left for
 * that it counts, and the counts here show it. */

#define DISTURBANCES_MAX 8

struct disturbances {
    char name[DISTURBANCES_MAX][24]; /* "steal" */
    size_t n[DISTURBANCES_MAX];
    size_t n_rounds, n_counted; /* disturbed rounds; those that were counted anyhow */
};

/* Counts what disturbed a round, "steal 4 %, waiting 12 %" (noise_disturbed()). */
void disturbances_add(struct disturbances *d, const char *why, bool counted);

/* "steal in 3, waiting in 2; 4 of these rounds were counted, ..." Returns buf. */
const char *disturbances_text(const struct disturbances *d, char *buf, size_t cap);

#endif
