/* SPDX-License-Identifier: MIT
 *
 * probe_read.c - read bandwidth of a loop that only loads
 */
#include "harness/machine/probe.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"

#define MIB         ((uint64_t)1 << 20)
#define HUGE_BYTES  (2 * MIB)
#define AUTO_BYTES  (512 * MIB) /* when the cache is small */
#define FILL_BYTE   1
#define FILL_WORD   0x0101010101010101u
#define READ_UNIT   4096 /* shares are multiples of this, or of a huge page */
#define TUNE_PASSES 2
#define SHARE_PARTS                                                   \
    8 /* chunks of a share, at least: as the engine cuts its matrices \
       */
#define CACHE_LINE 64

/* Streams side by side help where one does not keep enough misses in flight,
 * prefetching (beyond the page) where the hardware's prefetcher stops at 4 KiB. */
static const struct {
    int n_streams;
    size_t prefetch_bytes;
} ways[] = {{1, 0},    {1, 1024}, {1, 4096}, {1, 8192}, {1, 16384}, {2, 0},
            {2, 1024}, {2, 4096}, {2, 8192}, {4, 0},    {4, 512},   {4, 2048}};

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

static uint64_t default_bytes(const struct topology *topo)
{
    uint64_t bytes = 4 * topo->llc_bytes, most = topology_usable_bytes(topo, 0) / 4;

    if (bytes < AUTO_BYTES)
        bytes = AUTO_BYTES;
    if (most && bytes > most)
        bytes = most;
    return bytes / HUGE_BYTES * HUGE_BYTES;
}

enum status probe_buffer_open(struct probe_buffer *b, struct thread_pool *pool,
                              uint64_t bytes, enum mem_pages pages,
                              const struct topology *topo, struct err *err)
{
    struct probe_buffer new = {.huge_bytes = 0};

    if (bytes == 0)
        bytes = default_bytes(topo);
    bytes =
        bytes < READ_UNIT ? READ_UNIT : (bytes + READ_UNIT - 1) / READ_UNIT * READ_UNIT;

    const enum status st = mem_alloc(&new.mem, bytes, pages, "probe buffer", err);
    if (st)
        return st;
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

static void split(struct read_job *job, int n_threads)
{
    const size_t parts = (size_t)n_threads * SHARE_PARTS;
    const size_t chunk = job->buffer->bytes / parts / READ_UNIT * READ_UNIT;

    job->chunk = chunk > HUGE_BYTES ? HUGE_BYTES : chunk ? chunk : READ_UNIT;
    for (int i = 0; i < n_threads; i++) {
        size_t begin;

        share_of(job->buffer, i, n_threads, &begin, &job->share[i].end);
        atomic_init(&job->share[i].next, begin);
    }
}

/* One pass; the sum of all words. */
static uint64_t read_once(const struct probe_buffer *b, struct thread_pool *pool,
                          const struct probe_read_way *way, uint64_t *ns)
{
    const int n = thread_pool_size(pool);
    struct read_job job;
    uint64_t sum = 0;

    assert(n <= TOPO_MAX_CPUS);
    job.buffer = b;
    job.way = way;
    split(&job, n);
    const uint64_t begin = clock_ns();
    thread_pool_run(pool, read_shares, &job);
    *ns = clock_ns() - begin;
    for (int i = 0; i < n; i++)
        sum += job.sum[i];
    return sum;
}

void probe_buffer_borrow(struct probe_buffer *b, struct thread_pool *pool,
                         const void *base, size_t bytes)
{
    const struct probe_read_way way = {
        probe_kernel_best(PROBE_OP_stream_read, isa_usable()), 1, 0};
    uint64_t ns;

    assert(bytes >= READ_UNIT && (uintptr_t)base % 64 == 0);
    *b = (struct probe_buffer){.base = base, .bytes = bytes / READ_UNIT * READ_UNIT};
    b->sum = read_once(b, pool, &way, &ns);
}

double probe_read_pass(const struct probe_buffer *b, struct thread_pool *pool,
                       const struct probe_read_way *way)
{
    uint64_t ns;
    const uint64_t sum = read_once(b, pool, way, &ns);

    /* every word was read exactly once, or the figure is a lie */
    assert(sum == b->sum);
    (void)sum;
    return (double)b->bytes / (double)(ns ? ns : 1);
}

struct probe_read_way probe_read_tune(const struct probe_buffer *b,
                                      struct thread_pool *pool, uint32_t isa_mask)
{
    const struct probe_kernel *kernel =
        probe_kernel_best(PROBE_OP_stream_read, isa_mask);
    struct probe_read_way best = {kernel, 1, 0};
    double best_gbps = 0;

    for (int pass = 0; pass < TUNE_PASSES; pass++)
        for (size_t i = 0; i < sizeof ways / sizeof ways[0] && !interrupted(); i++) {
            const struct probe_read_way way = {kernel, ways[i].n_streams,
                                               ways[i].prefetch_bytes};
            const double gbps = probe_read_pass(b, pool, &way);

            if (gbps > best_gbps) {
                best_gbps = gbps;
                best = way;
            }
        }
    return best;
}
