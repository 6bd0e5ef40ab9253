/* SPDX-License-Identifier: MIT
 *
 * recommend_speed.h - how fast a setting is, and how sure that is
 *
 * Model of the world: a row's median is one draw of an experiment; its 95 % interval
 * says how far the true median may be. Its logarithm is taken as normal, with one
 * standard deviation below the median and another above it, so that both ends of the
 * interval are met. What disturbs a row slows it down: of an undisturbed machine such
 * a row shows a lower bound. Its setting's undisturbed rows at other depths, and what
 * other settings keep of their speed between these depths, estimate the rest.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_REPORT_RECOMMEND_SPEED_H
#define SLM_HARNESS_REPORT_RECOMMEND_SPEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/result/report_rows.h"

/* Standard deviation of the logarithm where a row has no interval: 20 % to either side,
 * several times what a quiet machine shows, so that no equality is claimed from it. */
#define SPEED_UNKNOWN_SPREAD 0.10

/* The same, added to an estimate from another depth: 10 % to either side. Settings of
 * one model keep shares of their speed that differ by some per cent, as the KV cache
 * is a larger part of what a smaller quantisation reads. */
#define SPEED_ESTIMATE_SPREAD 0.05

struct speed {
    double median;             /* tok/s; 0: takes no part in speed_compare() */
    double sigma_lo, sigma_hi; /* of its logarithm, below and above the median */
    double least;              /* tok/s: shown by a disturbed row; 0: nothing */
    int64_t from_ctx;          /* estimated from that depth; -1: measured */
    double p_best;             /* probability that nothing is faster */
    double regret; /* expected loss against the fastest, over its expected speed */
};

/* Estimate from the row alone. */
struct speed speed_measured(const struct row *r);

/* What the setting of rows->v[i], a row that was disturbed, does undisturbed at that
 * depth: its speed at the nearest depth d0 where it was not disturbed, times the median
 * over the undisturbed settings of its model (with its type of KV cache, where there is
 * one) of speed at this depth over speed at d0. Where all were disturbed at this depth,
 * the most that any other one kept; without others only a deeper d0 says something: no
 * less than its own speed there. The row's own speed where that is more. False: no
 * other depth says anything, or paging or a quota slowed it down, which are its own.
 * scratch has room for rows->n. */
bool speed_estimate(struct speed *speed, const struct report_rows *rows, size_t i,
                    double *scratch);

/* Ends of the 95 % interval. */
double speed_lo(const struct speed *s);
double speed_hi(const struct speed *s);

/* Fill in p_best and regret of v[n] from random draws that are always the same.
 * Error: ST_NO_MEMORY. */
enum status speed_compare(struct speed *v, size_t n, struct err *err);

#endif
