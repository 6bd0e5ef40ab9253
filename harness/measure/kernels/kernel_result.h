/* SPDX-License-Identifier: MIT
 *
 * kernel_result.h - a google-benchmark JSON file as rows with their repetitions
 *
 * The file may come from `bench kernels`, from bench_kernels or from any other
 * google-benchmark: what a row lacks (a counter, a name built as in kernel_case.h)
 * is missing and no error.
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_RESULT_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "engine/base/strtab.h"

struct kernel_result {
    char *name;
    size_t n;                  /* repetitions with a figure */
    double *ns;                /* [n] per call */
    double *gbps, *gops, *wps; /* [n]; NaN where the file has no such counter */
    double huge_share;         /* of a read roof: NaN where unknown */
    char error[200];           /* the first repetition that failed, "" if none did */
    bool interrupted;          /* repetitions are missing: the run was stopped */
};

struct kernel_results {
    char path[512];
    struct kernel_result *v; /* in the order of the file */
    size_t n, cap;
    struct strtab index; /* of their names */
    /* of the file's context; "": not known */
    char cpu_model[96], host[72], date[40], version[64], compiler[96], kernel[96];
    int n_cpus;
};

/* Errors: ST_IO, ST_INPUT (no google-benchmark JSON, aggregates only), ST_NO_MEMORY. */
enum status kernel_results_read(struct kernel_results *r, const char *path,
                                struct err *err);
void kernel_results_free(struct kernel_results *r);

/* NULL: no such result. */
const struct kernel_result *kernel_results_find(const struct kernel_results *r,
                                                const char *name);

#endif
