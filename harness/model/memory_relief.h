/* SPDX-License-Identifier: MIT
 *
 * memory_relief.h - a model that gives memory back while it runs, when it is lacking
 *
 * Before each evaluation the signs are looked at (memory_watch.h). What is lacking is
 * taken from the weights: layers that were kept are streamed from then on, or fewer
 * experts cached (slm_reclaim()). A model whose weights cannot be streamed, or with
 * nothing left to give, stays as it is.
 *
 * Threading: the thread that evaluates the model.
 */
#ifndef SLM_HARNESS_MODEL_MEMORY_RELIEF_H
#define SLM_HARNESS_MODEL_MEMORY_RELIEF_H

#include <stdint.h>

#include "engine/engine.h"
#include "harness/model/memory_watch.h"

struct memory_relief {
    struct memory_watch watch;
    struct slm *m;
    uint64_t bytes; /* given back so far */
    int n;          /* times */
    bool at_end;    /* nothing more can be given back */
    void (*tell)(void *arg,
                 const struct memory_relief *r); /* after each; may be NULL */
    void *arg;
};

/* Watch m from now on, until it is closed or memory_relief_end(); *r must stay where it
 * is. Weights that are mapped, or in the caller's memory, are not watched. */
void memory_relief_begin(struct memory_relief *r, struct slm *m);
void memory_relief_end(struct memory_relief *r);

#endif
