/* SPDX-License-Identifier: MIT
 *
 * report_token_charts.h - charts of samples and of shares of the roof: as plots, and
 * their files
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_TOKEN_CHARTS_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_TOKEN_CHARTS_H

#include <stdbool.h>

#include "harness/chart/chart_files.h"
#include "harness/show/report/report_tokens.h"
#include "harness/rows/result_set.h"

#define ROOF_SHARE  "roof_share"
#define TOKEN_TIMES "token_times"
#define TOKEN_RUN   "token_run"

/* NULL: no memory. There is something to draw: a share, a series, a sample. */
struct plot *roof_share_plot(const struct roof_map *map, const char *subtitle);
struct plot *token_times_plot(const struct token_series_list *list,
                              const char *subtitle);
/* Token times relative to their point's median over the run; below them the CPU time
 * that others took, and the faults. */
struct plot *token_run_plot(const struct token_run *run, const struct report_rows *p,
                            const char *subtitle);

/* Whether there is a share to draw. */
bool roof_map_has_share(const struct roof_map *map);

/* The files of all three in to->dir; those of an earlier run are removed where there is
 * nothing to draw. *any is set where there is. Errors: those of samples_read() and
 * chart_files_draw(). */
enum status report_token_charts(const struct chart_place *to,
                                const struct report_rows *p,
                                const struct result_part *part, bool *any,
                                struct err *err);

#endif
