/* SPDX-License-Identifier: MIT
 *
 * kernel_report.h - a run of the kernels as tables, CSV and a chart
 *
 * Model of the world: a *line* is a case with its results: medians and intervals
 * over the repetitions, fractions of the roofs that were timed as rows of the same
 * run, or the reason why there is nothing. Lines of one *group* (operation, columns,
 * hot or cold, threads) differ in format and ISA level only.
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_REPORT_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_REPORT_H

#include <stdio.h>
#include <stdbool.h>
#include <jansson.h>

#include "harness/stats/stats.h"
#include "harness/measure/kernels/kernel_plan.h"
#include "harness/measure/kernels/kernel_result.h"
#include "harness/stats/ranktest.h"

enum kernel_line_state { LINE_OK, LINE_WRONG, LINE_FAILED, LINE_STOPPED, LINE_SKIPPED };

struct kernel_line {
    struct kernel_case c;
    enum kernel_line_state state;
    char reason[200];             /* where the state is not LINE_OK */
    struct stats ns, gbps, gops;  /* n 0: no such figure */
    double wps;                   /* weights per second, median; NaN: none */
    double of_read_roof, of_peak; /* of medians; NaN: no roof in the run */
    double vs_one_column;         /* time over that of one column, cold; NaN: none */
    double huge_share;            /* of a read roof; NaN: unknown */
    int group;                    /* lines with the same number belong together */
};

struct kernel_report {
    struct kernel_line *v; /* by group, format and level; roofs last */
    size_t n;
    int n_groups;    /* without roofs, which have no group (-1) */
    char title[300]; /* "AMD EPYC, 2 CPUs · measured 2026-11-23", for charts */
};

/* plan: for the skipped cases; NULL: none. Error: ST_NO_MEMORY. */
enum status kernel_report_make(struct kernel_report *report,
                               const struct kernel_results *results,
                               const struct kernel_plan *plan, struct err *err);
void kernel_report_free(struct kernel_report *report);

/* Whether a row gave a wrong result or could not be run to its end. */
bool kernel_report_has_failure(const struct kernel_report *report);

/* The name of a group: "gemv cold, 2 threads". */
const char *kernel_group_name(char *buf, size_t cap, const struct kernel_case *c);

/* The fraction of the roof that bounds the case: NaN where none does. */
double kernel_line_of_roof(const struct kernel_line *l);

/* Tables of format x ISA, one per group; where each format has one level only, one
 * table for all groups. Then roofs, and what is not in the tables. 100 columns. */
void kernel_report_print(FILE *f, const struct kernel_report *report);

/* One row per line; columns as docs/kernels.md lists them. */
enum status kernel_report_csv(const struct kernel_report *report, const char *path,
                              struct err *err);

/* kernels_roofline, as chart_files_draw() does it, into dir. again: the command that
 * draws it again. Errors: as chart_files_draw(). */
enum status kernel_report_chart(const struct kernel_report *report, const char *dir,
                                const char *again, struct err *err);

/* ---- which kernels changed between two runs (kernel_compare.c) ------------------- */

/* A row changed if the rank test over its repetitions is significant after Holm's
 * correction over all rows, by at least the given least change, and also relative to
 * its roof: two runs are not interleaved, and a neighbour on the host slows roof and
 * kernel together. */

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
