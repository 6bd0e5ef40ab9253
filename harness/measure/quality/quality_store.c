/* SPDX-License-Identifier: MIT
 *
 * quality_store.c - header, records, checksums
 *
 * Little-endian machines only, as everything here that reads GGUF. Nothing is
 * synced: after a loss of power checksums find what did not reach the disk.
 */
#include "harness/measure/quality/quality_job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/filelock.h"
#include "engine/base/fileread.h"
#include "engine/base/invoker.h"
#include "harness/base/hash.h"

#define MAGIC "slmqual1"

struct header {
    char magic[8];
    uint64_t key, record_bytes;
};

struct quality_store {
    char *path;
    int fd;
    struct header header;
    size_t n;
    unsigned char *buf; /* a record and its checksum */
};

const char *quality_store_path(const struct quality_store *s)
{
    return s->path;
}

size_t quality_store_n(const struct quality_store *s)
{
    return s->n;
}

static size_t slot_bytes(const struct quality_store *s)
{
    return (size_t)s->header.record_bytes + sizeof(uint64_t);
}

uint64_t quality_store_bytes(size_t record_bytes, size_t n)
{
    return sizeof(struct header) + (uint64_t)n * (record_bytes + sizeof(uint64_t));
}

static off_t offset_of(const struct quality_store *s, size_t i)
{
    return (off_t)quality_store_bytes((size_t)s->header.record_bytes, i);
}

void quality_store_close(struct quality_store *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s->path);
    free(s->buf);
    free(s);
}

/* ---- records --------------------------------------------------------------------- */

static bool write_all(int fd, const void *data, size_t n, off_t at)
{
    const char *p = data;

    while (n > 0) {
        const ssize_t done = pwrite(fd, p, n, at);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        p += done;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

/* Checksum of a record and its position: a misplaced record does not match. */
static uint64_t checksum(const struct quality_store *s, size_t i)
{
    const uint64_t place = i;
    const uint64_t h = hash_add(s->header.key, &place, sizeof place);

    return hash_add(h, s->buf, (size_t)s->header.record_bytes);
}

enum status quality_store_cut(struct quality_store *s, size_t n, struct err *err)
{
    if (ftruncate(s->fd, offset_of(s, n)))
        return err_set_errno(err, ST_IO, "cannot cut %.300s", s->path);
    s->n = n;
    return ST_OK;
}

enum status quality_store_append(struct quality_store *s, const void *record,
                                 struct err *err)
{
    const size_t n = (size_t)s->header.record_bytes;

    memcpy(s->buf, record, n);
    const uint64_t sum = checksum(s, s->n);
    memcpy(s->buf + n, &sum, sizeof sum);
    if (write_all(s->fd, s->buf, slot_bytes(s), offset_of(s, s->n))) {
        s->n++;
        return ST_OK;
    }
    err_set_errno(err, ST_IO, "cannot write %.300s (what is there is whole)", s->path);
    quality_store_cut(s, s->n, err);
    return ST_IO;
}

enum status quality_store_read(struct quality_store *s, size_t i, void *record,
                               struct err *err)
{
    const size_t n = (size_t)s->header.record_bytes;
    const enum status st = readfile_at(s->fd, s->path, s->buf, slot_bytes(s),
                                       (uint64_t)offset_of(s, i), err);
    uint64_t sum;

    if (st)
        return st;
    memcpy(&sum, s->buf + n, sizeof sum);
    if (sum != checksum(s, i))
        return err_set(err, ST_INPUT,
                       "%.300s is damaged at record %zu; remove it; its contents are "
                       "computed again",
                       s->path, i);
    memcpy(record, s->buf, n);
    return ST_OK;
}

/* ---- opening --------------------------------------------------------------------- */

/* How many whole records follow the header, or a new header and none. A file that
 * cannot be read is left as it is. */
static enum status find_records(struct quality_store *s, struct err *err)
{
    struct header there = {.key = 0};
    struct stat st;

    if (fstat(s->fd, &st)) /* a regular file, as invoker_open() has it */
        return err_set_errno(err, ST_IO, "cannot read %.300s", s->path);
    if (st.st_size >= (off_t)sizeof there &&
        readfile_at(s->fd, s->path, &there, sizeof there, 0, err))
        return ST_IO;
    if (!memcmp(&there, &s->header, sizeof there))
        return quality_store_cut(
            s, (size_t)(st.st_size - (off_t)sizeof there) / slot_bytes(s), err);
    if (ftruncate(s->fd, 0) || !write_all(s->fd, &s->header, sizeof s->header, 0))
        return err_set_errno(err, ST_IO, "cannot write %.300s", s->path);
    return ST_OK;
}

enum status quality_store_open(struct quality_store **out, const char *path,
                               uint64_t key, size_t record_bytes, struct err *err)
{
    struct quality_store *s = calloc(1, sizeof *s);
    enum status st = ST_OK;

    if (!s)
        return err_set(err, ST_NO_MEMORY, "no memory to open %.300s", path);
    memcpy(s->header.magic, MAGIC, sizeof s->header.magic);
    s->header.key = key;
    s->header.record_bytes = record_bytes;
    s->fd = -1;
    s->path = strdup(path);
    s->buf = malloc(slot_bytes(s));
    if (!s->path || !s->buf)
        st = err_set(err, ST_NO_MEMORY, "no memory for records of %zu bytes",
                     record_bytes);
    if (st == ST_OK) {
        s->fd = invoker_open(path, O_RDWR);
        if (s->fd < 0)
            st = invoker_fail(path, errno, err);
    }
    if (st == ST_OK)
        st = filelock_take(s->fd, "`bench quality`", path, err);
    if (st == ST_OK)
        st = find_records(s, err);
    if (st)
        quality_store_close(s);
    else
        *out = s;
    return st;
}
