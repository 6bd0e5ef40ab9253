/* SPDX-License-Identifier: MIT
 *
 * quantize.h - a model file in another quantisation: plan, work and result
 *
 * Threading: one thread, which becomes the first of the pool that does the work.
 */
#ifndef SLM_HARNESS_MODEL_QUANTIZE_H
#define SLM_HARNESS_MODEL_QUANTIZE_H

#include <stdbool.h>

#include "engine/quantize/requant.h"

struct quantize_job {
    const char *in, *out;     /* out NULL with dry_run */
    const char *type;         /* a mix, or with `pure` a format: "Q4_K_M", "q4_K" */
    const char *imatrix;      /* a file; NULL: none */
    const char *const *rules; /* "PATTERN=TYPE" */
    size_t n_rules;
    bool pure, keep_output;
    bool dry_run;  /* print what would be done */
    bool rmse;     /* measure the error of every format */
    int n_threads; /* 0: the machine's default */
};

/* Plan, remarks (standard error), work with a progress line, result (standard output).
 * Errors: ST_USAGE, those of modelfile_open(), imatrix_read(), requant_open(),
 * thread_pool_start() and gguf_save(). */
enum status quantize_run(const struct quantize_job *job, struct err *err);

#endif
