/* SPDX-License-Identifier: MIT
 *
 * kernel_run.h - bench_kernels as a child that measures a plan
 *
 * Threading: one thread, one run at a time.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_RUN_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_RUN_H

#include "harness/measure/kernels/kernel_plan.h"

struct kernel_run_params {
    const struct kernel_plan *plan;
    int n_repetitions; /* of every case, in random order */
    double min_time_s; /* of one repetition */
    const char *placement;
};

/* Whether bench_kernels is there. Error: ST_UNSUPPORTED (the way out). */
enum status kernel_run_check(struct err *err);

/* Run the plan's cases; json_fd, an empty regular file, receives google-benchmark's
 * JSON. Shows progress, and on interrupted() lets the child write the finished rows:
 * the file is there then, too. Errors: ST_UNSUPPORTED (no bench_kernels; the way out),
 * ST_IO (it failed; its own words), ST_INTERRUPTED. */
enum status kernel_run(const struct kernel_run_params *p, int json_fd, struct err *err);

#endif
