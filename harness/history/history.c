/* SPDX-License-Identifier: MIT
 *
 * history.c - runs from directories, CSV files and single rows
 */
#include "harness/history/history.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/jsonfile.h"
#include "harness/base/format.h"
#include "harness/base/hash.h"
#include "harness/history/history_db.h"
#include "harness/result/report_rows.h"
#include "harness/result/roofs.h"

#define MAX_DEPTH    8
#define COMMIT_SHOWN 10

void history_free(struct history *h)
{
    free(h->runs);
    free(h->rows);
    free(h->run_of);
    path_list_free(&h->files);
    memset(h, 0, sizeof *h);
}

/* ---- growing -------------------------------------------------------------------- */

enum status history_add_run(struct history *h, const char *path,
                            struct history_run **run, struct err *err)
{
    if (h->n_runs >= HISTORY_MAX_RUNS)
        return err_set(err, ST_INPUT, "%s: more than %d runs are too many", path,
                       HISTORY_MAX_RUNS);
    if (h->n_runs == h->cap_runs) {
        const size_t want = h->cap_runs ? 2 * h->cap_runs : 16;
        struct history_run *grown = realloc(h->runs, want * sizeof *grown);

        if (!grown)
            return err_set(err, ST_NO_MEMORY, "no memory for %zu runs of %s", want,
                           path);
        h->runs = grown;
        h->cap_runs = want;
    }
    *run = &h->runs[h->n_runs++];
    memset(*run, 0, sizeof **run);
    return ST_OK;
}

enum status history_add_row(struct history *h, const char *path, const struct row *row,
                            struct err *err)
{
    if (h->n_rows >= HISTORY_MAX_ROWS)
        return err_set(err, ST_INPUT, "%s: more than %d rows are too many", path,
                       HISTORY_MAX_ROWS);
    if (h->n_rows == h->cap_rows) {
        const size_t want = h->cap_rows ? 2 * h->cap_rows : 256;
        struct row *rows = realloc(h->rows, want * sizeof *rows);
        size_t *run_of = NULL;

        if (rows) {
            h->rows = rows;
            run_of = realloc(h->run_of, want * sizeof *run_of);
        }
        if (!run_of)
            return err_set(err, ST_NO_MEMORY, "no memory for %zu rows of %s", want,
                           path);
        h->run_of = run_of;
        h->cap_rows = want;
    }
    h->rows[h->n_rows] = *row;
    h->run_of[h->n_rows++] = h->n_runs - 1;
    return ST_OK;
}

/* ---- what a run is -------------------------------------------------------------- */

static void copy(char *buf, size_t cap, const json_t *object, const char *key)
{
    text_harmless(buf, cap, json_string_value(json_object_get(object, key)));
}

void history_run_describe(struct history_run *run, const json_t *machine)
{
    const json_t *versions = json_object_get(machine, "versions");
    char *command = json_dumps(json_object_get(machine, "command"), JSON_COMPACT);
    const json_int_t seed = json_integer_value(json_object_get(machine, "seed"));
    uint64_t id = HASH_BEGIN;

    copy(run->utc, sizeof run->utc, machine, "utc");
    copy(run->host, sizeof run->host, machine, "host");
    copy(run->commit, sizeof run->commit, versions, "commit");
    copy(run->version, sizeof run->version, versions, "bench");
    copy(run->compiler, sizeof run->compiler, versions, "compiler");
    run->has_machine =
        machine_key_read(&run->machine, json_object_get(machine, "topology"));
    id = hash_add(id, run->utc, strlen(run->utc) + 1);
    id = hash_add(id, run->host, strlen(run->host) + 1);
    id = hash_add(id, &seed, sizeof seed);
    if (command)
        id = hash_add(id, command, strlen(command));
    snprintf(run->id, sizeof run->id, "%016llx", (unsigned long long)id);
    free(command);
}

const char *history_commit(const struct history_run *run, char *buf, size_t cap)
{
    snprintf(buf, cap, "%.*s", COMMIT_SHOWN, *run->commit ? run->commit : "?");
    return buf;
}

/* A run that only its rows describe: the contents of the first row distinguish it from
 * other runs of the same second. */
static void describe_by_row(struct history_run *run, const struct row *first)
{
    uint64_t id = HASH_BEGIN;
    char cell[512];
    size_t n;
    const struct field *f = row_fields(&n);

    for (size_t i = 0; i < n; i++) {
        row_cell(first, &f[i], cell, sizeof cell);
        id = hash_add(id, cell, strlen(cell) + 1);
    }
    snprintf(run->id, sizeof run->id, "%016llx", (unsigned long long)id);
    snprintf(run->utc, sizeof run->utc, "%s", first->utc);
}

/* ---- files ---------------------------------------------------------------------- */

/* Sweeps of earlier versions, when resumed, measured failed points again under the same
 * attempt. */
static bool went_wrong(const struct row *r)
{
    return r->status == ROW_STATUS_ERROR || r->status == ROW_STATUS_INTERRUPTED;
}

/* Points and attempts seen so far, to find where runs begin in a table without a
 * machine.json. */
struct seen_points {
    struct {
        uint64_t hash;
        size_t run; /* 0: free */
    } * seen;       /* [size], a power of two */
    size_t size;
};

/* Remembers the row's point and attempt for this run; false if they were there. */
static bool first_time(struct seen_points *t, const struct row *row, size_t run)
{
    uint64_t hash = hash_add(HASH_BEGIN, row->point, strlen(row->point) + 1);

    hash = hash_add(hash, &row->attempt, sizeof row->attempt);
    hash ^= (uint64_t)run * 0x9e3779b97f4a7c15u;
    for (size_t at = hash;; at++) {
        const size_t i = at & (t->size - 1);

        if (t->seen[i].run == run && t->seen[i].hash == hash)
            return false;
        if (t->seen[i].run)
            continue;
        if (!went_wrong(row)) {
            t->seen[i].hash = hash;
            t->seen[i].run = run;
        }
        return true;
    }
}

/* The index of the run, from 1, of each of rows[n]. Error: ST_NO_MEMORY. */
static enum status find_runs(size_t *run, const struct row *rows, size_t n,
                             struct err *err)
{
    struct seen_points t = {.size = 16};
    size_t last = 1;

    while (t.size < 2 * n)
        t.size *= 2;
    t.seen = calloc(t.size, sizeof *t.seen);
    if (!t.seen)
        return err_set(err, ST_NO_MEMORY, "no memory to sort %zu rows into runs", n);
    for (size_t i = 0; i < n; i++) {
        if (!first_time(&t, &rows[i], last))
            first_time(&t, &rows[i], ++last);
        run[i] = last;
    }
    free(t.seen);
    return ST_OK;
}

/* rows[n] of one table; described is the run that machine.json describes, or NULL. */
static enum status add_rows(struct history *h, const char *path, const struct row *rows,
                            size_t n, const struct history_run *described,
                            const struct machine_key *here, struct err *err)
{
    size_t *index = calloc(n + 1, sizeof *index);
    enum status st = index ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for runs");

    if (st == ST_OK && !described)
        st = find_runs(index, rows, n, err);
    for (size_t i = 0; i < n && st == ST_OK; i++) {
        if (i == 0 || index[i] != index[i - 1]) {
            struct history_run *run = NULL;

            st = history_add_run(h, path, &run, err);
            if (st)
                break;
            if (described)
                *run = *described;
            else
                describe_by_row(run, &rows[i]);
            if (!run->has_machine && here) {
                run->has_machine = true;
                run->machine = *here;
            }
        }
        st = history_add_row(h, path, &rows[i], err);
    }
    free(index);
    return st;
}

/* machine.json beside the table, or NULL where there is none. */
static enum status read_beside(json_t **machine, struct history *h, const char *path,
                               struct err *err)
{
    const char *slash = strrchr(path, '/');
    char beside[4096];
    struct jsonfile f;
    enum status st;

    snprintf(beside, sizeof beside, "%.*smachine.json",
             slash ? (int)(slash - path) + 1 : 0, path);
    *machine = NULL;
    if (access(beside, F_OK))
        return ST_OK;
    st = path_list_add(&h->files, beside, err);
    if (st == ST_OK)
        st = jsonfile_read(&f, beside, MACHINE_JSON_LIMIT, err);
    if (st == ST_OK)
        *machine = f.root;
    return st;
}

static enum status read_csv(struct history *h, const char *path,
                            const struct machine_key *here, struct err *err)
{
    struct row_extra extra = {.names = history_columns, .n = HISTORY_N_COLUMNS};
    struct history_run described;
    struct row *rows = NULL;
    json_t *machine = NULL;
    size_t n = 0;
    enum status st = path_list_add(&h->files, path, err); /* also of a tree */

    if (st == ST_OK)
        st = row_csv_read_extra(path, &rows, &n, &extra, err);
    if (st)
        return st;
    st = roof_mark_all(rows, n, err);
    if (st == ST_OK && n && extra.cells[0]) {
        st = history_add_identified(h, path, rows, n, extra.cells, here, err);
    } else if (st == ST_OK) {
        st = read_beside(&machine, h, path, err);
        memset(&described, 0, sizeof described);
        if (machine)
            history_run_describe(&described, machine);
        if (st == ST_OK)
            st = add_rows(h, path, rows, n, machine ? &described : NULL, here, err);
        json_decref(machine);
    }
    row_extra_free(&extra, n);
    free(rows);
    return st;
}

/* One row, as `bench decode --json` prints it. */
static enum status read_json(struct history *h, const char *path,
                             const struct machine_key *here, struct err *err)
{
    static const struct json_limit limit = {.bytes = 1u << 20, .values = 20000};
    struct jsonfile f;
    struct row row;
    enum status st = jsonfile_read(&f, path, limit, err);

    if (st)
        return st;
    row_init(&row);
    row_from_json(&row, f.root);
    if (row.kind == FIELD_NO_ENUM || row.status == FIELD_NO_ENUM)
        st =
            err_set(err, ST_INPUT,
                    "%s is no row of results as `bench decode --json` prints it", path);
    else
        st = add_rows(h, path, &row, 1, NULL, here, err);
    jsonfile_free(&f);
    return st;
}

/* ---- directories ---------------------------------------------------------------- */

static enum status read_tree(struct history *h, const char *path, int depth,
                             const struct machine_key *here, struct err *err);

static int is_no_dot(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static enum status read_below(struct history *h, const char *path, int depth,
                              const struct machine_key *here, struct err *err)
{
    struct dirent **list = NULL;
    const int n = scandir(path, &list, is_no_dot, alphasort);
    enum status st = ST_OK;

    if (n < 0)
        return err_set_errno(err, ST_IO, "cannot list %s", path);
    for (int i = 0; i < n; i++) {
        char below[4096];
        struct stat info;
        const int len = snprintf(below, sizeof below, "%s/%s", path, list[i]->d_name);

        free(list[i]);
        if (st == ST_OK && len < (int)sizeof below && !lstat(below, &info) &&
            S_ISDIR(info.st_mode))
            st = read_tree(h, below, depth + 1, here, err);
    }
    free(list);
    return st;
}

/* A sweep that has no row yet is no part of a history. */
static enum status read_tree(struct history *h, const char *path, int depth,
                             const struct machine_key *here, struct err *err)
{
    char csv[4200];
    struct stat info;

    snprintf(csv, sizeof csv, "%s/sweep.csv", path);
    if (!lstat(csv, &info) && S_ISREG(info.st_mode))
        return info.st_size ? read_csv(h, csv, here, err) : ST_OK;
    return depth < MAX_DEPTH ? read_below(h, path, depth, here, err) : ST_OK;
}

/* ---- anything ------------------------------------------------------------------- */

/* The first bytes of a file, zero-terminated. */
static enum status read_start(const char *path, char *buf, size_t cap, struct err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t n = fd < 0 ? -1 : read(fd, buf, cap - 1);
    const enum status st =
        n < 0 ? err_set_errno(err, ST_IO, "cannot read %s", path) : ST_OK;

    if (fd >= 0)
        close(fd);
    buf[n < 0 ? 0 : n] = '\0';
    return st;
}

enum status history_read(struct history *h, const char *path,
                         const struct machine_key *here, struct err *err)
{
    const size_t n_before = h->n_rows;
    struct stat info;
    char start[64];
    enum status st;

    if (stat(path, &info))
        return err_set_errno(err, ST_IO, "cannot read %s", path);
    if (S_ISDIR(info.st_mode)) {
        st = read_tree(h, path, 0, here, err);
        if (st == ST_OK && h->n_rows == n_before)
            st =
                err_set(err, ST_INPUT,
                        "no sweep.csv with rows is in %s; name a directory that `bench "
                        "sweep` has written, or one above such directories",
                        path);
        return st;
    }
    st = read_start(path, start, sizeof start, err);
    if (st)
        return st;
    const char first = start[strspn(start, " \t\r\n")];
    if (!history_db_is(start) && first != '{' && first != '[')
        return read_csv(h, path, here, err);
    st = path_list_add(&h->files, path, err);
    if (st)
        return st;
    return history_db_is(start) ? history_db_read(h, path, err)
                                : read_json(h, path, here, err);
}
