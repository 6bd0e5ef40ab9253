/* SPDX-License-Identifier: MIT
 *
 * history_measure.h - measure the stored points of a model again
 *
 * Every point that the history has of this machine and the model is measured o->runs
 * times, each in a process of its own, all points in random order before any again. The
 * rows go into a directory as `bench sweep` makes it, so that they can be recorded.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_HISTORY_MEASURE_H
#define SLM_HARNESS_DECIDE_HISTORY_HISTORY_MEASURE_H

#include "harness/decide/history/history_options.h"
#include "harness/decide/history/series.h"

#define HISTORY_MEASURE_RUNS 3

/* Into o->out or a directory of its own, whose name goes to r->dir. Errors:
 * ST_UNSUPPORTED (the history has nothing of this machine and model; with what
 * differs), ST_INTERRUPTED, those of point_run() and sweep_dir_create(). */
enum status history_measure(const struct result_set *old,
                            const struct series_choice *choice,
                            const struct history_options *o, struct gate_result *r,
                            struct err *err);

#endif
