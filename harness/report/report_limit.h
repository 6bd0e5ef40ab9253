/* SPDX-License-Identifier: MIT
 *
 * report_limit.h - the chart of decode speed against the memory limit: a line for each
 * quantisation and each way to hold weights
 *
 * Threading: pure function.
 */
#ifndef SLM_HARNESS_REPORT_REPORT_LIMIT_H
#define SLM_HARNESS_REPORT_REPORT_LIMIT_H

#include "harness/report/report_chart.h"

/* Fill c with decode points of the number of threads and depth that have the most
 * limits; no marks where there are fewer than two limits. A line is of the weights that
 * were asked for: with auto, points of one line may differ in what was chosen. Error:
 * ST_NO_MEMORY. */
enum status report_fill_limit(struct chart *c, const struct report_rows *p,
                              struct err *err);

#endif
