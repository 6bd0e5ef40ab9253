/* SPDX-License-Identifier: MIT
 *
 * report_context.h - the chart of decode speed against context depth
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_CONTEXT_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_CONTEXT_H

#include "harness/show/report/report_chart.h"
#include "harness/rows/report_rows.h"

/* A series per setting, at the number of threads that is recommended for it (with at
 * most c->max_threads); other is the roof of an undisturbed machine (roof_best());
 * a setting that pages has none. Error: ST_NO_MEMORY. */
enum status report_fill_context(struct chart *c, const struct report_rows *p,
                                struct err *err);

#endif
