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

#include "harness/stats/stats.h"
#include "harness/measure/kernels/kernel_plan.h"
#include "harness/measure/kernels/kernel_result.h"

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

#endif
