/* SPDX-License-Identifier: MIT
 *
 * history_db.c - a history's rows to SQLite and back
 *
 * The schema comes from fields.def. Names of columns are C identifiers, so that they
 * need no care within a statement; everything else is bound.
 */
#include "harness/history/history_db.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/invoker.h"
#include "harness/base/format.h"
#include "harness/history/history_db_impl.h"

#define SQL_MAX 8192

/* Columns of `rows` before those of fields.def. */
static const char *const run_columns[] = {"run",      "run_utc", "commit_id", "version",
                                          "compiler", "host",    "machine"};
#define N_RUN_COLUMNS (sizeof run_columns / sizeof run_columns[0])
#define MACHINE       (N_RUN_COLUMNS - 1)

/* ---- the schema ----------------------------------------------------------------- */

static const char *sql_type(const struct field *f)
{
    return field_is_text(f) ? "TEXT" : f->kind == FIELD_KIND_INT ? "INTEGER" : "REAL";
}

static void append(char *sql, const char *lead, const char *name, const char *tail)
{
    const size_t used = strlen(sql);

    snprintf(sql + used, SQL_MAX - used, "%s%s%s", lead, name, tail);
}

static enum status make_tables(sqlite3 *db, const char *path, struct err *err)
{
    char sql[SQL_MAX] = "CREATE TABLE rows (";
    size_t n;
    const struct field *f = row_fields(&n);

    for (size_t i = 0; i < N_RUN_COLUMNS; i++)
        append(sql, "", run_columns[i], i == MACHINE ? " TEXT, " : " TEXT NOT NULL, ");
    for (size_t i = 0; i < n; i++) {
        append(sql, "", f[i].name, " ");
        append(sql, "", sql_type(&f[i]), ", ");
    }
    append(sql, "PRIMARY KEY (run, point, attempt, utc)) WITHOUT ROWID;",
           "CREATE TABLE machines (machine TEXT PRIMARY KEY, name TEXT NOT NULL, "
           "profile TEXT NOT NULL) WITHOUT ROWID;",
           "");
    return history_db_sql(db, path, sql, err);
}

/* Columns that this version knows and the file does not. */
static enum status add_columns(sqlite3 *db, const char *path, struct err *err)
{
    size_t n;
    const struct field *f = row_fields(&n);
    enum status st = ST_OK;

    for (size_t i = 0; i < n && st == ST_OK; i++) {
        char sql[SQL_MAX] = "";

        append(sql, "SELECT count(*) FROM pragma_table_info('rows') WHERE name = '",
               f[i].name, "'");
        if (history_db_number(db, sql) != 0)
            continue;
        snprintf(sql, sizeof sql, "ALTER TABLE rows ADD COLUMN %s %s", f[i].name,
                 sql_type(&f[i]));
        st = history_db_sql(db, path, sql, err);
    }
    return st;
}

/* ---- writing -------------------------------------------------------------------- */

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
    else if (sqlite3_prepare_v2(db, "INSERT OR IGNORE INTO machines VALUES (?, ?, ?)",
                                -1, &s, NULL) != SQLITE_OK)
        st = history_db_fail(db, path, err);
    if (st == ST_OK) {
        bind_text(s, 1, id);
        bind_text(s, 2, machine_key_name(machine, name, sizeof name));
        bind_text(s, 3, profile);
        if (sqlite3_step(s) != SQLITE_DONE)
            st = history_db_fail(db, path, err);
    }
    sqlite3_finalize(s);
    free(profile);
    json_decref(object);
    return st;
}

static void bind_run(sqlite3_stmt *s, const struct history_run *run, const char *commit)
{
    char id[24];
    int at = 1;

    machine_id(&run->machine, id);
    bind_text(s, at++, run->id);
    bind_text(s, at++, run->utc);
    bind_text(s, at++, commit ? commit : run->commit);
    bind_text(s, at++, run->version);
    bind_text(s, at++, run->compiler);
    bind_text(s, at++, run->host);
    if (run->has_machine)
        bind_text(s, at++, id);
    else
        sqlite3_bind_null(s, at++);
}

static sqlite3_stmt *prepare_insert(sqlite3 *db)
{
    char sql[SQL_MAX] = "INSERT OR IGNORE INTO rows (", marks[1024] = "";
    size_t n, used = 0;
    const struct field *f = row_fields(&n);
    sqlite3_stmt *s = NULL;

    for (size_t i = 0; i < N_RUN_COLUMNS + n; i++) {
        append(sql, i ? ", " : "",
               i < N_RUN_COLUMNS ? run_columns[i] : f[i - N_RUN_COLUMNS].name, "");
        used += (size_t)snprintf(marks + used, sizeof marks - used, i ? ", ?" : "?");
    }
    append(sql, ") VALUES (", marks, ")");
    return sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK ? s : NULL;
}

/* What history_db_record() writes. */
struct record {
    const struct history *h;
    const char *commit;
    size_t n_new;
};

static enum status write_rows(sqlite3 *db, const char *path, void *arg, struct err *err)
{
    struct record *record = arg;
    const struct history *h = record->h;
    char id[24];
    size_t n;
    const struct field *f = row_fields(&n);
    sqlite3_stmt *s = prepare_insert(db);
    enum status st = s ? ST_OK : history_db_fail(db, path, err);

    for (size_t r = 0; r < h->n_runs && st == ST_OK; r++)
        if (h->runs[r].has_machine)
            st = history_db_machine(db, path, &h->runs[r].machine, id, err);
    for (size_t i = 0; i < h->n_rows && st == ST_OK; i++) {
        bind_run(s, &h->runs[h->run_of[i]], record->commit);
        for (size_t k = 0; k < n; k++)
            bind_cell(s, (int)(N_RUN_COLUMNS + k + 1), &h->rows[i], &f[k]);
        if (sqlite3_step(s) != SQLITE_DONE)
            st = history_db_fail(db, path, err);
        record->n_new += st == ST_OK ? (size_t)sqlite3_changes(db) : 0;
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return st;
}

/* Within a transaction that has the file for itself. */
static enum status prepare_file(sqlite3 *db, const char *path, struct err *err)
{
    const long long n_tables =
        history_db_number(db, "SELECT count(*) FROM sqlite_schema");
    char sql[64];
    enum status st;

    if (n_tables != 0) {
        st = history_db_check(db, path, err);
        if (st == ST_OK)
            st = history_db_check_plain(db, path, err);
        return st ? st : add_columns(db, path, err);
    }
    history_db_is_checked();
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d", HISTORY_DB_ID);
    st = history_db_sql(db, path, sql, err);
    return st ? st : make_tables(db, path, err);
}

/* SQLite takes an empty file for a new database, and gives its journal to the file's
 * owner. */
static enum status make_file(const char *path, bool *is_new, struct err *err)
{
    int fd;

    *is_new = false;
    if (!access(path, F_OK))
        return ST_OK;
    fd = invoker_open(path, O_RDWR);
    if (fd < 0)
        return err_set_errno(err, ST_IO, "cannot make %.300s", path);
    close(fd);
    *is_new = true;
    return ST_OK;
}

/* A file that was made for rows that cannot be stored; not one that another program has
 * added rows to meanwhile. */
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
    st = make_file(path, &is_new, err);
    if (st)
        return st;
    st = history_db_open(&db, path, SQLITE_OPEN_READWRITE, err);
    if (st && is_new)
        remove_empty(path);
    if (st)
        return st;
    st = history_db_sql(db, path, "PRAGMA synchronous = FULL; BEGIN IMMEDIATE", err);
    if (st == ST_OK) {
        st = prepare_file(db, path, err);
        if (st == ST_OK && write)
            st = write(db, path, arg, err);
        if (st == ST_OK && write)
            st = history_db_sql(db, path, "COMMIT", err);
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

enum status history_db_record(const char *path, const struct history *h,
                              const char *commit, size_t *n_new, struct err *err)
{
    struct record record = {.h = h, .commit = commit};
    const enum status st = history_db_write(path, write_rows, &record, err);

    if (st == ST_OK)
        *n_new = record.n_new;
    return st;
}

/* ---- reading -------------------------------------------------------------------- */

struct reader {
    const char *path;
    sqlite3 *db;
    sqlite3_stmt *rows;
    const struct field **column; /* NULL: not one of fields.def */
    int at[N_RUN_COLUMNS];       /* where the run's columns are; -1: nowhere */
    int n_columns;
};

void history_db_text(sqlite3_stmt *s, int at, char *buf, size_t cap)
{
    const char *text = at < 0 ? NULL : (const char *)sqlite3_column_text(s, at);

    text_harmless(buf, cap, text);
}

static enum status bad_cell(const struct reader *r, const struct field *f,
                            struct err *err)
{
    return err_set(err, ST_INPUT, "%s, table rows: a value of column %s is not a %s",
                   r->path, f->name,
                   field_is_text(f)            ? "text"
                   : f->kind == FIELD_KIND_INT ? "whole number"
                                               : "number");
}

static enum status read_cell(const struct reader *r, struct row *row,
                             const struct field *f, int at, struct err *err)
{
    const int type = sqlite3_column_type(r->rows, at);
    void *cell = (char *)row + f->offset;

    if (type == SQLITE_NULL)
        return ST_OK;
    if (field_is_text(f)) {
        char text[ROW_CELL_MAX];

        if (type != SQLITE_TEXT)
            return bad_cell(r, f, err);
        history_db_text(r->rows, at, text, sizeof text);
        row_set_text(row, f, text);
    } else if (f->kind == FIELD_KIND_INT) {
        if (type != SQLITE_INTEGER)
            return bad_cell(r, f, err);
        *(int64_t *)cell = sqlite3_column_int64(r->rows, at);
    } else {
        const double v = sqlite3_column_double(r->rows, at);

        if ((type != SQLITE_FLOAT && type != SQLITE_INTEGER) || !isfinite(v))
            return bad_cell(r, f, err);
        *(double *)cell = v;
    }
    return ST_OK;
}

/* The profile of a machine; none if the database has none, or one that is none. */
static bool read_machine(const struct reader *r, struct machine_key *key)
{
    bool found = false;
    sqlite3_stmt *s = NULL;

    if (sqlite3_column_type(r->rows, r->at[MACHINE]) != SQLITE_TEXT ||
        sqlite3_prepare_v2(r->db, "SELECT profile FROM machines WHERE machine = ?", -1,
                           &s, NULL) != SQLITE_OK)
        return false;
    sqlite3_bind_value(s, 1, sqlite3_column_value(r->rows, r->at[MACHINE]));
    if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_TEXT)
        found = machine_key_parse(key, (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
    return found;
}

static enum status read_run(struct reader *r, struct history *h, struct err *err)
{
    struct history_run *run;
    const enum status st = history_add_run(h, r->path, &run, err);

    if (st)
        return st;
    history_db_text(r->rows, r->at[0], run->id, sizeof run->id);
    history_db_text(r->rows, r->at[1], run->utc, sizeof run->utc);
    history_db_text(r->rows, r->at[2], run->commit, sizeof run->commit);
    history_db_text(r->rows, r->at[3], run->version, sizeof run->version);
    history_db_text(r->rows, r->at[4], run->compiler, sizeof run->compiler);
    history_db_text(r->rows, r->at[5], run->host, sizeof run->host);
    run->has_machine = read_machine(r, &run->machine);
    return ST_OK;
}

static enum status match_columns(struct reader *r, struct err *err)
{
    r->n_columns = sqlite3_column_count(r->rows);
    r->column = calloc((size_t)r->n_columns + 1, sizeof(const struct field *));
    if (!r->column)
        return err_set(err, ST_NO_MEMORY, "no memory for the columns of %s", r->path);
    for (size_t k = 0; k < N_RUN_COLUMNS; k++)
        r->at[k] = -1;
    for (int i = 0; i < r->n_columns; i++) {
        const char *name = sqlite3_column_name(r->rows, i);

        r->column[i] = name ? row_field(name) : NULL;
        for (size_t k = 0; name && k < N_RUN_COLUMNS; k++)
            if (!strcmp(name, run_columns[k]))
                r->at[k] = i;
    }
    for (size_t k = 0; k < N_RUN_COLUMNS; k++)
        if (r->at[k] < 0)
            return err_set(err, ST_INPUT, "%s: table rows has no column %s", r->path,
                           run_columns[k]);
    return ST_OK;
}

static enum status read_rows(struct reader *r, struct history *h, struct err *err)
{
    char id[24], last[24] = "";
    enum status st = match_columns(r, err);
    size_t n = 0;

    while (st == ST_OK) {
        const int rc = sqlite3_step(r->rows);
        struct row row;

        if (rc == SQLITE_DONE)
            break;
        if (rc != SQLITE_ROW)
            return history_db_fail(r->db, r->path, err);
        history_db_text(r->rows, r->at[0], id, sizeof id);
        if (n++ == 0 || strcmp(id, last))
            st = read_run(r, h, err);
        memcpy(last, id, sizeof last);
        row_init(&row);
        for (int i = 0; i < r->n_columns && st == ST_OK; i++)
            if (r->column[i])
                st = read_cell(r, &row, r->column[i], i, err);
        if (st == ST_OK)
            st = history_add_row(h, r->path, &row, err);
    }
    return st;
}

enum status history_db_read(struct history *h, const char *path, struct err *err)
{
    struct reader r = {.path = path};
    enum status st = history_db_open(&r.db, path, SQLITE_OPEN_READONLY, err);

    if (st)
        return st;
    st = history_db_check(r.db, path, err);
    if (st == ST_OK && sqlite3_prepare_v2(r.db, "SELECT * FROM rows ORDER BY run, utc",
                                          -1, &r.rows, NULL) != SQLITE_OK)
        st = history_db_fail(r.db, path, err);
    if (st == ST_OK)
        st = read_rows(&r, h, err);
    sqlite3_finalize(r.rows);
    free(r.column);
    sqlite3_close(r.db);
    return st;
}
