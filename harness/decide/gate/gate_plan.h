/* SPDX-License-Identifier: MIT
 *
 * gate_plan.h - how a gate of two programs spends its budget
 *
 * Steps follow from the settings. How many samples a turn takes of each, and how many
 * rounds a launch has, follow from a first timing: the budget should hold 40 launches;
 * where turns are as short as they may be and it does not hold half of these, steps
 * have fewer rounds, always the one that takes the longest, down to one of each.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_PLAN_H
#define SLM_HARNESS_DECIDE_GATE_GATE_PLAN_H

#include "harness/decide/gate/gate_result.h"
#include "harness/decide/gate/gate_settings.h"
#include "harness/measure/worker/worker_open.h"

struct gate_plan {
    struct worker_step step[WORKER_MAX_STEPS];
    int n_steps;
    int n_samples[WORKER_MAX_STEPS]; /* of a turn that counts */
    int n_passes[WORKER_MAX_STEPS]; /* ABBA so often, each with its part of the samples:
                                     one sample where these are long, else once all */
    size_t n_rounds[WORKER_MAX_STEPS]; /* of a launch */
    size_t max_launches;
    double round_s[WORKER_MAX_STEPS]; /* expected: a step's part of a round; */
    double launch_s;                  /* one launch with all of it */
    double need_s;                    /* least budget that would do */
};

/* What a first launch took. */
struct gate_timing {
    double launch_s; /* starting both, their warming turns, ending them */
    double sample_s[WORKER_MAX_STEPS];
    double asking_s[WORKER_MAX_STEPS]; /* of a turn, in addition to its samples; 0: the
                                          little that a worker takes */
    bool is_undivided; /* samples of a turn are one request, even if they are long */
};

/* Steps of the settings; the rest of *p is zeroed. Error: ST_USAGE (none at all, or
 * more than a gate can judge). */
enum status gate_plan_steps(struct gate_plan *p, const struct gate_settings *s,
                            struct err *err);

/* The rest, for left_s seconds. Error: ST_USAGE (far too short for this model, with
 * what would do). A budget that is a little too short is accepted: the machine may
 * become quieter. */
enum status gate_plan_fit(struct gate_plan *p, const struct gate_settings *s,
                          const struct gate_timing *t, double left_s, struct err *err);

/* Where each turn starts its program: how long it may measure, so that the budget
 * holds the launches that a gate wants; and the plan, given what whole turns took: a
 * launch is one round of each step. Error: as gate_plan_fit(). */
double gate_plan_turn_s(const struct gate_plan *p, const struct gate_settings *s);
enum status gate_plan_fixed(struct gate_plan *p, const struct gate_settings *s,
                            const double *turn_s, double left_s, struct err *err);

/* If everything takes `slower` times what is in *t, which is updated: shorter turns and
 * fewer rounds, until left_s holds the launches, as far as possible. */
void gate_plan_shorten(struct gate_plan *p, struct gate_timing *t, double slower,
                       double left_s, size_t wanted);

/* Rounds of a launch: those of the step that has the most. */
size_t gate_plan_rounds(const struct gate_plan *p);

/* Metrics: one for each step, peak memory, load time. */
size_t gate_plan_n_metrics(const struct gate_plan *p, const struct gate_settings *s);

/* The fewest launches after which n_metrics metrics can fail: all launches agree. */
size_t gate_plan_fewest(const struct gate_rule *rule, size_t n_metrics);

/* Name, unit, sense and margin of metric i. */
void gate_plan_metric(const struct gate_plan *p, const struct gate_settings *s,
                      size_t i, struct gate_metric *m);

/* The value in the metric's unit of a step's sample time. */
double gate_plan_speed(const struct gate_settings *s, const struct worker_step *step,
                       double seconds);

#endif
