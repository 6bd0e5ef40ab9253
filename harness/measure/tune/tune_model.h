/* SPDX-License-Identifier: MIT
 *
 * tune_model.h - a real model as the machine that tune_run() measures on
 *
 * It is measured in this process (harness/measure/worker/measured.h): candidates
 * alternate sample by sample, and a token of a small model takes less time than a
 * request to another process, in which the model's threads would fall asleep.
 *
 * Threading: one thread, the one that opened it.
 */
#ifndef SLM_HARNESS_MEASURE_TUNE_TUNE_MODEL_H
#define SLM_HARNESS_MEASURE_TUNE_TUNE_MODEL_H

#include "engine/base/status.h"
#include "engine/engine.h"
#include "harness/machine/topology.h"
#include "harness/model/modelref.h"
#include "harness/rows/settings/model_setup.h"
#include "harness/measure/tune/tune.h"

struct tune_model_params {
    struct model_setup setup; /* model, whose file is there unless in memory; residency,
                                 auto: to be chosen; memory limit; seed */
    int depth;                /* context that decoding is measured at */
};

struct tune_model;

/* Nothing is read yet. Fills in what may be chosen from and the default. topo must
 * outlive it. Shows progress; where stderr is no terminal, by a line per step. Errors:
 * gguf_open()'s;
 * ST_NO_MEMORY (it does not fit, and then the disk decides about its speed). */
enum status tune_model_open(struct tune_model **t, const struct tune_model_params *p,
                            const struct topology *topo, struct tune_space *space,
                            struct tune_setup *base, struct err *err);
void tune_model_close(struct tune_model *t);

struct tune_machine tune_model_machine(struct tune_model *t);

/* Run a model with a setup from its next evaluation on: threads, choices, and, where
 * *placed (updated) is another one, its place. */
enum status tune_apply(struct slm *m, const struct tune_setup *s,
                       const struct topology *topo, enum placement *placed,
                       struct err *err);

#endif
