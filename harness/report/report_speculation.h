/* SPDX-License-Identifier: MIT
 *
 * report_speculation.h - the chart of the speed-up of speculative decoding
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_REPORT_REPORT_SPECULATION_H
#define SLM_HARNESS_REPORT_REPORT_SPECULATION_H

#include "harness/report/report_chart.h"

/* Bars per setting and text, at the thread count that decodes the text fastest; a chart
 * without marks where no point is of kind speculate. Error: ST_NO_MEMORY. */
enum status report_fill_speculation(struct chart *c, const struct report_rows *p,
                                    struct err *err);

/* Appends " Speculative decoding ...": its speed-up for the setting with its threads,
 * by text, as far as the interval and accepted drafts support one. Appends nothing
 * where it was not measured, or only disturbed. */
void report_say_speculation(const struct report_rows *p, const struct row *setting,
                            char *buf, size_t cap);

#endif
