/* SPDX-License-Identifier: MIT
 *
 * stream_reader.c - the sequence of parts as requests, and their states
 *
 * A state belongs to the reader while a part is empty or being read, and to the users
 * while it is full. Both sides announce a change by advancing a word that the other
 * sleeps on. Waiting spins for a moment only: where the machine has few CPUs, the
 * reader's thread needs one of those that wait for it.
 *
 * Whether the file is still the one that was opened is looked at after a part has been
 * read: who writes to a file changes its time first, so what is older than the look was
 * read as it was at opening.
 */
#include "engine/weights/stream_reader.h"

#include <assert.h>
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
#define MOST_DONE  16 /* results taken at a time */

enum state { EMPTY, BEING_READ, FULL };

/* One in flight. */
struct request {
    unsigned char *dst;
    uint64_t begin, end; /* bytes of the file still to be read */
    int part, extent;
    bool busy;
};

struct stream_reader {
    struct stream_reader_params p;
    struct stream_io io;
    struct timespec written;   /* the file's time when it was opened */
    struct request *requests;  /* [depth] */
    struct stream_read *reads; /* [depth] as submitted */
    int n_busy;
    uint64_t *left;     /* [n_parts] bytes of a part that are still to be read */
    uint64_t undropped; /* bytes since the page cache was last dropped */
    atomic_int *states; /* [n_parts] */
    int *last;          /* [n_places] the part that was there last; -1: none */

    /* what is requested next */
    int part, extent;
    uint64_t at; /* in the file */
    bool begun;  /* the part has been; else only `part` counts */

    pthread_t thread;
    bool has_thread;
    atomic_uint filled; /* advances when a part is full, and at a failure */
    atomic_uint given;  /* when one is given back, and at start and end */
    atomic_bool started, stop, failed;
    bool broken;    /* reading has failed, which users learn from `failed` */
    struct err why; /* written before `failed` */
    atomic_uint_least64_t bytes_read, n_reads;
};

/* ---- failing -------------------------------------------------------------------- */

static void fail(struct stream_reader *r, const struct err *why)
{
    if (!r->broken)
        r->why = *why;
    r->broken = true;
}

/* When nothing is in flight: whoever goes on meanwhile reads memory that does not
 * change. */
static void announce_failure(struct stream_reader *r)
{
    if (atomic_load(&r->failed))
        return;
    atomic_store(&r->failed, true);
    futex_advance(&r->filled);
}

static void fail_read(struct stream_reader *r, const struct request *q, int error)
{
    struct err err = ERR_INIT;

    errno = error;
    err_set_errno(&err, ST_IO,
                  "cannot read %" PRIu64 " bytes of weights at byte %" PRIu64
                  " of %s while the model runs",
                  q->end - q->begin, q->begin, r->p.path);
    fail(r, &err);
}

static void fail_end(struct stream_reader *r, uint64_t at)
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
static bool check_file(struct stream_reader *r, int part)
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
            r->p.path, r->p.parts[part].extents[0].begin);
    fail(r, &err);
    return false;
}

/* ---- what is read next ------------------------------------------------------------
 */

/* The part that had this one's place before has been given back. */
static bool place_is_empty(struct stream_reader *r, int part)
{
    const int last = r->last[r->p.parts[part].place];

    return last < 0 || atomic_load(&r->states[last]) == EMPTY;
}

/* Bytes of an extent that the file has, to this one. */
static uint64_t end_of(const struct stream_reader *r, const struct stream_extent *e)
{
    return e->end < r->p.file_bytes ? e->end : r->p.file_bytes;
}

static void begin_part(struct stream_reader *r)
{
    const struct stream_part *p = &r->p.parts[r->part];

    r->left[r->part] = 0;
    for (int i = 0; i < p->n_extents; i++)
        r->left[r->part] += end_of(r, &p->extents[i]) - p->extents[i].begin;
    atomic_store(&r->states[r->part], BEING_READ);
    r->last[p->place] = r->part;
    r->begun = true;
    r->extent = 0;
    r->at = p->extents[0].begin;
}

/* The next request; false: there is no place for it. */
static bool next_request(struct stream_reader *r, struct request *q)
{
    const struct stream_part *p = &r->p.parts[r->part];
    const struct stream_extent *e;
    uint64_t end;

    if (!r->begun) {
        if (!place_is_empty(r, r->part))
            return false;
        begin_part(r);
    }
    e = &p->extents[r->extent];
    end = end_of(r, e);
    *q = (struct request){
        .dst = e->dst + (r->at - e->begin),
        .begin = r->at,
        .end = end - r->at < r->p.request_bytes ? end : r->at + r->p.request_bytes,
        .part = r->part,
        .extent = r->extent,
        .busy = true};
    r->at = q->end;
    if (r->at < end)
        return true;
    if (++r->extent < p->n_extents) {
        r->at = p->extents[r->extent].begin;
    } else {
        r->part = (r->part + 1) % r->p.n_parts;
        r->begun = false;
    }
    return true;
}

/* ---- requests ---------------------------------------------------------------------
 */

/* A direct read is of whole blocks, beyond the file's end if it must. */
static bool submit(struct stream_reader *r, int i)
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

static void submit_more(struct stream_reader *r)
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
static void drop_cached(struct stream_reader *r, const struct request *q)
{
    const struct stream_part *y = &r->p.parts[q->part];

    if (r->p.direct)
        return;
    if (r->left[q->part] == 0) {
        for (int i = 0; i < y->n_extents; i++)
            pagecache_drop(r->p.fd, y->extents[i].begin, end_of(r, &y->extents[i]));
        r->undropped = 0;
    } else if (r->undropped >= DROP_BYTES) {
        const uint64_t first = y->extents[q->extent].begin;

        pagecache_drop(
            r->p.fd, q->end > first + 2 * DROP_BYTES ? q->end - 2 * DROP_BYTES : first,
            q->end);
        r->undropped = 0;
    }
}

/* A request has been read to its end. */
static void finish(struct stream_reader *r, const struct request *q, uint64_t bytes)
{
    r->left[q->part] -= bytes;
    r->undropped += bytes;
    drop_cached(r, q);
    if (r->left[q->part] || r->broken || !check_file(r, q->part))
        return;
    atomic_store(&r->states[q->part], FULL);
    futex_advance(&r->filled);
}

static void take_result(struct stream_reader *r, const struct stream_result *result)
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
        finish(r, q, wanted);
        return;
    }
    /* A direct read stops inside of a block only where the file does. */
    if (!again && (got == 0 || (r->p.direct && got % BLOCK))) {
        fail_end(r, q->begin + got);
        return;
    }
    q->begin += got;
    q->dst += got;
    r->left[q->part] -= got;
    r->undropped += got;
    if (!r->broken && submit(r, (int)result->tag)) {
        q->busy = true;
        r->n_busy++;
    }
}

static void take_results(struct stream_reader *r)
{
    struct stream_result results[MOST_DONE];
    const int n = r->io.class->wait(r->io.state, results, MOST_DONE);

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
    struct stream_reader *r = arg;

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

/* ---- opening and closing ----------------------------------------------------------
 */

static enum status start_thread(struct stream_reader *r, struct err *err)
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

enum status stream_reader_open(struct stream_reader **out,
                               const struct stream_reader_params *params,
                               struct stream_io *io, struct err *err)
{
    struct stream_reader *r = calloc(1, sizeof *r);
    enum status st = ST_OK;
    struct stat about;

    assert(params->n_parts > 0 && params->n_places > 0);
    if (!r) {
        stream_io_close(io);
        return err_set(err, ST_NO_MEMORY, "no memory to stream weights");
    }
    r->p = *params;
    r->io = *io;
    *io = (struct stream_io){NULL, NULL};
    r->requests = calloc((size_t)params->depth, sizeof *r->requests);
    r->reads = calloc((size_t)params->depth, sizeof *r->reads);
    r->left = calloc((size_t)params->n_parts, sizeof *r->left);
    r->states = calloc((size_t)params->n_parts, sizeof *r->states);
    r->last = malloc((size_t)params->n_places * sizeof *r->last);
    if (!r->requests || !r->reads || !r->left || !r->states || !r->last)
        st = err_set(err, ST_NO_MEMORY, "no memory to stream weights");
    else if (fstat(params->fd, &about))
        st = err_set_errno(err, ST_IO, "cannot read the state of %s", params->path);
    else
        r->written = about.st_mtim;
    for (int i = 0; r->last && i < params->n_places; i++)
        r->last[i] = -1;
    if (!st)
        st = start_thread(r, err);
    if (st)
        stream_reader_close(r);
    else
        *out = r;
    return st;
}

void stream_reader_start(struct stream_reader *r)
{
    atomic_store(&r->started, true);
    futex_advance(&r->given);
}

void stream_reader_close(struct stream_reader *r)
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
    free(r->left);
    free(r->states);
    free(r->last);
    free(r);
}

/* ---- for users ----------------------------------------------------------------------
 */

static bool is_there(const struct stream_reader *r, int i)
{
    return atomic_load(&r->states[i]) == FULL || atomic_load(&r->failed);
}

uint64_t stream_reader_wait(struct stream_reader *r, int i)
{
    uint64_t begin_ns;

    if (is_there(r, i))
        return 0;
    begin_ns = clock_ns();
    for (int k = 0; k < SPINS; k++)
        if (is_there(r, i))
            return clock_ns() - begin_ns;
    for (;;) {
        const unsigned seen = atomic_load(&r->filled);

        if (is_there(r, i))
            return clock_ns() - begin_ns;
        futex_wait(&r->filled, seen);
    }
}

void stream_reader_done(struct stream_reader *r, int i)
{
    int full = FULL;

    /* After a failure users go on with parts that are not full. */
    if (atomic_compare_exchange_strong(&r->states[i], &full, EMPTY))
        futex_advance(&r->given);
}

enum status stream_reader_check(const struct stream_reader *r, struct err *err)
{
    return atomic_load(&r->failed) ? err_set(err, r->why.code, "%s", r->why.msg)
                                   : ST_OK;
}

void stream_reader_stats(const struct stream_reader *r, struct stream_reader_stats *out)
{
    *out = (struct stream_reader_stats){
        .bytes_read = atomic_load_explicit(&r->bytes_read, memory_order_relaxed),
        .n_reads = atomic_load_explicit(&r->n_reads, memory_order_relaxed),
    };
}
