/* SPDX-License-Identifier: MIT
 *
 * result_db_open.c - opening a database of somebody else, and what makes one safe to
 * read
 */
#include "harness/rows/result_db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"

#define BUSY_MS      60000
#define BUSY_LOOK_MS 50
#define MAX_VALUE    (64 << 10)  /* bytes, far above any cell, row or profile */
#define MAX_HEAP     (256 << 20) /* of SQLite, whatever a file makes it hold */
#define STEPS        10000 /* of SQLite's programs, between two looks at the clock */

/* Steps that a file may take until it was checked: checking one of a gigabyte takes
 * less than one for each byte. */
#define STEPS_OF_BYTE 16
#define STEPS_OF_FILE (UINT64_C(1) << 20)

bool result_db_is(const char *start)
{
    return !strncmp(start, "SQLite format 3", 15);
}

/* The last lock was refused since the file system has no locks, as some NFS mounts. */
static bool lacks_locks;

/* ---- errors, and statements ------------------------------------------------------ */

enum status result_db_fail(sqlite3 *db, const char *path, struct err *err)
{
    const int code = db ? sqlite3_errcode(db) & 0xff : SQLITE_NOMEM;
    const char *text = db ? sqlite3_errmsg(db) : "out of memory";

    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (code == SQLITE_INTERRUPT)
        return err_set(
            err, ST_INPUT,
            "%s is not a complete database of results: reading it takes more "
            "work than any of its size",
            path);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR ||
        code == SQLITE_TOOBIG)
        return err_set(err, ST_INPUT,
                       "%s is not a complete database of results: %.200s", path, text);
    if (code == SQLITE_CONSTRAINT)
        return err_set(err, ST_INPUT,
                       "%s: its tables have constraints that are not of `bench history "
                       "add` (%.200s); add the rows to a new database",
                       path, text);
    if (code == SQLITE_NOMEM)
        return err_set(
            err, ST_NO_MEMORY,
            "database %s: no memory, or more than the %d MiB that SQLite may "
            "take for it",
            path, MAX_HEAP >> 20);
    if (code == SQLITE_FULL)
        return err_set(err, ST_IO, "%s: the disk is full, so nothing was added", path);
    if (code == SQLITE_READONLY)
        return err_set(err, ST_PERMISSION, "%s cannot be written: %.200s", path, text);
    if (code == SQLITE_BUSY && lacks_locks)
        return err_set(err, ST_IO,
                       "%s: its file system has no locks, without which two programs "
                       "could damage it; use a local disk",
                       path);
    if (code == SQLITE_BUSY)
        return err_set(err, ST_IO,
                       "%s: another program has kept it locked for %d s; try again",
                       path, BUSY_MS / 1000);
    return err_set(err, ST_IO, "database %s: %.200s", path, text);
}

enum status result_db_sql(sqlite3 *db, const char *path, const char *sql,
                          struct err *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? ST_OK
               : result_db_fail(db, path, err);
}

long long result_db_number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s;
    long long n = -1;

    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        n = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

void result_db_text(sqlite3_stmt *s, int at, char *buf, size_t cap)
{
    const char *text = at < 0 ? NULL : (const char *)sqlite3_column_text(s, at);

    text_harmless(buf, cap, text);
}

/* ---- opening --------------------------------------------------------------------- */

/* SQLite undoes what a killed program has left in the journal next to a database. A
 * journal of several databases ends with the name of a further file, which SQLite then
 * deletes, whatever it is; this program writes none. A pipe would be waited for. */
static enum status check_journal(const char *path, struct err *err)
{
    static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9,
                                           0x20, 0xa1, 0x63, 0xd7};
    char *real = realpath(path, NULL), *name = NULL;
    unsigned char end[8] = {0};
    struct stat st;
    bool hostile = false;

    if (!real)
        return err_set_errno(err, ST_INPUT, "cannot read %s", path);
    if (asprintf(&name, "%s-journal", real) < 0) {
        free(real);
        return err_set(err, ST_NO_MEMORY, "no memory for the name of %s", path);
    }
    const int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);

    if (fd >= 0)
        hostile = fstat(fd, &st) || !S_ISREG(st.st_mode) ||
                  (pread(fd, end, sizeof end, st.st_size - (off_t)sizeof end) ==
                       (ssize_t)sizeof end &&
                   !memcmp(end, magic, sizeof end));
    else
        hostile = errno != ENOENT;
    if (fd >= 0)
        close(fd);
    free(name);
    free(real);
    if (!hostile)
        return ST_OK;
    return err_set(err, ST_INPUT,
                   "%s-journal, by which SQLite would restore the database, names "
                   "another file or is none; remove it",
                   path);
}

/* What the check of this thread's file may still use. */
static _Thread_local uint64_t steps_left;

static int on_steps(void *ignored)
{
    (void)ignored;
    if (steps_left != UINT64_MAX)
        steps_left -= steps_left < STEPS ? steps_left : STEPS;
    return steps_left == 0 || interrupted();
}

/* Another program has it locked: n times it was waited for. */
static int on_busy(void *ignored, int n)
{
    (void)ignored;
    lacks_locks = errno == ENOLCK; /* SQLite takes it for a lock that somebody holds */
    if (lacks_locks)
        return 0;
    sqlite3_sleep(BUSY_LOOK_MS);
    return n < BUSY_MS / BUSY_LOOK_MS && !interrupted();
}

void result_db_is_checked(void)
{
    steps_left = UINT64_MAX;
}

/* What is in the file is data of somebody else: no triggers, views or functions of its
 * schema may run, no value may be large, nor what SQLite keeps of them. */
enum status result_db_open(sqlite3 **db, const char *path, int flags, struct err *err)
{
    enum status st = check_journal(path, err);

    if (st)
        return st;
    struct stat file = {.st_size = 0};
    const int rc = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc != SQLITE_OK) {
        st = result_db_fail(*db, path, err);
        sqlite3_close(*db);
        return st;
    }
    sqlite3_busy_handler(*db, on_busy, NULL);
    (void)stat(path, &file);
    steps_left = STEPS_OF_FILE + STEPS_OF_BYTE * (uint64_t)file.st_size;
    sqlite3_progress_handler(*db, STEPS, on_steps, NULL);
    sqlite3_extended_result_codes(*db, 1);
    sqlite3_limit(*db, SQLITE_LIMIT_LENGTH, MAX_VALUE);
    sqlite3_hard_heap_limit64(MAX_HEAP);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    st = result_db_sql(
        *db, path, "PRAGMA cell_size_check = ON; PRAGMA ignore_check_constraints = ON",
        err);
    if (st)
        sqlite3_close(*db);
    return st;
}

/* The first line of a check's result after one that names the database. */
static const char *first_problem(sqlite3_stmt *s, int *len)
{
    const char *text = (const char *)sqlite3_column_text(s, 0);

    if (!text)
        text = "no memory to check it";
    if (!strncmp(text, "***", 3))
        text += strcspn(text, "\n") + (strchr(text, '\n') != NULL);
    *len = (int)strcspn(text, "\n");
    return text;
}

/* Pages that are in a tree more than once would be rows without an end. */
static enum status check_tree(sqlite3 *db, const char *path, const char *table,
                              struct err *err)
{
    sqlite3_stmt *s = NULL;
    char sql[64];
    enum status st = ST_OK;

    snprintf(sql, sizeof sql, "PRAGMA quick_check('%s')", table);
    if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK ||
        sqlite3_step(s) != SQLITE_ROW) {
        st = result_db_fail(db, path, err);
    } else {
        int len;
        const char *text = first_problem(s, &len);

        if (strcmp(text, "ok"))
            st =
                err_set(err, ST_INPUT, "%s is not a complete database of results: %.*s",
                        path, len, text);
    }
    sqlite3_finalize(s);
    return st;
}

enum status result_db_check(sqlite3 *db, const char *path, struct err *err)
{
    enum status st;

    if (result_db_sql(db, path, "SELECT count(*) FROM sqlite_schema", err))
        return err->code;
    if (result_db_number(db, "PRAGMA application_id") != RESULT_DB_ID ||
        result_db_number(db,
                         "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND "
                         "name IN ('rows', 'machines')") != 2)
        return err_set(
            err, ST_INPUT,
            "%s is a database of another program; `bench history add %s DIR` "
            "makes one of results",
            path, path);
    /* A table is what its SQL makes, whatever is in the other columns: a virtual one's
     * module would run as soon as its columns are looked at. */
    if (result_db_number(
            db,
            "SELECT count(*) FROM sqlite_schema WHERE sql IS NOT NULL AND NOT (sql "
            "GLOB 'CREATE TABLE *' OR sql GLOB 'CREATE INDEX *' OR sql GLOB 'CREATE "
            "UNIQUE INDEX *' OR sql GLOB 'CREATE VIEW *' OR sql GLOB 'CREATE TRIGGER "
            "*')") != 0 ||
        /* rootpage 0: a view; 2 and 3: generated columns, which make values that nobody
         * has stored */
        result_db_number(
            db, "SELECT count(*) FROM sqlite_schema AS s WHERE s.name IN ('rows', "
                "'machines', 'gates') AND (s.rootpage = 0 OR EXISTS (SELECT 1 FROM "
                "pragma_table_xinfo(s.name) WHERE hidden <> 0))") != 0)
        return err_set(
            err, ST_INPUT,
            "%s: its tables are not as `bench history add` makes them: one is "
            "virtual or has generated columns",
            path);
    st = check_tree(db, path, "rows", err);
    if (st == ST_OK)
        st = check_tree(db, path, "machines", err);
    if (st == ST_OK &&
        result_db_number(db,
                         "SELECT count(*) FROM sqlite_schema WHERE name = 'gates'") > 0)
        st = check_tree(db, path, "gates", err);
    if (st == ST_OK)
        result_db_is_checked();
    return st;
}
