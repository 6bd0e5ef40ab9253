/* SPDX-License-Identifier: MIT
 *
 * dirs.c - mkdir -p
 */
#include "harness/base/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/invoker.h"

#define MAX_SAME 1000

/* To who has called sudo: they are to read, remove and give away what is in it. */
static void give(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0) {
        invoker_own(fd);
        close(fd);
    }
}

/* After a mkdir() that failed. Directories above part are there. */
static enum status cannot_make(const char *part, struct err *err)
{
    const char *slash = strrchr(part, '/');

    if (errno != ENOENT || !slash)
        return err_set_errno(err, ST_IO, "cannot make the directory %.300s", part);
    return err_set(err, ST_IO,
                   "cannot make the directory %.300s: the file system of %.*s has no "
                   "new ones",
                   part, slash > part ? (int)(slash - part) : 1, part);
}

static bool is_dir(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

enum status dirs_make(const char *path, struct err *err)
{
    char part[PATH_MAX];

    if (!*path || strlen(path) >= sizeof part)
        return err_set(err, ST_USAGE, "'%.60s' cannot be the name of a directory",
                       path);
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + 1;; at++) {
        const char c = *at;

        if (c != '/' && c != '\0')
            continue;
        *at = '\0';
        if (!mkdir(part, 0755))
            give(part);
        else if (errno != EEXIST)
            return cannot_make(part, err);
        else if (!is_dir(part))
            return err_set(err, ST_IO, "%.300s is not a directory; name another one",
                           part);
        if (!c)
            break;
        *at = c;
    }
    return access(path, W_OK | X_OK)
               ? err_set_errno(err, ST_IO, "%.300s cannot be written into", path)
               : ST_OK;
}

const char *dirs_results_root(void)
{
    const char *own = getenv("SLMBENCH_RESULTS");

    return own && *own ? own : "results";
}

void dirs_results(char *buf, size_t cap, const char *kind)
{
    const time_t now = time(NULL);
    char host[65] = "", utc[32];
    struct tm tm;

    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    for (char *c = host; *c; c++)
        if (*c == '/')
            *c = '_';
    gmtime_r(&now, &tm);
    strftime(utc, sizeof utc, "%Y%m%dT%H%M%SZ", &tm);
    snprintf(buf, cap, "%s/%s%s-%s", dirs_results_root(), kind, *host ? host : "host",
             utc);
    /* a clock that was set back, or two of one second */
    const size_t used = strlen(buf);
    for (int n = 2; n < MAX_SAME && !access(buf, F_OK); n++)
        snprintf(buf + used, cap - used, "-%d", n);
}
