/* SPDX-License-Identifier: MIT
 *
 * report_speculation.h - the chart of the speed-up of speculative decoding
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_SPECULATION_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_SPECULATION_H

#include "harness/show/report/report_chart.h"

/* Bars per setting and text, at the thread count that decodes the text fastest; a chart
 * without marks where no point is of kind speculate. Error: ST_NO_MEMORY. */
enum status report_fill_speculation(struct chart *c, const struct report_rows *p,
                                    struct err *err);

#endif
