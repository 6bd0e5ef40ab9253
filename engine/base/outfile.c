/* SPDX-License-Identifier: MIT
 *
 * outfile.c - a large file that appears when it is complete, or not at all
 */
#include "engine/base/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/filelock.h"
#include "engine/base/fileread.h"
#include "engine/base/invoker.h"

#define SPARE_BYTES (16u << 20) /* left free for the file system itself */
#define WRITE_BACK  (4u << 20)  /* bytes of one write-back, about */

struct outfile {
    int fd;
    char *path, *part;
    uint64_t pushed, before; /* write-back runs from before to pushed */
};

static double gb(uint64_t bytes)
{
    return (double)bytes * 1e-9;
}

static enum status code_of(int error)
{
    if (error == ENOSPC || error == EDQUOT || error == EFBIG)
        return ST_NO_MEMORY;
    return error == EACCES || error == EPERM || error == EROFS ? ST_PERMISSION : ST_IO;
}

static enum status failed(const char *doing, const char *part, int error,
                          struct err *err)
{
    errno = error;
    return err_set_errno(err, code_of(error), "cannot %s %s", doing, part);
}

/* ---- opening --------------------------------------------------------------------- */

/* Open and lock the .part file, new or left by a killed run. */
static enum status open_part(const char *part, int flags, int *out, struct err *err)
{
    for (;;) {
        struct stat mine, there;
        int fd = invoker_open(part, O_RDWR | flags);

        if (fd < 0 && errno == EINVAL && flags)
            fd = invoker_open(part, O_RDWR);
        if (fd < 0) {
            const char *const advice = invoker_open_advice(errno);

            return advice ? err_set(err, ST_IO, "%s %s", part, advice)
                          : failed("create", part, errno, err);
        }
        int why = filelock_try(fd);

        if (why) {
            /* Where nobody holds the lock, nobody else is making the file. */
            if (why != EWOULDBLOCK)
                unlink(part);
            close(fd);
            return why == EWOULDBLOCK
                       ? err_set(err, ST_IO,
                                 "another process is making %s; wait for it to finish",
                                 part)
                       : failed("lock", part, why, err);
        }
        /* The previous holder of the lock may have renamed or removed the file. */
        const bool is_there = !fstat(fd, &mine) && !lstat(part, &there);

        why = is_there ? 0 : errno;

        if (is_there && mine.st_ino == there.st_ino && mine.st_dev == there.st_dev) {
            *out = fd;
            return ST_OK;
        }
        if (why && why != ENOENT)
            unlink(part);
        close(fd);
        if (why && why != ENOENT)
            return failed("look at", part, why, err);
    }
}

/* Empty the file, check the free space and reserve it. */
static enum status reserve(int fd, const char *part, uint64_t bytes,
                           const char *way_out, struct err *err)
{
    struct statvfs fs;

    if (ftruncate(fd, 0) || fstatvfs(fd, &fs))
        return err_set_errno(err, ST_IO, "cannot prepare %s", part);

    const uint64_t avail = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (avail < bytes + SPARE_BYTES)
        return err_set(err, ST_NO_MEMORY,
                       "%s needs %.2f GB of disk space and only %.2f GB are free "
                       "there; free some, write to another file system, or %s",
                       part, gb(bytes + SPARE_BYTES), gb(avail), way_out);
    if (fallocate(fd, 0, 0, (off_t)bytes) && errno != EOPNOTSUPP && errno != ENOSYS)
        return failed("write", part, errno, err);
    return ST_OK;
}

enum status outfile_open(struct outfile **out, const char *path, uint64_t bytes,
                         bool direct, const char *way_out, struct err *err)
{
    const size_t cap = strlen(path) + sizeof ".part";
    struct outfile *f;
    struct stat there;
    enum status st;

    if (!stat(path, &there) && !S_ISREG(there.st_mode))
        return err_set(err, ST_USAGE, "%s is not a regular file; choose another name",
                       path);
    f = calloc(1, sizeof *f);
    if (f) {
        f->fd = -1;
        f->path = strdup(path);
        f->part = malloc(cap);
    }
    if (!f || !f->path || !f->part) {
        outfile_abort(f);
        return err_set(err, ST_NO_MEMORY, "no memory for a file name");
    }
    snprintf(f->part, cap, "%s.part", path);
    st = open_part(f->part, direct ? O_DIRECT : 0, &f->fd, err);
    if (!st)
        st = reserve(f->fd, f->part, bytes, way_out, err);
    if (st)
        outfile_abort(f);
    else
        *out = f;
    return st;
}

/* ---- writing --------------------------------------------------------------------- */

/* Start write-back of the bytes written since the last call; wait for that of the last
 * call and drop its pages. Files are written from front to back. */
static void push_out(struct outfile *f, uint64_t end)
{
    if (fcntl(f->fd, F_GETFL) & O_DIRECT || end < f->pushed + WRITE_BACK)
        return;
    sync_file_range(f->fd, (off_t)f->pushed, (off_t)(end - f->pushed),
                    SYNC_FILE_RANGE_WRITE);
    if (f->pushed > f->before) {
        const off_t at = (off_t)f->before, n = (off_t)(f->pushed - f->before);

        sync_file_range(f->fd, at, n,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER);
        pagecache_drop(f->fd, f->before, f->pushed);
    }
    f->before = f->pushed;
    f->pushed = end;
}

enum status outfile_write(struct outfile *f, const void *data, size_t n, uint64_t at,
                          struct err *err)
{
    const char *p = data;

    while (n > 0) {
        const ssize_t w = pwrite(f->fd, p, n, (off_t)at);

        if (w > 0) {
            p += w;
            at += (uint64_t)w;
            n -= (size_t)w;
        } else if (w < 0 && errno == EINVAL && fcntl(f->fd, F_GETFL) & O_DIRECT) {
            fcntl(f->fd, F_SETFL, fcntl(f->fd, F_GETFL) & ~O_DIRECT);
        } else if (w < 0 && errno != EINTR) {
            return failed("write", f->part, errno, err);
        }
    }
    push_out(f, at);
    return ST_OK;
}

/* The rename should survive a power failure too; a file system that cannot sync a
 * directory leaves the file valid. */
static void sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    const int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    free(dir);
}

enum status outfile_commit(struct outfile *f, uint64_t bytes, struct err *err)
{
    enum status st = ST_OK;

    if (ftruncate(f->fd, (off_t)bytes) || fdatasync(f->fd))
        st = failed("write", f->part, errno, err);
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    if (!st && rename(f->part, f->path))
        st = err_set_errno(err, ST_IO, "cannot rename %s to %s", f->part, f->path);
    if (st) {
        outfile_abort(f);
        return st;
    }
    sync_directory(f->path);
    close(f->fd);
    f->fd = -1; /* nothing to remove */
    outfile_abort(f);
    return ST_OK;
}

void outfile_abort(struct outfile *f)
{
    if (!f)
        return;
    if (f->fd >= 0) {
        unlink(f->part);
        close(f->fd);
    }
    free(f->path);
    free(f->part);
    free(f);
}

const char *outfile_part(const struct outfile *f)
{
    return f->part;
}

/* The descriptor of the .part of path, to look at; -1: no such file. *part is the
 * caller's to free. */
static int look_at_part(const char *path, char **part)
{
    const size_t cap = strlen(path) + sizeof ".part";

    *part = malloc(cap);
    if (!*part)
        return -1;
    snprintf(*part, cap, "%s.part", path);
    return open(*part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

bool outfile_is_being_made(const char *path, double within_s)
{
    char *part;
    const int fd = look_at_part(path, &part);
    struct timespec now;
    struct stat st;
    bool is_made = false;

    if (fd >= 0 && filelock_try(fd) == EWOULDBLOCK && !fstat(fd, &st) &&
        !clock_gettime(CLOCK_REALTIME, &now))
        is_made = difftime(now.tv_sec, st.st_mtim.tv_sec) <= within_s;
    if (fd >= 0)
        close(fd);
    free(part);
    return is_made;
}

void outfile_remove_stale(const char *path)
{
    struct stat mine, there;
    char *part;
    const int fd = look_at_part(path, &part);

    if (fd >= 0 && !filelock_try(fd) && !fstat(fd, &mine) && S_ISREG(mine.st_mode) &&
        !lstat(part, &there) && mine.st_ino == there.st_ino &&
        mine.st_dev == there.st_dev)
        unlink(part);
    if (fd >= 0)
        close(fd);
    free(part);
}
