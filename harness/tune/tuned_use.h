/* SPDX-License-Identifier: MIT
 *
 * tuned_use.h - from `--tuned auto|FILE` to a model that runs with it, or with a reason
 * why not
 *
 * A profile is looked at twice. Before the model is opened its key is compared with
 * here and now. Once the model is loaded the profile and the default run by turns for a
 * moment: a profile that is clearly slower, for whatever reason, is not used.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_TUNE_TUNED_USE_H
#define SLM_HARNESS_TUNE_TUNED_USE_H

#include "harness/tune/tuned.h"

/* Seconds of the second look. */
#define TUNED_CHECK_S 2.0

enum tuned_state {
    TUNED_NOT,     /* nobody asked for a profile */
    TUNED_USED,    /* it fits */
    TUNED_MISSING, /* auto, and there is none for this machine and model */
    TUNED_STALE,   /* it does not fit any more */
    TUNED_SLOWER   /* it lost the second look */
};

const char *tuned_state_name(enum tuned_state state); /* "default", "tuned", ... */

/* asked: "auto" or a file. residency: of the command, WEIGHTS_AUTO where it leaves the
 * choice. With any state but TUNED_USED note has one sentence. Errors: as tuned_load()
 * and tuned_key_read(). */
enum status tuned_find(struct tuned *t, enum tuned_state *state, const char *asked,
                       const struct topology *topo, uint64_t mem_limit,
                       const struct modelref *model, enum weights_residency residency,
                       char *note, size_t cap, struct err *err);

/* One of the two ways to run an open model. */
struct tuned_side {
    int n_threads, n_threads_prefill;
    const int *cpus; /* [capacity of its pool], or NULL: unpinned */
    struct slm_tuning tuning;
};

/* The second look: sides[0] is the default, whose prefetch is measured first as it is
 * where no profile is used, sides[1] the profile. Tokens, a short
 * prompt, or both by turns for TUNED_CHECK_S, from positions that are free; the model
 * is left on the side that is to be used, with the positions it had, and was on side
 * `placed`. *slower: the profile is not, and note says so. Errors: of slm_tune(),
 * slm_place() and slm_eval(). */
enum status tuned_check(struct slm *m, const struct tuned_side sides[2], int placed,
                        enum tune_phase phase, bool *slower, char *note, size_t cap,
                        struct err *err);

#endif
