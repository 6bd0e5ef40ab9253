/* SPDX-License-Identifier: MIT
 *
 * filework.h - commands that read a model and write another file of it, quantised or
 * packed; the threads that work, and the line that shows how far they are
 *
 * Threading: one thread, which becomes the first of the pool.
 */
#ifndef SLM_HARNESS_MODEL_FILEWORK_H
#define SLM_HARNESS_MODEL_FILEWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/quantize/requant.h"

/* n_threads 0: as many as `bench topo` recommends. Errors: those of topology_read() and
 * thread_pool_start(). */
enum status filework_pool(struct thread_pool **pool, int n_threads, struct err *err);

/* A gguf_save_progress_fn; bar is a struct progress that has begun. Stops when
 * interrupted(). */
bool filework_progress(void *bar, uint64_t done, uint64_t total);

/* ---- quantising ------------------------------------------------------------------ */

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

/* On standard error, what a user may not expect: weights that were quantised before,
 * formats that want importances, matrices without any, rows that a block does not
 * divide, files that other engines refuse or read otherwise. */
void quantize_remark(const struct gguf *from, const struct gguf *made,
                     const struct requant_params *p);

/* Every tensor: types and bytes. */
void quantize_print_plan(const struct gguf *from, const struct gguf *made);

/* Size, time and a line per format; out NULL: nothing was written. With p->measures
 * their errors. */
void quantize_print_result(const char *out, const struct gguf *from,
                           const struct gguf *made, const struct requant_params *p,
                           double seconds);

/* ---- packing --------------------------------------------------------------------- */

struct packing_job {
    const char *model;     /* as modelref.h; with out NULL the packed file to verify */
    const char *out;       /* NULL: only verify */
    const char *cache_dir; /* of synthetic models; NULL: the usual one */
    bool verify;
    int n_threads; /* 0: the machine's default */
};

/* The work with a progress line, its results (standard output). Errors: those of
 * modelref.h, pack_write() and pack_verify(). */
enum status packing_run(const struct packing_job *job, struct err *err);

#endif
