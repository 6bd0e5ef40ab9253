/* SPDX-License-Identifier: MIT
 *
 * cores_run.c - the rounds of cores.h on this machine
 *
 * A round has a part for each CPU alone and one for all together, in an order drawn
 * anew. All parts run on one pinned pool; who has nothing to do in a part sleeps.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "engine/base/thread_pool.h"
#include "harness/base/interrupt.h"
#include "harness/base/sysfile.h"
#include "harness/machine/cores.h"
#include "kernels/probe/probe.h"

/* A part: long against waking a thread, and so short that other programs leave some
 * rounds alone. */
#define PART_NS   1000000u
#define CHUNK_NS  20000u /* between two readings of the clock */
#define CALIB_NS  500000u
#define MIN_SHARE 0.95 /* of its CPU, and of the part, or the round is disturbed */

struct worker {
    _Alignas(128) uint64_t begin_ns, end_ns, cpu_ns, n_chunks;
    uint64_t sink;
};

struct run {
    struct thread_pool *pool;
    const struct probe_kernel *kernel;
    uint64_t n_iters; /* of a chunk */
    int active;       /* the thread of this part; -1: all */
    struct worker *w; /* [n] */
};

static void run_part(void *arg, int thread, int n_threads)
{
    struct run *run = arg;
    struct worker *w = &run->w[thread];

    (void)n_threads;
    if (run->active < 0)
        thread_pool_barrier(run->pool); /* together means at the same time */
    else if (run->active != thread)
        return;
    const uint64_t cpu_ns = clock_thread_ns();

    w->n_chunks = 0;
    w->begin_ns = clock_ns();
    do {
        run->kernel->fn.peak_int8(run->n_iters, &w->sink);
        w->n_chunks++;
        w->end_ns = clock_ns();
    } while (w->end_ns - w->begin_ns < PART_NS);
    w->cpu_ns = clock_thread_ns() - cpu_ns;
}

/* Chunks per nanosecond; NaN where another process had the CPU for a while. */
static double speed(const struct worker *w)
{
    const double wall_ns = (double)(w->end_ns - w->begin_ns);

    if ((double)w->cpu_ns < MIN_SHARE * wall_ns || wall_ns > 2.0 * PART_NS)
        return NAN;
    return (double)w->n_chunks / wall_ns;
}

static bool overlapped(const struct worker *w, int n)
{
    uint64_t begin = 0, end = UINT64_MAX;

    for (int i = 0; i < n; i++) {
        begin = w[i].begin_ns > begin ? w[i].begin_ns : begin;
        end = w[i].end_ns < end ? w[i].end_ns : end;
    }
    return end > begin && (double)(end - begin) >= MIN_SHARE * PART_NS;
}

/* Ticks that the hypervisor took from all CPUs; 0 if it does not report them. */
static uint64_t steal_ticks(void)
{
    unsigned long long v[8] = {0};
    char text[512];

    if (sysfile_read("", "/proc/stat", text, sizeof text) <= 0 ||
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2],
               &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
        return 0;
    return v[7];
}

static void calibrate(struct run *run)
{
    uint64_t ns = 0, sink = 0;

    run->n_iters = 64;
    while (ns < CALIB_NS && run->n_iters < UINT64_MAX / 4) {
        run->n_iters *= 2;
        const uint64_t begin = clock_ns();
        run->kernel->fn.peak_int8(run->n_iters, &sink);
        ns = clock_ns() - begin;
    }
    run->n_iters = (uint64_t)((double)run->n_iters * CHUNK_NS / (double)ns) + 1;
}

/* Parts 0..n-1 are one CPU's each, part n is all; order[n + 1] is shuffled. Returns
 * whether the round was undisturbed, its shares in share[n]. */
static bool run_round(struct run *run, int n, int *order, uint64_t *random,
                      double *share)
{
    const uint64_t steal = steal_ticks();
    bool good = true;

    random_shuffle(order, (size_t)n + 1, sizeof *order, random);
    for (int i = 0; i < n; i++)
        share[i] = 1;
    for (int i = 0; i <= n; i++) {
        run->active = order[i] < n ? order[i] : -1;
        thread_pool_run(run->pool, run_part, run);
        if (run->active >= 0) {
            share[run->active] /= speed(&run->w[run->active]);
            continue;
        }
        good &= overlapped(run->w, n);
        for (int k = 0; k < n; k++)
            share[k] *= speed(&run->w[k]);
    }
    for (int i = 0; i < n; i++)
        good &= isfinite(share[i]);
    return good && steal_ticks() == steal;
}

static enum status test(void *arg, const int *cpus, int n, double *share, int *n_rounds,
                        int *n_disturbed, struct err *err)
{
    struct run run = *(const struct run *)arg;
    int *order = calloc((size_t)n + 1, sizeof *order);
    uint64_t random = (uint64_t)cpus[0] * 31 + (uint64_t)cpus[1] + 1;
    enum status st = ST_OK;

    run.w = aligned_alloc(128, (size_t)n * sizeof *run.w);
    if (!order || !run.w)
        st = err_set(err, ST_NO_MEMORY, "no memory to run on %d CPUs", n);
    else
        st = thread_pool_start(&run.pool, n, cpus, err);
    *n_rounds = *n_disturbed = 0;
    for (int i = 0; i <= n && !st; i++)
        order[i] = i;
    while (!st && *n_rounds < CORES_ROUNDS && *n_disturbed < 2 * CORES_ROUNDS) {
        if (interrupted())
            st = err_set(err, ST_INTERRUPTED, "interrupted");
        else if (run_round(&run, n, order, &random, share + *n_rounds * n))
            ++*n_rounds;
        else
            ++*n_disturbed;
    }
    thread_pool_stop(run.pool);
    free(run.w);
    free(order);
    return st;
}

enum status cores_measure(struct cores_map *map, const struct topology *topo,
                          double budget_s, struct err *err)
{
    struct run run = {.kernel = probe_kernel_best(PROBE_OP_peak_int8,
                                                  isa_usable() & ~ISA_TILE_LEVELS)};
    int cpus[TOPO_MAX_CPUS], n = 0;

    for (int i = 0; i < topo->n_cpus; i++)
        if (topo->cpu[i].allowed)
            cpus[n++] = topo->cpu[i].os_id;
    if (n < 2)
        return err_set(err, ST_UNSUPPORTED,
                       "this process may run on %d CPU: there are no two to compare",
                       n);
    calibrate(&run);
    return cores_sort(map, cpus, n, budget_s, test, &run, err);
}

enum status cores_find(struct topology *t, double budget_s, struct err *err)
{
    struct cores_map *map;
    struct err why = ERR_INIT;
    enum status st;

    if (t->smt != TOPO_SMT_HIDDEN || t->n_allowed < 2)
        return ST_OK;
    map = calloc(1, sizeof *map);
    if (!map)
        return err_set(err, ST_NO_MEMORY, "no memory to compare CPUs");
    st = cores_measure(map, t, budget_s, &why);
    if (st == ST_OK)
        cores_apply(map, t);
    free(map);
    return st == ST_INTERRUPTED ? err_set(err, st, "%s", why.msg) : ST_OK;
}
