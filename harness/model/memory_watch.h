/* SPDX-License-Identifier: MIT
 *
 * memory_watch.h - how much memory is lacking while a model runs
 *
 * Somebody else takes memory, or the limit is lowered. Signs of it, looked at a few
 * times a second:
 *   - less than MEMORY_WATCH_LOW is left under a limit of the groups around us, or is
 *     available on the machine;
 *   - more is used than a limit allows that was lowered;
 *   - tasks of our group wait for memory in a notable part of the time (PSI). Where the
 *     kernel counts only those of the whole machine, they may wait for the limit of
 *     another group, where nothing of ours would help: that counts if little is left on
 *     the machine, or if we read pages again ourselves (major faults). Where there is
 * no PSI: pages are read again that were evicted (refaults).
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MODEL_MEMORY_WATCH_H
#define SLM_HARNESS_MODEL_MEMORY_WATCH_H

#include <stdint.h>

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

#endif
