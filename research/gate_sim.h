/* SPDX-License-Identifier: MIT
 *
 * gate_sim.h - gates of invented machines: how often a rule is wrong, and what it sees
 *
 * A machine takes turns and says how long each took, as a logarithm. Its noise is
 * scaled so that a round of four turns (ABBA) has about the standard deviation asked
 * for where turns do not depend on each other; some noises have more besides, since it
 * cancels within a round.
 *
 * Threading: a machine belongs to one thread.
 */
#ifndef SLM_RESEARCH_GATE_SIM_H
#define SLM_RESEARCH_GATE_SIM_H

#include "harness/decide/gate/gate_rule.h"
#include "research/gate_rivals.h"

enum sim_noise {
    SIM_GAUSSIAN,
    SIM_HEAVY,     /* Student's t with three degrees of freedom */
    SIM_AR1,       /* each turn remembers nine tenths of the last one's noise */
    SIM_FREQUENCY, /* a CPU of two frequencies, 6 % apart */
    SIM_LAUNCH,    /* each launch has an offset of its own */
    SIM_BURSTS,    /* stretches in which the CPU is stolen */
    SIM_DRIFT,     /* 10 % over 100 turns, and a wave */
    SIM_TRACE,     /* turns recorded on a real machine, from a random one on */
    SIM_N_NOISES
};

const char *sim_noise_name(enum sim_noise noise);

/* Logarithms of the times of turns that were recorded one after the other. */
struct sim_trace {
    const double *log_time; /* [n], borrowed */
    size_t n;
};

struct sim_machine {
    enum sim_noise noise;
    double sigma;
    const struct sim_trace *trace;
    uint64_t random;
    size_t n_turns, trace_at;
    double memory, offset[2];
    bool fast;
    int burst;        /* turns left */
    double burst_log; /* what they take longer */
};

/* trace is for SIM_TRACE, of at least 8 turns. */
void sim_machine_start(struct sim_machine *m, enum sim_noise noise, double sigma,
                       const struct sim_trace *trace, uint64_t seed);

/* New processes on both sides. */
void sim_machine_launch(struct sim_machine *m);

/* Logarithm of the time of side 0's (A) or 1's (B) next turn. */
double sim_machine_turn(struct sim_machine *m, int side);

struct sim_gate {
    struct gate_rule rule;
    size_t n_metrics; /* each with noise of its own */
    size_t rounds_per_launch;
    size_t max_launches; /* the budget; at most GATE_MAX_LAUNCHES */
    double slowdown;     /* of B in the first metric: 0.05 */
};

/* Plays one gate; *n_launches (may be NULL) is how long it took. Error:
 * ST_NO_MEMORY. */
enum status sim_gate_play(enum gate_verdict *verdict, size_t *n_launches,
                          const struct sim_gate *g, enum sim_noise noise, double sigma,
                          const struct sim_trace *trace, uint64_t seed,
                          struct err *err);

/* The same machine judged by another tool's rule, n turns of A, then n of B (at most
 * 128): is there an alarm? */
bool sim_rival_play(enum rival rival, size_t n, double slowdown, enum sim_noise noise,
                    double sigma, const struct sim_trace *trace, uint64_t seed);

#endif
