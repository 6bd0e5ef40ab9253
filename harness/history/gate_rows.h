/* SPDX-License-Identifier: MIT
 *
 * gate_rows.h - the rows that a gate is given, and this machine
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_HISTORY_GATE_ROWS_H
#define SLM_HARNESS_HISTORY_GATE_ROWS_H

#include "engine/base/status.h"
#include "harness/gate/gate_options.h"
#include "harness/history/history.h"
#include "harness/machine/topology.h"

/* This machine's profile. topo (may be NULL) gets its topology. Errors: those of
 * topology_read(). */
enum status gate_machine_here(struct machine_key *key, struct topology *topo,
                              struct err *err);

/* What --rows names, into h (zeroed before). Errors: of history_read(); ST_USAGE
 * (nothing is named). */
enum status gate_rows_read(struct history *h, const struct gate_options *o,
                           struct err *err);

/* One history, as --baseline or --history names it. Errors: of history_read(). */
enum status gate_history_read(struct history *h, const struct gate_options *o,
                              const char *path, struct err *err);

#endif
