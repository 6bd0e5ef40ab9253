/* SPDX-License-Identifier: MIT
 *
 * export_read.c - rows from directories, databases and tables
 */
#include "harness/export/export.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/suggest.h"
#include "harness/history/history.h"
#include "harness/result/point/point_row.h"
#include "harness/result/report_rows.h"
#include "harness/result/results_dir.h"

static enum status add_source(struct export_sources *s, struct export_source **added,
                              struct err *err)
{
    struct export_source *grown = realloc(s->v, (s->n + 1) * sizeof *grown);

    if (!grown)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu sources of rows",
                       s->n + 1);
    s->v = grown;
    *added = &s->v[s->n++];
    memset(*added, 0, sizeof **added);
    return ST_OK;
}

static enum status read_sweep(struct export_sources *s, const char *dir,
                              struct err *err)
{
    struct export_source *to;
    struct report_machine machine;
    enum status st = add_source(s, &to, err);

    if (st)
        return st;
    results_dir_name(to->name, sizeof to->name, dir);
    report_machine_read(&machine, dir);
    memcpy(to->cpu, machine.cpu_model, sizeof to->cpu);
    st = results_dir_files(&s->files, dir, err);
    if (st)
        return st;
    st = report_rows_read(dir, &to->rows, &to->n, err);
    return st ? st : samples_read(&to->samples, dir, err);
}

/* Rows of one run stand beside each other. */
static enum status add_run(struct export_sources *s, const struct history *h,
                           size_t begin, size_t end, struct err *err)
{
    const struct history_run *run = &h->runs[h->run_of[begin]];
    struct export_source *to;
    enum status st = add_source(s, &to, err);

    if (st)
        return st;
    to->rows = malloc((end - begin) * sizeof *to->rows);
    if (!to->rows)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", end - begin);
    memcpy(to->rows, h->rows + begin, (end - begin) * sizeof *to->rows);
    to->n = end - begin;
    snprintf(to->name, sizeof to->name, "%s%s%s", run->host, *run->host ? " " : "",
             run->utc);
    return ST_OK;
}

static enum status read_history(struct export_sources *s, const char *path,
                                struct err *err)
{
    struct history h = {0};
    enum status st = history_read(&h, path, NULL, err);

    for (size_t begin = 0, end; begin < h.n_rows && st == ST_OK; begin = end) {
        for (end = begin + 1; end < h.n_rows && h.run_of[end] == h.run_of[begin];)
            end++;
        st = add_run(s, &h, begin, end, err);
    }
    for (size_t i = 0; i < h.files.n && st == ST_OK; i++)
        st = path_list_add(&s->files, h.files.path[i], err);
    history_free(&h);
    return st;
}

enum status export_read(struct export_sources *s, const char *path, struct err *err)
{
    const size_t n_before = s->n;
    char csv[4200];

    snprintf(csv, sizeof csv, "%s/sweep.csv", path);
    const enum status st =
        access(csv, F_OK) ? read_history(s, path, err) : read_sweep(s, path, err);

    for (size_t i = n_before; i < s->n && st == ST_OK; i++)
        for (size_t k = 0; k < s->v[i].n; k++)
            point_row_remake_command(&s->v[i].rows[k]);
    return st;
}

void export_sources_free(struct export_sources *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->v[i].rows);
        samples_free(&s->v[i].samples);
    }
    free(s->v);
    path_list_free(&s->files);
    memset(s, 0, sizeof *s);
}

/* ---- columns -------------------------------------------------------------------- */

static enum status unknown_column(const char *name, struct err *err)
{
    const char *names[EXPORT_MAX_COLUMNS];
    size_t n;
    const struct field *f = row_fields(&n);

    for (size_t i = 0; i < n && i < EXPORT_MAX_COLUMNS; i++)
        names[i] = f[i].name;
    const char *near =
        suggest(name, names, (int)(n < EXPORT_MAX_COLUMNS ? n : EXPORT_MAX_COLUMNS));
    return err_set(err, ST_USAGE, "--columns: there is no column '%.60s'%s%s%s", name,
                   near ? "; did you mean " : "; `bench fields` lists them",
                   near ? near : "", near ? "?" : "");
}

enum status export_columns_parse(struct export_params *p, const char *text,
                                 struct err *err)
{
    p->n_columns = 0;
    for (;;) {
        const size_t len = strcspn(text, ",");
        char name[64];

        snprintf(name, sizeof name, "%.*s", len < sizeof name ? (int)len : 63, text);
        const struct field *f = row_field(name);
        if (!f)
            return unknown_column(name, err);
        if (p->n_columns == EXPORT_MAX_COLUMNS)
            return err_set(err, ST_USAGE, "--columns: more than %d are too many",
                           EXPORT_MAX_COLUMNS);
        p->column[p->n_columns++] = f;
        if (!text[len])
            return ST_OK;
        text += len + 1;
    }
}
