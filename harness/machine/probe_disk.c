/* SPDX-License-Identifier: MIT
 *
 * probe_disk.c - sequential reading past the page cache
 *
 * O_DIRECT with a constant number of requests in flight: what a disk gives to someone
 * who streams weights from it. The scratch file is written the same way, with
 * random bytes, since some disks store zeros for free.
 */
#include "harness/machine/probe.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <liburing.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"

#define MIB           ((uint64_t)1 << 20)
#define PASS_NS       2000000000u /* a pass on a slow disk ends here */
#define RESERVE_BYTES (256 * MIB) /* left free on the file system */

const struct probe_disk_way probe_disk_usual = {.request_bytes = MIB, .depth = 16};
const struct probe_disk_way probe_disk_streaming = {.request_bytes = 2 * MIB,
                                                    .depth = 8};

struct disk {
    const char *path;
    struct probe_disk_way way;
    int fd;
    uint64_t bytes; /* whole requests */
    struct io_uring ring;
    bool has_ring;
    struct mem mem; /* in 2 MiB pages, as slots of streamed weights are: a request into
                       scattered pages has many parts, and is slower */
    char *buffers;  /* [way.depth][way.request_bytes] there */
};

static enum status open_file(struct disk *d, uint64_t max_bytes, struct err *err)
{
    const uint64_t request = d->way.request_bytes;
    struct stat sb;

    d->fd = open(d->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (d->fd < 0 || fstat(d->fd, &sb))
        return err_set_errno(err, ST_IO, "%s cannot be opened for the disk probe",
                             d->path);
    if (!S_ISREG(sb.st_mode))
        return err_set(err, ST_INPUT,
                       "%s is a pipe or a device; copy it to a regular file, or name a "
                       "directory",
                       d->path);
    d->bytes = (uint64_t)sb.st_size < max_bytes ? (uint64_t)sb.st_size : max_bytes;
    d->bytes = d->bytes / request * request;
    if (d->bytes == 0)
        return err_set(err, ST_INPUT,
                       "%s has %lld bytes, too few for the disk probe, which reads "
                       "blocks of %s; name a larger file or a directory",
                       d->path, (long long)sb.st_size, bytes_text(request).text);
    return ST_OK;
}

/* A file without a name: removed at once, so that not even kill -9 leaves it. */
static enum status make_file(struct disk *d, uint64_t max_bytes, struct err *err)
{
    char name[4096];
    struct statfs fs;

    if (statfs(d->path, &fs))
        return err_set_errno(err, ST_IO, "%s cannot be examined", d->path);

    const uint64_t request = d->way.request_bytes;
    const uint64_t free_bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    d->bytes = max_bytes < request ? request : max_bytes / request * request;
    if (free_bytes < d->bytes + RESERVE_BYTES)
        return err_set(err, ST_NO_MEMORY,
                       "the disk probe needs %s in %s and there are %s free; choose "
                       "another directory with --disk DIR or --disk none",
                       bytes_text(d->bytes + RESERVE_BYTES).text, d->path,
                       bytes_text(free_bytes).text);
    if (snprintf(name, sizeof name, "%s/.slmbench-probe-XXXXXX", d->path) >=
        (int)sizeof name)
        return err_set(err, ST_USAGE,
                       "the directory name for the disk probe is too long");
    d->fd = mkostemp(name, O_CLOEXEC);
    if (d->fd < 0)
        return err_set_errno(err, ST_IO, "no scratch file for the disk probe in %s",
                             d->path);
    unlink(name);
    return ST_OK;
}

/* Memory file systems accept O_DIRECT in newer kernels, but are no disk. */
static enum status make_direct(struct disk *d, struct err *err)
{
    struct statfs fs;

    if (fstatfs(d->fd, &fs) == 0 &&
        ((unsigned)fs.f_type == TMPFS_MAGIC || (unsigned)fs.f_type == RAMFS_MAGIC))
        return err_set(err, ST_UNSUPPORTED,
                       "%s is on a file system in memory, which has no disk to probe",
                       d->path);
    const int flags = fcntl(d->fd, F_GETFL);
    if (flags < 0 || fcntl(d->fd, F_SETFL, flags | O_DIRECT))
        return err_set(err, ST_UNSUPPORTED,
                       "the file system of %s does not offer O_DIRECT, so reading it "
                       "would measure the page cache",
                       d->path);
    return ST_OK;
}

static enum status start_ring(struct disk *d, struct err *err)
{
    const size_t bytes = (size_t)d->way.depth * d->way.request_bytes;
    const int rc = io_uring_queue_init((unsigned)d->way.depth, &d->ring, 0);

    if (rc < 0)
        return err_set(err, ST_UNSUPPORTED,
                       "io_uring is not available (%s; containers often block it), so "
                       "the disk was not probed",
                       strerror(-rc));
    d->has_ring = true;
    if (mem_alloc(&d->mem, bytes, MEM_PAGES_2M, "disk buffers", NULL))
        return err_set(err, ST_NO_MEMORY, "no memory for %d disk buffers of %s",
                       d->way.depth, bytes_text(d->way.request_bytes).text);
    d->buffers = d->mem.base;

    uint64_t x = 0x2545f4914f6cdd1du;
    for (size_t i = 0; i < bytes / sizeof x; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memcpy(d->buffers + i * sizeof x, &x, sizeof x);
    }
    return ST_OK;
}

/* 0, or a positive errno: then nothing is in flight for this slot. */
static int submit_block(struct disk *d, bool writing, unsigned slot, uint64_t offset)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&d->ring);
    const uint64_t request = d->way.request_bytes;
    char *buffer = d->buffers + slot * request;

    if (writing)
        io_uring_prep_write(sqe, d->fd, buffer, (unsigned)request, offset);
    else
        io_uring_prep_read(sqe, d->fd, buffer, (unsigned)request, offset);
    io_uring_sqe_set_data(sqe, (void *)(uintptr_t)slot);

    const int rc = io_uring_submit(&d->ring);
    return rc == 1 ? 0 : rc < 0 ? -rc : EAGAIN;
}

/* Takes one completion off the ring; the slot that is free again, or -1 (*error
 * holds a positive errno). */
static int reap_block(struct disk *d, int *error)
{
    struct io_uring_cqe *cqe;
    int rc, slot = -1;

    do
        rc = io_uring_wait_cqe(&d->ring, &cqe);
    while (rc == -EINTR);
    if (rc < 0) {
        *error = -rc;
        return -1;
    }
    if (cqe->res == (int)d->way.request_bytes)
        slot = (int)(uintptr_t)io_uring_cqe_get_data(cqe);
    else
        *error = cqe->res < 0 ? -cqe->res : EIO;
    io_uring_cqe_seen(&d->ring, cqe);
    return slot;
}

/* Reads or writes from the start until d->bytes, the deadline or an interruption;
 * *done holds the bytes transferred. Waits for all requests in flight, also
 * after an error, since the kernel still owns those buffers. */
static enum status transfer(struct disk *d, bool writing, uint64_t limit_ns,
                            uint64_t *done, struct err *err)
{
    const uint64_t begin = clock_ns(), request = d->way.request_bytes;
    const unsigned depth = (unsigned)d->way.depth;
    uint64_t next = 0, finished = 0;
    int in_flight = 0, error = 0;

    for (unsigned slot = 0; slot < depth && next < d->bytes && !error; slot++) {
        error = submit_block(d, writing, slot, next);
        in_flight += !error;
        next += request;
    }
    while (in_flight > 0) {
        const int slot = reap_block(d, &error);

        in_flight--;
        if (slot < 0)
            continue;
        finished += request;
        if (next < d->bytes && !error && !interrupted() &&
            clock_ns() - begin < limit_ns) {
            error = submit_block(d, writing, (unsigned)slot, next);
            in_flight += !error;
            next += request;
        }
    }
    if (error) {
        errno = error;
        return err_set_errno(err,
                             error == ENOSPC || error == EDQUOT       ? ST_NO_MEMORY
                             : error == EINVAL || error == EOPNOTSUPP ? ST_UNSUPPORTED
                                                                      : ST_IO,
                             "the disk probe could not %s %s",
                             writing ? "write a scratch file in" : "read", d->path);
    }
    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted while probing %s", d->path);
    *done = finished;
    return ST_OK;
}

static enum status measure(struct disk *d, bool is_dir, int n_passes, double *gbps,
                           struct err *err)
{
    enum status st = ST_OK;
    uint64_t done = 0;

    if (is_dir) {
        st = transfer(d, true, 2 * (uint64_t)PASS_NS, &done, err);
        if (st == ST_OK && fsync(d->fd))
            st = err_set_errno(err, ST_IO, "the scratch file in %s cannot be flushed",
                               d->path);
        d->bytes = done;
    }
    for (int i = 0; i < n_passes && st == ST_OK; i++) {
        const uint64_t begin = clock_ns();

        st = transfer(d, false, PASS_NS, &done, err);
        gbps[i] = (double)done / (double)(clock_ns() - begin);
    }
    return st;
}

enum status probe_disk(const char *path, uint64_t max_bytes,
                       const struct probe_disk_way *way, int n_passes, double *gbps,
                       struct err *err)
{
    struct disk d = {.path = path, .way = way ? *way : probe_disk_usual, .fd = -1};
    struct stat sb;
    enum status st;

    assert(d.way.request_bytes && d.way.request_bytes % 4096 == 0 &&
           d.way.request_bytes <= INT_MAX && d.way.depth >= 1);
    if (stat(path, &sb))
        return err_set_errno(err, ST_IO, "%s cannot be probed as a disk", path);
    st = S_ISDIR(sb.st_mode) ? make_file(&d, max_bytes, err)
                             : open_file(&d, max_bytes, err);
    if (st == ST_OK && (make_direct(&d, err) || start_ring(&d, err) ||
                        measure(&d, S_ISDIR(sb.st_mode), n_passes, gbps, err)))
        st = err->code;
    if (d.has_ring)
        io_uring_queue_exit(&d.ring);
    mem_free(&d.mem);
    if (d.fd >= 0)
        close(d.fd);
    return st;
}
