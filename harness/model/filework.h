/* SPDX-License-Identifier: MIT
 *
 * filework.h - what commands share that read a model and write another file of it: the
 * threads that work, and the line that shows how far they are
 *
 * Threading: one thread, which becomes the first of the pool.
 */
#ifndef SLM_HARNESS_MODEL_FILEWORK_H
#define SLM_HARNESS_MODEL_FILEWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/base/thread_pool.h"

/* n_threads 0: as many as `bench topo` recommends. Errors: those of topology_read() and
 * thread_pool_start(). */
enum status filework_pool(struct thread_pool **pool, int n_threads, struct err *err);

/* A gguf_save_progress_fn; bar is a struct progress that has begun. Stops when
 * interrupted(). */
bool filework_progress(void *bar, uint64_t done, uint64_t total);

#endif
