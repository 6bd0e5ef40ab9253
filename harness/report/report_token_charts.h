/* SPDX-License-Identifier: MIT
 *
 * report_token_charts.h - files of the charts of samples and of shares of the roof:
 * roof_share, token_times and token_run, each .csv, .gp, .svg and .png
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_REPORT_REPORT_TOKEN_CHARTS_H
#define SLM_HARNESS_REPORT_REPORT_TOKEN_CHARTS_H

#include "harness/report/report_tokens.h"

/* Draw those that have a figure into dir, and remove the files of the others. p are the
 * points of rows[n_rows]. *any is set where one was drawn. Errors: those of
 * samples_read() and chart_file_draw(); ST_NO_MEMORY. */
enum status report_token_charts(const char *dir, const char *subtitle,
                                const struct report_rows *p, const struct row *rows,
                                size_t n_rows, bool *any, struct err *err);

#endif
