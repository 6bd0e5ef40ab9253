/* SPDX-License-Identifier: MIT
 *
 * filelock.c - flock(), and why it failed
 */
#include "engine/base/filelock.h"

#include <errno.h>
#include <string.h>
#include <sys/file.h>

int filelock_try(int fd)
{
    int rc;

    do
        rc = flock(fd, LOCK_EX | LOCK_NB);
    while (rc && errno == EINTR);
    return rc ? errno : 0;
}

enum status filelock_take(int fd, const char *who, const char *path, struct err *err)
{
    const int why = filelock_try(fd);

    if (why == EWOULDBLOCK)
        return err_set(err, ST_USAGE,
                       "another %s is writing to %.300s; wait for it to end, or name "
                       "another place",
                       who, path);
    if (why)
        return err_set(err, ST_IO,
                       "cannot lock %.300s: %s; name a place on a file system that has "
                       "locks",
                       path, strerror(why));
    return ST_OK;
}
