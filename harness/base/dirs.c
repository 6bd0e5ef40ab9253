/* SPDX-License-Identifier: MIT
 *
 * dirs.c - mkdir -p
 */
#include "harness/base/dirs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/invoker.h"

/* To who has called sudo: they are to read, remove and give away what is in it. */
static void give(const char *dir)
{
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0) {
        invoker_own(fd);
        close(fd);
    }
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
            return err_set_errno(err, ST_IO, "cannot make the directory %.300s", part);
        if (!c)
            break;
        *at = c;
    }
    return access(path, W_OK | X_OK)
               ? err_set_errno(err, ST_IO, "%.300s cannot be written into", path)
               : ST_OK;
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
    snprintf(buf, cap, "results/%s%s-%s", kind, *host ? host : "host", utc);
}
