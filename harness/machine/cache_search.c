/* SPDX-License-Identifier: MIT
 *
 * cache_search.c - the largest working set of which a cache serves half
 */
#include "harness/machine/cache.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/stats.h"

#define GROW      2.0
#define STEP      1.189207115002721 /* 2^(1/4) */
#define UNIT      (UINT64_C(64) << 10)
#define SERVED    0.5 /* of its bytes, at least */
#define MIN_GAIN  0.1 /* of memory's time, that a cache saves: else there is none */
#define N_SMALL   3   /* sets that tell the cache's time, before an expected size */
#define MAX_READS 64

/* Sets that tell memory's time: the last ones, as memory gives small ones more than it
 * goes on to give. */
#define N_EVICTED 5

/* Times are in ns per byte. */
struct state {
    const struct cache_search *s;
    double evicted[N_EVICTED], scratch[N_EVICTED]; /* a ring */
    int n_evicted;
    double cache_ns; /* the fastest set read again */
};

static double memory_ns(struct state *x)
{
    const int n = x->n_evicted < N_EVICTED ? x->n_evicted : N_EVICTED;

    return stats_median(x->evicted, (size_t)n, x->scratch);
}

/* Share of the bytes that a cache served; 0 where it is no faster than memory. */
static double share_served(struct state *x, double again_ns)
{
    const double memory = memory_ns(x), gain = memory - x->cache_ns;

    return gain > MIN_GAIN * memory ? (memory - again_ns) / gain : 0;
}

static bool read_set(struct state *x, uint64_t bytes, bool evicted, double *again_ns)
{
    struct cache_point p = {.bytes = bytes};

    if (!x->s->read(x->s->arg, bytes, evicted, &p) || !(p.again_gbps > 0))
        return false;
    *again_ns = 1 / p.again_gbps;
    if (p.evicted_gbps > 0)
        x->evicted[x->n_evicted++ % N_EVICTED] = 1 / p.evicted_gbps;
    if (!(x->cache_ns > 0) || *again_ns < x->cache_ns)
        x->cache_ns = *again_ns;
    return true;
}

static uint64_t rounded(double bytes)
{
    const uint64_t units = (uint64_t)(bytes / (double)UNIT + 0.5);

    return (units ? units : 1) * UNIT;
}

/* Grow until a set is not served, read once more to be sure. Returns the first such
 * size, or 0: none was found; *served is the largest before it, 0: none could be read.
 */
static double grow(struct state *x, double *served)
{
    const double most = (double)x->s->most, from = (double)x->s->from;
    double bytes = fmin((double)x->s->start, most), again_ns = 0;

    *served = 0;
    for (int i = 1; read_set(x, rounded(bytes), true, &again_ns); i++) {
        if (*served > 0 && share_served(x, again_ns) < SERVED &&
            read_set(x, rounded(bytes), false, &again_ns) &&
            share_served(x, again_ns) < SERVED)
            return bytes;
        *served = bytes;
        if (bytes >= most)
            return 0;
        bytes = fmin(fmax(bytes * GROW, i < N_SMALL ? 0 : from), most);
    }
    return 0;
}

/* Crossings of a walk up and down around a size. */
struct crossings {
    double log2_bytes[MAX_READS];
    int n;
    double lo, hi;
};

static void walk(struct state *x, double from, struct crossings *c)
{
    const double top = (double)x->s->most;
    bool before = false;
    double at = from;

    c->lo = INFINITY;
    for (int i = 0; i < MAX_READS && x->s->has_time(x->s->arg); i++) {
        double again_ns;
        bool served;

        if (!read_set(x, rounded(at), false, &again_ns))
            return;
        served = share_served(x, again_ns) >= SERVED;
        if (i && served != before) {
            const double other = before ? at / STEP : at * STEP;

            c->log2_bytes[c->n++] = (log2(at) + log2(other)) / 2;
            c->lo = fmin(c->lo, fmin(at, other));
            c->hi = fmax(c->hi, fmax(at, other));
        }
        before = served;
        at = served ? fmin(at * STEP, top) : fmax(at / STEP, (double)x->s->start / 2);
    }
}

struct topo_llc cache_search(const struct cache_search *s)
{
    struct state x = {.s = s};
    struct crossings c = {.n = 0};
    double scratch[MAX_READS], served, middle;
    const double first = grow(&x, &served);

    if (!(served > 0))
        return (struct topo_llc){.bytes = 0};
    if (share_served(&x, x.cache_ns) < SERVED) /* no set is faster than memory */
        return (struct topo_llc){s->start / 2, s->start / 2, s->start};
    if (!(first > 0))
        return (struct topo_llc){rounded(served), rounded(served), s->most};
    middle = sqrt(served * first);
    walk(&x, middle, &c);
    if (!c.n)
        return (struct topo_llc){rounded(middle), rounded(served), rounded(first)};
    return (struct topo_llc){
        rounded(exp2(stats_median(c.log2_bytes, (size_t)c.n, scratch))), rounded(c.lo),
        rounded(c.hi)};
}
