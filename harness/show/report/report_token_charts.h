/* SPDX-License-Identifier: MIT
 *
 * report_token_charts.h - charts of samples
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_TOKEN_CHARTS_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_TOKEN_CHARTS_H

#include "harness/show/report/report.h"

#define TOKEN_TIMES "token_times"
#define TOKEN_RUN   "token_run"

/* As report_each_plot(): both. Their times are those of samples. */
enum status report_each_token_plot(const struct report_source *from,
                                   const char *subtitle, report_plot_fn *use, void *arg,
                                   struct err *err);

#endif
