/* SPDX-License-Identifier: MIT
 *
 * result_db.h - databases of results: SQLite files of somebody else, opened and checked
 *
 * Threading: a connection belongs to one thread.
 */
#ifndef SLM_HARNESS_ROWS_RESULT_DB_H
#define SLM_HARNESS_ROWS_RESULT_DB_H

#include <stdbool.h>
#include <stddef.h>
#include <sqlite3.h>

#include "engine/base/status.h"

#define RESULT_DB_ID 0x534c4d62 /* "SLMb", the application_id */

/* Whether a file that begins so is an SQLite database. */
bool result_db_is(const char *start);

/* The sentence of what db has failed at. db NULL: no memory. */
enum status result_db_fail(sqlite3 *db, const char *path, struct err *err);

/* Statements without results. Errors: as result_db_fail(). */
enum status result_db_sql(sqlite3 *db, const char *path, const char *sql,
                          struct err *err);

/* The number that a statement's first row begins with; -1: none. */
long long result_db_number(sqlite3 *db, const char *sql);

/* Text of a statement's column, harmless for a terminal; "" where at is below 0. */
void result_db_text(sqlite3_stmt *s, int at, char *buf, size_t cap);

/* Open with the limits of a file of somebody else; the caller closes. flags: those of
 * sqlite3_open_v2(). Until result_db_check() the file has a bound of work, in
 * proportion to its size; statements end when interrupted(). Errors: as
 * result_db_fail(); ST_INPUT (a journal next to the file that would change another
 * file, or is none), ST_NO_MEMORY. */
enum status result_db_open(sqlite3 **db, const char *path, int flags, struct err *err);

/* Whether the file is a database of results that may be read. Errors: ST_INPUT (another
 * program's, damaged, or with tables that compute). */
enum status result_db_check(sqlite3 *db, const char *path, struct err *err);

/* The file is this thread's new one, which needs neither result_db_check() nor a bound
 * of work. */
void result_db_is_checked(void);

#endif
