/* SPDX-License-Identifier: MIT
 *
 * candidate.h - the machine that is predicted for: the one at hand, one that was
 * measured, one by its data sheet, or a few figures
 *
 * Threading: data; one thread.
 */
#ifndef SLM_HARNESS_DECIDE_PREDICT_CANDIDATE_H
#define SLM_HARNESS_DECIDE_PREDICT_CANDIDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/machine/topology.h"
#include "harness/decide/predict/cpus.h"
#include "harness/decide/predict/shares.h"
#include "harness/rows/row.h"
#include "harness/rows/token_time.h"

/* The request; 0 and NULL: not given. */
struct candidate_params {
    double gbps, gops, disk_gbps;
    const char *machine; /* a file: machine.json, or of `bench probe --json` */
    const char *cpu;     /* a name of cpus.yaml */
    uint64_t mem_bytes;  /* limit of memory; with gbps and cpu: all there is */
    int n_threads;
};

struct candidate {
    char name[160];                   /* "AMD Ryzen 9 5900X" */
    char from[400];                   /* where the figures are from */
    char machine[SHARES_MACHINE_MAX]; /* "": not known */
    int n_threads;                    /* 0: not known, as many as it has cores */
    bool is_here;                     /* roofs are measured by candidate_measure() */
    bool by_data_sheet;               /* roofs are no measured ones */
    struct token_roofs roofs;         /* 0: not known */
    double roof_lo, roof_hi; /* factors between which read_gbps is expected; 1, 1 where
                                it was measured */
    double max_gbps;         /* upper limit of reading: that of a data sheet, else
                                 read_gbps */
    double peak_gops;        /* of n_threads; 0: not known */
    double product_share[KERN_N_FMT]; /* of the peak, by products of a format
                                         (kernel_work.h); 0: not known */
    struct row *rows; /* malloc'ed [n_rows]: its own sweep; NULL: none */
    size_t n_rows;
    struct topology topo; /* memory, limits and last-level cache; all of it where
                             is_here */
};

/* *c is for candidate_free() in any case. Errors: topology_read()'s, jsonfile_read()'s,
 * cpus_find()'s; ST_USAGE (no memory given, few threads of an unknown server), ST_INPUT
 * (a file without roofs). */
enum status candidate_open(struct candidate *c, const struct candidate_params *p,
                           struct err *err);

/* Where is_here: the read bandwidth and the peak of arithmetic with its threads in a
 * second or two, of a disk where disk_too, and its products of the formats wanted
 * (NULL: none). Errors: those of plan_measure_roofs() and kernel_product_shares(). */
enum status candidate_measure(struct candidate *c, bool disk_too, const bool *wanted,
                              struct err *err);

void candidate_free(struct candidate *c);

#endif
