/* SPDX-License-Identifier: MIT
 *
 * row_check.h - rows that cannot be, and rows that are there twice
 *
 * A table may have been edited, joined or converted by others. Held against each row
 * are the ranges of its settings (settings.def), its roof, the share of the roof that
 * it has itself, its interval and its times; and against all of them their key: a
 * launch has one point, attempt and time.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_ROWS_ROW_CHECK_H
#define SLM_HARNESS_ROWS_ROW_CHECK_H

#include "engine/base/status.h"
#include "harness/rows/row.h"

struct row_check {
    size_t n_impossible, n_copies;
    char first[200]; /* why the first one cannot be; "" */
};

/* Rows that cannot be become failed ones, with the reason as their detail; a row above
 * its roof without a reason becomes a disturbed one (row_above_roof()). Copies are
 * taken out: rows[*n] keep their order, and each launch its first row. Error:
 * ST_NO_MEMORY. */
enum status row_check_all(struct row_check *c, struct row *rows, size_t *n,
                          struct err *err);

#endif
