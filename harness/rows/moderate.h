/* SPDX-License-Identifier: MIT
 *
 * moderate.h - variances of small groups, moderated by those of all groups
 *
 * Model of the world: many groups of a few normal values each. The true variances of
 * the groups are draws of a scaled inverse chi-squared distribution (the prior), which
 * is estimated from all sample variances. The variance of a group is then the mean of
 * its own and the prior's, weighted by their degrees of freedom. Where groups scatter
 * alike, the prior has many degrees of freedom, and a group of three values is judged
 * by the scatter of all; where they do not, it has few, and each group keeps its own.
 * Smyth 2004, "Linear models and empirical Bayes methods for assessing differential
 * expression".
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_ROWS_MODERATE_H
#define SLM_HARNESS_ROWS_MODERATE_H

#include <stddef.h>

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
