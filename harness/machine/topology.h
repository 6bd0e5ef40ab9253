/* SPDX-License-Identifier: MIT
 *
 * topology.h - CPUs, caches, memory and limits, and advice
 *
 * Sources: hwloc for sockets, cores, caches and NUMA (another machine's, where
 * HWLOC_SYNTHETIC or HWLOC_XMLFILE describe one, as tests do), or, where it cannot read
 * /sys, /proc/cpuinfo and the C library; libcpuid and XCR0 for the CPU's name and ISA
 * levels (the recorded cpuinfo when a tree is read); /proc and /sys for memory, huge
 * pages and steal; cgroup v1 and v2 for quota and limit.
 *
 * Threading: topology_read() may run in any thread while no other thread changes the
 * environment: hwloc runs in a child, which sets variables; the result is data.
 */
#ifndef SLM_HARNESS_MACHINE_TOPOLOGY_H
#define SLM_HARNESS_MACHINE_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "harness/base/choice.h"
#include "kernels/isa.h"

#define TOPO_MAX_CPUS   1024
#define TOPO_MAX_CACHES 8

struct topo_cpu {
    int os_id;    /* the number in /proc/cpuinfo */
    int core;     /* 0.. over the machine */
    int package;  /* socket, 0.. */
    int node;     /* NUMA node, 0.. */
    int llc;      /* instance of the last-level cache it reads through, 0.. */
    int sibling;  /* 0 for the first hyperthread of its core, 1 for the second */
    int kind;     /* of its core: 0 the fastest */
    double speed; /* of the machine's fastest core, as far as /sys shows; 0..1 */
    bool allowed; /* in this process's affinity mask and cpuset */
};

struct topo_cache {
    int level;
    char type[12];  /* "data", "instruction", "unified" */
    uint64_t bytes; /* one instance */
    int n_instances;
    int line_bytes;
};

/* A measured size of the last-level cache (cache.h), and the range it was found in. */
struct topo_llc {
    uint64_t bytes, lo, hi; /* 0: not measured */
};

enum topo_smt {
    TOPO_SMT_NONE,   /* one CPU per core, as far as the machine shows */
    TOPO_SMT_SHOWN,  /* siblings are visible */
    TOPO_SMT_HIDDEN, /* a virtual machine that shows no siblings: a vCPU may be a
                        hyperthread or a core, which only a measurement shows */
};

struct topology {
    char cpu_model[96];
    char cpu_vendor[32];
    char hypervisor[32];              /* "" on bare metal, "kvm", "unknown" */
    uint32_t isa_mask;                /* levels usable, see kernels/isa.h */
    char isa_missing[KERN_N_ISA][96]; /* why a level is not, "" where it is */
    uint32_t unused_units;            /* units without a kernel, see units.h */
    int n_offline;                    /* CPUs switched off; they are not in the list */
    int n_cpus, n_cores, n_packages, n_nodes;
    int n_kinds; /* of cores: more than 1 where some are much slower than others */
    struct topo_cpu cpu[TOPO_MAX_CPUS]; /* by os_id order */
    int n_caches;
    struct topo_cache cache[TOPO_MAX_CACHES];
    uint64_t llc_bytes; /* reported: all instances of the last level; 0 unknown. How
                           large the cache is: topology_cache() */
    struct topo_llc llc_one, llc_all; /* measured, with one thread and with */
    int llc_threads;                  /* this many */
    bool llc_disturbed;               /* others used the CPUs then: it may be more */
    enum topo_smt smt;
    char smt_measured[200]; /* the sentence of cores_apply(); "": not measured */
    char shape_doubt[160];  /* why hwloc could not read cores, caches and NUMA
                               nodes, which then are the plain ones; "": it was */

    int n_allowed;          /* CPUs in the affinity mask */
    int n_allowed_cores;    /* distinct cores among them, */
    int n_fast_cores;       /* and those that do most where all wait for the slowest */
    double quota_cpus;      /* CPU quota in CPUs; 0: none */
    char quota_source[256]; /* the file it came from */
    int cgroup_version;     /* 1, 2; 0: no cgroups found */
    uint64_t mem_limit;     /* smallest memory limit on the way to the root; 0: none */
    char mem_limit_source[256]; /* the file it came from */
    uint64_t mem_left; /* what the limits leave to a process, at least 1; 0: no limit */
    char mem_left_source[256];

    uint64_t mem_total, mem_available; /* /proc/meminfo */
    uint64_t mem_hwloc; /* the sum over NUMA nodes as hwloc has it: can be less */
    uint64_t swap_total;
    char thp[16]; /* transparent_hugepage/enabled: "always", "madvise", "never" */
    uint64_t huge_2m_total, huge_2m_free; /* hugetlbfs pages */
    double steal_share;                   /* since boot, 0..1 */
    char kernel[96];

    int threads_default; /* max(1, min(n_fast_cores, floor(quota))) */
    char threads_why[192];
};

/* Threads that can run at once, one per allowed CPU within the quota: more than
 * threads_default where cores have second hyperthreads. */
int topology_max_threads(const struct topology *t);

/* root: "" for this machine, or the top of a recorded tree. Errors: ST_IO,
 * ST_INPUT (a tree without the files that matter, named). */
enum status topology_read(struct topology *t, const char *root, struct err *err);
/* Into *t, malloc'ed: it is large. Errors: also ST_NO_MEMORY; *t is NULL then. */
enum status topology_open(struct topology **t, const char *root, struct err *err);

/* The fields of memory once more, limits included: neighbours come and go. Errors: as
 * topology_read(). */
enum status topology_refresh_memory(struct topology *t, const char *root,
                                    struct err *err);

/* As if there were this quota, in CPUs, where it is less than the one that is in force;
 * 0: none is requested. What follows from it, threads_default among it, is of a machine
 * that has it. */
void topology_set_quota(struct topology *t, double cpus);

/* "4 fast (CPUs 0-3), 4 slower (CPUs 4-7: about 45 % of their speed)", into buf. */
void topology_kinds_text(const struct topology *t, char *buf, size_t cap);

/* Advice for running a model here, one sentence or two each, most important
 * first; returns how many. The first word names the subject ("Threads: ..."). */
#define TOPO_MAX_ADVICE 16
struct topo_advice {
    char text[320];
    bool is_drawback; /* measurements here are slower or less certain for it */
    const char *mend; /* the command that mends it, static; NULL: no command does */
};
int topology_advice(const struct topology *t, struct topo_advice *advice);

/* How large the last-level cache is that n_threads read through: as measured on this
 * machine (between one thread and all: in proportion), or else as reported, all
 * instances together, with lo and hi the same. bytes 0: unknown. */
struct topo_llc topology_cache(const struct topology *t, int n_threads);

/* How much of a repeatedly read set the cache serves. */
enum topo_cached {
    TOPO_CACHED_NOT,
    TOPO_CACHED_PARTLY, /* a cache serves less than half of it, which is worth a word */
    TOPO_CACHED         /* half of it or more */
};
enum topo_cached topology_cached(const struct topo_llc *cache, double bytes);

/* "300 MiB reported, about 80 MiB of it serve this machine (64 to 96)", into buf. */
const char *topology_cache_text(const struct topology *t, char *buf, size_t cap);

/* The reported and the measured size: for another process of the same session. */
json_t *topology_cache_json(const struct topology *t);

/* Both back, also of "cpu" of topology_json(). Files that were written before sizes
 * were measured have the reported one alone. */
void topology_cache_from_json(struct topology *t, const json_t *cpu);

/* Whether something speaks against n threads here: more than there are CPUs for
 * them, or than the quota lets run? One sentence into buf then. cpus[n] is where they
 * are pinned, or NULL: anywhere allowed. */
bool topology_doubts_threads(const struct topology *t, int n, const int *cpus,
                             char *buf, size_t cap);

/* Bytes that a process may have here, all in all: the least of available memory, of
 * what the limits of the groups around us leave, and of limit (0: none). */
uint64_t topology_usable_bytes(const struct topology *t, uint64_t limit);

/* Is it a group's limit, and not the machine's memory, that topology_usable_bytes(t, 0)
 * is? */
bool topology_is_limited(const struct topology *t);

/* Bytes that weights, KV cache and scratch may take: topology_usable_bytes(), less the
 * reserve of memory_reserve.h. */
uint64_t topology_model_bytes(const struct topology *t, uint64_t limit);

/* Everything above, advice included. */
json_t *topology_json(const struct topology *t);

enum placement {
    PLACEMENT_SPREAD,  /* one thread per physical core first, fast ones before slow
                          ones, evenly over packages, NUMA nodes and last-level caches;
                          then siblings */
    PLACEMENT_COMPACT, /* fill a core's siblings, then the next core, fast ones first */
    PLACEMENT_SMT,     /* siblings of as few cores as possible; as compact, but an
                          error where no siblings are shown */
    PLACEMENT_NONE,    /* unpinned */
};

const char *placement_name(enum placement p);
extern const struct choices choices_placement; /* enum placement */

/* "0,2-3" as CPUs in this order, one for each of the larger of two counts, into
 * cpus[TOPO_MAX_CPUS]. *n_threads 0 becomes as many as are named; n_threads_prefill 0:
 * the same. Errors: ST_USAGE (no list, another number of CPUs, one that is not
 * allowed). */
enum status placement_parse_cpus(const char *text, const struct topology *t,
                                 int *n_threads, int n_threads_prefill, int *cpus,
                                 struct err *err);

/* CPUs for n threads, cpus[n]: only allowed ones, and the first k of n are those
 * for k threads. More threads than allowed CPUs wrap around. PLACEMENT_NONE fills
 * in -1. Errors: ST_USAGE (n < 1), ST_UNSUPPORTED (PLACEMENT_SMT without siblings). */
enum status placement_cpus(const struct topology *t, enum placement p, int n, int *cpus,
                           struct err *err);

/* A pool of n threads, TOPO_MAX_CPUS at most, on those CPUs; PLACEMENT_NONE: wherever
 * the kernel has them run. Errors: also those of thread_pool_start(). */
enum status placement_pool(struct thread_pool **pool, const struct topology *t,
                           enum placement p, int n, struct err *err);

#endif
