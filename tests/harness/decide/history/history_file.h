/* SPDX-License-Identifier: MIT
 *
 * history_file.h - databases of results as a stranger may make them
 */
#ifndef SLM_TESTS_HISTORY_FILE_H
#define SLM_TESTS_HISTORY_FILE_H

#include "tests/support/test.h"

#include <sqlite3.h>

#include "harness/base/interrupt.h"

#define PAGE 512

static char scratch[] = "test_history_XXXXXX";

static inline int make_scratch(void **state)
{
    (void)state;
    interrupt_catch();
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int remove_scratch(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", scratch);
    return system(command);
}

/* A database of n_rows rows, after which it runs `more`. */
static inline void make(const char *path, int n_rows, const char *more)
{
    sqlite3 *db;
    char *sql = sqlite3_mprintf(
        "PRAGMA synchronous = OFF; PRAGMA page_size = %d; PRAGMA application_id = "
        "1397509474; "
        "CREATE TABLE machines (machine TEXT PRIMARY KEY, name, profile) WITHOUT "
        "ROWID; "
        "CREATE TABLE rows (run, run_utc, commit_id, version, compiler, host, machine, "
        "point, attempt, utc, kind, status); WITH RECURSIVE n(i) AS (SELECT 1 UNION "
        "ALL "
        "SELECT i + 1 FROM n WHERE i < %d) INSERT INTO rows SELECT 'r', "
        "'2026-01-01T00:00:00Z', 'c', 'v', 'gcc', 'h', NULL, 'p' || i, 1, "
        "'2026-01-01T00:00:00Z', 'decode', 'ok' FROM n; %s",
        PAGE, n_rows, more);

    unlink(path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    sqlite3_free(sql);
}

/* The key that `bench history add` gives to rows. */
#define KEY "CREATE UNIQUE INDEX k ON rows (run, point, attempt, utc)"

#endif
