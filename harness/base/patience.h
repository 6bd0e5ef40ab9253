/* SPDX-License-Identifier: MIT
 *
 * patience.h - how long something has been waited for, by who looks again and again
 *
 * Who is stopped while it waits (Ctrl-Z, a frozen container, a debugger) has mostly
 * been stopped together with what it waits for. That time is no silence: between two
 * looks PATIENCE_GAP_S count at most.
 *
 * A process that waits for a CPU can send nothing: its quota is used up, others run, or
 * a virtual machine was stopped, which the kernel charges to what ran then and lets a
 * quota repay. While it wants a CPU, only the CPU time that it gets counts, for at most
 * PATIENCE_STARVED times the patience.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_BASE_PATIENCE_H
#define SLM_HARNESS_BASE_PATIENCE_H

#include <stdbool.h>

#include "engine/base/clock.h"

#define PATIENCE_GAP_S   1.0 /* looks are 0.2 s apart */
#define PATIENCE_STARVED 10

struct patience {
    uint64_t looked_ns;
    double waited_s;
    double starved_s; /* left out of waited_s */
    double cpu_s;     /* at the last look; only valid if watches_cpu */
    bool watches_cpu;
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

/* patience_look() at a process: whether it wants a CPU now, and the CPU time that it
 * has had since it began. */
static inline double patience_look_at(struct patience *p, uint64_t now_ns,
                                      bool wants_cpu, double cpu_s)
{
    const double before_s = p->waited_s;
    const double had_s = cpu_s > p->cpu_s ? cpu_s - p->cpu_s : 0;
    const double gap_s = patience_look(p, now_ns) - before_s;

    if (wants_cpu && p->watches_cpu && had_s < gap_s) {
        p->waited_s -= gap_s - had_s;
        p->starved_s += gap_s - had_s;
    }
    p->cpu_s = cpu_s;
    p->watches_cpu = true;
    return p->waited_s + p->starved_s / PATIENCE_STARVED;
}

#endif
