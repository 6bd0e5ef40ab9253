/* SPDX-License-Identifier: MIT
 *
 * report_pareto.h - the chart of speed against quality
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_PARETO_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_PARETO_H

#include "harness/show/report/report_chart.h"
#include "harness/rows/report_rows.h"

/* mark.group of this chart. */
enum { PARETO_FITS, PARETO_TOO_LARGE };

/* One mark per setting whose divergence is known (quality_rows_join_dir()): x that, y
 * its speed, other the same where it is on the frontier, note its label. Error:
 * ST_NO_MEMORY. */
enum status report_fill_pareto(struct chart *c, const struct report_rows *p,
                               struct err *err);

#endif
