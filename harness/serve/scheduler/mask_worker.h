/* SPDX-License-Identifier: MIT
 *
 * mask_worker.h - which tokens a grammar allows next, computed while the model runs
 *
 * The mask of a token depends on the token before it, which is known before the pass
 * that computes its logits begins. So a thread computes masks during the pass; what it
 * has not begun when the logits are there, who needs it computes himself.
 *
 * Threading: mask_worker_post() by one thread, while no job of the last post is
 * unfinished; mask_worker_finish() by any.
 */
#ifndef SLM_HARNESS_SERVE_SCHEDULER_MASK_WORKER_H
#define SLM_HARNESS_SERVE_SCHEDULER_MASK_WORKER_H

#include <stdint.h>

#include "engine/base/status.h"
#include "engine/grammar/grammar.h"

struct mask_job {
    struct grammar_state *state;
    uint32_t *mask; /* [GRAMMAR_MASK_WORDS(n_vocab)] */
    bool all;       /* grammar_state_mask()'s */
    enum { MASK_WAITS, MASK_BEGUN, MASK_DONE } stage; /* the worker's */
};

struct mask_worker;

/* Where no thread can be started it goes without. Error: ST_NO_MEMORY. */
enum status mask_worker_open(struct mask_worker **w, int max_jobs, struct err *err);
void mask_worker_close(struct mask_worker *w);

/* Jobs jobs[n], from the first on; each must be finished, and stays where it is until
 * the next post, which may be one of 0 jobs. */
void mask_worker_post(struct mask_worker *w, struct mask_job *const *jobs, int n);

/* After return the mask is there. */
void mask_worker_finish(struct mask_worker *w, struct mask_job *job);

#endif
