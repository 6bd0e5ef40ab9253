/* SPDX-License-Identifier: MIT
 *
 * pathlist.c - the files that a command reads, and that none of them is what it writes
 */
#include "harness/base/pathlist.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/infile.h"
#include "harness/base/array.h"

enum status path_list_add(struct path_list *list, const char *path, struct err *err)
{
    char **grown;

    if (!path)
        return ST_OK;
    grown = array_grow(list->path, list->n, &list->cap, sizeof *grown);
    if (grown)
        list->path = grown;
    if (!grown || !(grown[list->n] = strdup(path)))
        return err_set(err, ST_NO_MEMORY, "no memory for a list of files");
    list->n++;
    return ST_OK;
}

void path_list_free(struct path_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->path[i]);
    free(list->path);
    *list = (struct path_list){0};
}

/* A pipe or a device is read and written without harm. */
static bool same_file(const struct stat *a, const char *path)
{
    struct stat b;

    return !stat(path, &b) && S_ISREG(b.st_mode) && infile_is_same(a, &b);
}

static enum status check_name(const struct path_list *inputs, const char *name,
                              const char *out, struct err *err)
{
    struct stat st;

    if (stat(name, &st))
        return ST_OK;
    for (size_t i = 0; i < inputs->n; i++)
        if (same_file(&st, inputs->path[i]))
            return err_set(
                err, ST_USAGE,
                "%.200s would replace %.200s, which is read; give the output "
                "another name",
                out, inputs->path[i]);
    return ST_OK;
}

static enum status check_input(const struct path_list *inputs, const char *out,
                               struct err *err)
{
    char part[PATH_MAX];

    if (snprintf(part, sizeof part, "%s.part", out) >= (int)sizeof part)
        return err_set(err, ST_USAGE, "the path of an output is too long: %.60s...",
                       out);
    if (check_name(inputs, out, out, err))
        return err->code;
    return check_name(inputs, part, out, err);
}

static enum status check_writable(const char *out, struct err *err)
{
    const char *const slash = strrchr(out, '/');
    char folder[PATH_MAX];
    struct stat st;

    if (!stat(out, &st) && S_ISDIR(st.st_mode))
        return err_set(err, ST_USAGE,
                       "%.300s is not a regular file but a folder; name a file in it",
                       out);
    if (!strncmp(out, "/dev/", 5) || !strncmp(out, "/proc/", 6) ||
        (!stat(out, &st) && !S_ISREG(st.st_mode))) /* open already, a device, a pipe */
        return ST_OK;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - out) + 1 : 1,
             slash ? out : ".");
    if (!faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
        return ST_OK;
    return err_set_errno(err, errno == EACCES || errno == EROFS ? ST_PERMISSION : ST_IO,
                         "%.300s cannot be written: the folder %.300s", out, folder);
}

enum status path_list_check_output(const struct path_list *inputs, const char *out,
                                   struct err *err)
{
    if (!out || !strcmp(out, "-"))
        return ST_OK;
    return check_input(inputs, out, err) ? err->code : check_writable(out, err);
}

enum status path_list_check_folder(const struct path_list *inputs, const char *dir,
                                   const char *const *names, struct err *err)
{
    char out[PATH_MAX];
    enum status st = ST_OK;

    if (!dir || !*dir)
        return ST_OK;
    for (; *names && !st; names++)
        st = snprintf(out, sizeof out, "%s/%s", dir, *names) < (int)sizeof out
                 ? check_input(inputs, out, err)
                 : err_set(err, ST_USAGE, "the path of an output is too long: %.60s...",
                           dir);
    return st;
}
