/* SPDX-License-Identifier: MIT
 *
 * noise.h - what disturbed a measurement
 *
 * A snapshot before and one after; the difference shows how much the hypervisor
 * stole, how often we were switched out, whether the cgroup throttled us, how
 * many pages came from disk. It counts on the CPUs that our threads may run on, since a
 * neighbour who takes half of two CPUs is little of a machine with 64; what others do
 * on the rest of the machine still counts as a share of all of it.
 *
 * Own CPU time, switches and faults are those of this process and of the children
 * it has waited for. A child that is still running counts as another process, so
 * whoever measures takes both snapshots in the process that does the work.
 *
 * Paging (major faults, refaults) is reported, but is no disturbance: a model that
 * does not fit pages for its own reasons.
 *
 * Threading: stateless; the counters are the whole process's or the machine's.
 */
#ifndef SLM_HARNESS_MACHINE_NOISE_H
#define SLM_HARNESS_MACHINE_NOISE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Groups nested deeper than this are not read. */
#define NOISE_MAX_GROUPS 16

struct noise {
    uint64_t wall_ns;
    uint64_t steal_ns;       /* all CPUs, /proc/stat */
    uint64_t busy_ns;        /* all CPUs, user+system+irq: others' load shows here */
    uint64_t self_ns;        /* CPU time of this process */
    uint64_t wait_ns;        /* our threads were ready to run, and had no CPU: sum over
                                those that live, from /proc/self/task/N/schedstat */
    uint64_t n_involuntary;  /* context switches, getrusage */
    uint64_t n_major_faults; /* getrusage */
    uint64_t n_minor_faults;
    uint64_t throttled_ns; /* cgroup cpu.stat, v2 or v1, of all CPUs together; 0 if
                              none */
    uint64_t n_throttled;
    uint64_t n_refaults;      /* workingset_refault_file, cgroup or /proc/vmstat */
    uint64_t pressure_ns;     /* PSI memory "some" total; 0 where there is no PSI */
    bool pressure_of_machine; /* and not of our group alone */
    uint64_t suspended_ns;    /* the machine slept (CLOCK_BOOTTIME's lead) */
    int64_t boot_utc_ns;      /* of a snapshot: when it was booted, by its clock */
    int clock_set_s;          /* of a difference: by how much somebody set the clock */
    int n_cpus;
    /* The same on the CPUs that our threads may run on: where they are pinned, or all
     * that are allowed. 0 CPUs: not known. */
    uint64_t our_steal_ns, our_busy_ns;
    int n_our_cpus;
    int n_threads;           /* of this process */
    bool expects_throttling; /* a quota was requested, and is no disturbance: the caller
                                sets it */
    cpu_set_t our_cpus;
    /* Throttling of each group on the way, from the top of the mount. */
    int n_groups;
    uint64_t group_throttled_ns[NOISE_MAX_GROUPS], group_n_throttled[NOISE_MAX_GROUPS];
};

/* root: "" or the top of a recorded tree with /proc and /sys below it; such a tree
 * has its own clock (/proc/uptime) and not this process. Counters that cannot be
 * read stay 0. */
void noise_read(struct noise *n, const char *root);

/* Only n_refaults and the pressure, which costs less: the group's own counters where it
 * has them, the machine's otherwise. */
void noise_read_memory(struct noise *n, const char *root);

/* *d = b - a, field by field (counts of CPUs and threads from b), 0 where a counter
 * went back; the throttling is that of the group that stopped us longest in between.
 * Both must be of the same CPUs: else those of ours are not known. d may be a or b. */
void noise_diff(struct noise *d, const struct noise *a, const struct noise *b);

/* *d = what happened since *a, on a's CPUs, whatever our threads are pinned to by now.
 */
void noise_since(struct noise *d, const struct noise *a, const char *root);

/* Share of the CPUs' time that was stolen, 0..1: on ours, or on all if that is more;
 * the same for time that others' processes used. */
double noise_steal_share(const struct noise *d);
double noise_others_share(const struct noise *d);

/* Share of the wall time in which a quota stopped our threads, 0..1. */
double noise_throttled_share(const struct noise *d);

/* Share of the wall time in which one of our threads was ready and had no CPU; that of
 * several adds up. */
double noise_wait_share(const struct noise *d);

/* "valid", or "disturbed: steal 4 %, ..." into buf; returns true when valid. drift: 0
 * where it is not significant (stats_drift_test()).
 * Thresholds are in noise.c, with their reasons. */
bool noise_verdict(const struct noise *d, double drift, char *buf, int cap);

/* Whether a round of measurements was disturbed by what happened during it, which
 * includes the time that our threads waited for a CPU. What disturbed it, and how much,
 * "steal 4 %, waiting 12 %", into why; "" if nothing. */
bool noise_disturbed(const struct noise *d, char *why, size_t cap);

/* Appends to text what disturbed nothing and yet is to be known: that somebody set the
 * clock. */
void noise_remark(const struct noise *d, char *text, size_t cap);

#endif
