/* SPDX-License-Identifier: MIT
 *
 * change.h - change points of a series of measurements
 *
 * E-divisive (Matteson and James 2014, "A nonparametric approach for multiple change
 * point analysis of multivariate data"): the series is cut where the energy distance
 * between what lies before and after, within its segment, is largest, while
 * shuffling the segments rarely gives a cut as good.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_CHANGE_H
#define SLM_HARNESS_DECIDE_HISTORY_CHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define CHANGE_MIN_SEGMENT 3
#define CHANGE_MAX_POINTS  2000

struct change {
    size_t at;            /* index of the first value after it */
    double p;             /* of a cut as good in a shuffled series */
    double before, after; /* medians of the segments on its two sides */
};

/* Changes of v[n], at most `most` of them, in ascending order into out[]; how many is
 * *n_out. level: the largest p that counts, at least 1 / 500. n is at most
 * CHANGE_MAX_POINTS; fewer than 2 * CHANGE_MIN_SEGMENT values have no change. Error:
 * ST_NO_MEMORY. */
enum status change_points(struct change *out, size_t most, size_t *n_out,
                          const double *v, size_t n, double level, uint64_t seed,
                          struct err *err);

#endif
