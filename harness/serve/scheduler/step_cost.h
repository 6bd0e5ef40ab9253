/* SPDX-License-Identifier: MIT
 *
 * step_cost.h - how long a step takes, by how long steps took
 *
 * Model of the world: a step's time grows with its work, in tokens (what attention
 * costs a token at a depth is added by the caller), and never faster than in
 * proportion: weights are read once a step, whatever it computes. How it grows depends
 * on kernels, caches and memory, so no formula is fitted: steps are sorted into classes
 * of similar work, one token each up to STEP_COST_SINGLE, as kernels compute a few
 * tokens in the time of one and the next takes longer, then half an octave each. For
 * each class the median of the last times is kept. Between classes the time is
 * interpolated, above the largest it is in proportion to the work. A median forgets a
 * step that something else delayed; a class that was not seen for STEP_COST_EXPIRES
 * steps is forgotten, so that what was slow is tried again.
 *
 * What is chosen where the medians of few times seem good takes longer than they are:
 * a choice is judged by the usual times, means over many more steps.
 *
 * Half of the steps take longer than the median. So the target lies below a limit by as
 * much as the last steps under a limit took longer than was predicted, 19
 * of 20 of them.
 *
 * Threading: no locking.
 */
#ifndef SLM_HARNESS_SERVE_SCHEDULER_STEP_COST_H
#define SLM_HARNESS_SERVE_SCHEDULER_STEP_COST_H

#include <stdbool.h>
#include <stdint.h>

enum {
    STEP_COST_CLASSES = 72, /* works of 1 to 2^32 tokens */
    STEP_COST_SINGLE = 16,
    STEP_COST_LAST = 7, /* times of a class that are kept */
    STEP_COST_EXPIRES = 512,
    STEP_COST_FRESH = 128,
    STEP_COST_ENOUGH = 3,  /* times for a median that no single one decides */
    STEP_COST_RATIOS = 64, /* steps under a limit whose predictions are compared */
};

struct step_cost {
    struct step_class {
        double work[STEP_COST_LAST], s[STEP_COST_LAST]; /* the last ones, as a ring */
        double mean_work, median_s;
        double usual_work, usual_s;
        uint64_t n, n_usual; /* steps that were added; since it was forgotten */
        uint64_t when;       /* the step that was added last */
        bool lasts;          /* it does not expire */
    } classes[STEP_COST_CLASSES];
    uint64_t n_steps;
    double ratios[STEP_COST_RATIOS]; /* times over predictions, as a ring */
    uint64_t n_ratios;
};

/* The work of n tokens from this depth on, in tokens at depth 0; attention at one
 * position costs as much as depth_cost tokens. */
double step_cost_work(double depth_cost, int n, int depth);

/* The most tokens from this depth on with that much work. */
int step_cost_tokens(double depth_cost, double work, int depth);

/* A step of this work, at least 1, took s seconds. Begin with zeros. */
void step_cost_add(struct step_cost *c, double work, double s);

/* Adds a step that was timed on purpose, whose class is not forgotten. */
void step_cost_add_timed(struct step_cost *c, double work, double s);

/* Adds a step that was to keep a limit. */
void step_cost_add_limited(struct step_cost *c, double work, double s);

/* What a step may be predicted to take, so that 19 of 20 steps keep limit_s: between
 * half of that and all of it; 0.9 of it until enough steps are known. */
double step_cost_aim_s(const struct step_cost *c, double limit_s);

/* The seconds that a step will take; 0: nothing is known. */
double step_cost_s(const struct step_cost *c, double work);

/* The seconds that steps of this work usually took. */
double step_cost_usual_s(const struct step_cost *c, double work);

/* Whether steps of this work are known by enough times, and one of the last
 * STEP_COST_FRESH steps. */
bool step_cost_is_fresh(const struct step_cost *c, double work);

/* The most work, up to `most`, that takes limit_s at most; 0: none does. `most` while
 * nothing is known. */
double step_cost_within(const struct step_cost *c, double limit_s, double most);

#endif
