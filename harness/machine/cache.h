/* SPDX-License-Identifier: MIT
 *
 * cache.h - how much of the last-level cache serves this machine, measured
 *
 * A virtual machine shows the cache of its host, and gets the part of it that the
 * hypervisor and the neighbours leave. Model of the world: a working set is read again
 * and again, in one direction, as decoding reads weights. What a byte takes then lies
 * between what it takes after the set was evicted (memory) and what it takes in the
 * smallest sets that the first levels do not hold (cache); the *share served* is where
 * between the two. The cache that serves us is the largest set with a share of a half.
 *
 * Sets grow until one is not served, also beyond what is reported; the crossing is
 * found by bisection, twice where there is time for it. The range is from the smallest
 * to the largest size around it, and of this moment: neighbours share the cache.
 *
 * Threading: as thread_pool_start(); one at a time.
 */
#ifndef SLM_HARNESS_MACHINE_CACHE_H
#define SLM_HARNESS_MACHINE_CACHE_H

#include <stdint.h>

#include "engine/base/status.h"
#include "harness/machine/topology.h"

/* A working set, read by all threads in use. GB/s (1e9 bytes). */
struct cache_point {
    uint64_t bytes;
    double again_gbps;   /* read again */
    double evicted_gbps; /* read after it was evicted */
};

/* Measure it, in 0.3 s or less, where *t has no measured size yet; it has one then,
 * for one thread and for threads_default. That it cannot be measured (no memory for a
 * buffer, no threads) is no error: the reported size stays the answer. Where the
 * environment has SLMBENCH_LLC, that size is taken instead. Errors: ST_INTERRUPTED,
 * ST_USAGE (SLMBENCH_LLC is not a size). */
enum status cache_find(struct topology *t, struct err *err);

/* The same where it decides whether a cache serves a set of that many bytes: by the
 * reported sizes the last level would, and those before it would not. */
enum status cache_find_for(struct topology *t, uint64_t bytes, struct err *err);

/* Speeds of one thread, and of all where there are several, by working set: from 1 MiB
 * to beyond the reported and the measured size (within a quarter of the memory), steps
 * of 2^(1/2). */
#define CACHE_MAX_SIZES 28
struct cache_curve {
    int n_lines; /* 1 or 2 */
    struct cache_line {
        int n_threads;
        int n;
        struct cache_point v[CACHE_MAX_SIZES];
    } line[2];
    bool disturbed; /* others used the CPUs meanwhile */
};

/* Measure it in a few seconds: no set is begun after budget_s. Errors: ST_NO_MEMORY,
 * ST_INTERRUPTED, those of thread_pool_start(). */
enum status cache_curve_measure(struct cache_curve *c, const struct topology *t,
                                double budget_s, struct err *err);

/* The chart "cache" in dir (topology_cache.c), with the sizes of *t. Errors: as
 * chart_files_draw(). */
enum status cache_curve_chart(const struct cache_curve *c, const struct topology *t,
                              const char *dir, struct err *err);

/* The search alone, for tests. read: fill in both speeds of a set of that size;
 * false where it could not be read (no memory, time is over). Where no set from start
 * on is faster than memory, the answer is start / 2. Where all that could be read are
 * served, it is the largest of them, at least: the range ends at most where that was
 * read, else at twice the answer or at the reported size, whichever is larger. */
typedef bool cache_read_fn(void *arg, uint64_t bytes, struct cache_point *p);
struct cache_search {
    uint64_t start; /* larger than what the first levels hold together */
    uint64_t from;  /* where the size is expected above it; 0: nowhere */
    uint64_t most;
    uint64_t reported; /* 0: unknown */
    cache_read_fn *read;
    void *arg;
};
struct topo_llc cache_search(const struct cache_search *s);

#endif
