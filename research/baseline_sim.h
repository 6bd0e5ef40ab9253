/* SPDX-License-Identifier: MIT
 *
 * baseline_sim.h - gates against invented histories: how often they err, what they see
 *
 * A history of n runs without a change, cut at its change points as a real one is; then
 * BASELINE_FRESH new runs, slowed down or not. In sessions, half of the variance is
 * between sessions: each past run is one, and the new ones share one. Of a recorded
 * trace a run is the median of SIM_TURNS_OF_RUN turns: past ones begin anywhere, new
 * ones follow each other.
 *
 * Threading: pure functions.
 */
#ifndef SLM_RESEARCH_BASELINE_SIM_H
#define SLM_RESEARCH_BASELINE_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/decide/gate/gate_rule.h"
#include "research/gate_trace.h"
#include "research/history_sim.h"

#define SIM_MAX_PAST     60
#define SIM_TURNS_OF_RUN 10

struct sim_baseline {
    enum history_noise noise;
    bool sessions;
    bool apart; /* each new run is a session of its own, and judged so */
    double sigma;
    const struct gate_trace *trace; /* NULL: none; noise and sigma then do not count */
    size_t n_past;                  /* BASELINE_MIN_RUNS to SIM_MAX_PAST */
    double slowdown;                /* of the new runs: 0.05 */
};

struct sim_verdicts {
    size_t n_pass, n_fail, n; /* n: with those left open, or cut too short to judge */
};

/* n gates at the usual rule. Errors: ST_NO_MEMORY, ST_INTERRUPTED. */
enum status sim_baseline_run(struct sim_verdicts *v, const struct sim_baseline *b,
                             size_t n, uint64_t seed, struct err *err);

/* A Markdown table of all noises at 1 % and of all traces, n gates in each cell. Errors
 * as above. */
enum status sim_baselines_print(FILE *f, const struct gate_trace *traces,
                                size_t n_traces, size_t n, uint64_t seed,
                                struct err *err);

#endif
