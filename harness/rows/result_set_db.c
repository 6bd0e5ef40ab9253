/* SPDX-License-Identifier: MIT
 *
 * result_set_db.c - rows of a database of results
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/rows/result_db.h"
#include "harness/rows/result_set_impl.h"

/* Columns of `rows` that name the run of a row; the last is a key of `machines`. */
enum { MACHINE = RESULT_RUN_COLUMNS, N_COLUMNS };

static const char *column_name(size_t k)
{
    return k < RESULT_RUN_COLUMNS ? result_run_columns[k] : "machine";
}

struct reader {
    const char *path;
    sqlite3 *db;
    sqlite3_stmt *rows;
    const struct field **column; /* NULL: not one of fields.def */
    int at[N_COLUMNS];           /* where the run's columns are; -1: nowhere */
    int n_columns;
};

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
        result_db_text(r->rows, at, text, sizeof text);
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

/* The profile of the run's machine, if the database has a valid one. */
static void read_machine(const struct reader *r, struct result_run *run)
{
    sqlite3_stmt *s = NULL;

    if (sqlite3_column_type(r->rows, r->at[MACHINE]) != SQLITE_TEXT ||
        sqlite3_prepare_v2(r->db, "SELECT profile FROM machines WHERE machine = ?", -1,
                           &s, NULL) != SQLITE_OK)
        return;
    sqlite3_bind_value(s, 1, sqlite3_column_value(r->rows, r->at[MACHINE]));
    if (sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_TEXT)
        result_run_set_machine(run, (const char *)sqlite3_column_text(s, 0));
    sqlite3_finalize(s);
}

static enum status read_run(struct reader *r, struct result_set *set, struct err *err)
{
    struct result_run *run;

    if (result_set_add_run(set, r->path, &run, err))
        return err->code;
    for (size_t k = 0; k < RESULT_RUN_COLUMNS; k++)
        result_run_set(run, k, (const char *)sqlite3_column_text(r->rows, r->at[k]));
    read_machine(r, run);
    return ST_OK;
}

static enum status match_columns(struct reader *r, struct err *err)
{
    r->n_columns = sqlite3_column_count(r->rows);
    r->column = calloc((size_t)r->n_columns + 1, sizeof(const struct field *));
    if (!r->column)
        return err_set(err, ST_NO_MEMORY, "no memory for the columns of %s", r->path);
    for (size_t k = 0; k < N_COLUMNS; k++)
        r->at[k] = -1;
    for (int i = 0; i < r->n_columns; i++) {
        const char *name = sqlite3_column_name(r->rows, i);

        if (!name)
            return err_set(err, ST_NO_MEMORY, "no memory for the columns of %s",
                           r->path);
        r->column[i] = row_field(name);
        for (size_t k = 0; k < N_COLUMNS; k++)
            if (!strcmp(name, column_name(k)))
                r->at[k] = i;
    }
    for (size_t k = 0; k < N_COLUMNS; k++)
        if (r->at[k] < 0)
            return err_set(err, ST_INPUT, "%s: table rows has no column %s", r->path,
                           column_name(k));
    return ST_OK;
}

static enum status read_rows(struct reader *r, struct result_set *set, struct err *err)
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
            return result_db_fail(r->db, r->path, err);
        result_db_text(r->rows, r->at[0], id, sizeof id);
        if (n++ == 0 || strcmp(id, last))
            st = read_run(r, set, err);
        memcpy(last, id, sizeof last);
        row_init(&row);
        for (int i = 0; i < r->n_columns && st == ST_OK; i++)
            if (r->column[i])
                st = read_cell(r, &row, r->column[i], i, err);
        if (st == ST_OK)
            st = result_set_add_row(set, r->path, &row, err);
    }
    return st;
}

enum status result_set_read_db(struct result_set *set, const char *path,
                               struct err *err)
{
    const size_t first = set->n_rows;
    struct reader r = {.path = path};
    enum status st = result_db_open(&r.db, path, SQLITE_OPEN_READONLY, err);

    if (st)
        return st;
    st = result_db_check(r.db, path, err);
    if (st == ST_OK && sqlite3_prepare_v2(r.db, "SELECT * FROM rows ORDER BY run, utc",
                                          -1, &r.rows, NULL) != SQLITE_OK)
        st = result_db_fail(r.db, path, err);
    if (st == ST_OK)
        st = read_rows(&r, set, err);
    sqlite3_finalize(r.rows);
    free(r.column);
    sqlite3_close(r.db);
    return st ? st : result_set_settle(set, path, first, err);
}
