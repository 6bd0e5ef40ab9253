/* SPDX-License-Identifier: MIT
 *
 * gate_run.h - two programs measured interleaved, launch after launch
 *
 * A launch is a pair of fresh processes, each with its own address-space layout; only
 * one of the two runs at a time, the other sleeps until its next request. The launch
 * begins with
 * a turn of both that does not count; then come its rounds. A round that was disturbed
 * (noise_disturbed(): by what happened during any of its four turns, never by
 * the time they took) is left out and played again; a launch repeats as many rounds as
 * it has, and then counts what there is. Long turns are played again by themselves,
 * each as soon as nobody else computes. Where more than half of all rounds are
 * disturbed, the machine is always disturbed, and none is repeated any more.
 *
 * What the sides are, builds of bench or other programs, is a table of functions:
 * gate_sides.h. Programs that stay for a turn alone have launches of one round of each
 * step, and each turn starts its program.
 *
 * Every round goes into rounds.csv at once, in whole lines, whether it counts or not.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_RUN_H
#define SLM_HARNESS_DECIDE_GATE_GATE_RUN_H

#include "harness/stats/stats.h"
#include "harness/base/progress.h"
#include "harness/decide/gate/gate_plan.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/measure/worker/worker_open.h"

#define GATE_ROUNDS_NAME "rounds.csv"
#define GATE_ROUNDS_HEADER \
    "launch,round,order,counted,metric,unit,t1,t2,t3,t4,log_ratio,note\n"

/* Values of one metric on both sides, in the metric's unit. */
struct gate_values {
    double v[2][GATE_MAX_LAUNCHES * GATE_MAX_ROUNDS * 2];
    size_t n[2];
};

/* What a launch of one side was charged; 0: not known. */
struct gate_charge {
    uint64_t peak_bytes;
    double load_s;
};

struct gate_sides;

struct gate_run {
    const struct gate_settings *s;
    const struct gate_sides *sides; /* what both are: gate_sides.h */
    void *own;                      /* of that kind; malloc'ed */
    struct topology *topo;
    struct gate_result *r; /* its metrics' series grow */
    const char *program[2];
    struct gate_plan plan;
    struct worker_open open[2]; /* of A and B */
    struct gate_charge charge[2];
    struct sandbox *sandbox;
    struct gate_values *values; /* [GATE_MAX_METRICS] */
    struct disturbances troubles;
    size_t n_played; /* rounds, disturbed ones, too */
    /* Waits until nobody else computes; false: in vain. */
    bool (*calm)(struct gate_run *run);
    size_t n_restless; /* waits in vain, in a row */
    int csv;           /* rounds.csv; -1: none */
    uint64_t random, begin_ns;
    struct gate_timing timing;        /* from which the plan was made */
    double launches_s, next_launch_s; /* all so far; the next, as expected */
    double launch_begin_s;            /* of this one */
    struct progress progress;
    char doing[64];
};

/* Programs, model, sandbox, plan. *run is zeroed before, and for gate_run_close() in
 * any case; run->r gets the names and versions of both sides. Errors: what keeps it
 * from starting; ST_INTERRUPTED. */
enum status gate_run_open(struct gate_run *run, const struct gate_settings *s,
                          struct topology *topo, const char *const program[2],
                          struct gate_result *r, struct err *err);

/* One more launch with its rounds, into the metrics' series. Errors: those of
 * model_worker_sample(), ST_IO (rounds.csv). After an error the launch's rounds so far
 * stay. */
enum status gate_run_launch(struct gate_run *run, struct err *err);

/* Does the budget hold one more launch like those so far? */
bool gate_run_has_time(const struct gate_run *run);

/* Into the result: medians of both sides, rounds left out and why, seconds. */
void gate_run_sum_up(struct gate_run *run);

void gate_run_close(struct gate_run *run);

/* ---- inside: what kinds of sides use --------------------------------------------- */

/* Seconds since the gate began, and its line of progress; what: NULL, or what a side
 * does, and the share of it that is done. */
double gate_run_seconds(const struct gate_run *run);
void gate_run_tick(struct gate_run *run, const char *what, double fraction);

/* Both sides begin a launch, in random order. Errors: those of a side. */
enum status gate_run_start_both(struct gate_run *run, struct err *err);

/* ---- inside (gate_prepare.c) ----------------------------------------------------- */

/* What each side opens; the model files, with room for both. Errors:
 * placement_cpus()'s, those of the model, ST_NO_MEMORY (too little room). */
enum status gate_run_prepare(struct gate_run *run, struct err *err);

/* ---- inside (gate_rounds.c) ------------------------------------------------------ */

/* rounds.csv in a directory that is there. Error: ST_IO. */
enum status gate_rounds_open(int *fd, const char *dir, struct err *err);

/* One round, or with n_values 2 what was measured once for each side of a launch. */
struct gate_round_line {
    size_t launch, round; /* from 1 on; round 0: the whole launch */
    const char *order;    /* "ABBA" */
    bool counted;
    const double *value[GATE_MAX_METRICS]; /* [n_values], in the order of turns; NULL:
                                              not measured */
    int n_values;
    double log_ratio[GATE_MAX_METRICS];
    const char *note; /* what disturbed it */
};

/* The lines of all metrics, in one write. Error: ST_IO. */
enum status gate_rounds_write(int fd, const struct gate_round_line *line,
                              const struct gate_metric *metric, size_t n_metrics,
                              struct err *err);

#endif
