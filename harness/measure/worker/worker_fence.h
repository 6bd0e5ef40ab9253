/* SPDX-License-Identifier: MIT
 *
 * worker_fence.h - a worker gives up what a model's files could abuse, before it opens
 * them
 *
 * Threading: the worker's main thread, before it starts another.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_WORKER_FENCE_H
#define SLM_HARNESS_MEASURE_WORKER_WORKER_FENCE_H

#include "harness/machine/fence/fence.h"
#include "harness/model/modelref.h"

/* From now on this process reads the model, the file `text` (may be NULL), what comes
 * with the program, and nothing else (fence.h). The first model is the only one: later
 * calls do nothing. Errors: fence_enter()'s, modelref_files()'s. */
enum status worker_fence(const struct modelref *model, const char *text,
                         struct err *err);

/* The fence of a process that accepts connections of a socket that listens. It reads
 * the model and the file `text` (may be NULL). */
enum status worker_fence_server(const struct modelref *model, const char *text,
                                int listener, struct err *err);

#endif
