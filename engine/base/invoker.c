/* SPDX-License-Identifier: MIT
 *
 * invoker.c - who has started the program, where it is root only by sudo
 */
#include "engine/base/invoker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A number as sudo writes it. */
static bool environment_id(const char *name, unsigned *id)
{
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long value;

    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno || *end || value >= UINT_MAX) /* which is -1: no user */
        return false;
    *id = (unsigned)value;
    return true;
}

bool invoker_get(uid_t *uid, gid_t *gid)
{
    unsigned u, g;

    if (geteuid() || !environment_id("SUDO_UID", &u) ||
        !environment_id("SUDO_GID", &g) || !u)
        return false;
    *uid = u;
    *gid = g;
    return true;
}

void invoker_own(int fd)
{
    uid_t uid;
    gid_t gid;

    if (invoker_get(&uid, &gid) && fchown(fd, uid, gid))
        return;
}

int invoker_open(const char *path, int flags)
{
    const int how = (flags & ~O_TRUNC) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    bool made;
    struct stat st;
    int fd, why;

    do {
        fd = open(path, how | O_CREAT | O_EXCL, 0644);
        made = fd >= 0;
        if (made)
            invoker_own(fd);
        if (fd >= 0 || errno != EEXIST || flags & O_EXCL)
            break;
        fd = open(path, how);
    } while (fd < 0 && errno == ENOENT); /* removed in between */
    if (fd < 0)
        return fd;
    if (fstat(fd, &st))
        why = errno;
    else if (!S_ISREG(st.st_mode))
        why = ENODEV;
    else if (st.st_nlink > 1)
        why = EMLINK;
    else if (flags & O_TRUNC && ftruncate(fd, 0))
        why = errno;
    else
        return fd;
    if (made)
        unlink(path);
    close(fd);
    errno = why;
    return -1;
}

const char *invoker_open_advice(int error)
{
    switch (error) {
    case ELOOP:
        return "is a link, and what is written to it would go elsewhere; remove it, or "
               "choose another name";
    case EMLINK:
        return "has another name, too, and what is written to it would change that "
               "file; remove it, or choose another name";
    case ENODEV:
        return "is not a regular file; remove it, or choose another name";
    default:
        return NULL;
    }
}
