/* SPDX-License-Identifier: MIT
 *
 * history_db.h - rows and gates stored in an SQLite database, as result_set.h reads it
 *
 * Three tables. `rows` has a row per row of a sweep: run, run_utc, commit_id, version,
 * compiler, host, machine (the key of the other table, or NULL: not known), then every
 * column of fields.def under its name. `machines` has the profiles: machine, name (for
 * people) and profile (JSON, machine_key.h). A row is known by run, point, attempt and
 * utc, so that what is stored again changes nothing. `gates`, made with the first of
 * them, has a row per measure of a gate (history_gates.h). Columns that a newer version
 * of this program knows are added when it writes.
 *
 * Threading: any number of processes may write and read; they wait for each other.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_HISTORY_DB_H
#define SLM_HARNESS_DECIDE_HISTORY_HISTORY_DB_H

#include <stddef.h>

#include "engine/base/status.h"
#include "harness/rows/result_set.h"

/* Whether history_db_record() can store rows there, or history_gates_add() a gate, as
 * far as that can be checked in advance. Errors: its own. */
enum status history_db_check_output(const char *path, struct err *err);

/* Store all of h in the database at path, which is made if it is not there: all of it,
 * or nothing. commit, if not NULL, is written in place of each run's. *n_new: rows that
 * were not there yet. Errors: ST_IO, ST_INPUT (the file is something else), ST_USAGE (a
 * new file that is named like a CSV). */
enum status history_db_record(const char *path, const struct result_set *h,
                              const char *commit, size_t *n_new, struct err *err);

#endif
