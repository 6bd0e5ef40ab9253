/* SPDX-License-Identifier: MIT
 *
 * memory_relief.h - a model that gives memory back while it runs, when it is lacking
 *
 * Somebody else takes memory, or the limit is lowered. Before each evaluation, a few
 * times a second, the signs of it are looked at:
 *   - less than MEMORY_WATCH_LOW is left under a limit of the groups around us, or is
 *     available on the machine;
 *   - more is used than a limit allows that was lowered;
 *   - tasks of our group wait for memory in a notable part of the time (PSI). Where the
 *     kernel counts only those of the whole machine, they may wait for the limit of
 *     another group, where nothing of ours would help: that counts if little is left on
 *     the machine, or if we read pages again ourselves (major faults). Where there is
 *     no PSI: pages are read again that were evicted (refaults).
 * What is lacking is taken from the weights: layers that were kept are streamed from
 * then on, or fewer experts cached (slm_reclaim()). A model whose weights cannot be
 * streamed, or with nothing left to give, stays as it is.
 *
 * Threading: the thread that evaluates the model.
 */
#ifndef SLM_HARNESS_MODEL_MEMORY_RELIEF_H
#define SLM_HARNESS_MODEL_MEMORY_RELIEF_H

#include <stdint.h>

#include "engine/engine.h"
#include "harness/machine/sandbox/cgroup.h"

/* Bytes. What is lacking is counted up to MEMORY_WATCH_ENOUGH, so that not every token
 * gives a little back; models are opened with more than that left (memory_reserve.h).
 */
#define MEMORY_WATCH_LOW    (UINT64_C(16) << 20)
#define MEMORY_WATCH_ENOUGH (UINT64_C(48) << 20)

/* What is given back where tasks wait for memory and none seems to lack, every two
 * seconds at most: that it helps takes a while to be seen. */
#define MEMORY_WATCH_STEP (UINT64_C(64) << 20)

struct memory_watch {
    const char *root; /* "" or the top of a recorded tree */
    struct cgroup_place group;
    uint64_t last_ns, step_ns; /* when it was last looked; when a step was last taken */
    uint64_t pressure_ns, n_refaults, n_faults; /* then */
};

/* Begin: what happened before does not count. root must outlive *w. */
void memory_watch_begin(struct memory_watch *w, const char *root, uint64_t now_ns);

/* Bytes that should be given back; 0: none, or it was looked at less than a quarter of
 * a second ago. */
uint64_t memory_watch_lacking(struct memory_watch *w, uint64_t now_ns);

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
