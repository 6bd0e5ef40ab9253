/* SPDX-License-Identifier: MIT
 *
 * extent_reader.c - extents as requests, their results, and their failures
 *
 * Both sides announce a change by advancing a word that the other sleeps on. Waiting
 * spins for a moment only: where the machine has few CPUs, the reader's thread needs
 * one of those that wait for it.
 *
 * Whether the file is still the one that was opened is looked at after an extent has
 * been read: who writes to a file changes its time first, so what is older than the
 * look was read as it was at opening.
 */
#include "engine/weights/extent_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "engine/base/clock.h"
#include "engine/base/fileread.h"
#include "engine/base/futex.h"

#define BLOCK      ((uint64_t)4096)
#define DROP_BYTES ((uint64_t)16 << 20) /* dropping can wait for every CPU */
#define SPINS      64
#define MAX_DONE   16 /* results taken at a time */

/* One of which bytes are still to be read. */
struct open_extent {
    struct read_extent extent; /* its end is within the file */
    uint64_t left;             /* bytes; 0: free */
    int tag;
};

/* One in flight. */
struct request {
    unsigned char *dst;
    uint64_t begin, end; /* bytes of the file still to be read */
    struct open_extent *of;
    bool busy;
};

struct extent_reader {
    struct extent_reader_params p;
    struct stream_io io;
    struct timespec written;     /* the file's time when it was opened */
    struct request *requests;    /* [depth] */
    struct stream_read *reads;   /* [depth] as submitted */
    struct open_extent *extents; /* [depth + 1]: each has a request in flight, or is the
                                one that the next request is of */
    int n_busy;
    uint64_t undropped;       /* bytes since the page cache was last dropped */
    struct open_extent *next; /* of which requests are left; NULL: none */
    uint64_t at;              /* the next of them */

    pthread_t thread;
    bool has_thread;
    atomic_uint filled; /* advances when somebody's wait may be over */
    atomic_uint given;  /* when the source may have an extent, and at start and end */
    atomic_bool started, stop, failed;
    bool broken;    /* reading has failed, which users learn from `failed` */
    struct err why; /* written before `failed` */
    atomic_uint_least64_t bytes_read, n_reads;
};

/* ---- failing --------------------------------------------------------------------- */

static void fail(struct extent_reader *r, const struct err *why)
{
    if (!r->broken)
        r->why = *why;
    r->broken = true;
}

/* When nothing is in flight: a thread that continues reads memory that does not
 * change. */
static void announce_failure(struct extent_reader *r)
{
    if (atomic_load(&r->failed))
        return;
    atomic_store(&r->failed, true);
    futex_advance(&r->filled);
}

static void fail_read(struct extent_reader *r, const struct request *q, int error)
{
    struct err err = ERR_INIT;

    errno = error;
    err_set_errno(&err, ST_IO,
                  "cannot read %" PRIu64 " bytes of weights at byte %" PRIu64
                  " of %s while the model runs",
                  q->end - q->begin, q->begin, r->p.path);
    fail(r, &err);
}

static void fail_end(struct extent_reader *r, uint64_t at)
{
    struct err err = ERR_INIT;

    err_set(&err, ST_IO,
            "%s ends at byte %" PRIu64
            ", amid its weights: it has become shorter while the model runs; copy the "
            "whole model to a new file and rename that, so that an open file does not "
            "shrink",
            r->p.path, at);
    fail(r, &err);
}

/* False: the file is not the one that was opened. */
static bool check_file(struct extent_reader *r, const struct read_extent *e)
{
    struct err err = ERR_INIT;
    struct stat st;

    if (fstat(r->p.fd, &st)) {
        err_set_errno(&err, ST_IO, "cannot read the state of %s while the model runs",
                      r->p.path);
        fail(r, &err);
        return false;
    }
    if ((uint64_t)st.st_size < r->p.file_bytes) {
        fail_end(r, (uint64_t)st.st_size);
        return false;
    }
    if (st.st_mtim.tv_sec == r->written.tv_sec &&
        st.st_mtim.tv_nsec == r->written.tv_nsec)
        return true;
    err_set(&err, ST_IO,
            "%s has been written to while the model runs (seen after reading the "
            "weights at byte %" PRIu64
            "); write another model to a new file and rename that",
            r->p.path, e->begin);
    fail(r, &err);
    return false;
}

/* ---- what is read next ----------------------------------------------------------- */

/* Begin the source's next extent; false: it has none for now. */
static bool begin_extent(struct extent_reader *r)
{
    struct open_extent *o = r->extents;

    while (o->left)
        o++;
    if (!r->p.source.next(r->p.source.arg, &o->extent, &o->tag))
        return false;
    if (o->extent.end > r->p.file_bytes)
        o->extent.end = r->p.file_bytes;
    o->left = o->extent.end - o->extent.begin;
    r->next = o;
    r->at = o->extent.begin;
    return true;
}

/* The next request; false: there is none for now. */
static bool next_request(struct extent_reader *r, struct request *q)
{
    struct open_extent *o;

    if (!r->next && !begin_extent(r))
        return false;
    o = r->next;
    *q = (struct request){.dst = o->extent.dst + (r->at - o->extent.begin),
                          .begin = r->at,
                          .end = o->extent.end - r->at < r->p.request_bytes
                                     ? o->extent.end
                                     : r->at + r->p.request_bytes,
                          .of = o,
                          .busy = true};
    r->at = q->end;
    if (r->at == o->extent.end)
        r->next = NULL;
    return true;
}

/* ---- requests -------------------------------------------------------------------- */

/* A direct read is of whole blocks, beyond the file's end if it must. */
static bool submit(struct extent_reader *r, int i)
{
    const struct request *q = &r->requests[i];
    uint64_t bytes = q->end - q->begin;
    int rc;

    if (r->p.direct)
        bytes = (bytes + BLOCK - 1) / BLOCK * BLOCK;
    r->reads[i] = (struct stream_read){.dst = q->dst,
                                       .offset = q->begin,
                                       .bytes = (uint32_t)bytes,
                                       .tag = (uint32_t)i};
    rc = r->io.class->submit(r->io.state, &r->reads[i]);
    if (rc < 0) {
        fail_read(r, q, -rc);
        return false;
    }
    return true;
}

static void submit_more(struct extent_reader *r)
{
    for (int i = 0; i < r->p.depth && r->n_busy < r->p.depth; i++) {
        if (r->requests[i].busy)
            continue;
        if (!next_request(r, &r->requests[i]))
            return;
        if (!submit(r, i)) {
            r->requests[i].busy = false;
            return;
        }
        r->n_busy++;
    }
}

/* What was read through the page cache is not needed there. */
static void drop_cached(struct extent_reader *r, const struct request *q)
{
    const struct open_extent *o = q->of;

    if (r->p.direct)
        return;
    if (o->left == 0) {
        pagecache_drop(r->p.fd, o->extent.begin, o->extent.end);
        r->undropped = 0;
    } else if (r->undropped >= DROP_BYTES) {
        const uint64_t first = o->extent.begin;

        pagecache_drop(
            r->p.fd, q->end > first + 2 * DROP_BYTES ? q->end - 2 * DROP_BYTES : first,
            q->end);
        r->undropped = 0;
    }
}

/* Bytes of a request have been read. */
static void count(struct extent_reader *r, const struct request *q, uint64_t bytes)
{
    q->of->left -= bytes;
    r->undropped += bytes;
}

/* A request has been read to its end. */
static void finish(struct extent_reader *r, const struct request *q)
{
    drop_cached(r, q);
    if (q->of->left == 0 && !r->broken && check_file(r, &q->of->extent))
        r->p.source.has_read(r->p.source.arg, q->of->tag);
}

static void take_result(struct extent_reader *r, const struct stream_result *result)
{
    struct request *q = &r->requests[result->tag];
    const uint64_t wanted = q->end - q->begin;
    const uint64_t got = result->result > 0 ? (uint64_t)result->result : 0;
    const bool again = result->result == -EINTR || result->result == -EAGAIN;

    q->busy = false;
    r->n_busy--;
    if (result->result < 0 && !again) {
        fail_read(r, q, -result->result);
        return;
    }
    atomic_fetch_add_explicit(&r->bytes_read, got, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->n_reads, !again, memory_order_relaxed);
    if (got >= wanted) {
        q->begin = q->end;
        count(r, q, wanted);
        finish(r, q);
        return;
    }
    /* A direct read stops inside of a block only where the file does. */
    if (!again && (got == 0 || (r->p.direct && got % BLOCK))) {
        fail_end(r, q->begin + got);
        return;
    }
    q->begin += got;
    q->dst += got;
    count(r, q, got);
    if (!r->broken && submit(r, (int)result->tag)) {
        q->busy = true;
        r->n_busy++;
    }
}

static void take_results(struct extent_reader *r)
{
    struct stream_result results[MAX_DONE];
    const int n = r->io.class->wait(r->io.state, results, MAX_DONE);

    /* What is still in flight ends with the ring: the kernel holds the pages until
     * then. */
    if (n < 0) {
        struct err err = ERR_INIT;

        errno = -n;
        err_set_errno(&err, ST_IO, "cannot wait for the weights of %s", r->p.path);
        fail(r, &err);
        r->n_busy = 0;
        return;
    }
    for (int i = 0; i < n; i++)
        take_result(r, &results[i]);
}

static void *reader_thread(void *arg)
{
    struct extent_reader *r = arg;

    for (;;) {
        const unsigned seen = atomic_load(&r->given);

        if (atomic_load(&r->started) && !atomic_load(&r->stop) && !r->broken)
            submit_more(r);
        if (r->n_busy) {
            take_results(r);
            continue;
        }
        if (r->broken)
            announce_failure(r);
        if (atomic_load(&r->stop))
            return NULL;
        futex_wait(&r->given, seen);
    }
}

/* ---- opening and closing --------------------------------------------------------- */

static enum status start_thread(struct extent_reader *r, struct err *err)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&r->thread, NULL, reader_thread, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc)
        return err_set(err, ST_NO_MEMORY,
                       "the system starts no thread to read weights with (%s)",
                       strerror(rc));
    r->has_thread = true;
    pthread_setname_np(r->thread, "slm-stream");
    return ST_OK;
}

enum status extent_reader_open(struct extent_reader **out,
                               const struct extent_reader_params *params,
                               struct stream_io *io, struct err *err)
{
    struct extent_reader *r = calloc(1, sizeof *r);
    enum status st = ST_OK;
    struct stat about;

    if (!r) {
        stream_io_close(io);
        return err_set(err, ST_NO_MEMORY, "no memory to stream weights");
    }
    r->p = *params;
    r->io = *io;
    *io = (struct stream_io){NULL, NULL};
    r->requests = calloc((size_t)params->depth, sizeof *r->requests);
    r->reads = calloc((size_t)params->depth, sizeof *r->reads);
    r->extents = calloc((size_t)params->depth + 1, sizeof *r->extents);
    if (!r->requests || !r->reads || !r->extents)
        st = err_set(err, ST_NO_MEMORY, "no memory to stream weights");
    else if (fstat(params->fd, &about))
        st = err_set_errno(err, ST_IO, "cannot read the state of %s", params->path);
    else
        r->written = about.st_mtim;
    if (!st)
        st = start_thread(r, err);
    if (st)
        extent_reader_close(r);
    else
        *out = r;
    return st;
}

void extent_reader_start(struct extent_reader *r)
{
    atomic_store(&r->started, true);
    futex_advance(&r->given);
}

void extent_reader_close(struct extent_reader *r)
{
    if (!r)
        return;
    atomic_store(&r->stop, true);
    futex_advance(&r->given);
    if (r->has_thread)
        pthread_join(r->thread, NULL);
    stream_io_close(&r->io);
    free(r->requests);
    free(r->reads);
    free(r->extents);
    free(r);
}

/* ---- for users and sources ------------------------------------------------------- */

void extent_reader_wake(struct extent_reader *r)
{
    futex_advance(&r->given);
}

void extent_reader_announce(struct extent_reader *r)
{
    futex_advance(&r->filled);
}

uint64_t extent_reader_wait(struct extent_reader *r, bool (*is_there)(void *arg, int i),
                            void *arg, int i)
{
    uint64_t begin_ns;

    if (is_there(arg, i) || atomic_load(&r->failed))
        return 0;
    begin_ns = clock_ns();
    for (int k = 0; k < SPINS; k++)
        if (is_there(arg, i))
            return clock_ns() - begin_ns;
    for (;;) {
        const unsigned seen = atomic_load(&r->filled);

        if (is_there(arg, i) || atomic_load(&r->failed))
            return clock_ns() - begin_ns;
        futex_wait(&r->filled, seen);
    }
}

enum status extent_reader_check(const struct extent_reader *r, struct err *err)
{
    return atomic_load(&r->failed) ? err_set(err, r->why.code, "%s", r->why.msg)
                                   : ST_OK;
}

void extent_reader_stats(const struct extent_reader *r, struct extent_reader_stats *out)
{
    *out = (struct extent_reader_stats){
        .bytes_read = atomic_load_explicit(&r->bytes_read, memory_order_relaxed),
        .n_reads = atomic_load_explicit(&r->n_reads, memory_order_relaxed),
    };
}
