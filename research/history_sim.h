/* SPDX-License-Identifier: MIT
 *
 * history_sim.h - invented histories whose change points are known, and who finds them
 *
 * A history is 60 to 150 runs of a benchmark. It has 0 to 3 change points, at least 10
 * runs from each other and from the ends, each a step of 1 to 10 % up or down; around
 * the steps is noise of 1 to 2 %. An alarm is true if it lies within SIM_NEAR runs of a
 * change point; of several alarms near one change point all are true, and the change
 * point is found once.
 *
 * Threading: pure functions.
 */
#ifndef SLM_RESEARCH_HISTORY_SIM_H
#define SLM_RESEARCH_HISTORY_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/status.h"

#define SIM_NEAR        5
#define SIM_MAX_RUNS    150
#define SIM_MAX_CHANGES 3
#define SIM_N_BANDS     3 /* steps of 1 to 2 %, 2 to 5 %, 5 to 10 % */

enum history_noise {
    HISTORY_GAUSSIAN,
    HISTORY_HEAVY,    /* Student's t with 3 degrees of freedom */
    HISTORY_OUTLIERS, /* besides, one run in 20 is 5 to 25 % slower */
    HISTORY_TWO,      /* two kinds of runner, 3 % apart, in random order */
    HISTORY_N_NOISES
};

struct sim_history {
    double v[SIM_MAX_RUNS]; /* tok/s */
    size_t n;
    size_t at[SIM_MAX_CHANGES];   /* first run after a change point, ascending */
    double size[SIM_MAX_CHANGES]; /* 0.03: 3 %, of either sign */
    size_t n_changes;
};

const char *history_noise_name(enum history_noise noise);

/* What is added to the logarithm of one run's speed; sigma is the standard deviation
 * but for outliers and the two runners' difference. */
double sim_history_noise(enum history_noise noise, double sigma, uint64_t *random);

void sim_history_make(struct sim_history *h, enum history_noise noise, size_t n_changes,
                      uint64_t seed);

/* Runs that differ by more than `threshold` (0.05) from the one before them (n_mean 1),
 * or from the mean of n_mean: the rule of most dashboards. Into at[SIM_MAX_RUNS];
 * returns how many. */
size_t sim_threshold_alarms(size_t *at, const double *v, size_t n, double threshold,
                            size_t n_mean);

struct sim_score {
    size_t n_changes, n_found;
    size_t n_alarms, n_true;
    size_t band_changes[SIM_N_BANDS], band_found[SIM_N_BANDS];
    size_t n_runs;
    size_t n_quiet,
        n_quiet_alarmed; /* histories without a change point; with an alarm */
};

void sim_score_add(struct sim_score *s, const struct sim_history *h, const size_t *at,
                   size_t n_alarms);

/* Share of alarms that are true (1 where there is none), and of change points found. */
double sim_precision(const struct sim_score *s);
double sim_recall(const struct sim_score *s);

/* Ours first, then thresholds. */
#define SIM_N_FINDERS 9
const char *sim_finder_name(size_t i);

struct sim_histories {
    struct sim_score all[SIM_N_FINDERS];
    struct sim_score of[HISTORY_N_NOISES][SIM_N_FINDERS];
    size_t n;
};

/* n histories, the kinds of noise and the numbers of change points in turn. Errors:
 * ST_NO_MEMORY, ST_INTERRUPTED. */
enum status sim_histories_run(struct sim_histories *s, size_t n, uint64_t seed,
                              struct err *err);

/* As a Markdown table. */
void sim_histories_print(FILE *f, const struct sim_histories *s);

#endif
