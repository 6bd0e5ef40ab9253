/* SPDX-License-Identifier: MIT
 *
 * packing.h - `bench pack`: a packed file made of a model, or verified
 *
 * Threading: one thread, which becomes the first of the pool that does the work.
 */
#ifndef SLM_HARNESS_MODEL_PACKING_H
#define SLM_HARNESS_MODEL_PACKING_H

#include <stdbool.h>

#include "engine/base/status.h"

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
