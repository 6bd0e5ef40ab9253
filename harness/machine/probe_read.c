/* SPDX-License-Identifier: MIT
 *
 * probe_read.c - buffers, and read bandwidth of a loop that only loads
 */
#include "harness/machine/probe.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "kernels/probe/evict.h"

#define MIB          ((uint64_t)1 << 20)
#define HUGE_BYTES   (2 * MIB)
#define PASS_BYTES   (256 * MIB) /* several ms at the speed of one thread */
#define THREAD_BYTES (16 * MIB)  /* the same for each of many threads */
#define FILL_BYTE    1
#define FILL_WORD    0x0101010101010101u
#define READ_UNIT    4096 /* shares are multiples of this, or of a huge page */
#define SHARE_PARTS                                                   \
    8 /* chunks of a share, at least: as the engine cuts its matrices \
       */
#define CACHE_LINE 64

/* Several times a second-level cache of one CPU. */
#define TABLES_OUT_BYTES (8 * MIB)

/* What is left of a thread's share. */
struct read_share {
    _Alignas(CACHE_LINE) atomic_size_t next;
    size_t end;
};

struct read_job {
    const struct probe_buffer *buffer;
    const struct probe_read_way *way;
    size_t chunk;
    struct read_share share[TOPO_MAX_CPUS]; /* [thread] */
    uint64_t sum[TOPO_MAX_CPUS]; /* [thread]; on its own line is not needed: each is
                                    written once per pass */
};

static void share_of(const struct probe_buffer *b, int thread, int n_threads,
                     size_t *begin, size_t *end)
{
    const size_t unit =
        b->bytes >= HUGE_BYTES * (size_t)n_threads ? HUGE_BYTES : READ_UNIT;

    thread_pool_share(b->bytes, unit, thread, n_threads, begin, end);
}

static void touch_share(void *arg, int thread, int n_threads)
{
    struct probe_buffer *b = arg;
    size_t begin, end;

    share_of(b, thread, n_threads, &begin, &end);
    memset((char *)b->mem.base + begin, FILL_BYTE, end - begin);
}

bool probe_is_rough(void)
{
    const char *how = getenv("SLMBENCH_PROBE");

    return how && !strcmp(how, "rough");
}

uint64_t probe_pass_bytes(int n_threads)
{
    const uint64_t bytes = THREAD_BYTES * (uint64_t)n_threads;
    const uint64_t whole = bytes > PASS_BYTES ? bytes : PASS_BYTES;

    return probe_is_rough() ? whole / 16 : whole;
}

static uint64_t default_bytes(const struct topology *topo, int n_threads)
{
    const uint64_t most = topology_usable_bytes(topo, 0) / 4;
    uint64_t bytes = probe_pass_bytes(n_threads);

    if (most && bytes > most)
        bytes = most;
    return bytes / HUGE_BYTES * HUGE_BYTES;
}

enum status probe_buffer_open(struct probe_buffer *b, struct thread_pool *pool,
                              uint64_t bytes, enum mem_pages pages,
                              const struct topology *topo, struct err *err)
{
    struct probe_buffer new = {.pages = pages};

    if (bytes == 0)
        bytes = default_bytes(topo, thread_pool_size(pool));
    bytes =
        bytes < READ_UNIT ? READ_UNIT : (bytes + READ_UNIT - 1) / READ_UNIT * READ_UNIT;

    if (mem_alloc(&new.mem, bytes, pages, "probe buffer", err))
        return err->code;
    new.base = new.mem.base;
    new.bytes = bytes;
    new.sum = bytes / sizeof(uint64_t) * FILL_WORD;
    thread_pool_run(pool, touch_share, &new);
    new.huge_bytes = mem_huge_bytes(new.mem.base, new.mem.bytes);
    *b = new;
    return ST_OK;
}

void probe_buffer_close(struct probe_buffer *b)
{
    mem_free(&b->mem);
    *b = (struct probe_buffer){.base = NULL};
}

static uint64_t read_chunks(struct read_job *job, struct read_share *share)
{
    const struct probe_read_way *way = job->way;
    uint64_t sum = 0;

    for (size_t at; (at = atomic_fetch_add_explicit(
                         &share->next, job->chunk, memory_order_relaxed)) < share->end;)
        sum += way->kernel->fn.stream_read(
            job->buffer->base + at,
            share->end - at < job->chunk ? share->end - at : job->chunk, way->n_streams,
            way->prefetch_bytes);
    return sum;
}

/* Every thread begins with its own share, whose pages it has touched first, and then
 * takes chunks of the others': as in the engine, the slowest thread does not decide
 * when the pass ends. */
static void read_shares(void *arg, int thread, int n_threads)
{
    struct read_job *job = arg;
    uint64_t sum = 0;

    for (int i = 0; i < n_threads; i++)
        sum += read_chunks(job, &job->share[(thread + i) % n_threads]);
    job->sum[thread] = sum;
}

/* share_bytes: maximum size of each share. */
static size_t split(struct read_job *job, size_t share_bytes, int n_threads)
{
    size_t total = 0;
    const size_t parts = (size_t)n_threads * SHARE_PARTS;
    const size_t chunk = job->buffer->bytes / parts / READ_UNIT * READ_UNIT;

    job->chunk = chunk > HUGE_BYTES ? HUGE_BYTES : chunk ? chunk : READ_UNIT;
    for (int i = 0; i < n_threads; i++) {
        struct read_share *s = &job->share[i];
        size_t begin;

        share_of(job->buffer, i, n_threads, &begin, &s->end);
        if (s->end - begin > share_bytes)
            s->end = begin + share_bytes;
        atomic_init(&s->next, begin);
        total += s->end - begin;
    }
    return total;
}

/* One pass, in GB/s; *sum: the sum of all words. */
static double read_once(const struct probe_buffer *b, struct thread_pool *pool,
                        const struct probe_read_way *way, size_t share_bytes,
                        uint64_t *sum)
{
    const int n = thread_pool_size(pool);
    struct read_job job;

    assert(n <= TOPO_MAX_CPUS);
    job.buffer = b;
    job.way = way;
    const size_t bytes = split(&job, share_bytes, n);
    const uint64_t begin = clock_ns();
    thread_pool_run(pool, read_shares, &job);
    const uint64_t ns = clock_ns() - begin;
    *sum = 0;
    for (int i = 0; i < n; i++)
        *sum += job.sum[i];
    return (double)bytes / (double)(ns ? ns : 1);
}

struct evict_job {
    const struct probe_buffer *buffer;
    size_t share_bytes;
};

/* Evicting walks the page tables, and leaves those of a pass in 4 KiB pages, 512 KiB of
 * 256 MiB, in the second-level cache. A model's are read from memory with it, so they
 * are pushed out: the end of the range is read, and evicted again. */
static void push_tables_out(const char *end)
{
    const struct probe_kernel *kernel =
        probe_kernel_best(PROBE_OP_stream_read, isa_usable());

    kernel->fn.stream_read(end - TABLES_OUT_BYTES, TABLES_OUT_BYTES, 1, 0);
    evict_from_caches(end - TABLES_OUT_BYTES, TABLES_OUT_BYTES);
}

static void evict_share(void *arg, int thread, int n_threads)
{
    const struct evict_job *job = arg;
    size_t begin, end;

    share_of(job->buffer, thread, n_threads, &begin, &end);
    if (end - begin > job->share_bytes)
        end = begin + job->share_bytes;
    evict_from_caches(job->buffer->base + begin, end - begin);
    if (job->buffer->pages == MEM_PAGES_4K && end - begin >= 2 * TABLES_OUT_BYTES)
        push_tables_out(job->buffer->base + end);
}

void probe_buffer_evict(const struct probe_buffer *b, struct thread_pool *pool)
{
    struct evict_job job = {b, SIZE_MAX};

    thread_pool_run(pool, evict_share, &job);
}

void probe_buffer_borrow(struct probe_buffer *b, struct thread_pool *pool,
                         const void *base, size_t bytes, enum mem_pages pages)
{
    const struct probe_read_way way = {
        probe_kernel_best(PROBE_OP_stream_read, isa_usable()), 1, 0};

    assert(bytes >= READ_UNIT && (uintptr_t)base % 64 == 0);
    *b = (struct probe_buffer){
        .base = base, .bytes = bytes / READ_UNIT * READ_UNIT, .pages = pages};
    read_once(b, pool, &way, SIZE_MAX, &b->sum);
}

double probe_read(const struct probe_buffer *b, struct thread_pool *pool,
                  const struct probe_read_way *way)
{
    uint64_t sum;
    const double gbps = read_once(b, pool, way, SIZE_MAX, &sum);

    /* every word was read exactly once, or the figure is a lie; what is not ours may
     * have changed, as a mapped file does that somebody cuts */
    assert(sum == b->sum || !b->mem.base);
    (void)sum;
    return gbps;
}

double probe_read_pass(const struct probe_buffer *b, struct thread_pool *pool,
                       const struct probe_read_way *way)
{
    probe_buffer_evict(b, pool);
    return probe_read(b, pool, way);
}

double probe_read_part(const struct probe_buffer *b, struct thread_pool *pool,
                       const struct probe_read_way *way, size_t share_bytes)
{
    struct evict_job job = {b, share_bytes};
    uint64_t sum;

    thread_pool_run(pool, evict_share, &job);
    return read_once(b, pool, way, share_bytes, &sum);
}
