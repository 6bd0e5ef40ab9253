/* SPDX-License-Identifier: MIT
 *
 * recommend_speed.h - how fast a setting is, and how uncertain that is
 *
 * Model of the world: a row's median is one draw of an experiment; its 95 % interval
 * bounds the true median. The logarithm of the speed is taken as normal, with one
 * standard deviation below the median and another above it, so that both ends of the
 * interval are met. A disturbance slows a row down: a disturbed row shows a lower bound
 * of the undisturbed speed. The rest is estimated from its setting's undisturbed rows
 * at other depths, and from the share of their speed that other settings keep between
 * these depths.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_JUDGE_RECOMMEND_RECOMMEND_SPEED_H
#define SLM_HARNESS_JUDGE_RECOMMEND_RECOMMEND_SPEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/rows/report_rows.h"

/* Standard deviation of the logarithm for a row without an interval: 20 % to either
 * side, several times what an undisturbed machine shows, so that no equality follows
 * from it. */
#define SPEED_UNKNOWN_SPREAD 0.10

/* The same, added to an estimate from another depth: 10 % to either side. Settings of
 * one model keep shares of their speed that differ by some per cent, since the KV cache
 * is a larger part of what a smaller quantisation reads. */
#define SPEED_ESTIMATE_SPREAD 0.05

struct speed {
    double median;             /* tok/s; 0: takes no part in speed_compare() */
    double sigma_lo, sigma_hi; /* of its logarithm, below and above the median */
    double least;              /* tok/s: shown by a disturbed row; 0: nothing */
    int64_t from_ctx;          /* estimated from that depth; -1: measured */
    bool out;                  /* takes no part in speed_compare() either */
    double p_best;             /* probability that nothing is faster */
    double regret; /* expected loss against the fastest, over its expected speed */
};

/* Estimate from the row alone. */
struct speed speed_measured(const struct row *r);

/* Estimate the undisturbed speed of rows->v[i], a disturbed row: its setting's speed at
 * the nearest depth d0 where it was not disturbed, times the median, over the
 * undisturbed settings of its model, of speed at this depth over speed at d0 (settings
 * with its type of KV cache, if there are any). If all settings were disturbed at this
 * depth: times the largest ratio of any other setting. Without other settings: the
 * speed at a deeper d0, a lower bound. Never less than the row's own speed. False: no
 * other depth gives an estimate, or paging or a quota slowed it down, which are limits
 * of the setting. scratch is [rows->n]. */
bool speed_estimate(struct speed *speed, const struct report_rows *rows, size_t i,
                    double *scratch);

/* Ends of the 95 % interval. */
double speed_lo(const struct speed *s);
double speed_hi(const struct speed *s);

/* Probability that the speed is at least so high. */
double speed_reaches(const struct speed *s, double tok_per_s);

/* Fill in p_best and regret of those of v[n] that take part, from random draws that are
 * always the same. Error: ST_NO_MEMORY. */
enum status speed_compare(struct speed *v, size_t n, struct err *err);

#endif
