/* SPDX-License-Identifier: MIT
 *
 * history_db_impl.h - shared by history_db.c (rows) and history_db_open.c (files)
 *
 * Threading: a connection belongs to one thread.
 */
#ifndef SLM_HARNESS_HISTORY_HISTORY_DB_IMPL_H
#define SLM_HARNESS_HISTORY_HISTORY_DB_IMPL_H

#include <sqlite3.h>

#include "engine/base/status.h"
#include "harness/machine/machine_key.h"

#define HISTORY_DB_ID 0x534c4d62 /* "SLMb", the application_id */

/* The sentence of what db has failed at. db NULL: no memory. */
enum status history_db_fail(sqlite3 *db, const char *path, struct err *err);

/* Statements without results. Errors: as history_db_fail(). */
enum status history_db_sql(sqlite3 *db, const char *path, const char *sql,
                           struct err *err);

/* The number that a statement's first row begins with; -1: none. */
long long history_db_number(sqlite3 *db, const char *sql);

/* Open with the limits of a file of somebody else; the caller closes. flags: those of
 * sqlite3_open_v2(). Until history_db_check() the file has a bound of work, in
 * proportion to its size; statements end when interrupted(). Errors: as
 * history_db_fail(); ST_INPUT (a journal beside the file that would change another
 * file, or is none), ST_NO_MEMORY. */
enum status history_db_open(sqlite3 **db, const char *path, int flags, struct err *err);

/* All that write does to the database at path, which is made if it is not there, or
 * nothing; write NULL: only whether there could be anything. Errors:
 * history_db_record()'s, and those of write. */
typedef enum status history_db_write_fn(sqlite3 *db, const char *path, void *arg,
                                        struct err *err);
enum status history_db_write(const char *path, history_db_write_fn *write, void *arg,
                             struct err *err);

/* Store a profile, if it is not there; id gets its key. Errors: as history_db_fail().
 */
enum status history_db_machine(sqlite3 *db, const char *path,
                               const struct machine_key *machine, char id[24],
                               struct err *err);

/* Text of a statement's column, harmless for a terminal; "" where at is below 0. */
void history_db_text(sqlite3_stmt *s, int at, char *buf, size_t cap);

/* Whether the file is a database of results that may be read. Errors: ST_INPUT (another
 * program's, damaged, or with tables that compute). */
enum status history_db_check(sqlite3 *db, const char *path, struct err *err);

/* What follows needs no bound of work: history_db_check() did not say so, as the file
 * of this thread is new. */
void history_db_is_checked(void);

/* The same before rows are added. Error: ST_INPUT (tables that compute when they are
 * written). */
enum status history_db_check_plain(sqlite3 *db, const char *path, struct err *err);

#endif
