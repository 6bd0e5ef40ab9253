/* SPDX-License-Identifier: MIT
 *
 * history_report.h - where series have changed, as text, Markdown, JSON, a chart
 * and a page
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_HISTORY_REPORT_H
#define SLM_HARNESS_DECIDE_HISTORY_HISTORY_REPORT_H

#include <stdio.h>
#include <jansson.h>

#include "harness/chart/plot.h"
#include "harness/stats/ranktest.h"
#include "harness/decide/history/change.h"
#include "harness/decide/history/series.h"

#define HISTORY_MAX_CHANGES 20
#define HISTORY_LEVEL       0.01

#define HISTORY_CHART "history" /* name of the chart's files */

struct history_change {
    struct change at; /* index within the values that count; medians in the unit */
    /* Value after it over that before, of the segments on its two sides. */
    struct rank_ratio size;
    bool worse;
};

/* One series with its changes. */
struct history_line {
    const struct series *s;
    const struct series_value *v; /* the values that count: the latest of s */
    size_t n;
    struct history_change change[HISTORY_MAX_CHANGES];
    size_t n_changes;
};

struct history_report {
    const struct result_set *h;
    struct history_line *v; /* malloc'ed; as the series are */
    size_t n;
    size_t n_changes, n_thin; /* changes in all; series too short for one */
};

/* The changes of the last values of each series, at most CHANGE_MAX_POINTS of them. The
 * series and the history stay the caller's and must live as long. Errors: ST_NO_MEMORY,
 * ST_INTERRUPTED. */
enum status history_report_make(struct history_report *r, const struct result_set *h,
                                const struct series_set *set, size_t last,
                                struct err *err);
void history_report_free(struct history_report *r);

/* The changes of one line. Error: ST_NO_MEMORY. */
enum status history_line_find(struct history_line *line, struct err *err);

void history_report_print(FILE *f, const struct history_report *r);
void history_report_markdown(FILE *f, const struct history_report *r);
json_t *history_report_json(const struct history_report *r);

/* The part'th plot of six series each, those with a change first, which is the
 * caller's; NULL: no memory. False: there are no more. */
bool history_report_plot(struct plot **p, const struct history_report *r, size_t part);

/* history.html: counts, changes with their commits, and every series, in one file that
 * requests nothing. Errors: ST_IO, ST_NO_MEMORY. */
enum status history_report_page(const struct history_report *r, const char *path,
                                struct err *err);

/* history.csv, .gp, .svg and .png in dir. Errors: those of chart_files_draw(). */
enum status history_report_chart(const struct history_report *r, const char *dir,
                                 const char *again, struct err *err);

#endif
