/* SPDX-License-Identifier: MIT
 *
 * baseline.h - new rows against the history of the same machine, model and settings
 *
 * Only rows that were measured before the new ones count, without the new rows
 * themselves if they are stored already, and only since the series last changed
 * (change.h).
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_BASELINE_H
#define SLM_HARNESS_DECIDE_HISTORY_BASELINE_H

#include "harness/decide/gate/gate_result.h"
#include "harness/decide/history/series.h"

/* Margins of columns that have one of their own; the others have the rule's. */
struct baseline_margins {
    double memory, load; /* for columns mem_*; for load_s and ttft_s */
};

/* Judge every series of fresh that the history old knows, and fill in of *r: verdict,
 * end, metrics, both sides' commits and versions, cpu, model, settings, notes, advice,
 * numbers of launches and rounds. r->rule is set. Errors: ST_UNSUPPORTED (nothing can
 * be judged: names what differs, or how many runs are missing), ST_USAGE (more series
 * than a gate can have), ST_INPUT (no usable new row), ST_NO_MEMORY. */
enum status baseline_compare(struct gate_result *r, const struct result_set *old,
                             const struct result_set *fresh,
                             const struct series_choice *choice,
                             const struct baseline_margins *margins, struct err *err);

#endif
