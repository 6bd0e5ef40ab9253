/* SPDX-License-Identifier: MIT
 *
 * weights_copy.c - a packed file read straight into the pages of the weights
 *
 * Threads take chunks that end at multiples of CHUNK in memory, a huge page, so that no
 * two write to the same new page at once. What is cached, a thread copies itself; for
 * the rest it keeps requests in flight, which the kernel clears new pages for while the
 * disk is busy with others.
 */
#include "engine/weights/weights_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/fileread.h"
#include "engine/base/random.h"
#include "engine/gguf/gguf_panels.h"
#include "engine/weights/stream_io.h"
#include "engine/weights/weights_file.h"

#define CHUNK     ((size_t)WEIGHTS_FILE_REQUEST_BYTES)
#define BLOCK     ((size_t)GGUF_PANEL_ALIGN)
#define AHEAD     ((uint64_t)32 << 20)
#define MAX_DEPTH WEIGHTS_FILE_DEPTH

/* A disk's bandwidth is known after this many bytes. One that gives less than SLOW is
 * read through the page cache at its full bandwidth, too. */
#define TRIAL_BYTES ((uint64_t)128 << 20)
#define SLOW        1.0 /* bytes per nanosecond */

struct copy {
    const struct copy_job *job;
    struct weights_file file;
    int probe; /* descriptor of the file that nothing is read ahead on; -1: none */
    int depth; /* requests in flight of each thread */
    size_t total, reported;
    atomic_size_t next, done;
    atomic_bool cached; /* all is read through the page cache */
    atomic_uint_least64_t begin_ns, direct_bytes; /* of reading past it */
    atomic_bool failed; /* the thread that sets it writes why */
    struct err why;
};

/* ---- chunks ---------------------------------------------------------------------- */

struct chunk {
    size_t run, number;
    uint64_t offset;
    size_t at, bytes;
};

/* Advance to the next chunk; false: none left. Start with all zero. */
static bool next_chunk(const struct copy_job *job, struct chunk *c)
{
    const struct copy_run *r = &job->runs[c->run];
    size_t done;

    c->number += c->bytes > 0;
    while (c->run < job->n_runs && c->bytes && c->at + c->bytes == r->at + r->bytes) {
        c->bytes = 0;
        c->at = 0;
        r = &job->runs[++c->run];
    }
    if (c->run == job->n_runs)
        return false;
    done = c->bytes ? c->at + c->bytes - r->at : 0;
    c->at = r->at + done;
    c->offset = r->offset + done;
    c->bytes = CHUNK - c->at % CHUNK;
    if (c->bytes > r->bytes - done)
        c->bytes = r->bytes - done;
    return true;
}

/* ---- a thread -------------------------------------------------------------------- */

struct reader {
    struct copy *copy;
    int thread;
    uint64_t random;
    struct stream_io io; /* opened with the first request */
    struct chunk requests[MAX_DEPTH];
    bool busy[MAX_DEPTH];
    int n_busy;
};

static void give_up(struct copy *copy, const struct err *why)
{
    if (!atomic_exchange(&copy->failed, true))
        copy->why = *why;
}

static void report_progress(struct copy *copy, size_t done)
{
    const struct copy_job *job = copy->job;
    struct err err = ERR_INIT;

    if (done == copy->reported)
        return;
    copy->reported = done;
    if (job->progress && job->progress(job->arg, done, copy->total)) {
        err_set(&err, ST_INTERRUPTED, "interrupted");
        give_up(copy, &err);
    }
}

static void count(const struct reader *r, const struct chunk *c)
{
    const size_t done = atomic_fetch_add(&r->copy->done, c->bytes) + c->bytes;

    if (r->thread == 0)
        report_progress(r->copy, done);
}

/* ---- through the page cache ------------------------------------------------------ */

/* Whether the page cache has it, judged by two of its blocks. Asking for a block that
 * is not there starts reading it alone, so another one is asked for each time.
 * mincore() would say so of every page of a file that this process may not write. */
static bool is_cached(struct reader *r, const struct chunk *c)
{
    unsigned char block[64];
    struct iovec to = {block, sizeof block};
    ssize_t got = 0;

    for (int i = 0; i < 2 && got >= 0; i++) {
        const uint64_t k = random_bits(&r->random) % (c->bytes / BLOCK);

        got =
            preadv2(r->copy->probe, &to, 1, (off_t)(c->offset + k * BLOCK), RWF_NOWAIT);
    }
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        atomic_store(&r->copy->cached, true); /* this file system does not say */
    return got >= 0;
}

/* All of it but the first `have` bytes. */
static void read_cached(struct reader *r, const struct chunk *c, size_t have)
{
    const struct copy_job *job = r->copy->job;
    struct err err = ERR_INIT;

    if (gguf_read_bytes(job->g, job->memory + c->at + have, c->bytes - have,
                        c->offset + have, &err)) {
        give_up(r->copy, &err);
        return;
    }
    if (job->drop_cached)
        pagecache_drop(gguf_fd(job->g), c->offset, c->offset + c->bytes);
    count(r, c);
}

static void read_ahead(const struct reader *r, const struct chunk *c)
{
    if (!r->copy->job->drop_cached)
        (void)posix_fadvise(gguf_fd(r->copy->job->g), (off_t)(c->offset + AHEAD),
                            (off_t)c->bytes, POSIX_FADV_WILLNEED);
}

/* ---- past the page cache --------------------------------------------------------- */

/* A page cache that has room for the file keeps it for the next start, and costs
 * nothing where the disk is what is waited for. */
static void judge_disk(struct copy *copy, uint64_t bytes)
{
    const uint64_t before = atomic_fetch_add(&copy->direct_bytes, bytes);
    const uint64_t ns = clock_ns() - atomic_load(&copy->begin_ns);

    if (!copy->job->drop_cached && before < TRIAL_BYTES &&
        before + bytes >= TRIAL_BYTES && (double)(before + bytes) < SLOW * (double)ns)
        atomic_store(&copy->cached, true);
}

/* Wait for at least one of the requests in flight. What could not be read of it is read
 * through the page cache, which says why. */
static void take_results(struct reader *r)
{
    struct stream_result results[MAX_DEPTH];
    struct err err = ERR_INIT;
    const int n = r->io.class->wait(r->io.state, results, MAX_DEPTH);

    if (n < 0) {
        errno = -n;
        err_set_errno(&err, ST_IO, "cannot wait for the weights of %s",
                      gguf_path(r->copy->job->g));
        give_up(r->copy, &err);
        r->n_busy = 0;
        return;
    }
    for (int i = 0; i < n; i++) {
        const struct chunk *c = &r->requests[results[i].tag];
        const size_t got = results[i].result > 0 ? (size_t)results[i].result : 0;

        r->busy[results[i].tag] = false;
        r->n_busy--;
        if (got >= c->bytes) {
            judge_disk(r->copy, c->bytes);
            count(r, c);
        } else if (!atomic_load(&r->copy->failed)) {
            read_cached(r, c, got / BLOCK * BLOCK);
        }
    }
}

/* False: it cannot be read like that. */
static bool request(struct reader *r, const struct chunk *c)
{
    uint64_t never = 0;
    int i = 0;

    if (!r->io.class && stream_io_open(&r->io, weights_file_fd(&r->copy->file),
                                       r->copy->depth, NULL, NULL))
        return false;
    while (r->n_busy == r->copy->depth)
        take_results(r);
    while (r->busy[i])
        i++;
    atomic_compare_exchange_strong(&r->copy->begin_ns, &never, clock_ns());
    r->requests[i] = *c;
    const struct stream_read read = {.dst = r->copy->job->memory + c->at,
                                     .offset = c->offset,
                                     .bytes = (uint32_t)c->bytes,
                                     .tag = (uint32_t)i};

    if (r->io.class->submit(r->io.state, &read) < 0)
        return false;
    r->busy[i] = true;
    r->n_busy++;
    return true;
}

/* ---- work ------------------------------------------------------------------------ */

static void take(struct reader *r, const struct chunk *c)
{
    if (!atomic_load(&r->copy->cached)) {
        if (is_cached(r, c)) {
            read_cached(r, c, 0);
            return;
        }
        if (!atomic_load(&r->copy->cached) && request(r, c))
            return;
    }
    read_ahead(r, c);
    read_cached(r, c, 0);
}

/* Every thread goes through all chunks and takes those whose numbers it has drawn. */
static void work(void *arg, int thread, int n_threads)
{
    struct copy *copy = arg;
    struct reader r = {
        .copy = copy, .thread = thread, .random = clock_ns() + (uint64_t)thread};
    struct chunk c = {0};
    size_t mine = atomic_fetch_add(&copy->next, 1);

    (void)n_threads;
    while (!atomic_load(&copy->failed) && next_chunk(copy->job, &c)) {
        if (c.number != mine)
            continue;
        take(&r, &c);
        mine = atomic_fetch_add(&copy->next, 1);
    }
    while (r.n_busy)
        take_results(&r);
    stream_io_close(&r.io);
}

enum status weights_copy(const struct copy_job *job, struct thread_pool *pool,
                         struct err *err)
{
    const int n_threads = pool ? thread_pool_size(pool) : 1;
    struct copy copy = {.job = job,
                        .probe = weights_file_open_again(job->g, 0),
                        .depth = (MAX_DEPTH + n_threads - 1) / n_threads};

    for (size_t i = 0; i < job->n_runs; i++)
        copy.total += job->runs[i].bytes;
    weights_file_open(&copy.file, job->g, job->memory);
    if (copy.probe >= 0)
        (void)posix_fadvise(copy.probe, 0, 0, POSIX_FADV_RANDOM);
    copy.cached = !copy.file.direct || copy.probe < 0;
    if (pool)
        thread_pool_run(pool, work, &copy);
    else
        work(&copy, 0, 1);
    if (copy.probe >= 0)
        close(copy.probe);
    weights_file_close(&copy.file);
    if (!copy.failed)
        report_progress(&copy, copy.total);
    return copy.failed ? err_set(err, copy.why.code, "%s", copy.why.msg) : ST_OK;
}
