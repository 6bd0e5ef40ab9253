/* SPDX-License-Identifier: MIT
 *
 * weights_copy.c - a packed file read straight into the pages of the weights
 *
 * Threads take chunks that end at multiples of CHUNK in memory: a multiple of a huge
 * page, so that no two threads touch the same new page at once, and as long as makes
 * two requests fill the queue of a disk.
 */
#include "engine/weights/weights_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/fileread.h"
#include "engine/gguf/gguf_panels.h"

#define CHUNK    ((size_t)8 << 20)
#define MIN_PAGE 4096
#define AHEAD    ((uint64_t)32 << 20)

struct copy {
    const struct copy_job *job;
    struct thread_pool *pool;
    int direct_fd; /* -1: the file system has none */
    size_t total, reported;
    atomic_size_t next, done;
    atomic_bool failed; /* the thread that sets it writes why */
    struct err why;
};

/* ---- chunks ------------------------------------------------------------------- */

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

/* ---- reading ------------------------------------------------------------------- */

/* Whether the page cache has all of it. The kernel says so of every page of a file that
 * this process may not write and does not own. RWF_NOWAIT would not do: some kernels
 * start readahead then. */
static bool is_cached(const struct copy_job *job, const struct chunk *c)
{
    unsigned char page[CHUNK / MIN_PAGE];
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *image = (char *)(uintptr_t)gguf_image(job->g) + c->offset;
    size_t n = (c->bytes + size - 1) / size;

    if (c->offset % size || mincore(image, c->bytes, page))
        return false;
    while (n && page[n - 1] & 1)
        n--;
    return n == 0;
}

/* The bytes of its beginning that could be read past the page cache. */
static size_t read_direct(const struct copy *copy, const struct chunk *c)
{
    size_t have = 0;

    while (have < c->bytes && copy->direct_fd >= 0) {
        const ssize_t got = pread(copy->direct_fd, copy->job->memory + c->at + have,
                                  c->bytes - have, (off_t)(c->offset + have));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || got % GGUF_PANEL_ALIGN)
            break; /* reading through the cache says why */
        have += (size_t)got;
    }
    return have;
}

static enum status read_chunk(const struct copy *copy, const struct chunk *c,
                              struct err *err)
{
    const struct gguf *g = copy->job->g;
    size_t have = 0;
    enum status st;

    if (copy->job->drop_cached && !is_cached(copy->job, c))
        have = read_direct(copy, c);
    if (!copy->job->drop_cached)
        (void)posix_fadvise(gguf_fd(g), (off_t)(c->offset + c->bytes), (off_t)AHEAD,
                            POSIX_FADV_WILLNEED);
    st = gguf_read_bytes(g, copy->job->memory + c->at + have, c->bytes - have,
                         c->offset + have, err);
    if (!st && copy->job->drop_cached && have < c->bytes)
        pagecache_drop(gguf_fd(g), c->offset, c->offset + c->bytes);
    return st;
}

/* ---- work ---------------------------------------------------------------------- */

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

/* Every thread goes through all chunks and copies those whose numbers it has drawn. */
static void work(void *arg, int thread, int n_threads)
{
    struct copy *copy = arg;
    struct chunk c = {0};
    size_t mine = atomic_fetch_add(&copy->next, 1);

    (void)n_threads;
    while (!atomic_load(&copy->failed) && next_chunk(copy->job, &c)) {
        struct err err = ERR_INIT;

        if (c.number != mine)
            continue;
        if (read_chunk(copy, &c, &err)) {
            give_up(copy, &err);
            return;
        }
        const size_t done = atomic_fetch_add(&copy->done, c.bytes) + c.bytes;

        if (thread == 0)
            report_progress(copy, done);
        mine = atomic_fetch_add(&copy->next, 1);
    }
}

/* The file that the gguf has mapped, whatever has its path now; -1: not possible. */
static int open_direct(const struct gguf *g)
{
    char name[64];

    snprintf(name, sizeof name, "/proc/self/fd/%d", gguf_fd(g));
    return open(name, O_RDONLY | O_CLOEXEC | O_DIRECT);
}

enum status weights_copy(const struct copy_job *job, struct thread_pool *pool,
                         struct err *err)
{
    struct copy copy = {.job = job, .direct_fd = -1};

    for (size_t i = 0; i < job->n_runs; i++)
        copy.total += job->runs[i].bytes;
    if (job->drop_cached)
        copy.direct_fd = open_direct(job->g);
    if (pool)
        thread_pool_run(pool, work, &copy);
    else
        work(&copy, 0, 1);
    if (copy.direct_fd >= 0)
        close(copy.direct_fd);
    if (!copy.failed)
        report_progress(&copy, copy.total);
    return copy.failed ? err_set(err, copy.why.code, "%s", copy.why.msg) : ST_OK;
}
