/* SPDX-License-Identifier: MIT
 *
 * history_db.c - rows of a result set to SQLite
 *
 * The schema comes from fields.def. Names of columns are C identifiers, so that they
 * need no care within a statement; everything else is bound.
 */
#include "harness/decide/history/history_db.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/invoker.h"
#include "harness/base/format.h"
#include "harness/base/progress.h"
#include "harness/decide/history/history_db_impl.h"

#define SQL_MAX 8192

/* Places of an inserted row's values, from 1: the run's texts, its machine, then the
 * columns of fields.def. */
enum { COMMIT = 3, MACHINE = RESULT_RUN_COLUMNS + 1 };

/* ---- the schema ------------------------------------------------------------------ */

static const char *sql_type(const struct field *f)
{
    return field_is_text(f) ? "TEXT" : f->kind == FIELD_KIND_INT ? "INTEGER" : "REAL";
}

static enum status make_tables(sqlite3 *db, const char *path, struct err *err)
{
    char sql[SQL_MAX] = "CREATE TABLE rows (";

    for (size_t i = 0; i < RESULT_RUN_COLUMNS; i++)
        text_append(sql, sizeof sql, "%s TEXT NOT NULL, ", result_run_columns[i]);
    text_append(sql, sizeof sql, "machine TEXT, ");
    for (const struct field *f = row_fields(NULL); f->name; f++)
        text_append(sql, sizeof sql, "%s %s, ", f->name, sql_type(f));
    text_append(sql, sizeof sql,
                "PRIMARY KEY (run, point, attempt, utc)) WITHOUT ROWID;"
                "CREATE TABLE machines (machine TEXT PRIMARY KEY, name TEXT NOT NULL, "
                "profile TEXT NOT NULL) WITHOUT ROWID;");
    return result_db_sql(db, path, sql, err);
}

/* Columns that this version knows and the file does not. */
static enum status add_columns(sqlite3 *db, const char *path, struct err *err)
{
    enum status st = ST_OK;

    for (const struct field *f = row_fields(NULL); f->name && st == ST_OK; f++) {
        char sql[256];

        snprintf(sql, sizeof sql,
                 "SELECT count(*) FROM pragma_table_info('rows') WHERE name = '%s'",
                 f->name);
        if (result_db_number(db, sql) != 0)
            continue;
        snprintf(sql, sizeof sql, "ALTER TABLE rows ADD COLUMN %s %s", f->name,
                 sql_type(f));
        st = result_db_sql(db, path, sql, err);
    }
    return st;
}

/* ---- writing --------------------------------------------------------------------- */

static void bind_text(sqlite3_stmt *s, int at, const char *text)
{
    sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
}

/* A cell of the key is never NULL: NULLs are never equal. */
static void bind_cell(sqlite3_stmt *s, int at, const struct row *row,
                      const struct field *f)
{
    const void *cell = (const char *)row + f->offset;
    const bool in_key = !strcmp(f->name, "point") || !strcmp(f->name, "attempt") ||
                        !strcmp(f->name, "utc");

    if (field_is_text(f) && (in_key || *row_text(row, f)))
        bind_text(s, at, row_text(row, f));
    else if (f->kind == FIELD_KIND_INT && *(const int64_t *)cell != FIELD_NO_INT)
        sqlite3_bind_int64(s, at, *(const int64_t *)cell);
    else if (f->kind == FIELD_KIND_INT && in_key)
        sqlite3_bind_int64(s, at, 0);
    else if (f->kind == FIELD_KIND_NUM && isfinite(*(const double *)cell))
        sqlite3_bind_double(s, at, *(const double *)cell);
    else
        sqlite3_bind_null(s, at);
}

static void machine_id(const struct machine_key *machine, char id[24])
{
    snprintf(id, 24, "%016llx", (unsigned long long)machine_key_hash(machine));
}

enum status history_db_machine(sqlite3 *db, const char *path,
                               const struct machine_key *machine, char id[24],
                               struct err *err)
{
    json_t *object = machine_key_json(machine);
    char *profile = json_dumps(object, JSON_COMPACT);
    char name[256];
    sqlite3_stmt *s = NULL;
    enum status st = ST_OK;

    machine_id(machine, id);
    if (!profile)
        st = err_set(err, ST_NO_MEMORY, "no memory for a machine's profile");
    else if (sqlite3_prepare_v2(db,
                                "INSERT OR ABORT INTO machines VALUES (?, ?, ?) ON "
                                "CONFLICT (machine) DO NOTHING",
                                -1, &s, NULL) != SQLITE_OK)
        st = result_db_fail(db, path, err);
    if (st == ST_OK) {
        bind_text(s, 1, id);
        bind_text(s, 2, machine_key_name(machine, name, sizeof name));
        bind_text(s, 3, profile);
        if (sqlite3_step(s) != SQLITE_DONE)
            st = result_db_fail(db, path, err);
    }
    sqlite3_finalize(s);
    free(profile);
    json_decref(object);
    return st;
}

static void bind_run(sqlite3_stmt *s, const struct result_run *run, const char *commit)
{
    char id[24];

    machine_id(&run->machine, id);
    for (size_t k = 0; k < RESULT_RUN_COLUMNS; k++)
        bind_text(s, (int)k + 1, result_run_text(run, k));
    if (commit)
        bind_text(s, COMMIT, commit);
    if (run->has_machine)
        bind_text(s, MACHINE, id);
    else
        sqlite3_bind_null(s, MACHINE);
}

/* What is there already is a row of the same key. A stranger's constraint is neither a
 * reason to leave a row out nor, with ON CONFLICT REPLACE, to delete others. */
static sqlite3_stmt *prepare_insert(sqlite3 *db)
{
    char sql[SQL_MAX] = "INSERT OR ABORT INTO rows (";
    size_t n;
    const struct field *f = row_fields(&n);
    sqlite3_stmt *s = NULL;

    for (size_t i = 0; i < RESULT_RUN_COLUMNS; i++)
        text_append(sql, sizeof sql, "%s, ", result_run_columns[i]);
    text_append(sql, sizeof sql, "machine");
    for (size_t i = 0; i < n; i++)
        text_append(sql, sizeof sql, ", %s", f[i].name);
    for (size_t i = 0; i < MACHINE + n; i++)
        text_append(sql, sizeof sql, i ? ", ?" : ") VALUES (?");
    text_append(sql, sizeof sql, ") ON CONFLICT (run, point, attempt, utc) DO NOTHING");
    return sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK ? s : NULL;
}

/* What history_db_record() writes. */
struct record {
    const struct result_set *h;
    const char *commit;
    size_t n_new;
    size_t n_other; /* not stored: another speed has their key */
};

/* Binds the key and the speed of row. */
static bool has_other_speed(sqlite3_stmt *s, const struct result_run *run,
                            const struct row *row)
{
    bool other;

    bind_text(s, 1, run->id);
    bind_text(s, 2, row->point);
    sqlite3_bind_int64(s, 3, row->attempt == FIELD_NO_INT ? 0 : row->attempt);
    bind_text(s, 4, row->utc);
    sqlite3_bind_double(s, 5, row->tok_per_s);
    other = sqlite3_step(s) == SQLITE_ROW;
    sqlite3_reset(s);
    return other;
}

static enum status write_rows(sqlite3 *db, const char *path, void *arg, struct err *err)
{
    struct record *record = arg;
    const struct result_set *h = record->h;
    char id[24];
    size_t n;
    const struct field *f = row_fields(&n);
    sqlite3_stmt *s = prepare_insert(db), *other = NULL;
    enum status st =
        s && sqlite3_prepare_v2(db,
                                "SELECT 1 FROM rows WHERE run = ? AND point = ? AND "
                                "attempt = ? AND utc = ? AND tok_per_s <> ?",
                                -1, &other, NULL) == SQLITE_OK
            ? ST_OK
            : result_db_fail(db, path, err);

    for (size_t r = 0; r < h->n_runs && st == ST_OK; r++)
        if (h->runs[r].has_machine)
            st = history_db_machine(db, path, &h->runs[r].machine, id, err);
    for (size_t i = 0; i < h->n_rows && st == ST_OK; i++) {
        bind_run(s, &h->runs[h->run_of[i]], record->commit);
        for (size_t k = 0; k < n; k++)
            bind_cell(s, (int)(MACHINE + k + 1), &h->rows[i], &f[k]);
        if (sqlite3_step(s) != SQLITE_DONE)
            st = result_db_fail(db, path, err);
        const bool is_new = st == ST_OK && sqlite3_changes(db) > 0;
        record->n_new += is_new;
        record->n_other += st == ST_OK && !is_new &&
                           has_other_speed(other, &h->runs[h->run_of[i]], &h->rows[i]);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    sqlite3_finalize(other);
    return st;
}

/* A row that is added runs what a stranger has put into defaults and indexes. */
static enum status check_plain(sqlite3 *db, const char *path, struct err *err)
{
    if (result_db_number(
            db, "SELECT (SELECT count(*) FROM pragma_table_xinfo('rows') WHERE "
                "dflt_value IS NOT NULL) + (SELECT count(*) FROM "
                "pragma_table_xinfo('machines') WHERE dflt_value IS NOT NULL) + "
                "(SELECT count(*) FROM pragma_table_xinfo('gates') WHERE dflt_value IS "
                "NOT NULL) + (SELECT count(*) FROM sqlite_schema AS s, "
                "pragma_index_list(s.name) AS l LEFT JOIN pragma_index_xinfo(l.name) "
                "AS x WHERE s.name IN ('rows', 'machines', 'gates') AND (l.partial OR "
                "x.cid = -2 OR (l.\"unique\" AND x.key AND x.coll <> 'BINARY')))") == 0)
        return ST_OK;
    return err_set(err, ST_INPUT,
                   "%s: its tables have defaults, indexes of expressions or keys that "
                   "are not of `bench history add`; add the rows to a new database",
                   path);
}

/* Within a transaction that has the file for itself. */
static enum status prepare_file(sqlite3 *db, const char *path, struct err *err)
{
    const long long n_tables =
        result_db_number(db, "SELECT count(*) FROM sqlite_schema");
    char sql[64];
    enum status st;

    if (n_tables != 0) {
        st = result_db_check(db, path, err);
        if (st == ST_OK)
            st = check_plain(db, path, err);
        return st ? st : add_columns(db, path, err);
    }
    result_db_is_checked();
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d", RESULT_DB_ID);
    return result_db_sql(db, path, sql, err) ? err->code : make_tables(db, path, err);
}

/* SQLite opens a database and its journals by their names, follows links, and writes
 * back what a journal holds. */
static enum status check_owners(const char *path, struct err *err)
{
    static const char *const files[] = {"", "-journal", "-wal", "-shm"};
    char *real = realpath(path, NULL);
    char name[PATH_MAX + 16];
    int why = invoker_check(path);

    if (why)
        invoker_fail(path, why, err);
    for (size_t i = 0; !why && i < sizeof files / sizeof *files; i++) {
        snprintf(name, sizeof name, "%s%s", real ? real : path, files[i]);
        why = invoker_check(name);
        if (why)
            invoker_fail(name, why, err);
    }
    free(real);
    return err->code;
}

/* SQLite takes an empty file for a new database, and gives its journal to the file's
 * owner. */
static enum status make_file(const char *path, bool *is_new, struct err *err)
{
    int fd;

    *is_new = false;
    if (check_owners(path, err) || !access(path, F_OK))
        return err->code;
    fd = invoker_open(path, O_RDWR);
    if (fd < 0)
        return invoker_fail(path, errno, err);
    close(fd);
    *is_new = true;
    return ST_OK;
}

/* Removes a file that was made for rows that cannot be stored, unless another program
 * has added rows by now. */
static void remove_empty(const char *path)
{
    struct stat there;

    if (!stat(path, &there) && there.st_size == 0)
        unlink(path);
}

enum status history_db_write(const char *path, history_db_write_fn *write, void *arg,
                             struct err *err)
{
    const size_t len = strlen(path);
    sqlite3 *db = NULL;
    bool is_new;
    enum status st;

    if (len > 4 && !strcmp(path + len - 4, ".csv") && access(path, F_OK))
        return err_set(err, ST_USAGE,
                       "%s: rows are added to an SQLite database; name it %.*s.db",
                       path, (int)(len - 4), path);
    if (make_file(path, &is_new, err))
        return err->code;
    st = result_db_open(&db, path, SQLITE_OPEN_READWRITE, err);
    if (st && is_new)
        remove_empty(path);
    if (st)
        return st;
    st = result_db_sql(db, path, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE", err);
    if (st == ST_OK) {
        st = prepare_file(db, path, err);
        if (st == ST_OK && write)
            st = write(db, path, arg, err);
        if (st == ST_OK && write)
            st = result_db_sql(db, path, "COMMIT", err);
        if (st || !write)
            sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    sqlite3_close(db);
    if ((st || !write) && is_new)
        remove_empty(path);
    return st;
}

enum status history_db_check_output(const char *path, struct err *err)
{
    return history_db_write(path, NULL, NULL, err);
}

/* What is left out is reported: it may be another run, by a clock that was set back. */
static void print_other(const char *path, size_t n)
{
    char text[4096 + 200];

    snprintf(text, sizeof text,
             "%s: %zu row%s not added: %s the run, point, attempt and time of a stored "
             "row, and another speed",
             format_path(path).text, n, n == 1 ? " is" : "s are",
             n == 1 ? "it has" : "each has");
    message_print(text);
}

enum status history_db_record(const char *path, const struct result_set *h,
                              const char *commit, size_t *n_new, struct err *err)
{
    struct record record = {.h = h, .commit = commit};
    const enum status st = history_db_write(path, write_rows, &record, err);

    if (st == ST_OK)
        *n_new = record.n_new;
    if (st == ST_OK && record.n_other)
        print_other(path, record.n_other);
    return st;
}
