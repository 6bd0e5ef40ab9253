/* SPDX-License-Identifier: MIT
 *
 * gate_rule.h - the decision rule of a gate: pass, fail, or not yet
 *
 * A gate compares two builds, A and B. A round is four turns in the order ABBA or BAAB,
 * drawn at random, so that drift cancels and, were A and B the same, every round could
 * as well have had the other sign. A round's value of a metric is the logarithm of B's
 * speed over A's (the other way round where less is better): below 0 B is worse.
 * Rounds of one pair of launches share their address-space layout and all else that is
 * fixed at start, so the launch is the independent unit: its value is the mean of its
 * rounds without their upper and lower quarters, so that of four or more one disturbed
 * round has no effect.
 *
 * The test flips the signs of the launches' ranks (Wilcoxon's, exact up to 40 launches)
 * about the margin: failing needs a slowdown beyond the margin to be shown, passing
 * needs one to be ruled out. Both are tested in interim analyses after fixed numbers of
 * launches, and at the end; the level of an analysis is an equal share of the whole (a
 * gate whose budget holds few launches has fewer of them to share it among), and Holm's
 * correction shares it among the metrics, so that over all analyses and metrics a B
 * that is no slower than the margin fails with a probability of at most alpha (the
 * false-positive rate). To pass, every metric must.
 *
 * Threading: pure functions; a series belongs to one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_RULE_H
#define SLM_HARNESS_DECIDE_GATE_GATE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define GATE_MAX_LAUNCHES 80
#define GATE_MAX_ROUNDS   8  /* of one launch */
#define GATE_MAX_METRICS  48 /* a default sweep against stored rows has 27 */

enum gate_verdict {
    GATE_OPEN, /* more rounds may decide */
    GATE_PASS, /* no slowdown beyond the margin */
    GATE_FAIL, /* a slowdown beyond the margin */
    GATE_UNCLEAR
};

struct gate_rule {
    double margin;     /* share of speed that may be lost: 0.02 */
    double alpha_fail; /* chance of failing a B that is within the margin */
    double alpha_pass; /* chance of passing a B that is beyond it */
    size_t n_interim;  /* that share these chances */
};

/* 2 %, 1 %, 5 %, and all interim analyses. */
struct gate_rule gate_rule_default(void);

/* One metric's rounds, launch by launch. */
struct gate_series {
    size_t n_launches;
    size_t n_rounds[GATE_MAX_LAUNCHES];
    double v[GATE_MAX_LAUNCHES][GATE_MAX_ROUNDS]; /* log ratio */
};

/* Mean of v[n] without the n / 4 largest and the n / 4 smallest; n in
 * 1..GATE_MAX_ROUNDS. */
double gate_middle(const double *v, size_t n);

struct gate_effect {
    double ratio; /* B's speed over A's: Hodges and Lehmann's estimate */
    /* 95 % interval: the slowdowns that the same test of the launches does not reject
     * at 2.5 % on either side, so that a metric that passed in one of several analyses
     * has its margin outside; NAN with fewer launches than RANK_MIN_INTERVAL */
    double lo, hi;
    double p_fail; /* of a B this slow or slower, if it lost exactly the margin */
    double p_pass; /* of a B this fast or faster, if it lost exactly the margin */
};

/* Interim analyses of a gate with that many launches at most: those before its end, and
 * the end. */
size_t gate_n_interim(size_t max_launches);

/* How many launches there are at interim analysis i of n_interim; at the last one, as
 * many as a gate can have, or as it has when its budget is over. 0 after that. */
size_t gate_interim_at(size_t i, size_t n_interim);

/* The series' effect. At least one launch with a round. Error: ST_NO_MEMORY. */
enum status gate_effect(struct gate_effect *e, const struct gate_series *s,
                        const struct gate_rule *rule, struct err *err);

/* The two probabilities alone; launches without a round do not count. */
void gate_test(const struct gate_series *s, const struct gate_rule *rule,
               double *p_fail, double *p_pass);

/* The verdict of an interim analysis of n metrics, given each one's probabilities:
 * GATE_OPEN if neither is shown. failed[i], if not NULL: metric i failed. Error:
 * ST_NO_MEMORY. */
enum status gate_decide(enum gate_verdict *verdict, const struct gate_rule *rule,
                        const double *p_fail, const double *p_pass, size_t n,
                        bool *failed, struct err *err);

/* Both: an interim analysis of n series, margin[i] (NULL: all the rule's) that of s[i].
 */
enum status gate_judge(enum gate_verdict *verdict, const struct gate_rule *rule,
                       const double *margin, const struct gate_series *const *s,
                       size_t n, bool *failed, struct err *err);

/* ---- simulated gates, drawn from the launches of a real one (gate_resample.c) ---- */

/* Recorded launches of two equal builds are drawn with replacement, all metrics of a
 * launch together, each with either sign: with equal builds both signs are as likely. A
 * slowdown is put into one metric on top. The gate then goes through its interim
 * analyses as a real one does. The shares of failures and passes, and the smallest
 * slowdown that nearly always fails, are what a gate can detect on that machine. */

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
