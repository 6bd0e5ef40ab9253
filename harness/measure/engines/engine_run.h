/* SPDX-License-Identifier: MIT
 *
 * engine_run.h - measure a point with another program
 *
 * Model of the world: the same sandbox, CPUs, eviction of the model's file and ceiling
 * as for a point of this program (harness/rows/point/point.h). The worker reports
 * what the model needs and probes the ceiling before and after; in between the other
 * program runs in the same memory group, as a child of this process, and sleeps nobody
 * else. It is not behind the fence: it is trusted as far as who named it trusts it. Its
 * output is not.
 *
 * Samples are its repetitions, each as the mean time of a token (decode) or a pass
 * (prefill). Whatever becomes of the program - it is missing, fails, hangs, is killed
 * for memory, prints something else - is a row with that reason.
 *
 * Threading: one point at a time.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_ENGINE_RUN_H
#define SLM_HARNESS_MEASURE_ENGINES_ENGINE_RUN_H

#include <stdbool.h>

#include "harness/measure/point/point_measure.h"
#include "engine/base/status.h"

/* point_run(), by the program of p->engine. Errors: also ST_USAGE (no such text of an
 * engine, a setting that only this program has, a model that is no single file of
 * GGUF). */
enum status engine_run(const struct point *p, const struct topology *topo,
                       struct row *row, struct point_samples *samples,
                       point_progress_fn *progress, void *arg, struct err *err);

/* Whether another program can be given this model. Error: ST_USAGE (why not). */
enum status engine_check_model(const struct modelref *model, struct err *err);

/* Whether p has only settings that another program knows. Error: ST_USAGE. */
enum status engine_check_point(const struct point *p, struct err *err);

/* text: as engine_parse() takes it. Its program is there and can be run. One without
 * {model} is started, where start_it, for its --help, which shows whether it is
 * llama-bench or llama-server. Errors: engine_parse()'s, engine_find()'s, ST_INPUT (it
 * is neither, or does not end), ST_INTERRUPTED. */
enum status engine_check(const char *text, bool start_it, struct err *err);

#endif
