/* SPDX-License-Identifier: MIT
 *
 * coverage.h - how often the interval of a point holds what is true of it
 *
 * Model of the world: a sweep that launches each point very often stands for many
 * sweeps of a few launches. Each of these *repeats* has an interval of its own, made as
 * `bench sweep` makes it, from its launches alone; the true figure is that of all
 * launches together. Launches become repeats in two ways: one after the other, so that
 * a repeat knows one short time of the machine, or at random (ten times), so that each
 * has launches of the whole time, as the rounds of a sweep place them. As there,
 * disturbed launches are replaced by later ones, up to one of a repeat.
 *
 * Threading: pure functions.
 */
#ifndef SLM_RESEARCH_COVERAGE_H
#define SLM_RESEARCH_COVERAGE_H

#include <stddef.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/rows/row.h"

/* One point, by all of its repeats. */
struct coverage_point {
    const char *point;  /* the rows' */
    double truth;       /* tok/s of all launches together */
    size_t n;           /* launches with a figure */
    size_t n_repeats;   /* with an interval */
    size_t n_disturbed; /* that have only disturbed launches */
    size_t n_covered;   /* intervals that hold the truth */
    double half_width;  /* of an interval, relative; the median */
};

struct coverage {
    struct coverage_point *v; /* [n], malloc'ed: coverage_free() */
    size_t n;
};

/* Fill out from the rows of a sweep, in the order they were measured; they stay the
 * caller's, and out->v[].point is theirs. n_launches: of a repeat, 1 at least; launches
 * that do not fill a repeat are left over. Error: ST_NO_MEMORY. */
enum status coverage_of(struct coverage *out, const struct row *rows, size_t n_rows,
                        size_t n_launches, bool spread, struct err *err);
void coverage_free(struct coverage *c);

#endif
