/* SPDX-License-Identifier: MIT
 *
 * sweep_dir.c - the output directory: whole after every crash
 *
 * Lines are formatted in memory and written by one write(2); when that falls
 * short (a full disk) the file is cut back to where it was. A row is what makes a
 * point done, so its samples go to disk first.
 */
#include "engine/base/filelock.h"
#include "engine/base/infile.h"
#include "engine/base/invoker.h"
#include "engine/base/jsonfile.h"
#include "harness/base/dirs.h"
#include "harness/base/newfile.h"
#include "harness/base/textfile.h"
#include "harness/rows/result_set.h"
#include "harness/rows/roofs.h"
#include "harness/rows/samples.h"
#include "harness/measure/sweep/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MADE_MAX_BYTES (1u << 20) /* of the list of models that were made */

struct sweep_dir {
    char path[512];
    int lock, csv, samples; /* descriptors; -1: not open */
    struct row *rows;
    size_t n_rows;
    bool is_new; /* the directory itself */
};

const char *sweep_dir_path(const struct sweep_dir *dir)
{
    return dir->path;
}

enum status sweep_dir_mark_roofs(struct sweep_dir *dir, struct err *err)
{
    return roof_mark_all(dir->rows, dir->n_rows, err);
}

const struct row *sweep_dir_rows(const struct sweep_dir *dir, size_t *n)
{
    *n = dir->n_rows;
    return dir->rows;
}

static void file_path(const struct sweep_dir *dir, const char *name, char *buf,
                      size_t cap)
{
    snprintf(buf, cap, "%s/%s", dir->path, name);
}

static struct sweep_dir *dir_new(const char *path)
{
    struct sweep_dir *dir = calloc(1, sizeof *dir);

    if (dir) {
        snprintf(dir->path, sizeof dir->path, "%s", path);
        dir->lock = dir->csv = dir->samples = -1;
    }
    return dir;
}

void sweep_dir_close(struct sweep_dir *dir)
{
    if (!dir)
        return;
    if (dir->csv >= 0)
        close(dir->csv);
    if (dir->samples >= 0)
        close(dir->samples);
    if (dir->lock >= 0)
        close(dir->lock);
    free(dir->rows);
    free(dir);
}

void sweep_dir_discard(struct sweep_dir *dir)
{
    static const char *const names[] = {"sweep.csv", SAMPLES_CSV, "machine.json",
                                        ".lock"};
    char path[600];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        file_path(dir, names[i], path, sizeof path);
        unlink(path);
    }
    if (dir->is_new)
        rmdir(dir->path);
    sweep_dir_close(dir);
}

/* ---- writing --------------------------------------------------------------------- */

static enum status append_text(const struct sweep_dir *dir, int fd, const char *name,
                               const char *text, size_t len, struct err *err)
{
    if (textfile_append(fd, text, len, true))
        return ST_OK;
    return err_set_errno(
        err, ST_IO,
        "cannot write to %s/%s (the rows so far are whole; free disk space and "
        "continue with --resume %s)",
        dir->path, name, dir->path);
}

enum status sweep_dir_open_file(const struct sweep_dir *dir, const char *name,
                                int flags, int *fd, struct err *err)
{
    char path[600];

    file_path(dir, name, path, sizeof path);
    *fd = invoker_open(path, flags);
    return *fd < 0 ? invoker_fail(path, errno, err) : ST_OK;
}

/* A row as a line; row NULL: the header. NULL: no memory. */
static char *line_text(const struct row *row, size_t *len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, len);

    if (!f)
        return NULL;
    if (row)
        row_csv_write(f, row);
    else
        row_csv_header(f);
    fclose(f);
    return text;
}

static enum status no_header(struct err *err)
{
    return err_set(err, ST_NO_MEMORY, "no memory for a header line");
}

static enum status write_headers(struct sweep_dir *dir, struct err *err)
{
    size_t len = 0;
    char *text = line_text(NULL, &len);
    enum status status =
        text ? append_text(dir, dir->csv, "sweep.csv", text, len, err) : no_header(err);

    if (status == ST_OK)
        status = append_text(dir, dir->samples, SAMPLES_CSV, SAMPLES_HEADER,
                             strlen(SAMPLES_HEADER), err);
    free(text);
    return status;
}

static char *samples_text(const struct row *row, const struct point_samples *samples,
                          size_t *len)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, len);

    if (!f)
        return NULL;
    for (size_t i = 0; i < samples->n; i++) {
        if (strpbrk(row->point, ",\""))
            fprintf(f, "\"%s\"", row->point);
        else
            fputs(row->point, f);
        fprintf(f, ",%lld,%zu,%.6f\n", (long long)row->attempt, i, samples->ms[i]);
    }
    fclose(f);
    return text;
}

enum status sweep_dir_append(struct sweep_dir *dir, const struct row *row,
                             const struct point_samples *samples, struct err *err)
{
    size_t n_samples = 0, n_row = 0;
    char *samples_csv = samples_text(row, samples, &n_samples);
    char *row_csv = line_text(row, &n_row);
    struct row *grown = realloc(dir->rows, (dir->n_rows + 1) * sizeof *grown);
    enum status status = ST_OK;

    if (grown)
        dir->rows = grown;
    if (!grown || !samples_csv || !row_csv)
        status = err_set(err, ST_NO_MEMORY, "no memory for row %zu", dir->n_rows + 1);
    if (status == ST_OK && n_samples)
        status =
            append_text(dir, dir->samples, SAMPLES_CSV, samples_csv, n_samples, err);
    if (status == ST_OK)
        status = append_text(dir, dir->csv, "sweep.csv", row_csv, n_row, err);
    if (status == ST_OK)
        dir->rows[dir->n_rows++] = *row;
    free(samples_csv);
    free(row_csv);
    return status;
}

/* ---- making and resuming --------------------------------------------------------- */

static enum status take_lock(struct sweep_dir *dir, struct err *err)
{
    if (sweep_dir_open_file(dir, ".lock", O_RDWR, &dir->lock, err))
        return err->code;
    return filelock_take(dir->lock, "sweep", dir->path, err);
}

/* Error: ST_USAGE. A sweep that was killed before it had machine.json cannot be resumed
 * and has no row: it is in nobody's way. */
static enum status check_unused(const char *dir, struct err *err)
{
    char path[600], *header;
    size_t len = 0;
    struct stat info;
    bool exists;
    enum status st;

    snprintf(path, sizeof path, "%s/sweep.csv", dir);
    st = infile_exists(&exists, path, err);
    if (st || !exists)
        return st;
    if (stat(path, &info))
        return err_set_errno(err, ST_IO, "cannot look at %s", path);
    header = line_text(NULL, &len);
    if (!header)
        return no_header(err);
    free(header);
    snprintf(path, sizeof path, "%s/machine.json", dir);
    st = infile_exists(&exists, path, err);
    if (st || (S_ISREG(info.st_mode) && (size_t)info.st_size <= len && !exists))
        return st;
    return err_set(err, ST_USAGE,
                   "%s holds results already; --resume continues them, or name another "
                   "directory",
                   dir);
}

enum status sweep_dir_create(struct sweep_dir **out, const char *path, struct err *err)
{
    char chosen[512];
    struct sweep_dir *dir;
    enum status status = ST_OK;
    bool is_new;

    if (path && strlen(path) >= sizeof chosen)
        return err_set(err, ST_USAGE, "the name of the output directory is too long");
    if (path)
        snprintf(chosen, sizeof chosen, "%s", path);
    else
        dirs_results(chosen, sizeof chosen, "");
    if (check_unused(chosen, err))
        return err->code;
    is_new = access(chosen, F_OK) != 0;
    if (dirs_make(chosen, err))
        return err->code;
    dir = dir_new(chosen);
    if (!dir)
        return err_set(err, ST_NO_MEMORY, "no memory");
    dir->is_new = is_new;
    /* the name is looked at again: by whoever had the lock before */
    if (take_lock(dir, err) || check_unused(chosen, err) ||
        sweep_dir_open_file(dir, "sweep.csv", O_RDWR | O_TRUNC, &dir->csv, err) ||
        sweep_dir_open_file(dir, SAMPLES_CSV, O_RDWR | O_TRUNC, &dir->samples, err) ||
        write_headers(dir, err))
        status = err->code;
    if (status)
        sweep_dir_close(dir);
    else
        *out = dir;
    return status;
}

struct sorted_rows {
    const struct row **v;
    size_t n;
    struct row wanted; /* scratch */
};

/* Whether a line of samples.csv belongs to a row; torn lines do not. */
static bool sample_belongs(struct sorted_rows *rows, const char *line)
{
    const struct row *const wanted = &rows->wanted;
    char tail;
    const bool quoted = *line == '"';
    const char *begin = line + quoted, *end = strchr(begin, quoted ? '"' : ',');
    long long attempt, index;
    double ms;

    if (!end || (size_t)(end - begin) >= sizeof rows->wanted.point ||
        sscanf(end + quoted, ",%lld,%lld,%lf%c", &attempt, &index, &ms, &tail) != 4 ||
        tail != '\n')
        return false;
    snprintf(rows->wanted.point, sizeof rows->wanted.point, "%.*s", (int)(end - begin),
             begin);
    rows->wanted.attempt = attempt;
    return bsearch(&wanted, rows->v, rows->n, sizeof rows->v[0], row_by_point);
}

/* Samples whose row was never written are left behind by a killed sweep: the
 * point is measured again, and its samples must not stand there twice. */
static enum status clean_samples(struct sweep_dir *dir, struct err *err)
{
    struct sorted_rows rows = {.v = malloc((dir->n_rows + 1) * sizeof rows.v[0])};
    char path[600], line[256];
    struct newfile out;
    FILE *in = NULL;
    enum status st;
    int fd;

    if (!rows.v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", dir->n_rows);
    while (rows.n < dir->n_rows) {
        rows.v[rows.n] = &dir->rows[rows.n];
        rows.n++;
    }
    qsort(rows.v, rows.n, sizeof rows.v[0], row_by_point);
    file_path(dir, SAMPLES_CSV, path, sizeof path);
    st = sweep_dir_open_file(dir, SAMPLES_CSV, O_RDWR, &fd, err);
    if (st == ST_OK && lseek(fd, 0, SEEK_END) > SAMPLES_MAX_BYTES) {
        close(fd);
        st = err_set(err, ST_INPUT,
                     "%s has more than %d bytes, the maximum that is read", path,
                     SAMPLES_MAX_BYTES);
    }
    if (st == ST_OK && (lseek(fd, 0, SEEK_SET) < 0 || !(in = fdopen(fd, "r")))) {
        close(fd);
        st = err_set_errno(err, ST_IO, "cannot read %s", path);
    }
    if (st == ST_OK)
        st = newfile_replace(&out, path, err);
    if (st == ST_OK) {
        fputs(SAMPLES_HEADER, out.f);
        while (fgets(line, sizeof line, in))
            if (sample_belongs(&rows, line))
                fputs(line, out.f);
        st = newfile_commit(&out, path, err);
    }
    if (in)
        fclose(in);
    free(rows.v);
    return st ? st : sweep_dir_open_file(dir, SAMPLES_CSV, O_RDWR, &dir->samples, err);
}

/* A table with other columns (another version of this program) must not get our
 * rows: they would stand under the wrong names. Its header line may be cut short. */
static enum status check_columns(const struct sweep_dir *dir, struct err *err)
{
    size_t len = 0;
    char *expected = line_text(NULL, &len), *found = NULL;
    char path[600];
    ssize_t n = -1;

    if (!expected)
        return no_header(err);
    file_path(dir, "sweep.csv", path, sizeof path);
    found = malloc(len + 1);
    if (found)
        n = pread(dir->csv, found, len, 0);
    const bool same = n >= 0 && !memcmp(found, expected, (size_t)n);

    free(expected);
    free(found);
    if (same)
        return ST_OK;
    if (n < 0)
        return err_set_errno(err, ST_IO, "cannot read %s", path);
    return err_set(err, ST_USAGE,
                   "%s has other columns than this version of bench writes; resume it "
                   "with the version that began it",
                   path);
}

static enum status read_back(struct sweep_dir *dir, struct err *err)
{
    char path[600];
    struct stat st;

    file_path(dir, "sweep.csv", path, sizeof path);
    if (sweep_dir_open_file(dir, "sweep.csv", O_RDWR, &dir->csv, err) ||
        check_columns(dir, err) || row_csv_repair(dir->csv, path, NULL, err))
        return err->code;
    if (fstat(dir->csv, &st) == 0 && st.st_size == 0) {
        /* killed before the first line */
        if (sweep_dir_open_file(dir, SAMPLES_CSV, O_RDWR | O_TRUNC, &dir->samples, err))
            return err->code;
        return write_headers(dir, err);
    }
    if (row_csv_read(path, &dir->rows, &dir->n_rows, err))
        return err->code;
    return clean_samples(dir, err);
}

enum status sweep_dir_resume(struct sweep_dir **out, const char *path, struct err *err)
{
    char machine[600];
    struct sweep_dir *dir;
    enum status status;

    if (strlen(path) >= sizeof dir->path)
        return err_set(err, ST_USAGE, "the name of the directory is too long");
    snprintf(machine, sizeof machine, "%s/machine.json", path);
    if (access(machine, R_OK))
        return err_set(err, ST_USAGE,
                       "there is no sweep to resume in %s: it has no machine.json",
                       path);
    dir = dir_new(path);
    if (!dir)
        return err_set(err, ST_NO_MEMORY, "no memory");
    while (strlen(dir->path) > 1 && dir->path[strlen(dir->path) - 1] == '/')
        dir->path[strlen(dir->path) - 1] = '\0';
    status = take_lock(dir, err);
    if (status == ST_OK)
        status = read_back(dir, err);
    if (status)
        sweep_dir_close(dir);
    else
        *out = dir;
    return status;
}

/* ---- machine.json and models made ------------------------------------------------ */

enum status sweep_dir_write_machine(struct sweep_dir *dir, json_t *machine,
                                    struct err *err)
{
    char path[600];
    struct newfile n;

    file_path(dir, "machine.json", path, sizeof path);
    if (!machine)
        return err_set(err, ST_NO_MEMORY, "no memory for %s", path);
    if (newfile_replace(&n, path, err))
        return err->code;
    if (textfile_put_json(n.f, machine, JSON_INDENT(2) | JSON_REAL_PRECISION(9))) {
        newfile_abort(&n);
        return err_set_errno(err, ST_IO, "cannot write %s", path);
    }
    return newfile_commit(&n, path, err);
}

enum status sweep_dir_read_machine(struct sweep_dir *dir, json_t **machine,
                                   struct err *err)
{
    struct jsonfile f;
    const enum status st =
        jsonfile_load(&f, dir->path, "machine.json", MACHINE_JSON_LIMIT, err);

    if (st == ST_OK)
        *machine = f.root;
    return st;
}

enum status sweep_dir_will_make(struct sweep_dir *dir, const char *path,
                                struct err *err)
{
    /* in one piece, and apart from what a killed run has left of a line */
    char line[PATH_MAX + 3];
    const int len = snprintf(line, sizeof line, "\n%s\n", path);
    int fd;
    enum status status = sweep_dir_open_file(dir, ".made", O_RDWR, &fd, err);

    if (status)
        return status;
    if ((size_t)len < sizeof line)
        status = append_text(dir, fd, ".made", line, (size_t)len, err);
    else
        status = err_set(err, ST_USAGE, "the path of a model's file is too long");
    close(fd);
    return status;
}

bool sweep_dir_has_made(const struct sweep_dir *dir, const char *path)
{
    struct err ignored = ERR_INIT;
    char list[600], *text, *save;
    bool ours = false;
    size_t len;

    file_path(dir, ".made", list, sizeof list);
    if (infile_read(&text, &len, list, MADE_MAX_BYTES, &ignored))
        return false;
    for (char *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        ours |= !strcmp(line, path);
    free(text);
    return ours;
}
