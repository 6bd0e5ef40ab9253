/* SPDX-License-Identifier: MIT
 *
 * result_set_table.c - runs of a CSV: by its columns, by the machine.json next to it,
 * or by where points begin again
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/jsonfile.h"
#include "harness/base/format.h"
#include "harness/base/hash.h"
#include "harness/rows/quality_rows.h"
#include "harness/rows/result_set_impl.h"
#include "harness/rows/samples.h"

/* ---- rows without an identity ---------------------------------------------------- */

/* A run that only its rows describe: the contents of the first row distinguish it from
 * other runs of the same second. */
static void describe_by_row(struct result_run *run, const struct row *first)
{
    uint64_t id = HASH_BEGIN;
    char cell[512];

    for (const struct field *f = row_fields(NULL); f->name; f++) {
        row_cell(first, f, cell, sizeof cell);
        id = hash_add(id, cell, strlen(cell) + 1);
    }
    snprintf(run->id, sizeof run->id, "%016llx", (unsigned long long)id);
    snprintf(run->utc, sizeof run->utc, "%s", first->utc);
}

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

enum status result_set_add_rows(struct result_set *set, const char *path,
                                const struct row *rows, size_t n,
                                const struct machine_key *here, struct err *err)
{
    size_t *index = calloc(n + 1, sizeof *index);
    enum status st = index ? find_runs(index, rows, n, err)
                           : err_set(err, ST_NO_MEMORY, "no memory for runs");

    for (size_t i = 0; i < n && st == ST_OK; i++) {
        if (i == 0 || index[i] != index[i - 1]) {
            struct result_run *run = NULL;

            st = result_set_add_run(set, path, &run, err);
            if (st)
                break;
            describe_by_row(run, &rows[i]);
            result_run_set_here(run, here);
        }
        st = result_set_add_row(set, path, &rows[i], err);
    }
    free(index);
    return st;
}

/* ---- rows that name their run ---------------------------------------------------- */

/* The profile stands in a row itself. */
enum { PROFILE = RESULT_RUN_COLUMNS, N_COLUMNS };

/* A run by its id, for tsearch(). */
struct known_run {
    char id[sizeof((struct result_run *)0)->id];
    size_t at;
};

static int by_id(const void *x, const void *y)
{
    return strcmp(((const struct known_run *)x)->id, ((const struct known_run *)y)->id);
}

static void forget(void **known)
{
    while (*known) {
        struct known_run *first = *(struct known_run **)*known;

        tdelete(first, known, by_id);
        free(first);
    }
}

/* Index in the set of the row's run, which is added where it is new. cell: the run's
 * columns of the row. known: those so far. */
static enum status find_run(struct result_set *set, const char *path, void **known,
                            char *const *cell, const struct machine_key *here,
                            size_t *at, struct err *err)
{
    struct known_run *key = calloc(1, sizeof *key), **found;
    struct result_run *run;

    if (!key)
        return err_set(err, ST_NO_MEMORY, "no memory for the runs of %.300s", path);
    text_harmless(key->id, sizeof key->id, cell[0]);
    found = tsearch(key, known, by_id);
    if (!found || *found != key) {
        free(key);
        if (!found)
            return err_set(err, ST_NO_MEMORY, "no memory for the runs of %.300s", path);
        *at = (*found)->at;
        return ST_OK;
    }
    *at = key->at = set->n_runs;
    if (result_set_add_run(set, path, &run, err))
        return err->code;
    for (size_t k = 0; k < RESULT_RUN_COLUMNS; k++)
        result_run_set(run, k, cell[k]);
    if (!result_run_set_machine(run, cell[PROFILE]))
        result_run_set_here(run, here);
    return ST_OK;
}

/* A run's rows need not stand together in the table; in the set they do. */
static enum status add_identified(struct result_set *set, const char *path,
                                  const struct row *rows, size_t n, char *const *cells,
                                  const struct machine_key *here, struct err *err)
{
    const size_t first = set->n_runs, begin = set->n_rows;
    size_t *run = calloc(n + 1, sizeof *run), *next = NULL;
    void *known = NULL;
    enum status st = run ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for runs");

    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = find_run(set, path, &known, cells + i * N_COLUMNS, here, &run[i], err);
    forget(&known);
    if (st == ST_OK)
        st = result_set_reserve(set, path, n, err);
    if (st == ST_OK && !(next = calloc(set->n_runs - first + 1, sizeof *next)))
        st = err_set(err, ST_NO_MEMORY, "no memory for runs");
    for (size_t i = 0; i < n && st == ST_OK; i++)
        next[run[i] - first + 1]++;
    for (size_t r = 1; r + first < set->n_runs && st == ST_OK; r++)
        next[r] += next[r - 1];
    for (size_t i = 0; i < n && st == ST_OK; i++) {
        const size_t at = begin + next[run[i] - first]++;

        set->rows[at] = rows[i];
        set->run_of[at] = run[i];
    }
    if (st == ST_OK)
        set->n_rows += n;
    free(next);
    free(run);
    return st;
}

/* ---- the table and what stands next to it ---------------------------------------- */

/* The run that machine.json describes; why one could not be read is kept in
 * set->unread. *found: it is there. */
static enum status read_machine_json(struct result_run *run, bool *found,
                                     struct result_set *set, const char *path,
                                     struct err *err)
{
    const char *slash = strrchr(path, '/');
    struct err why = ERR_INIT;
    struct jsonfile f;
    char machine_json[4200];
    enum status st;

    *found = false;
    snprintf(machine_json, sizeof machine_json, "%.*smachine.json",
             slash ? (int)(slash - path) + 1 : 0, path);
    if (access(machine_json, F_OK) && (errno == ENOENT || errno == ENOTDIR))
        return ST_OK;
    if (path_list_add(&set->files, machine_json, err))
        return err->code;
    st = jsonfile_read(&f, machine_json, MACHINE_JSON_LIMIT, &why);
    if (st == ST_NO_MEMORY)
        return err_set(err, st, "%s", why.msg);
    if (st) {
        if (!set->unread.code)
            set->unread = why;
        return ST_OK;
    }
    *found = true;
    result_run_describe(run, f.root);
    jsonfile_free(&f);
    return ST_OK;
}

/* rows[n] of one run. The first table of a set is not copied: *rows becomes NULL. */
static enum status add_run_of(struct result_set *set, const char *path,
                              const struct result_run *described, struct row **rows,
                              size_t n, struct err *err)
{
    struct result_run *run;
    enum status st = result_set_add_run(set, path, &run, err);

    if (st)
        return st;
    *run = *described;
    if (!set->cap_rows) {
        set->run_of = calloc(n, sizeof *set->run_of);
        if (!set->run_of)
            return err_set(err, ST_NO_MEMORY, "no memory for %zu rows of %s", n, path);
        set->rows = *rows;
        set->cap_rows = n;
        *rows = NULL;
    } else {
        if (result_set_reserve(set, path, n, err))
            return err->code;
        memcpy(set->rows + set->n_rows, *rows, n * sizeof **rows);
    }
    for (size_t i = 0; i < n; i++)
        set->run_of[set->n_rows + i] = set->n_runs - 1;
    set->n_rows += n;
    return ST_OK;
}

/* rows[n] without columns of their run. */
static enum status add_plain(struct result_set *set, const char *path, const char *dir,
                             struct row **rows, size_t n,
                             const struct machine_key *here, struct err *err)
{
    struct result_run run = {.has_machine = false};
    bool found = false;
    enum status st = read_machine_json(&run, &found, set, path, err);

    if (st || !n)
        return st;
    if (!found && !dir)
        return result_set_add_rows(set, path, *rows, n, here, err);
    if (!found)
        describe_by_row(&run, &(*rows)[0]);
    result_run_set_here(&run, here);
    return add_run_of(set, path, &run, rows, n, err);
}

/* Also those that are not there: another program may make them at any time. */
static enum status add_files(struct result_set *set, const char *path, const char *dir,
                             struct err *err)
{
    static const char *const names[] = {QUALITY_CSV, SAMPLES_CSV, REQUESTS_CSV};
    enum status st = path_list_add(&set->files, path, err);

    for (size_t i = 0; dir && i < sizeof names / sizeof *names && st == ST_OK; i++) {
        char file[4200];

        snprintf(file, sizeof file, "%s/%s", dir, names[i]);
        st = path_list_add(&set->files, file, err);
    }
    return st;
}

/* What belongs to runs from a directory, whose rows begin at index `first`. */
static enum status join_dir(struct result_set *set, const char *dir, size_t first_run,
                            size_t first, struct err *err)
{
    for (size_t r = first_run; r < set->n_runs; r++) {
        set->runs[r].dir = strdup(dir);
        if (!set->runs[r].dir)
            return err_set(err, ST_NO_MEMORY, "no memory for the name of %s", dir);
    }
    return first < set->n_rows
               ? quality_rows_join_dir(set->rows + first, set->n_rows - first, dir, err)
               : ST_OK;
}

enum status result_set_read_table(struct result_set *set, const char *path,
                                  const char *dir, const struct machine_key *here,
                                  struct err *err)
{
    const char *names[N_COLUMNS] = {[PROFILE] = "profile"};
    struct row_extra extra = {.names = names, .n = N_COLUMNS};
    const size_t first = set->n_rows, first_run = set->n_runs;
    struct row *rows = NULL;
    size_t n = 0;
    enum status st = add_files(set, path, dir, err);

    memcpy(names, result_run_columns, sizeof result_run_columns);
    if (st == ST_OK)
        st = row_csv_read_extra(path, &rows, &n, &extra, err);
    if (st)
        return st;
    st = n && extra.cells[0]
             ? add_identified(set, path, rows, n, extra.cells, here, err)
             : add_plain(set, path, dir, &rows, n, here, err);
    row_extra_free(&extra, n);
    free(rows);
    if (st == ST_OK)
        st = result_set_settle(set, path, first, err);
    return st == ST_OK && dir ? join_dir(set, dir, first_run, first, err) : st;
}
