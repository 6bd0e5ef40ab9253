/* SPDX-License-Identifier: MIT
 *
 * count_work.h - a piece of work that is done an exact number of times, to have its
 * instructions counted
 *
 * Its name has all that its instructions depend on:
 *
 *   gemv/q4_K/avx2/rows:16/cols:512          a case as kernel_case.h has it, hot, of
 *   gemm/q4_K/avx2/rows:16/cols:512/n_x:8    one thread
 *   rmsnorm/avx2/n:512
 *   decode/nano:Q4_K_M                       a token of a synthetic model, one thread
 *
 * Opening it makes the first call, which is never like the others: libraries are bound
 * and pages touched. So those counted, inside count_work_run() alone, take the same
 * instructions in every process.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_COUNT_WORK_H
#define SLM_HARNESS_MEASURE_WORKER_COUNT_WORK_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define COUNT_MAX_CALLS 1000

struct count_work;

/* Errors: ST_USAGE (a name unlike those above, or sizes that it cannot have),
 * ST_UNSUPPORTED (no such kernel, or not on this CPU), ST_NO_MEMORY, and those of
 * shape_load() and slm_open(). */
enum status count_work_open(struct count_work **w, const char *name, struct err *err);

/* The name by which callgrind finds the function below. */
#define COUNT_WORK_FUNCTION "count_work_run"

/* Up to COUNT_MAX_CALLS over its life. Errors: those of slm_eval(). */
enum status count_work_run(struct count_work *w, size_t calls, struct err *err);

void count_work_close(struct count_work *w);

/* The instructions of `calls` calls, counted by the CPU, in user mode. Three times as
 * many are made, the first third separately, so that the cost of switching the counter
 * cancels. Errors: those of count_work_run(), and ST_UNSUPPORTED (no counter of
 * instructions, or no permission; with the reason). */
enum status count_work_pmu(struct count_work *w, size_t calls, uint64_t *instructions,
                           struct err *err);

#endif
