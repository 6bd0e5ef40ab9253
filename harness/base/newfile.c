/* SPDX-License-Identifier: MIT
 *
 * newfile.c - a small file that appears when it is complete, or not at all
 */
#include "harness/base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/infile.h"
#include "engine/base/invoker.h"
#include "harness/base/hash.h"

static enum status failed(const char *path, struct err *err)
{
    const bool forbidden = errno == EACCES || errno == EPERM || errno == EROFS;

    return err_set_errno(err, forbidden ? ST_PERMISSION : ST_IO,
                         "%.300s cannot be written", path);
}

/* What a shell's redirection has opened, whatever it is. */
static bool is_opened(const char *path)
{
    return !strcmp(path, "-") || !strcmp(path, "/dev/stdout") ||
           !strcmp(path, "/dev/stderr") || !strncmp(path, "/dev/fd/", 8) ||
           !strncmp(path, "/proc/self/fd/", 14);
}

static bool is_other(const char *path)
{
    struct stat st;

    return is_opened(path) ||
           (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

/* Opens the pipe or device that is there. If others put something else into its place
 * while it is opened, a link to a file for example, nothing is made, cut or written. */
static int open_other(const char *path)
{
    struct stat name, there, opened, after;
    int fd, why;

    if (lstat(path, &name) || stat(path, &there))
        return -1;
    why = invoker_check(path);
    fd = why ? -1 : open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &opened) || S_ISREG(opened.st_mode) ||
                    !infile_is_same(&opened, &there) || lstat(path, &after) ||
                    !infile_is_same(&after, &name))) {
        close(fd);
        why = EBUSY;
        fd = -1;
    }
    if (why)
        errno = why;
    return fd;
}

/* A path that is there and no file: what it leads to is written to. */
static enum status open_in_place(struct newfile *n, const char *path, struct err *err)
{
    int fd;

    *n = (struct newfile){.dir = -1};
    if (!strcmp(path, "-") || !strcmp(path, "/dev/stdout")) {
        fflush(stdout); /* what has been printed comes first */
        n->f = fdopen(dup(STDOUT_FILENO), "w");
    } else if (is_opened(path)) {
        n->f = fopen(path, "we");
    } else {
        fd = open_other(path);
        if (fd < 0 && errno == EUSERS)
            return invoker_fail(path, errno, err);
        n->f = fd < 0 ? NULL : fdopen(fd, "w");
    }
    return n->f ? ST_OK : failed(path, err);
}

/* The folder and the name in it. */
static enum status split(struct newfile *n, const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");

    n->name = strdup(slash ? slash + 1 : path);
    if (!folder || !n->name) {
        free(folder);
        return err_set(err, ST_NO_MEMORY, "no memory for the name %.300s", path);
    }
    n->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    return n->dir < 0 ? failed(path, err) : ST_OK;
}

/* What linkat() gives a name to a file without one by. */
static const char *proc_path(char *buf, size_t cap, int fd)
{
    snprintf(buf, cap, "/proc/self/fd/%d", fd);
    return buf;
}

/* Without a name until it is complete, so that not even kill -9 leaves a part of it.
 * Not every file system has such files; there it is made under a name that nobody else
 * has, and another is tried where somebody has it. */
static int create(struct newfile *n)
{
    char path[40];
    int fd = openat(n->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0644);

    if (fd >= 0 && !access(proc_path(path, sizeof path, fd), F_OK))
        return fd;
    if (fd >= 0)
        close(fd);
    fd = -1;
    for (int i = 0; i < 8 && fd < 0; i++) {
        unsigned long long number = 0;

        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return -1;
        snprintf(n->part, sizeof n->part, ".%llx", number);
        fd = openat(n->dir, n->part,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

/* Gives a complete file without a name the one it is to have, or n->part where that is
 * taken, since a link replaces nothing. n->part depends on the name alone: one that was
 * killed before the rename leaves it to the next. */
static bool give_name(struct newfile *n)
{
    char path[40], part[sizeof n->part];
    const char *from = proc_path(path, sizeof path, fileno(n->f));

    if (!linkat(AT_FDCWD, from, n->dir, n->name, AT_SYMLINK_FOLLOW))
        return true;
    if (errno != EEXIST)
        return false;
    snprintf(part, sizeof part, ".%llx",
             (unsigned long long)hash_add(HASH_BEGIN, n->name, strlen(n->name)));
    if (linkat(AT_FDCWD, from, n->dir, part, AT_SYMLINK_FOLLOW) &&
        (errno != EEXIST || (unlinkat(n->dir, part, 0) && errno != ENOENT) ||
         linkat(AT_FDCWD, from, n->dir, part, AT_SYMLINK_FOLLOW)))
        return false;
    memcpy(n->part, part, sizeof part);
    return true;
}

enum status newfile_replace(struct newfile *n, const char *path, struct err *err)
{
    struct stat there;
    enum status st;
    int fd;

    *n = (struct newfile){.dir = -1};
    st = split(n, path, err);
    if (st == ST_OK &&
        (!*n->name || (!fstatat(n->dir, n->name, &there, 0) && S_ISDIR(there.st_mode))))
        st = err_set(err, ST_USAGE, "%.300s is a folder; name a file in it", path);
    if (st == ST_OK) {
        fd = create(n);
        n->f = fd < 0 ? NULL : fdopen(fd, "w");
        if (!n->f) {
            st = failed(path, err);
            if (fd >= 0)
                close(fd);
        } else {
            invoker_own(fd);
        }
    }
    if (st)
        newfile_abort(n);
    return st;
}

enum status newfile_open(struct newfile *n, const char *path, struct err *err)
{
    return is_other(path) ? open_in_place(n, path, err) : newfile_replace(n, path, err);
}

void newfile_clear(const char *path)
{
    struct stat st;

    if (!lstat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        unlink(path);
}

static void sweep_up(struct newfile *n)
{
    if (n->dir >= 0)
        close(n->dir);
    free(n->name);
    *n = (struct newfile){.dir = -1};
}

enum status newfile_commit(struct newfile *n, const char *path, struct err *err)
{
    bool ok = !ferror(n->f) && !fflush(n->f);

    if (n->dir >= 0)
        ok = ok && !fsync(fileno(n->f)) && (*n->part || give_name(n));
    ok = !fclose(n->f) && ok;
    n->f = NULL;
    if (ok && n->dir >= 0 && *n->part)
        ok = !renameat(n->dir, n->part, n->dir, n->name);
    if (!ok) {
        const enum status st = failed(path, err);

        newfile_abort(n);
        return st;
    }
    if (n->dir >= 0)
        (void)fsync(n->dir); /* not every file system can; the file is valid anyway */
    sweep_up(n);
    return ST_OK;
}

void newfile_abort(struct newfile *n)
{
    if (n->f)
        fclose(n->f);
    if (n->dir >= 0 && *n->part)
        unlinkat(n->dir, n->part, 0);
    sweep_up(n);
}
