/* SPDX-License-Identifier: MIT
 *
 * ranktest.h - whether two series of samples differ, for any distribution
 *
 * The test is Mann and Whitney's, with the exact distribution of the rank sum given
 * the ties (permutation), and its normal approximation for long series. The ratio is
 * Hodges and Lehmann's: the median of all quotients of one sample of each series;
 * its interval holds the ratios that the test does not reject.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_STATS_RANKTEST_H
#define SLM_HARNESS_STATS_RANKTEST_H

#include <stddef.h>

#include "engine/base/status.h"

/* Two-sided probability of so different ranks if a and b came from one
 * distribution; 1 where either is empty. */
double rank_test(const double *a, size_t n_a, const double *b, size_t n_b);

/* The smallest value that rank_test() can give for series of these lengths. */
double rank_test_min_p(size_t n_a, size_t n_b);

struct rank_ratio {
    double ratio;  /* b / a */
    double lo, hi; /* 95 % interval; 0 and infinity where the series are too short */
};

/* All samples are above 0, both series are not empty. Error: ST_NO_MEMORY. */
enum status rank_ratio(struct rank_ratio *r, const double *a, size_t n_a,
                       const double *b, size_t n_b, struct err *err);

/* Wilcoxon's signed rank test, each side: were either sign of each v[i] as likely as
 * the other, the probability of positive ranks that sum to as much or more (*above:
 * small if v lies above 0), or to as much or less (*below). Values of 0 do not count; 1
 * where none is left. Exact up to 40 values. */
void rank_signs(const double *v, size_t n, double *above, double *below);

/* The middle of v[n]: the median of all means of two, each with itself, too, and its
 * 95 % interval: the values about which rank_signs() rejects neither side at 2.5 %. */
struct rank_middle {
    double middle;
    double lo, hi; /* NAN with fewer values than RANK_MIN_INTERVAL */
};

/* All of n values on one side have a probability of 2^-n, which is 2.5 % or less from 6
 * on. */
#define RANK_MIN_INTERVAL 6

/* n >= 1, order is free. Error: ST_NO_MEMORY. */
enum status rank_middle(struct rank_middle *r, const double *v, size_t n,
                        struct err *err);

/* Holm's correction: p[i] becomes the level at which i is rejected while the chance
 * of any wrong rejection among the n stays at that level. Error: ST_NO_MEMORY. */
enum status rank_holm(double *p, size_t n, struct err *err);

#endif
