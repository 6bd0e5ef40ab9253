/* SPDX-License-Identifier: MIT
 *
 * result_set.c - runs from directories, single rows, and whatever else is at a path
 */
#include "harness/rows/result_set.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/infile.h"
#include "engine/base/jsonfile.h"
#include "harness/base/array.h"
#include "harness/base/progress.h"
#include "harness/rows/result_db.h"
#include "harness/rows/result_set_impl.h"
#include "harness/rows/roofs.h"

#define MAX_DEPTH 8

void result_set_free(struct result_set *set)
{
    for (size_t i = 0; i < set->n_parts; i++)
        free(set->parts[i].rows);
    free(set->parts);
    for (size_t r = 0; r < set->n_runs; r++)
        free(set->runs[r].dir);
    free(set->runs);
    free(set->rows);
    free(set->run_of);
    path_list_free(&set->files);
    memset(set, 0, sizeof *set);
}

/* ---- growing --------------------------------------------------------------------- */

enum status result_set_add_run(struct result_set *set, const char *path,
                               struct result_run **run, struct err *err)
{
    if (set->n_runs >= RESULT_SET_MAX_RUNS)
        return err_set(err, ST_INPUT, "%s: more than %d runs are too many", path,
                       RESULT_SET_MAX_RUNS);
    *run = array_grow(set->runs, set->n_runs, &set->cap_runs, sizeof **run);
    if (!*run)
        return err_set(err, ST_NO_MEMORY, "no memory for the runs of %s", path);
    set->runs = *run;
    *run = &set->runs[set->n_runs++];
    memset(*run, 0, sizeof **run);
    return ST_OK;
}

enum status result_set_reserve(struct result_set *set, const char *path, size_t n,
                               struct err *err)
{
    size_t want = set->cap_rows ? set->cap_rows : 256;
    struct row *rows;
    size_t *run_of = NULL;

    if (n > RESULT_SET_MAX_ROWS - set->n_rows)
        return err_set(err, ST_INPUT, "%s: more than %d rows are too many", path,
                       RESULT_SET_MAX_ROWS);
    if (set->n_rows + n <= set->cap_rows)
        return ST_OK;
    while (want < set->n_rows + n)
        want *= 2;
    rows = realloc(set->rows, want * sizeof *rows);
    if (rows) {
        set->rows = rows;
        run_of = realloc(set->run_of, want * sizeof *run_of);
    }
    if (!run_of)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows of %s", want, path);
    set->run_of = run_of;
    set->cap_rows = want;
    return ST_OK;
}

enum status result_set_add_row(struct result_set *set, const char *path,
                               const struct row *row, struct err *err)
{
    if (result_set_reserve(set, path, 1, err))
        return err->code;
    set->rows[set->n_rows] = *row;
    set->run_of[set->n_rows++] = set->n_runs - 1;
    return ST_OK;
}

/* ---- checking -------------------------------------------------------------------- */

/* What cannot be is reported: nobody may look at rows that have failed. */
static void report_check(const struct row_check *c, size_t n_rows, const char *path)
{
    char text[4096 + 400];

    if (c->n_impossible) {
        snprintf(text, sizeof text,
                 "%s: %zu of %zu rows cannot be and count as failed; the first: %s",
                 format_path(path).text, c->n_impossible, n_rows, c->first);
        message_print(text);
    }
    if (c->n_copies) {
        snprintf(text, sizeof text,
                 "%s: %zu of %zu rows are there before, with the same "
                 "point, attempt and time, and count once",
                 format_path(path).text, c->n_copies, n_rows);
        message_print(text);
    }
}

enum status result_set_settle(struct result_set *set, const char *path, size_t first,
                              struct err *err)
{
    const size_t n_read = set->n_rows - first;
    struct row_check all = {.n_copies = 0}, one;
    size_t kept = first;

    for (size_t begin = first, end, n; begin < set->n_rows; begin = end) {
        struct row *rows = set->rows + begin;

        for (end = begin + 1;
             end < set->n_rows && set->run_of[end] == set->run_of[begin];)
            end++;
        n = end - begin;
        if (row_check_all(&one, rows, &n, err) || roof_mark_all(rows, n, err))
            return err->code;
        if (!all.n_impossible)
            memcpy(all.first, one.first, sizeof all.first);
        all.n_impossible += one.n_impossible;
        all.n_copies += one.n_copies;
        if (kept != begin)
            memmove(set->rows + kept, rows, n * sizeof *rows);
        for (size_t i = 0; i < n; i++)
            set->run_of[kept + i] = set->run_of[begin];
        kept += n;
    }
    set->n_rows = kept;
    report_check(&all, n_read, path);
    return ST_OK;
}

/* ---- single rows ----------------------------------------------------------------- */

static enum status read_json(struct result_set *set, const char *path,
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
        st = result_set_add_rows(set, path, &row, 1, here, err);
    jsonfile_free(&f);
    return st ? st : result_set_settle(set, path, set->n_rows - 1, err);
}

/* ---- directories ----------------------------------------------------------------- */

static enum status read_tree(struct result_set *set, const char *path, int depth,
                             const struct machine_key *here, struct err *err);

/* The file type at path, which is not followed; 0: there is nothing. What cannot be
 * looked at might be a sweep. */
static enum status find_type(mode_t *type, off_t *size, const char *path,
                             struct err *err)
{
    struct stat info = {.st_mode = 0};

    if (lstat(path, &info) && errno != ENOENT && errno != ENOTDIR)
        return err_set_errno(err, ST_IO, "cannot look at %s", path);
    *type = info.st_mode & S_IFMT;
    *size = info.st_size;
    return ST_OK;
}

static int is_no_dot(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static enum status read_below(struct result_set *set, const char *path, int depth,
                              const struct machine_key *here, struct err *err)
{
    struct dirent **list = NULL;
    const int n = scandir(path, &list, is_no_dot, alphasort);
    enum status st = ST_OK;

    if (n < 0)
        return err_set_errno(err, ST_IO, "cannot list %s", path);
    for (int i = 0; i < n; i++) {
        char below[4096];
        mode_t type;
        off_t size;
        const int len = snprintf(below, sizeof below, "%s/%s", path, list[i]->d_name);

        free(list[i]);
        if (st || len >= (int)sizeof below)
            continue;
        st = find_type(&type, &size, below, err);
        if (!st && type == S_IFDIR)
            st = read_tree(set, below, depth + 1, here, err);
    }
    free(list);
    return st;
}

/* A sweep that has no row yet is no part of a set. */
static enum status read_tree(struct result_set *set, const char *path, int depth,
                             const struct machine_key *here, struct err *err)
{
    char csv[4200];
    mode_t type;
    off_t size;
    enum status st;

    snprintf(csv, sizeof csv, "%s/sweep.csv", path);
    st = find_type(&type, &size, csv, err);
    if (st || (type == S_IFREG && !size))
        return st;
    if (type == S_IFREG)
        return result_set_read_table(set, csv, path, here, err);
    return depth < MAX_DEPTH ? read_below(set, path, depth, here, err) : ST_OK;
}

/* The directory that was named: its own sweep.csv may be a link. */
static enum status read_dir(struct result_set *set, const char *path,
                            const struct machine_key *here, struct err *err)
{
    const size_t n_before = set->n_rows;
    char csv[4200];
    enum status st;
    bool exists;

    snprintf(csv, sizeof csv, "%s/sweep.csv", path);
    if (infile_exists(&exists, csv, err))
        return err->code;
    if (exists) {
        st = result_set_read_table(set, csv, path, here, err);
        return st || set->n_rows > n_before
                   ? st
                   : err_set(err, ST_INPUT,
                             "%s holds no rows yet; continue with `bench sweep "
                             "--resume %s`",
                             csv, path);
    }
    st = read_below(set, path, 0, here, err);
    return st || set->n_rows > n_before
               ? st
               : err_set(err, ST_INPUT,
                         "no sweep.csv with rows is in %s; name a directory that "
                         "`bench sweep` has written, or one above such directories",
                         path);
}

/* ---- anything -------------------------------------------------------------------- */

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

enum status result_set_read(struct result_set *set, const char *path,
                            const struct machine_key *here, struct err *err)
{
    struct stat info;
    char start[64];

    if (stat(path, &info))
        return err_set_errno(err, ST_IO, "cannot read %s", path);
    if (S_ISDIR(info.st_mode))
        return read_dir(set, path, here, err);
    if (read_start(path, start, sizeof start, err))
        return err->code;
    const char first = start[strspn(start, " \t\r\n")];
    if (!result_db_is(start) && first != '{' && first != '[')
        return result_set_read_table(set, path, NULL, here, err);
    if (path_list_add(&set->files, path, err))
        return err->code;
    return result_db_is(start) ? result_set_read_db(set, path, err)
                               : read_json(set, path, here, err);
}
