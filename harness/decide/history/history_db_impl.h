/* SPDX-License-Identifier: MIT
 *
 * history_db_impl.h - writing to a database, shared by rows (history_db.c) and gates
 *
 * Threading: a connection belongs to one thread.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_HISTORY_DB_IMPL_H
#define SLM_HARNESS_DECIDE_HISTORY_HISTORY_DB_IMPL_H

#include "harness/machine/machine_key.h"
#include "harness/rows/result_db.h"

/* All that write does to the database at path, which is made if it is not there, or
 * nothing; write NULL: only whether there could be anything. Errors:
 * history_db_record()'s, and those of write. */
typedef enum status history_db_write_fn(sqlite3 *db, const char *path, void *arg,
                                        struct err *err);
enum status history_db_write(const char *path, history_db_write_fn *write, void *arg,
                             struct err *err);

/* Store a profile, if it is not there; id gets its key. Errors: as result_db_fail(). */
enum status history_db_machine(sqlite3 *db, const char *path,
                               const struct machine_key *machine, char id[24],
                               struct err *err);

#endif
