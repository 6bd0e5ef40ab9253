/* SPDX-License-Identifier: MIT
 *
 * result_paths.c - which of several paths may have rows, and which sweep is the newest
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/progress.h"
#include "harness/rows/result_db.h"
#include "harness/rows/result_set.h"

#define MAX_DEPTH 8

static bool has_sweep(const char *dir, struct stat *info)
{
    char csv[4200];

    snprintf(csv, sizeof csv, "%s/sweep.csv", dir);
    return !stat(csv, info) && S_ISREG(info->st_mode) && info->st_size > 0;
}

static bool has_sweep_below(const char *dir, int depth)
{
    struct stat info;
    DIR *d = has_sweep(dir, &info) ? NULL : opendir(dir);
    const struct dirent *e;
    bool found = !d && has_sweep(dir, &info);

    while (d && !found && (e = readdir(d)) != NULL) {
        char below[4096];

        if (e->d_name[0] == '.' ||
            snprintf(below, sizeof below, "%s/%s", dir, e->d_name) >= (int)sizeof below)
            continue;
        found = depth < MAX_DEPTH && !lstat(below, &info) && S_ISDIR(info.st_mode) &&
                has_sweep_below(below, depth + 1);
    }
    if (d)
        closedir(d);
    return found;
}

/* Cuts the first column's name off a header line; NULL: there is no further one. */
static char *next_column(char *header)
{
    char *end = header + strcspn(header, ",\r\n");
    const bool more = *end == ',';

    *end = '\0';
    return more ? end + 1 : NULL;
}

/* By its first bytes: a database, a row as JSON, or a table whose first two columns are
 * columns of results. */
static bool is_table(const char *path)
{
    char start[64] = "";
    const size_t n = strlen(path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd >= 0) {
        const ssize_t len = read(fd, start, sizeof start - 1);

        start[len < 0 ? 0 : len] = '\0';
        close(fd);
    }
    if (fd < 0 || result_db_is(start))
        return true; /* or there is an error to report */
    if (n > 5 && !strcmp(path + n - 5, ".json"))
        return true;
    char *second = next_column(start);

    if (!second || !row_field(start))
        return false;
    next_column(second);
    return row_field(second) != NULL;
}

static bool may_have_rows(const char *path)
{
    struct stat info;

    if (stat(path, &info))
        return true; /* an error to report */
    return S_ISDIR(info.st_mode) ? has_sweep_below(path, 0) : is_table(path);
}

size_t result_paths_keep(char **paths, size_t n)
{
    char text[4096] = "skipped without rows of results:";
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        kept += may_have_rows(paths[i]);
    if (kept == n || kept == 0)
        return n;
    kept = 0;
    for (size_t i = 0; i < n; i++)
        if (may_have_rows(paths[i]))
            paths[kept++] = paths[i];
        else
            text_append(text, sizeof text, " %s", format_path(paths[i]).text);
    message_print(text);
    return kept;
}

/* The names of sweeps end with when they began. */
static bool is_newer(const struct stat *a, const char *a_name, const struct stat *b,
                     const char *b_name)
{
    if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
        return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
    if (a->st_mtim.tv_nsec != b->st_mtim.tv_nsec)
        return a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
    return strcmp(a_name, b_name) > 0;
}

enum status result_newest(char *path, size_t cap, struct err *err)
{
    const char *folder = dirs_results_root();
    struct stat info, newest = {.st_size = 0};
    const struct dirent *e;
    DIR *d = opendir(folder);
    bool found = false;

    while (d && (e = readdir(d)) != NULL) {
        char dir[4096];

        if (e->d_name[0] == '.' ||
            snprintf(dir, sizeof dir, "%s/%s", folder, e->d_name) >= (int)sizeof dir ||
            strlen(dir) >= cap || !has_sweep(dir, &info) ||
            (found && !is_newer(&info, dir, &newest, path)))
            continue;
        newest = info;
        found = true;
        snprintf(path, cap, "%s", dir);
    }
    if (d)
        closedir(d);
    return found ? ST_OK
                 : err_set(err, ST_USAGE,
                           "no sweep is in %.200s; name a directory, database or CSV "
                           "with rows, or measure some with `bench sweep`",
                           folder);
}
