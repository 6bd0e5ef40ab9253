/* SPDX-License-Identifier: MIT
 *
 * gate_simulate.h - thousands of gates on invented and recorded machines, by our rule
 * and by other tools'
 *
 * A cell is one rule on one machine with one true slowdown, played as many times as
 * asked for. Each gate has a seed of its own, made from the cell and its number, so
 * that counts depend neither on the number of threads nor on which other cells there
 * are. Finished cells are lines of gate_simulation.csv: a run that is started again
 * plays what is missing.
 *
 * Threading: one thread; it starts others to play.
 */
#ifndef SLM_RESEARCH_GATE_SIMULATE_H
#define SLM_RESEARCH_GATE_SIMULATE_H

#include <stdio.h>

#include "harness/base/options.h"
#include "research/gate_sim.h"
#include "research/gate_trace.h"

#define SIM_OURS        RIVAL_N /* as a cell's rule: `bench gate` */
#define SIM_N_RULES     (RIVAL_N + 1)
#define SIM_RIVAL_TURNS 80   /* of each side: what our first interim analysis has */
#define SIM_ROUNDS      4    /* of a launch */
#define SIM_MANY        4    /* metrics of a gate that has several */
#define SIM_SIGMA       0.02 /* noise of a round, where there is no other */
#define SIM_DETECT      0.05 /* the slowdown that a gate has to find */

/* A machine is a noise below SIM_TRACE, or SIM_TRACE and the number of a trace. */
struct sim_cell {
    int rule; /* SIM_OURS, or an enum rival */
    size_t machine;
    double sigma, slowdown; /* 0.02, 0.05 */
    size_t n_metrics;
    size_t n_played, n_fail, n_pass; /* done where n_played is all gates */
    uint64_t n_launches;
};

struct simulation {
    struct gate_rule rule;
    size_t n_gates;
    uint64_t seed;
    int n_threads;
    struct gate_trace *trace; /* owned, as is cell */
    size_t n_traces;
    struct sim_cell *cell;
    size_t n_cells;
};

/* Add the files named, or those that come with bench where none is, to s->trace.
 * Errors: those of gate_trace_read(), ST_INPUT (two of one name). */
enum status simulation_read_traces(struct simulation *s, const struct str_list *traces,
                                   struct err *err);

/* All cells for s->trace, none played. The other fields are set. Error: ST_NO_MEMORY.
 */
enum status simulation_plan(struct simulation *s, struct err *err);

/* Plays what is not done; dir (may be NULL) keeps it. Errors: ST_IO, ST_NO_MEMORY,
 * ST_INTERRUPTED (what is done stays). */
enum status simulation_play(struct simulation *s, const char *dir, struct err *err);

void simulation_free(struct simulation *s);

/* ---- what was found -------------------------------------------------------------- */

size_t simulation_machines(const struct simulation *s);
const char *simulation_machine(const struct simulation *s, size_t machine);

/* Noise of a machine's rounds: sigma, or what its trace has. */
double simulation_sigma(const struct simulation *s, size_t machine, double sigma);

/* "gate", or rival_name() */
const char *simulation_rule(int rule);

/* The cell if it is done, or NULL. */
const struct sim_cell *simulation_find(const struct simulation *s, int rule,
                                       size_t machine, double sigma, double slowdown,
                                       size_t n_metrics);

/* True slowdowns that are played, ascending, 0 first; the margin is one of them. */
#define SIM_MAX_SLOWDOWNS 10
size_t simulation_slowdowns(const struct simulation *s, double v[SIM_MAX_SLOWDOWNS]);

/* Noises of rounds that are invented, ascending. */
extern const double simulation_sigmas[3];

/* Share of alarms. */
double sim_cell_rate(const struct sim_cell *c);

/* Tables as Markdown. */
void simulation_print(FILE *f, const struct simulation *s);

/* gate_power and gate_rivals in dir. Errors: those of chart_files.h. */
enum status simulation_charts(const struct simulation *s, const char *dir,
                              struct err *err);

#endif
