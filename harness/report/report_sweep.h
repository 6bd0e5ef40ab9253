/* SPDX-License-Identifier: MIT
 *
 * report_sweep.h - what a sweep says when it ends
 *
 * Table, recommendation, rounds in which the machine was slower, charts, and what could
 * not be measured. That some of it cannot be made does not make the rows worth less.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_REPORT_REPORT_SWEEP_H
#define SLM_HARNESS_REPORT_REPORT_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/result/row.h"

/* rows[n] are those of dir, marked (roofs.h) and joined (quality_rows.h). one_by_one:
 * models were measured one after the other, so that rounds are of one model each.
 * Errors, after all has been printed: where no point has a figure, ST_NO_MEMORY
 * (nothing fits) or ST_CHECK; ST_PARTIAL where some ended by an error; ST_INTERRUPTED,
 * while charts were drawn. */
enum status report_sweep(FILE *f, const char *dir, const struct row *rows, size_t n,
                         bool one_by_one, bool charts, struct err *err);

#endif
