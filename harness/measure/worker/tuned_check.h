/* SPDX-License-Identifier: MIT
 *
 * tuned_check.h - a profile of `bench tune` against the default, in a model that is
 * open
 *
 * Both run interleaved for a moment, sample by sample: a profile that is clearly
 * slower, for whatever reason, is not used.
 *
 * Threading: one thread, the one that opened the model.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_TUNED_CHECK_H
#define SLM_HARNESS_MEASURE_WORKER_TUNED_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/engine.h"

/* The phase that a choice is for, or is compared in. */
enum tune_phase { TUNE_DECODE, TUNE_PREFILL, TUNE_BOTH };

/* Seconds that it takes. */
#define TUNED_CHECK_S 2.0

/* One of the two ways to run an open model. */
struct tuned_side {
    int n_threads, n_threads_prefill;
    const int *cpus; /* [most threads of the model], or NULL: unpinned */
    struct slm_tuning tuning;
    uint64_t cache_bytes; /* of the default: as slm_measure_prefetch() takes it */
};

/* sides[0] is the default, whose prefetch is measured first, as it is without a
 * profile; sides[1] is the profile. Both decode tokens, evaluate a short prompt, or
 * both, for TUNED_CHECK_S, behind the positions that the model has. Its threads are on
 * side `placed` before; afterwards the model runs as the side that is to be used, with
 * the positions it had. *slower: the profile is not used, and note says so. Errors:
 * those of slm_tune(), slm_place() and slm_eval(). */
enum status tuned_check(struct slm *m, const struct tuned_side sides[2], int placed,
                        enum tune_phase phase, bool *slower, char *note, size_t cap,
                        struct err *err);

#endif
