/* SPDX-License-Identifier: MIT
 *
 * report.h - charts and the closing table of a sweep
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_REPORT_H
#define SLM_HARNESS_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "engine/status.h"
#include "harness/row.h"

/* Draw every chart that the rows of dir/sweep.csv can fill, as SVG and PNG, with
 * the .gp file that made them, into dir. Uses gnuplot and the templates in plots/.
 * Errors: ST_UNSUPPORTED (no gnuplot; the way out), ST_IO, ST_INPUT. */
enum status report_charts(const char *dir, struct err *err);

struct recommend_params {
    double min_tps;     /* 0: any */
    int ctx;            /* depth that must be served; the measured depths at or above
                           it count; -1: the deepest measured */
    uint64_t mem_limit; /* 0: the rows' own limit */
    int max_threads;    /* quota and affinity; 0: as machine.json says */
    const char *model;  /* NULL: any */
};

struct recommendation {
    struct row best, runner_up;
    int has_runner_up;
    int tie;            /* the intervals overlap: no difference was shown */
    char why[600];
    int n_excluded;     /* rows left out: disturbed, too large, too slow, ... */
    char excluded[300]; /* how many for which reason */
};

/* Choose among rows. Errors: ST_CHECK when nothing qualifies (says what came
 * closest). */
enum status recommend(struct recommendation *rec, const struct row *rows, size_t n_rows,
                      const struct recommend_params *params, struct err *err);

void recommend_print(FILE *f, const struct recommendation *rec);

/* The table a sweep ends with: one line per point, aligned, best marked. */
void report_table(FILE *f, const struct row *rows, size_t n_rows);

#endif
