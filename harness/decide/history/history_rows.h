/* SPDX-License-Identifier: MIT
 *
 * history_rows.h - the rows that a command is given
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_HISTORY_ROWS_H
#define SLM_HARNESS_DECIDE_HISTORY_HISTORY_ROWS_H

#include "engine/base/status.h"
#include "harness/decide/history/history_options.h"
#include "harness/rows/result_set.h"

/* o->rows, into h (zeroed before). Errors: result_set_read()'s; ST_USAGE
 * (nothing is named). */
enum status history_rows_read(struct result_set *h, const struct history_options *o,
                              struct err *err);

/* One history, or what one of o->rows names; with o->here rows that name no machine are
 * this one's. Errors: result_set_read()'s. */
enum status history_path_read(struct result_set *h, const struct history_options *o,
                              const char *path, struct err *err);

#endif
