/* SPDX-License-Identifier: MIT
 *
 * kernel_plan.h - the cases to run and to skip for a request
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_PLAN_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_PLAN_H

#include "harness/base/options.h"
#include "harness/measure/kernels/kernel_case.h"
#include "harness/machine/topology.h"

struct kernel_wish {
    const char *formats; /* "q4_K,q8_0"; NULL: all */
    const char *ops;     /* "gemv,rmsnorm", "all"; NULL: all products */
    const char *isa;     /* "avx2,avx512vnni"; NULL: the best that is usable here */
    bool all_isa;
    const char *weights;     /* "hot", "cold"; NULL: both */
    struct int_list columns; /* of gemm; empty: 512 */
    const char *prefetch;    /* "T0-4096,off", "all"; NULL: as it is without tuning */
    struct int_list panels;  /* with prefetch, interleaved; empty: 1, 2 and 4 */
    struct int_list threads; /* of cold products; empty: 1, and for gemv what the
                                machine allows */
};

/* A requested case that cannot run here. */
struct kernel_skip {
    struct kernel_case c;
    char reason[128];
};

struct kernel_plan {
    struct kernel_case *run; /* in the registry's order, the roofs they need last */
    size_t n_run, n_roofs;   /* of n_run, n_roofs are roofs */
    struct kernel_skip *skip;
    size_t n_skip;
    int threads[TOPO_MAX_CPUS]; /* every count that occurs */
    int n_threads;
};

/* Errors: ST_USAGE (an unknown word; the nearest known one), ST_UNSUPPORTED (nothing
 * of it can run here; why), ST_NO_MEMORY. */
enum status kernel_plan_make(struct kernel_plan *plan, const struct kernel_wish *wish,
                             const struct topology *topo, struct err *err);
void kernel_plan_free(struct kernel_plan *plan);

/* ---- bench_kernels as a child that measures a plan ------------------------------- */

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
