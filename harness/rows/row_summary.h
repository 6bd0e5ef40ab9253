/* SPDX-License-Identifier: MIT
 *
 * row_summary.h - a row as a person reads it: one sentence, then groups of lines
 *
 * What a figure is worth stands next to it: its interval, its share of the roof, what
 * disturbed it. Figures have the digits that their intervals support, three without an
 * interval; sizes and times have units. A row has more columns than are shown here:
 * row_print() prints all.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_ROWS_ROW_SUMMARY_H
#define SLM_HARNESS_ROWS_ROW_SUMMARY_H

#include <stddef.h>
#include <stdio.h>

#include "harness/rows/row.h"

/* "24.5 tok/s (23.5 to 25.8), 56 % of the roof, 717 MiB charged, disturbed: others
 * 55 %", or why there is no figure. Returns buf. */
const char *row_headline(const struct row *r, char *buf, size_t cap);

/* The headline, the row's detail, and groups of lines: setting, speed, roof, memory,
 * disturbances, the command that repeats it. At most 79 columns, but for the command.
 */
void row_print_summary(FILE *f, const struct row *r);

#endif
