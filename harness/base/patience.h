/* SPDX-License-Identifier: MIT
 *
 * patience.h - how long something has been waited for, by who looks again and again
 *
 * Who is stopped while it waits (Ctrl-Z, a frozen container, a debugger) has mostly
 * been stopped together with what it waits for. That time is no silence: between two
 * looks PATIENCE_GAP_S count at most.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_BASE_PATIENCE_H
#define SLM_HARNESS_BASE_PATIENCE_H

#include "engine/base/clock.h"

#define PATIENCE_GAP_S 1.0 /* looks are 0.2 s apart */

struct patience {
    uint64_t looked_ns;
    double waited_s;
};

static inline struct patience patience_begin(uint64_t now_ns)
{
    return (struct patience){.looked_ns = now_ns};
}

/* Seconds that were waited until now. */
static inline double patience_look(struct patience *p, uint64_t now_ns)
{
    const double gap_s = (double)(now_ns - p->looked_ns) * 1e-9;

    p->looked_ns = now_ns;
    p->waited_s += gap_s < PATIENCE_GAP_S ? gap_s : PATIENCE_GAP_S;
    return p->waited_s;
}

#endif
