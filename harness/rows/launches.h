/* SPDX-License-Identifier: MIT
 *
 * launches.h - several launches of one point as one row
 *
 * Model of the world: each row is one launch: one process, one placement of its pages,
 * one minute of the machine. Launches of a point differ by more than the samples of one
 * launch show, so a point's figure is the median of its launches' medians, and its 95 %
 * interval comes from how launches scatter: Student's t on the logarithm, with a
 * variance moderated by that of all points of the same kind (below), since three
 * launches of one point alone show little. It is never narrower than the launches' own
 * intervals make it. A point with a single launch is judged by the scatter of the
 * others', where enough is known of it. Disturbed launches count only where there is no
 * undisturbed one; then the least disturbed one alone stands for the point, with its
 * own interval.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_ROWS_LAUNCHES_H
#define SLM_HARNESS_ROWS_LAUNCHES_H

#include <stddef.h>

#include "engine/base/status.h"
#include "harness/rows/row.h"

/* Degrees of freedom from which on the scatter of launches is known: with fewer the
 * interval of a point with a single launch would follow from next to nothing. */
#define LAUNCHES_MIN_DF 4

/* All rows of one point, those that represent it best first (report_rows.h). n >= 1 */
struct launch_group {
    const struct row *const *v;
    size_t n;
};

struct launches {
    const struct row *row; /* represents the point: the launch nearest the median, with
                              the figures of all that were used (tok_per_s and
                              spec_speedup with their intervals) and the largest
                              mem_peak_bytes and mem_resident_bytes of any; or the
                              caller's row */
    struct row *own;       /* malloc'ed where row is none of the caller's */
    size_t n_used;
    size_t
        n_left_out; /* launches with a figure that were not used: disturbed, partial */
};

/* Fill out[n] from points[n], all of one sweep. Error: ST_NO_MEMORY. */
enum status launches_combine(struct launches *out, const struct launch_group *points,
                             size_t n, struct err *err);
void launches_free(struct launches *v, size_t n);

/* Half the width of the interval of tok_per_s, relative to it; INFINITY: none. */
double launches_half_width(const struct row *r);

/* ---- variances of small groups, moderated by those of all groups ----------------- */

/* Many groups of a few normal values each. The true variances of
 * the groups are draws of a scaled inverse chi-squared distribution (the prior), which
 * is estimated from all sample variances. The variance of a group is then the mean of
 * its own and the prior's, weighted by their degrees of freedom. Where groups scatter
 * alike, the prior has many degrees of freedom, and a group of three values is judged
 * by the scatter of all; where they do not, it has few, and each group keeps its own.
 * Smyth 2004, "Linear models and empirical Bayes methods for assessing differential
 * expression". */

/* A sample variance and its degrees of freedom; df 0: none, whatever var is. */
struct variance {
    double var, df;
};

struct variance_prior {
    double var;    /* typical variance */
    double df;     /* how much it is worth; 0: nothing is known; INFINITY: all groups
                      scatter alike */
    double sum_df; /* of the groups that it was estimated from: no more is known */
};

/* The prior of v[n]. */
struct variance_prior variance_prior_fit(const struct variance *v, size_t n);

/* A group's variance with the prior taken into account; df 0: neither is known. */
struct variance variance_moderate(const struct variance_prior *prior,
                                  struct variance own);

#endif
