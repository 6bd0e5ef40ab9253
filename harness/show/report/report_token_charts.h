/* SPDX-License-Identifier: MIT
 *
 * report_token_charts.h - files of the charts of samples and of shares of the roof:
 * roof_share, token_times and token_run, each .csv, .gp, .svg and .png
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_TOKEN_CHARTS_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_TOKEN_CHARTS_H

#include "harness/chart/chart_files.h"
#include "harness/show/report/report_tokens.h"
#include "harness/rows/result_set.h"

#define ROOF_SHARE  "roof_share"
#define TOKEN_TIMES "token_times"
#define TOKEN_RUN   "token_run"

/* Draw those that have a figure into to->dir, with its subtitle and command, and remove
 * the files of the others. p are the points of the part's rows. *any is set where one
 * was drawn. Errors: those of samples_read() and chart_file_draw(); ST_NO_MEMORY. */
enum status report_token_charts(const struct chart_text *to,
                                const struct report_rows *p,
                                const struct result_part *part, bool *any,
                                struct err *err);

#endif
