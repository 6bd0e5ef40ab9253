/* SPDX-License-Identifier: MIT
 *
 * synth_file.c - a synthetic model into memory, or into a file at disk speed
 *
 * Two buffers go round between the caller's thread, which fills them, and a
 * writer thread, so that making weights and writing them overlap. The file is
 * written with O_DIRECT where the file system can do it, because gigabytes of
 * dirty pages would stall this program and push everything else out of the page
 * cache; otherwise pages are written back and dropped as we go.
 */
#include "engine/synth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "engine/mem.h"
#include "engine/synth_parts.h"

#define N_BUFFERS   2
#define DIRECT_UNIT 4096u       /* what O_DIRECT needs lengths to be a multiple of */
#define SPARE_BYTES (16u << 20) /* left free for the file system's own needs */

enum status synth_write_memory(const struct synth_plan *plan, void *image,
                               synth_progress_fn *progress, void *arg, struct err *err)
{
    const uint64_t total = synth_plan_bytes(plan);
    struct synth_stream *s = NULL;
    uint8_t *out = image;

    if (synth_stream_open(&s, plan, err))
        return ST_NO_MEMORY;
    for (uint64_t done = 0; done < total;) {
        const size_t n = total - done < SYNTH_CHUNK_BYTES ? (size_t)(total - done)
                                                          : SYNTH_CHUNK_BYTES;

        synth_stream_read(s, out + done, n);
        done += n;
        if (progress && progress(arg, done, total)) {
            synth_stream_close(s);
            return err_set(err, ST_INTERRUPTED, "making %s was interrupted",
                           plan->shape.name);
        }
    }
    synth_stream_close(s);
    return ST_OK;
}

/* ---- the writer thread ----------------------------------------------------- */

struct writer {
    int fd;
    struct mem mem;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under lock: */
    size_t fill[N_BUFFERS]; /* bytes waiting in each buffer, 0: free */
    bool no_more;
    int failed; /* errno of the first write that failed */
};

static int write_all(int fd, const uint8_t *p, size_t n, uint64_t at)
{
    while (n > 0) {
        const ssize_t w = pwrite(fd, p, n, (off_t)at);

        if (w > 0) {
            p += w;
            at += (uint64_t)w;
            n -= (size_t)w;
        } else if (w < 0 && errno == EINVAL && fcntl(fd, F_GETFL) & O_DIRECT) {
            fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_DIRECT);
        } else if (w < 0 && errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

/* Start writing back the chunk at `at`, wait for the one before and drop it. */
static void push_out(int fd, uint64_t at, size_t n)
{
    if (fcntl(fd, F_GETFL) & O_DIRECT)
        return;
    sync_file_range(fd, (off_t)at, (off_t)n, SYNC_FILE_RANGE_WRITE);
    if (at >= SYNTH_CHUNK_BYTES) {
        const off_t before = (off_t)(at - SYNTH_CHUNK_BYTES);

        sync_file_range(fd, before, (off_t)SYNTH_CHUNK_BYTES,
                        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
                            SYNC_FILE_RANGE_WAIT_AFTER);
        posix_fadvise(fd, before, (off_t)SYNTH_CHUNK_BYTES, POSIX_FADV_DONTNEED);
    }
}

static void *writer_main(void *arg)
{
    struct writer *w = arg;
    uint64_t at = 0;

    for (int i = 0;; i = (i + 1) % N_BUFFERS) {
        pthread_mutex_lock(&w->lock);
        while (!w->fill[i] && !w->no_more)
            pthread_cond_wait(&w->changed, &w->lock);
        const size_t n = w->fill[i];
        pthread_mutex_unlock(&w->lock);
        if (!n)
            return NULL;

        const int failed = write_all(
            w->fd, (uint8_t *)w->mem.base + (size_t)i * SYNTH_CHUNK_BYTES, n, at);
        push_out(w->fd, at, n);
        at += n;

        pthread_mutex_lock(&w->lock);
        w->fill[i] = 0;
        if (!w->failed)
            w->failed = failed;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
        if (failed)
            return NULL;
    }
}

/* Wait until buffer i is free; 0, or the errno of a failed write. */
static int writer_wait(struct writer *w, int i)
{
    pthread_mutex_lock(&w->lock);
    while (w->fill[i] && !w->failed)
        pthread_cond_wait(&w->changed, &w->lock);
    const int failed = w->failed;
    pthread_mutex_unlock(&w->lock);
    return failed;
}

static void writer_give(struct writer *w, int i, size_t n)
{
    pthread_mutex_lock(&w->lock);
    w->fill[i] = n;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static int writer_finish(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    w->no_more = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    return w->failed;
}

/* A disk can be full in spite of the check: others write to it, too. */
static enum status write_failed(const char *part, int error, struct err *err)
{
    errno = error;
    return err_set_errno(err, error == ENOSPC || error == EDQUOT ? ST_NO_MEMORY : ST_IO,
                         "cannot write %s", part);
}

static enum status pump(const struct synth_plan *plan, struct synth_stream *s,
                        struct writer *w, const char *part, synth_progress_fn *progress,
                        void *arg, struct err *err)
{
    const uint64_t total = synth_plan_bytes(plan);
    uint64_t done = 0;

    for (int i = 0; done < total; i = (i + 1) % N_BUFFERS) {
        uint8_t *buf = (uint8_t *)w->mem.base + (size_t)i * SYNTH_CHUNK_BYTES;
        const size_t n = total - done < SYNTH_CHUNK_BYTES ? (size_t)(total - done)
                                                          : SYNTH_CHUNK_BYTES;
        const int failed = writer_wait(w, i);

        if (failed)
            return write_failed(part, failed, err);
        synth_stream_read(s, buf, n);
        /* The end is padded to what O_DIRECT can write, and cut afterwards. */
        writer_give(w, i, (n + DIRECT_UNIT - 1) / DIRECT_UNIT * DIRECT_UNIT);
        done += n;
        if (progress && progress(arg, done, total))
            return err_set(err, ST_INTERRUPTED, "making %s was interrupted", part);
    }
    return ST_OK;
}

/* The whole image into fd, on disk when it returns. */
static enum status write_image(const struct synth_plan *plan, int fd, const char *part,
                               synth_progress_fn *progress, void *arg, struct err *err)
{
    struct writer w = {.fd = fd,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER};
    struct synth_stream *s = NULL;
    enum status st = mem_alloc(&w.mem, N_BUFFERS * SYNTH_CHUNK_BYTES, MEM_PAGES_4K,
                               "write buffers", err);
    int failed;

    if (!st)
        st = synth_stream_open(&s, plan, err);
    if (st)
        goto out;
    failed = pthread_create(&w.thread, NULL, writer_main, &w);
    if (failed) {
        st = err_set(err, ST_NO_MEMORY, "cannot start a thread that writes %s: %s",
                     part, strerror(failed));
        goto out;
    }
    st = pump(plan, s, &w, part, progress, arg, err);
    failed = writer_finish(&w);
    if (st)
        goto out;
    if (!failed && (ftruncate(fd, (off_t)synth_plan_bytes(plan)) || fdatasync(fd)))
        failed = errno;
    if (failed)
        st = write_failed(part, failed, err);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
out:
    synth_stream_close(s);
    mem_free(&w.mem);
    return st;
}

/* ---- the file -------------------------------------------------------------- */

static double gb(uint64_t bytes)
{
    return (double)bytes * 1e-9;
}

/* Opens (or takes over from a killed run) the file that is being made, locked,
 * so that two processes never write the same one. */
static enum status open_part(const char *part, int *out, struct err *err)
{
    for (;;) {
        struct stat mine, there;
        int fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_DIRECT, 0644);

        if (fd < 0 && errno == EINVAL)
            fd = open(part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
            return err_set_errno(err, errno == ENOSPC ? ST_NO_MEMORY : ST_IO,
                                 "cannot create %s", part);
        if (flock(fd, LOCK_EX | LOCK_NB)) {
            const int busy = errno == EWOULDBLOCK;

            close(fd);
            return err_set(err, ST_IO,
                           busy ? "another process is making %s; wait for it to finish"
                                : "cannot lock %s",
                           part);
        }
        /* Whoever held the lock before may have renamed or removed the file. */
        if (!fstat(fd, &mine) && !lstat(part, &there) && mine.st_ino == there.st_ino &&
            mine.st_dev == there.st_dev && S_ISREG(mine.st_mode)) {
            *out = fd;
            return ST_OK;
        }
        close(fd);
        if (!lstat(part, &there) && !S_ISREG(there.st_mode))
            return err_set(err, ST_IO, "cannot create %s: something else has that name",
                           part);
    }
}

/* Empties the file, checks the free space and reserves it. */
static enum status reserve(int fd, const char *part, uint64_t bytes, struct err *err)
{
    struct statvfs fs;

    if (ftruncate(fd, 0) || fstatvfs(fd, &fs))
        return err_set_errno(err, ST_IO, "cannot prepare %s", part);

    const uint64_t avail = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (avail < bytes + SPARE_BYTES)
        return err_set(
            err, ST_NO_MEMORY,
            "%s needs %.2f GB of disk space and only %.2f GB are free there; "
            "free some, write to another file system, or choose a smaller shape "
            "or quantisation",
            part, gb(bytes + SPARE_BYTES), gb(avail));
    if (fallocate(fd, 0, 0, (off_t)bytes) && errno != EOPNOTSUPP && errno != ENOSYS)
        return write_failed(part, errno, err);
    return ST_OK;
}

enum status synth_write_file(const struct synth_plan *plan, const char *path,
                             synth_progress_fn *progress, void *arg, struct err *err)
{
    const size_t cap = strlen(path) + sizeof ".part";
    char *part = NULL;
    struct stat there;
    enum status st;
    int fd = -1;

    if (!stat(path, &there) && !S_ISREG(there.st_mode))
        return err_set(err, ST_USAGE, "%s is not a regular file; choose another name",
                       path);
    part = malloc(cap);
    if (!part)
        return err_set(err, ST_NO_MEMORY, "no memory for a file name");
    snprintf(part, cap, "%s.part", path);
    st = open_part(part, &fd, err);
    if (st)
        goto out;
    st = reserve(fd, part, synth_plan_bytes(plan), err);
    if (!st)
        st = write_image(plan, fd, part, progress, arg, err);
    if (!st && rename(part, path))
        st = err_set_errno(err, ST_IO, "cannot rename %s to %s", part, path);
    if (st)
        unlink(part);
    close(fd);
out:
    free(part);
    return st;
}

bool synth_file_is(const struct synth_plan *plan, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat there;
    uint8_t buf[4096];
    bool same;

    if (fd < 0)
        return false;
    same = !fstat(fd, &there) && S_ISREG(there.st_mode) &&
           (uint64_t)there.st_size == synth_plan_bytes(plan);
    for (size_t at = 0; same && at < plan->header.n;) {
        const size_t left = plan->header.n - at;
        const ssize_t n =
            pread(fd, buf, left < sizeof buf ? left : sizeof buf, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        same = n > 0 && !memcmp(buf, plan->header.data + at, (size_t)n);
        at += same ? (size_t)n : 0;
    }
    close(fd);
    return same;
}
