/* SPDX-License-Identifier: MIT
 *
 * topology_advice.c - advice for running a model on a machine
 */
#include "harness/machine/topology.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/machine/memory_reserve.h"

/* Less than this of stolen time is the noise of any shared host. */
#define STEAL_WORTH_A_WORD 0.01

/* Quotas are whole microseconds: 199999 in 100000 are two CPUs. */
#define QUOTA_TOLERANCE 1e-3

struct list {
    struct topo_advice *item;
    int n;
};

__attribute__((format(printf, 2, 3))) static void add(struct list *l, const char *fmt,
                                                      ...)
{
    va_list ap;

    if (l->n == TOPO_MAX_ADVICE)
        return;
    va_start(ap, fmt);
    vsnprintf(l->item[l->n].text, sizeof l->item[l->n].text, fmt, ap);
    va_end(ap);
    l->item[l->n].is_drawback = false;
    l->item[l->n++].mend = NULL;
}

/* The advice that was added last is about a drawback. */
static void mark_drawback(struct list *l, const char *mend)
{
    l->item[l->n - 1].is_drawback = true;
    l->item[l->n - 1].mend = mend;
}

bool topology_is_limited(const struct topology *t)
{
    return topology_usable_bytes(t, 0) < t->mem_available;
}

uint64_t topology_usable_bytes(const struct topology *t, uint64_t limit)
{
    uint64_t bytes = t->mem_available;

    if (t->mem_limit && t->mem_limit < bytes)
        bytes = t->mem_limit;
    if (t->mem_left && t->mem_left < bytes)
        bytes = t->mem_left;
    return limit && limit < bytes ? limit : bytes;
}

uint64_t topology_model_bytes(const struct topology *t, uint64_t limit)
{
    return memory_for_model(topology_usable_bytes(t, limit));
}

/* A quota of 1.5 CPUs lets one thread run all the time. */
int topology_max_threads(const struct topology *t)
{
    const int whole =
        t->quota_cpus > 0 ? (int)floor(t->quota_cpus + 1e-3) : t->n_allowed;
    const int most = whole < t->n_allowed ? whole : t->n_allowed;

    return most > t->threads_default ? most : t->threads_default;
}

/* As many threads as the quota lets run at once, if only for part of the time. */
static int max_threads(const struct topology *t)
{
    const int whole =
        t->quota_cpus > 0 ? (int)ceil(t->quota_cpus - QUOTA_TOLERANCE) : t->n_allowed;

    return whole < t->n_allowed ? whole : t->n_allowed;
}

static int count_distinct(const int *v, int n)
{
    int n_distinct = 0;

    for (int i = 0; i < n; i++) {
        bool first = true;

        for (int k = 0; k < i && first; k++)
            first = v[k] != v[i];
        n_distinct += first;
    }
    return n_distinct;
}

/* All of a group's threads are stopped once they have used its quota up. */
static bool doubts_quota(const struct topology *t, int n, char *buf, size_t cap)
{
    const double q = t->quota_cpus;
    char instead[48] = "";

    if (n <= q + QUOTA_TOLERANCE)
        return false;
    if (t->threads_default < n)
        snprintf(instead, sizeof instead, "; `bench topo` recommends %d",
                 t->threads_default);
    snprintf(buf, cap,
             "%d thread%s under a quota of %.4g CPU%s %s stopped for %.0f %% of the "
             "time%s",
             n, n == 1 ? "" : "s", q, q == 1 ? "" : "s", n == 1 ? "is" : "are all",
             100 * (1 - q / n), instead);
    return true;
}

bool topology_doubts_threads(const struct topology *t, int n, const int *cpus,
                             char *buf, size_t cap)
{
    const int n_cpus = cpus ? count_distinct(cpus, n) : t->n_allowed;

    if (n > n_cpus) {
        snprintf(buf, cap,
                 "%d threads share %d CPU%s: they run alternately, which costs speed; "
                 "`bench topo` recommends %d",
                 n, n_cpus, n_cpus == 1 ? "" : "s", t->threads_default);
        return true;
    }
    return t->quota_cpus > 0 && doubts_quota(t, n, buf, cap);
}

static void advise_threads(struct list *l, const struct topology *t)
{
    const int most = max_threads(t);

    add(l, "Threads: use %s.", t->threads_why);
    if (t->n_kinds > 1) {
        char kinds[256];

        topology_kinds_text(t, kinds, sizeof kinds);
        add(l,
            "Cores: %s. All threads wait for the slowest; whether the slow ones help "
            "is measured by `bench sweep`.",
            kinds);
    }
    if (t->shape_doubt[0])
        add(l,
            "Topology: %s, so cores are those of /proc/cpuinfo, caches those that the "
            "CPU reports, each core's own or its socket's.",
            t->shape_doubt);
    if (t->smt_measured[0])
        add(l, "Hyperthreads, measured: %s.", t->smt_measured);
    if (t->smt == TOPO_SMT_HIDDEN && most > 1 && !t->smt_measured[0])
        add(l,
            "Hyperthreads: this virtual machine does not report whether its vCPUs are "
            "cores or hyperthreads of fewer cores; `bench topo --measure` finds out.");
    else if (t->smt == TOPO_SMT_SHOWN && most > t->n_allowed_cores)
        add(l,
            "Hyperthreads: %d of the allowed CPUs are second hyperthreads and stay "
            "idle by default; whether they help is measured with more than %d threads, "
            "as `bench sweep` does.",
            t->n_allowed - t->n_allowed_cores, t->n_allowed_cores);
}

static void advise_quota(struct list *l, const struct topology *t)
{
    const double q = t->quota_cpus, up = ceil(q - QUOTA_TOLERANCE);

    if (!(q > 0) || q >= t->n_allowed)
        return;
    if (q < 1 - QUOTA_TOLERANCE)
        add(l,
            "Quota: with %.4g CPUs even one thread is stopped for %.0f %% of the time, "
            "in bursts; request a whole CPU.",
            q, 100 * (1 - q));
    else if (up - q > 1e-3)
        add(l,
            "Quota: %.4g is not a whole number of CPUs. %d thread%s never stopped, "
            "%.0f would be for %.0f %% of the time, all of them at once; a whole "
            "number is better value.",
            q, t->threads_default, t->threads_default == 1 ? " is" : "s are", up,
            100 * (1 - q / up));
    else
        add(l,
            "Quota: more than %.0f threads would be stopped for part of every period.",
            up);
    if (q < 1 - QUOTA_TOLERANCE || up - q > 1e-3)
        mark_drawback(l, NULL);
}

/* For the command of a machine whose kernel has transparent huge pages. */
#define PAGES_COMMAND \
    "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"

static void advise_pages(struct list *l, const struct topology *t)
{
    if (!strcmp(t->thp, "madvise"))
        add(l, "Huge pages: 'madvise' is right, weights held in memory and the KV "
               "cache request 2 MiB pages.");
    else if (!strcmp(t->thp, "always"))
        add(l, "Huge pages: 'always' is fine, weights held in memory and the KV cache "
               "get 2 MiB pages.");
    else if (!strcmp(t->thp, "never"))
        add(l, "Huge pages: switched off, which costs bandwidth; switch on with "
               "`" PAGES_COMMAND "` (on the host, for a container).");
    else
        add(l, "Huge pages: this kernel has no transparent ones; reading weights "
               "through 4 KiB pages costs bandwidth.");
    if (strcmp(t->thp, "madvise") != 0 && strcmp(t->thp, "always") != 0)
        mark_drawback(l, !strcmp(t->thp, "never") ? PAGES_COMMAND : NULL);
}

/* Threads are spread over nodes that have CPUs for them; the memory of others (CXL, or
 * of a socket outside the affinity mask) is the kernel's second choice. */
static void advise_nodes(struct list *l, const struct topology *t)
{
    int nodes[TOPO_MAX_CPUS], n_allowed = 0;

    for (int i = 0; i < t->n_cpus; i++)
        if (t->cpu[i].allowed)
            nodes[n_allowed++] = t->cpu[i].node;
    const int n = count_distinct(nodes, n_allowed), without = t->n_nodes - n;

    if (n > 1)
        add(l,
            "NUMA: memory is split over %d nodes; placement 'spread' uses the "
            "bandwidth of all, 'compact' stays on one node while it can.",
            n);
    if (n > 0 && without > 0)
        add(l,
            "NUMA: no CPU of this process is on %d of the %d nodes. Memory there is "
            "used when the other %s full; `numactl --interleave=all bench ...` uses "
            "the bandwidth of all.",
            without, t->n_nodes, n == 1 ? "node is" : "nodes are");
}

static void advise_memory(struct list *l, const struct topology *t)
{
    add(l, "Models: weights and KV cache of up to %s together fit into the %s %s.",
        bytes_text(topology_model_bytes(t, 0)).text,
        bytes_text(topology_usable_bytes(t, 0)).text,
        !topology_is_limited(t)      ? "available"
        : t->mem_left < t->mem_limit ? "that the memory limit leaves"
                                     : "of the memory limit");
    if (t->mem_hwloc && t->mem_hwloc < t->mem_total / 10 * 9)
        add(l,
            "Memory: the NUMA nodes account for %s of %s; the rest was plugged in "
            "later. The kernel's total is used.",
            bytes_text(t->mem_hwloc).text, bytes_text(t->mem_total).text);
    advise_nodes(l, t);
    if (t->swap_total)
        add(l, "Swap: it is on; a model that does not fit would crawl instead of fail. "
               "Points with --mem do not swap.");
}

int topology_advice(const struct topology *t, struct topo_advice *advice)
{
    struct list l = {advice, 0};

    advise_threads(&l, t);
    advise_quota(&l, t);
    advise_memory(&l, t);
    advise_pages(&l, t);
    if (t->steal_share >= STEAL_WORTH_A_WORD) {
        add(&l,
            "Steal: %.1f %% of the CPU time since boot went to other guests of this "
            "host; expect disturbed measurements.",
            100 * t->steal_share);
        mark_drawback(&l, NULL);
    }
    if (t->isa_mask == 1u << KERN_ISA_scalar) {
        add(&l,
            "ISA: no vector level is usable; the reference kernels run, and are slow.");
        mark_drawback(&l, NULL);
    }
    if (t->n_offline)
        add(&l, "CPUs: %d are switched off and not counted.", t->n_offline);
    return l.n;
}
