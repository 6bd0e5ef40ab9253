/* SPDX-License-Identifier: MIT
 *
 * cache.c - sets are read again and after they were evicted; sizes: cache_search.c
 */
#include "harness/machine/cache.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/thread_pool.h"
#include "harness/base/interrupt.h"
#include "harness/base/options.h"
#include "harness/stats/stats.h"
#include "harness/machine/noise.h"
#include "harness/machine/probe.h"
#include "kernels/probe/evict.h"

#define MIB (UINT64_C(1) << 20)

/* Share of a CPU's time that other programs take, from which on they interrupt passes
 * and a cached set looks like one that is not cached. */
#define BUSY_SHARE 0.1

#define PAGE_BYTES 4096
#define MIN_START  (1 * MIB)
#define MIN_SET    (8 * MIB)
#define MAX_SET    (4096 * MIB)

/* No set is begun after these times; one near the crossing takes 20 to 30 ms. Most of
 * the time can be the first touch of the buffer. */
#define ALL_NS   (UINT64_C(160) * 1000000) /* all threads, which come first */
#define TOTAL_NS (UINT64_C(270) * 1000000)

/* Passes of a set that is read again, */
#define MIN_AGAIN 3
#define MAX_AGAIN 6    /* while each is */
#define RISING    1.02 /* times as fast as the one before */

struct lab {
    struct mem mem;
    size_t touched; /* bytes from its beginning that are in memory */
    struct thread_pool *pool;
    struct probe_read_way way;
    uint64_t end_ns; /* no set is begun after it */
};

/* ---- the buffer ------------------------------------------------------------------ */

struct range {
    char *base;
    size_t bytes;
};

static void share_of(const struct range *r, int thread, int n_threads, size_t *begin,
                     size_t *end)
{
    thread_pool_share(r->bytes, PAGE_BYTES, thread, n_threads, begin, end);
}

/* Zeros: the sum of all words, which probe_read() checks, stays zero. */
static void touch(void *arg, int thread, int n_threads)
{
    const struct range *r = arg;
    size_t at, end;

    for (share_of(r, thread, n_threads, &at, &end); at < end; at += PAGE_BYTES)
        *(volatile char *)(r->base + at) = 0;
}

static void evict(void *arg, int thread, int n_threads)
{
    const struct range *r = arg;
    size_t at, end;

    share_of(r, thread, n_threads, &at, &end);
    evict_from_caches(r->base + at, end - at);
}

/* With all threads of the pool, also while one of them reads. */
static void with_all(struct lab *lab, thread_pool_fn *fn, size_t from, size_t to)
{
    struct range r = {(char *)lab->mem.base + from, to - from};
    const int n = thread_pool_size(lab->pool);

    thread_pool_use(lab->pool, thread_pool_capacity(lab->pool));
    thread_pool_run(lab->pool, fn, &r);
    thread_pool_use(lab->pool, n);
}

/* ---- one size -------------------------------------------------------------------- */

/* A set comes to stay in the cache within a few passes: caches that protect themselves
 * against sets which do not fit keep a part of one at first. */
static double read_again(struct lab *lab, const struct probe_buffer *b)
{
    double gbps = probe_read(b, lab->pool, &lab->way), before = 0;

    for (int i = 1; i < MAX_AGAIN && (i < MIN_AGAIN || gbps > RISING * before); i++) {
        before = gbps;
        gbps = fmax(gbps, probe_read(b, lab->pool, &lab->way));
    }
    return gbps;
}

static bool read_size(void *arg, uint64_t bytes, struct cache_point *p)
{
    struct lab *lab = arg;
    const struct probe_buffer b = {.base = lab->mem.base, .bytes = bytes};

    if (interrupted() || bytes > lab->mem.bytes || clock_ns() > lab->end_ns)
        return false;
    if (bytes > lab->touched) {
        with_all(lab, touch, lab->touched, bytes);
        lab->touched = bytes;
    }
    with_all(lab, evict, 0, bytes);
    p->bytes = bytes;
    p->evicted_gbps = probe_read(&b, lab->pool, &lab->way);
    p->again_gbps = read_again(lab, &b);
    return true;
}

/* ---- sizes ----------------------------------------------------------------------- */

/* What the levels below the last hold, of the cores of n threads. */
static uint64_t inner_bytes(const struct topology *t, int n_threads)
{
    const int last = t->n_caches ? t->cache[t->n_caches - 1].level : 0;
    uint64_t bytes = 0;

    for (int i = 0; i < t->n_caches; i++) {
        const struct topo_cache *c = &t->cache[i];
        const int n = c->n_instances < n_threads ? c->n_instances : n_threads;

        if (c->level < last && strcmp(c->type, "instruction"))
            bytes += c->bytes * (uint64_t)n;
    }
    return bytes;
}

static uint64_t start_bytes(const struct topology *t, int n_threads)
{
    const uint64_t bytes = 2 * inner_bytes(t, n_threads);

    return bytes > MIN_START ? bytes : MIN_START;
}

/* The largest set that is tried, whatever size is reported: at most a quarter of the
 * memory. Memory is touched only where a set is read. */
static uint64_t max_bytes(const struct topology *t)
{
    const uint64_t room = topology_usable_bytes(t, 0) / 4 / (2 * MIB) * (2 * MIB);

    return room && room < MAX_SET ? (room > MIN_SET ? room : MIN_SET) : MAX_SET;
}

/* Less where a process may not map that much. */
static enum status map_buffer(struct mem *mem, uint64_t bytes, struct err *err)
{
    struct err why = ERR_INIT;

    while (mem_alloc(mem, bytes, MEM_PAGES_2M, "cache probe", &why)) {
        bytes /= 2;
        if (bytes < MIN_SET)
            return err_set(err, ST_NO_MEMORY, "%s", why.msg);
        err_clear(&why);
    }
    return ST_OK;
}

static enum status lab_open(struct lab *lab, const struct topology *t, struct err *err)
{
    /* the prefetch that crosses pages, as the engine's kernels have it */
    lab->way = (struct probe_read_way){
        probe_kernel_best(PROBE_OP_stream_read, isa_usable()), 1, 4096};
    if (placement_pool(&lab->pool, t, PLACEMENT_SPREAD, t->threads_default, err))
        return err->code;
    return map_buffer(&lab->mem, max_bytes(t), err);
}

static void lab_close(struct lab *lab)
{
    thread_pool_stop(lab->pool);
    mem_free(&lab->mem);
}

/* ---- the quick answer ------------------------------------------------------------ */

static struct topo_llc search(struct lab *lab, const struct topology *t, int n_threads,
                              uint64_t from)
{
    const uint64_t start = start_bytes(t, n_threads);
    const struct cache_search s = {.start = start,
                                   .from = from,
                                   .most = lab->mem.bytes,
                                   .reported = t->llc_bytes,
                                   .read = read_size,
                                   .arg = lab};

    thread_pool_use(lab->pool, n_threads);
    return cache_search(&s);
}

/* Read before the pool's threads end, whose waiting is counted. */
static bool was_disturbed(const struct noise *before)
{
    struct noise n;

    noise_since(&n, before, "");
    return noise_others_share(&n) + noise_steal_share(&n) > BUSY_SHARE ||
           noise_wait_share(&n) > BUSY_SHARE;
}

/* A size that somebody knows, instead of measuring it; none: the reported one. */
static enum status take_given(struct topology *t, const char *text, struct err *err)
{
    struct topo_llc given = {0};

    if (parse_bytes(text, "SLMBENCH_LLC", &given.bytes, err))
        return err->code;
    given.lo = given.hi = given.bytes;
    t->llc_one = t->llc_all = given;
    t->llc_threads = t->threads_default;
    return ST_OK;
}

enum status cache_find(struct topology *t, struct err *err)
{
    const char *known = getenv("SLMBENCH_LLC");
    const int n = t->threads_default;
    const uint64_t begin = clock_ns();
    struct lab lab = {.end_ns = begin + (n > 1 ? ALL_NS : TOTAL_NS)};
    struct err why = ERR_INIT;
    struct topo_llc one, all;
    struct noise before;

    if (t->llc_all.bytes)
        return ST_OK;
    if (known)
        return take_given(t, known, err);
    noise_read(&before, "");
    if (lab_open(&lab, t, &why) == ST_OK) {
        all = one = search(&lab, t, n, 0);
        lab.end_ns = begin + TOTAL_NS;
        if (n > 1 && all.bytes)
            one = search(&lab, t, 1, all.lo / 2);
        if (!one.bytes) /* no time was left */
            one = all;
        if (one.bytes && !interrupted()) {
            t->llc_one = one;
            t->llc_all = all;
            t->llc_threads = n;
            t->llc_disturbed = was_disturbed(&before);
        }
    }
    lab_close(&lab);
    return interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted") : ST_OK;
}

/* ---- the curve ------------------------------------------------------------------- */

#define CURVE_STEP    1.4142135623730951
#define POINT_NS      (UINT64_C(20) * 1000000)
#define POINT_REPEATS 5

/* Medians of several readings, as far as the time of a point allows them. */
static bool read_point(struct lab *lab, int n_threads, uint64_t bytes,
                       struct cache_point *p)
{
    double again[POINT_REPEATS], evicted[POINT_REPEATS], scratch[POINT_REPEATS];
    const uint64_t begin = clock_ns();
    size_t n = 0;

    thread_pool_use(lab->pool, n_threads);
    while (n < POINT_REPEATS && (!n || clock_ns() - begin < POINT_NS)) {
        if (!read_size(lab, bytes, p))
            return false;
        again[n] = p->again_gbps;
        evicted[n++] = p->evicted_gbps;
    }
    p->again_gbps = stats_median(again, n, scratch);
    p->evicted_gbps = stats_median(evicted, n, scratch);
    return true;
}

static double curve_end(const struct topology *t)
{
    return fmax(1.5 * (double)t->llc_bytes, 4 * (double)t->llc_all.hi);
}

/* Thread counts alternate, so that drift is no difference between them. */
static void read_curve(struct cache_curve *c, struct lab *lab, double end)
{
    double bytes = MIN_START;

    for (int i = 0; i < CACHE_MAX_SIZES; i++, bytes *= CURVE_STEP) {
        for (int k = 0; k < c->n_lines; k++) {
            struct cache_line *l = &c->line[k];

            if (!read_point(lab, l->n_threads,
                            (uint64_t)bytes / PAGE_BYTES * PAGE_BYTES, &l->v[i]))
                return;
            l->n = i + 1;
        }
        if (bytes >= end)
            return;
    }
}

enum status cache_curve_measure(struct cache_curve *c, const struct topology *t,
                                double budget_s, struct err *err)
{
    struct lab lab = {.end_ns = clock_ns() + (uint64_t)(budget_s * 1e9)};
    struct noise before;
    enum status st;

    memset(c, 0, sizeof *c);
    c->line[c->n_lines++].n_threads = 1;
    if (t->threads_default > 1)
        c->line[c->n_lines++].n_threads = t->threads_default;
    noise_read(&before, "");
    st = lab_open(&lab, t, err);
    if (st == ST_OK) {
        read_curve(c, &lab, curve_end(t));
        c->disturbed = was_disturbed(&before);
    }
    lab_close(&lab);
    return st == ST_OK && interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted")
                                        : st;
}

/* ---- one question ---------------------------------------------------------------- */

enum status cache_find_for(struct topology *t, uint64_t bytes, struct err *err)
{
    const bool doubtful =
        bytes > inner_bytes(t, t->threads_default) && bytes <= t->llc_bytes;

    return doubtful ? cache_find(t, err) : ST_OK;
}
