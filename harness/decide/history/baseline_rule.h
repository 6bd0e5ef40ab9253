/* SPDX-License-Identifier: MIT
 *
 * baseline_rule.h - is a new run slower than its history predicts?
 *
 * Model of the world: values of past runs, as logarithms of speeds, scatter about a
 * middle; a new one comes from the same distribution, or lies lower. The range of one
 * more run is Student's prediction interval: with n runs the new one's distance from
 * their middle, in units of their scatter times sqrt(1 + 1 / n), follows t. With 8 or
 * more runs the lowest and the highest sixth (at least one each) are replaced by their
 * neighbours (trimmed mean and winsorised variance, Tukey and McLaughlin 1963), so that
 * a few disturbed runs neither move the middle nor widen the interval.
 *
 * New values of one session may all be slow for a reason outside the program: they
 * count as one run, by their median, however many they are. Values of several sessions
 * count as one run each: with three or more the median is judged, whose scatter is
 * smaller. A single disturbed run cannot be distinguished from a regression, so failing
 * needs BASELINE_FRESH new values.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_BASELINE_RULE_H
#define SLM_HARNESS_DECIDE_HISTORY_BASELINE_RULE_H

#include <stddef.h>

#include "harness/decide/gate/gate_rule.h"

#define BASELINE_MIN_RUNS 5  /* past runs; fewer do not show how far runs scatter */
#define BASELINE_MAX_RUNS 60 /* the latest that count */
#define BASELINE_FRESH    3  /* new values without which nothing fails */

struct baseline_effect {
    struct gate_effect effect; /* its interval is the prediction interval's: 95 % */
    double spread;             /* of one run, as a share: 0.012 */
    /* A new run that is as fast as the old ones passes at this margin, and not at a
     * smaller one. */
    double min_margin;
};

/* Past values old[n_old], the oldest first, BASELINE_MIN_RUNS at least, and new ones,
 * one of each session, BASELINE_MAX_RUNS at most: logarithms of speeds. Both one-sided
 * probabilities are about the rule's margin. */
void baseline_judge(struct baseline_effect *e, const double *old, size_t n_old,
                    const double *fresh, size_t n_sessions,
                    const struct gate_rule *rule);

/* The verdict on n metrics: Holm's correction for failing, all of them for passing; the
 * whole of alpha, as there is one analysis. n_fresh[i]: new values of a metric. Each
 * one's into verdicts[i]. Error: ST_NO_MEMORY. */
enum status baseline_decide(enum gate_verdict *verdict, enum gate_verdict *verdicts,
                            const struct gate_rule *rule,
                            const struct baseline_effect *e, const size_t *n_fresh,
                            size_t n, struct err *err);

/* Probability that Student's t with df >= 1 degrees of freedom is at most t. */
double student_below(double t, size_t df);

/* The value that it is at most with probability p, 0 < p < 1. */
double student_quantile(double p, size_t df);

#endif
