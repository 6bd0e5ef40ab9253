/* SPDX-License-Identifier: MIT
 *
 * gate_resample.h - simulated gates, drawn from the launches of a real one
 *
 * Recorded launches of two equal builds are drawn with replacement, all metrics of a
 * launch together, each with either sign: with equal builds both signs are as likely. A
 * slowdown is put into one metric on top. The gate then goes through its interim
 * analyses as a real one does. The shares of failures and passes, and the smallest
 * slowdown that nearly always fails, are what a gate can detect on that machine.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_RESAMPLE_H
#define SLM_HARNESS_DECIDE_GATE_GATE_RESAMPLE_H

#include "harness/decide/gate/gate_rule.h"

struct gate_record {
    struct gate_rule rule;
    size_t n_metrics;
    double margin[GATE_MAX_METRICS];
    struct gate_series series[GATE_MAX_METRICS]; /* as many launches in each */
};

#define GATE_NO_METRIC SIZE_MAX

struct gate_chances {
    size_t n_gates, n_failed, n_passed;
    double launches; /* mean number of launches until the end */
};

/* n_gates gates of at most max_launches launches, 1..GATE_MAX_LAUNCHES, B slower by a
 * share in one metric (or GATE_NO_METRIC). Equal seeds draw equal launches, so that a
 * larger slowdown fails at least as often. record: at least one launch, and all of its
 * metrics have rounds in each. Error: ST_NO_MEMORY. */
enum status gate_resample(struct gate_chances *c, const struct gate_record *record,
                          size_t n_gates, size_t max_launches, size_t metric,
                          double slowdown, uint64_t seed, struct err *err);

/* The smallest slowdown of a metric that fails with at least the probability given,
 * to a tenth of a percent; NAN if not even one of nine tenths does. Errors: as above,
 * ST_INTERRUPTED. */
enum status gate_resample_min_slowdown(double *slowdown,
                                       const struct gate_record *record, size_t n_gates,
                                       size_t max_launches, size_t metric,
                                       double probability, uint64_t seed,
                                       struct err *err);

#endif
