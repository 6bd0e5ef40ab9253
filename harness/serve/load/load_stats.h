/* SPDX-License-Identifier: MIT
 *
 * load_stats.h - how many requests support which figure
 *
 * Threading: pure functions.
 * Source: White 1997, "An effective truncation heuristic for bias reduction in
 * simulation output" (MSER; in batches of five: White, Cobb and Spratt 2000).
 */
#ifndef SLM_HARNESS_SERVE_LOAD_LOAD_STATS_H
#define SLM_HARNESS_SERVE_LOAD_LOAD_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_MSER_MIN 30 /* values: with fewer nothing is cut */

/* Values at the beginning of v[n] that are warm-up by the rule MSER-5: among means
 * of five, the cut, within the first half, that leaves the mean of the rest with the
 * smallest standard error; its end that is like the rest is kept, since a mean
 * of noise has its smallest error somewhere, too. *settled is false where that is all
 * of the half and most of it differs from the rest: the series is not stationary by
 * then. 0 of fewer than LOAD_MSER_MIN. */
size_t load_mser5(const double *v, size_t n, bool *settled);

/* The least number of values that support quantile q in (0, 1): with 95 % probability
 * one of them lies beyond it. 5 for the median, 29 for p90, 299 for p99. */
size_t load_quantile_min(double q);

/* Quantile q of v[n], sorted, and its 95 % interval from order statistics; values that
 * are INFINITY are failures. The quantile and the ends of
 * its interval are NAN where n does not support them, or where they are failures. */
struct load_quantile {
    double value, lo, hi;
};
struct load_quantile load_quantile(const double *v, size_t n, double q);

/* Times of n arrivals of a Poisson process with `rate` per second, ascending. */
void load_poisson(double *at_s, size_t n, double rate, uint64_t seed);

#endif
