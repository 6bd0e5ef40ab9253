/* SPDX-License-Identifier: MIT
 *
 * report_sweep.h - what a sweep prints when it ends
 *
 * Table, recommendation, rounds in which the machine was slower, charts, and what could
 * not be measured. That some of it cannot be made does not make the rows worth less.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SHOW_REPORT_REPORT_SWEEP_H
#define SLM_HARNESS_SHOW_REPORT_REPORT_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/rows/result_set.h"

/* The part is of one directory, where charts are drawn (where wanted). one_by_one:
 * models were measured one after the other, so that rounds are of one model each.
 * Errors, after all has been printed: where no point has a figure, ST_NO_MEMORY
 * (nothing fits) or ST_CHECK; ST_PARTIAL where some ended by an error; ST_INTERRUPTED,
 * while charts were drawn. */
enum status report_sweep(FILE *f, const struct result_part *part, bool one_by_one,
                         bool charts, struct err *err);

#endif
