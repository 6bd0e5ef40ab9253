/* SPDX-License-Identifier: MIT
 *
 * histories.c - change points, thresholds and baselines on invented histories
 */
#include <stdio.h>
#include <stdlib.h>

#include "research/baseline_sim.h"
#include "research/gate_simulate.h"
#include "research/history_sim.h"
#include "research/research.h"

#define SIM_HISTORIES 200

enum status research_histories(const struct research_options *o, struct err *err)
{
    struct sim_histories *s = malloc(sizeof *s);
    struct simulation traces = {0};
    const size_t n = o->n ? o->n : SIM_HISTORIES;
    enum status st = s ? sim_histories_run(s, n, o->seed ? o->seed : 1, err)
                       : err_set(err, ST_NO_MEMORY, "no memory for histories");

    if (st == ST_OK)
        st = simulation_read_traces(&traces, &o->traces, err);
    if (st == ST_OK) {
        printf("%zu histories of 60 to 150 runs, noise of 1 to 2 %%, %zu change "
               "points; an "
               "alarm within %d runs of one is true.\nUnder a kind of noise: precision "
               "/ recall, in percent.\n\n",
               s->n, s->all[0].n_changes, SIM_NEAR);
        sim_histories_print(stdout, s);
        st = sim_baselines_print(stdout, traces.trace, traces.n_traces, 5 * n,
                                 o->seed ? o->seed : 1, err);
    }
    simulation_free(&traces);
    free(s);
    return st;
}
