/* SPDX-License-Identifier: MIT
 *
 * model_fence.h - the fence of a command that runs a model in its own process, and the
 * one io_uring that a process behind a fence has
 *
 * Streamed weights are read through an io_uring, which goes round a filter of system
 * calls. So a process that is going to run a model makes one that can only read
 * (stream_ring.h) before its fence, and none afterwards.
 *
 * Threading: the main thread, before it starts another.
 */
#ifndef SLM_HARNESS_MODEL_MODEL_FENCE_H
#define SLM_HARNESS_MODEL_MODEL_FENCE_H

#include "engine/weights/stream_ring.h"

/* This process's ring, made by the first call, for slm_params.ring; it is open until
 * the process ends. NULL: there is no io_uring here, and threads read. */
struct stream_ring *model_ring(void);

/* Its descriptor; -1: none. */
int model_ring_fd(void);

/* fence_enter_calls() with that ring. Errors: the same. */
enum status model_fence_enter(struct err *err);

#endif
