/* SPDX-License-Identifier: MIT
 *
 * gate_engine.h - a gate's sides that are other programs, or servers
 *
 * A side is a command as `--engine` takes it (harness/measure/engines/engine.h), its
 * NAME= left out if need be: llama-bench, llama-server, a template that prints its
 * figure, a server. Each turn is a point that engine_run() measures: the program is
 * started, and its samples' lower quartile is the turn's time. What disturbed the point
 * disturbed the round. Peak memory is judged as of two builds; the time to load is not,
 * as only servers have one.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_ENGINE_H
#define SLM_HARNESS_DECIDE_GATE_GATE_ENGINE_H

#include "harness/decide/gate/gate_run.h"

/* Whether run->program[] are commands of other programs, which sets run->of_engines and
 * run->engines; run->s then are settings without what these do not have. Errors:
 * ST_USAGE (one of each kind; a setting that only slmbench has), engine_parse()'s. */
enum status gate_engines_open(struct gate_run *run, struct err *err);

/* A first turn of each step and side, which reads the model into memory; the plan is
 * made from their times. Errors: gate_plan_fixed()'s, gate_engines_turn()'s. */
enum status gate_engines_pilot(struct gate_run *run, struct err *err);

/* Seconds of a token, or of a pass over a prompt. why, which has cap bytes, gets what
 * disturbed it, if it is empty. Errors: ST_INPUT (the program gave no figure, and why),
 * ST_INTERRUPTED. */
enum status gate_engines_turn(struct gate_run *run, int side, int step, double *seconds,
                              char *why, size_t cap, struct err *err);

void gate_engines_close(struct gate_run *run);

#endif
