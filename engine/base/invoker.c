/* SPDX-License-Identifier: MIT
 *
 * invoker.c - who has started the program, where it is root only by sudo
 */
#include "engine/base/invoker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Whether others may put a file into the folder for who writes there. Users that are
 * not root are refused no more than by the kernel (fs.protected_regular), which looks
 * at this only where a file could have been made. */
static bool is_open_to_others(const struct stat *dir)
{
    return dir->st_mode & (S_IWGRP | S_IWOTH) && (!geteuid() || dir->st_mode & S_ISVTX);
}

/* Whether a file that is there may be written to: 0, EUSERS, or why that is unknown. */
static int check_owner(const char *path, const struct stat *file)
{
    const char *name = strrchr(path, '/');
    char text[PATH_MAX];
    struct stat dir;
    uid_t uid;
    gid_t gid;

    if (file->st_uid == geteuid() || (invoker_get(&uid, &gid) && file->st_uid == uid))
        return 0;
    if (snprintf(text, sizeof text, "%.*s.", name ? (int)(name - path) + 1 : 0, path) >=
        (int)sizeof text)
        return ENAMETOOLONG;
    if (stat(text, &dir))
        return errno;
    return file->st_uid != dir.st_uid && is_open_to_others(&dir) ? EUSERS : 0;
}

int invoker_check(const char *path)
{
    struct stat st;

    if (lstat(path, &st))
        return errno == ENOENT ? 0 : errno;
    return check_owner(path, &st);
}

/* Why an open file is not one to write to, as errno; 0: it is, and was cut if flags
 * have O_TRUNC. */
static int check_opened(int fd, const char *path, bool made, int flags)
{
    struct stat st;
    int why;

    if (fstat(fd, &st))
        return errno;
    if (!S_ISREG(st.st_mode))
        return ENODEV;
    if (st.st_nlink > 1)
        return EMLINK;
    why = made ? 0 : check_owner(path, &st);
    return !why && flags & O_TRUNC && ftruncate(fd, 0) ? errno : why;
}

int invoker_open(const char *path, int flags)
{
    const int how = (flags & ~O_TRUNC) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    bool made;
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
    why = check_opened(fd, path, made, flags);
    if (!why)
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
    case EUSERS:
        return "belongs to another user, who could read and change what is written to "
               "it; remove it, or choose another name";
    default:
        return NULL;
    }
}

enum status invoker_fail(const char *path, int error, struct err *err)
{
    const char *const advice = invoker_open_advice(error);

    errno = error;
    return advice ? err_set(err, ST_USAGE, "%.300s %s", path, advice)
                  : err_set_errno(err, ST_IO, "cannot open %.300s", path);
}
