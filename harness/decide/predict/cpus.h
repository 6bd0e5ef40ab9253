/* SPDX-License-Identifier: MIT
 *
 * cpus.h - CPUs by their data sheets: configs/cpus.yaml
 *
 * Model of the world: a data sheet has the most that the memory of a whole CPU can
 * deliver. What a program reads is less, and of a share of a server, as a virtual
 * machine is, much less; where one core's bandwidth was measured, that limits few
 * threads.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_DECIDE_PREDICT_CPUS_H
#define SLM_HARNESS_DECIDE_PREDICT_CPUS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define CPUS_MAX 500

struct cpu {
    char name[64];   /* "AMD Ryzen 9 5900X" */
    char also[128];  /* other words that it is known by: names of instances */
    char memory[64]; /* "2 x DDR4-3200" */
    int n_cores;
    double peak_gbps;   /* of all memory channels */
    double core_gbps;   /* read by one core, measured; 0: not known */
    double gops;        /* of all cores, int8, two per multiply-add; 0: not known */
    uint64_t llc_bytes; /* 0: not known */
    char source[200],
        date[16]; /* where the figures are from, and when they were read */
};

struct cpus {
    struct cpu *v; /* malloc'ed [n] */
    size_t n;
};

/* The file that comes with the program, or another. Errors: those of yaml_load_file(),
 * ST_INPUT. */
enum status cpus_load(struct cpus *cpus, const char *path, struct err *err);
void cpus_free(struct cpus *cpus);

/* The one that has all words of name, letters of either case: "ryzen 5900x". Errors:
 * ST_USAGE (none has, or several have; names them). */
enum status cpus_find(const struct cpus *cpus, const char *name,
                      const struct cpu **found, struct err *err);

/* Share of a data sheet's bandwidth that a read probe is expected to measure, and its
 * range. The usual results of stream benchmarks; no figure of this project. */
#define CPU_USUAL_SHARE 0.80
#define CPU_MIN_SHARE   0.65
#define CPU_MAX_SHARE   0.92

/* What n_threads (0: one per core) are expected to read, GB/s: the usual share of the
 * peak, or less where one core's bandwidth is known. 0: few threads of a server, and
 * that is not known. */
double cpu_read_gbps(const struct cpu *cpu, int n_threads);

#endif
