/* SPDX-License-Identifier: MIT
 *
 * kernel_compare.h - which kernels changed between two runs
 *
 * A row changed if the rank test over its repetitions is significant after Holm's
 * correction over all rows, by at least the given least change, and also relative to
 * its roof: two runs are not interleaved, and a neighbour on the host slows roof and
 * kernel together.
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_COMPARE_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_COMPARE_H

#include <stdbool.h>
#include <stdio.h>
#include <jansson.h>

#include "harness/stats/ranktest.h"
#include "harness/measure/kernels/kernel_result.h"

enum kernel_verdict {
    KERNEL_SAME,      /* any difference is below the least change, or below 2 % */
    KERNEL_UNDECIDED, /* neither a difference nor equality is shown */
    KERNEL_SMALL,     /* a difference below the least change */
    KERNEL_WITH_ROOF, /* moved as the machine did */
    KERNEL_FASTER,
    KERNEL_SLOWER,
    KERNEL_NO_FIGURE, /* failed, or not finished, in one of the runs */
};

struct kernel_change {
    const struct kernel_result *old, *new;
    double old_ns, new_ns;   /* medians */
    struct rank_ratio speed; /* new over old: below 1 is slower */
    double roof;             /* the ratio of its roofs; 1 without a roof */
    double p;                /* corrected */
    bool is_roof;            /* of the machine: shown, but not judged */
    enum kernel_verdict verdict;
};

struct kernel_comparison {
    const struct kernel_results *old, *new;
    double min_change;       /* 0.02: two per cent */
    struct kernel_change *v; /* rows of both files, in the order of the old */
    size_t n;
    size_t n_verdict[KERNEL_NO_FIGURE + 1]; /* roofs are not counted */
    size_t n_only_old, n_only_new;
    size_t n_broken; /* had a figure before and fail now */
    char warning[4][320];
    int n_warnings;
};

/* old and new outlive *c. Errors: ST_INPUT (no row in common), ST_NO_MEMORY. */
enum status kernel_compare(struct kernel_comparison *c,
                           const struct kernel_results *old,
                           const struct kernel_results *new, double min_change,
                           struct err *err);
void kernel_compare_free(struct kernel_comparison *c);

/* Whether all rows are undecided. */
bool kernel_compare_is_empty(const struct kernel_comparison *c);

/* The rows that changed, and a summary. */
void kernel_compare_print(FILE *f, const struct kernel_comparison *c);

/* All rows. */
json_t *kernel_compare_json(const struct kernel_comparison *c);

#endif
