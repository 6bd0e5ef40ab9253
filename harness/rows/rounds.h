/* SPDX-License-Identifier: MIT
 *
 * rounds.h - whether the machine was slower in one round of a sweep than in the others
 *
 * Model of the world: a sweep measures every point once in each round (column attempt).
 * So the rounds are the reference that comes back: the effect of a round is the median,
 * over the points, of a launch's speed over the median of the same point's launches in
 * other rounds. It counts where Wilcoxon's signed rank test over the points finds it,
 * at 5 % for all rounds together, and where it is as large as ROUND_MIN_EFFECT. If
 * there are several, the largest is found first, and left out when the rest is
 * compared.
 *
 * Speeds are not corrected by it. Every point is in every round, so that a slow round
 * favours no setting, and the median of a point's launches leaves a slow one out; a
 * correction would assume that what slows the machine slows all settings by the same
 * factor, which is not so where some are bound by memory and some by arithmetic.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_ROWS_ROUNDS_H
#define SLM_HARNESS_ROWS_ROUNDS_H

#include <stddef.h>

#include "engine/base/status.h"
#include "harness/rows/row.h"

#define ROUNDS_MAX       256  /* of those after it nothing is found */
#define ROUND_MIN_EFFECT 0.02 /* share of the speed: less changes no decision */

struct round_effect {
    int round;
    double share;    /* of the speed in the other rounds: 0.92 is 8 % slower */
    size_t n_points; /* that were measured in this round and in others */
};

/* The rounds that differ, the largest effect first; out has room for ROUNDS_MAX, *n
 * receives how many. rows[n_rows] are of one sweep; undisturbed ones are compared.
 * like: those of its model and quantisation alone, where models were measured one after
 * the other; NULL: all. Error: ST_NO_MEMORY. */
enum status rounds_compare(struct round_effect *out, size_t *n, const struct row *rows,
                           size_t n_rows, const struct row *like, struct err *err);

#endif
