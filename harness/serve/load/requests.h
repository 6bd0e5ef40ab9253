/* SPDX-License-Identifier: MIT
 *
 * requests.h - requests.csv: the times of each request that counts, failed ones too
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_REQUESTS_H
#define SLM_HARNESS_SERVE_LOAD_REQUESTS_H

#include <stddef.h>

#include "engine/base/status.h"
#include "harness/rows/row.h"
#include "harness/rows/samples.h"
#include "harness/measure/sweep/sweep.h"

/* Appends those of the row's launch to requests.csv in dir, on disk when it returns, or
 * none of them. v: [n][REQUEST_CELLS], NAN where a cell is empty. The row is to be
 * written after it: if a launch occurs twice, the later one counts. Errors:
 * ST_IO, ST_USAGE (a link or no regular file stands there), ST_NO_MEMORY. */
enum status requests_append(const struct sweep_dir *dir, const struct row *row,
                            const double *v, size_t n, struct err *err);

#endif
