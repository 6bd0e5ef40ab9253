/* SPDX-License-Identifier: MIT
 *
 * report_tokens.h - what the samples of a sweep show: how token times are
 * distributed, and how they went over the run
 *
 * Model of the world: a row is a median, and hides what its samples show: a slow token
 * in a hundred, two launches that differ, an hour in which another machine was busy.
 * Samples have no time of day, so a launch's begin where its row began, plus loading.
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_TOKENS_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "harness/show/report/report_chart.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/samples.h"
#include "harness/show/report/report.h"

/* Token times of a setting's fastest number of threads at its least depth. */
struct token_series {
    char name[REPORT_NAME_MAX];
    double *ms; /* [n], ascending, malloc'ed */
    size_t n;
    int64_t n_threads, ctx;
    bool doubtful; /* of launches that were all disturbed or partial */
};

struct token_series_list {
    struct token_series v[CHART_MAX_SERIES];
    int n;
};

/* Settings without samples are left out, and those beyond CHART_MAX_SERIES. Error:
 * ST_NO_MEMORY. The list is to be freed in any case. */
enum status token_series_find(struct token_series_list *list,
                              const struct report_rows *p, const struct row *rows,
                              size_t n_rows, const struct samples *samples,
                              struct err *err);
void token_series_free(struct token_series_list *list);

/* One launch on the time axis of the run. */
struct token_launch {
    const struct row *row;
    int setting;                      /* its number, in the order of report_rows */
    double begin_s, first_s, end_s;   /* since the run began: the row, its first sample,
                                         the end of its last; pauses are cut */
    bool after_pause;                 /* between the launch before and this one */
    const struct launch_samples *own; /* NULL: none */
    double median_ms;                 /* of all samples of its point; NAN: none */
};

struct token_run {
    struct token_launch *v; /* [n], in the order of time, malloc'ed */
    size_t n;
    double span_s;
    int n_settings, n_pauses;
};

/* Between launches a pause of more is cut to that. */
#define TOKEN_RUN_PAUSE_S 60.0

/* Rows whose time is not known are left out. Error: ST_NO_MEMORY. */
enum status token_run_find(struct token_run *run, const struct report_rows *p,
                           const struct row *rows, size_t n_rows,
                           const struct samples *samples, struct err *err);
void token_run_free(struct token_run *run);

#define TOKEN_TIMES "token_times"
#define TOKEN_RUN   "token_run"

/* As report_each_plot(): both. Their times are those of samples. */
enum status report_each_token_plot(const struct report_source *from,
                                   const char *subtitle, report_plot_fn *use, void *arg,
                                   struct err *err);

#endif
