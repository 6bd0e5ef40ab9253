/* SPDX-License-Identifier: MIT
 *
 * cache_search.c - the largest working set of which a cache serves half
 */
#include "harness/machine/cache.h"

#include <math.h>

#define SMALL (32.0 * (1 << 20)) /* sizes that double; touching memory takes time */
#define WIDE \
    1.4142135623730951 /* 2^(1/2): a step, and around a result, to look again */
#define NARROW   1.13  /* sizes closer than this cannot be distinguished */
#define UNIT     (UINT64_C(64) << 10)
#define SERVED   0.5 /* of its bytes, at least */
#define MIN_GAIN 0.1 /* of memory's time, that a cache saves: else there is none */
#define N_SMALL  3   /* sets that tell the cache's time, before an expected size */

struct state {
    const struct cache_search *s;
    double cache_share; /* time of the set that is served best, of its evicted time */
};

/* Both times are of one set, one right after the other: what memory gives changes
 * within a second. Returns false where the set could not be read. */
static bool is_served(struct state *x, double bytes, bool *served)
{
    const uint64_t units = (uint64_t)(bytes / (double)UNIT + 0.5);
    struct cache_point p = {.bytes = (units ? units : 1) * UNIT};
    double share;

    if (!x->s->read(x->s->arg, p.bytes, &p) || !(p.again_gbps > 0))
        return false;
    share = p.evicted_gbps / p.again_gbps;
    if (!(x->cache_share > 0) || share < x->cache_share)
        x->cache_share = share;
    *served = 1 - share >= SERVED * (1 - x->cache_share) && share < 1 - MIN_GAIN / 2;
    return true;
}

static uint64_t rounded(double bytes)
{
    return (uint64_t)(bytes / (double)UNIT + 0.5) * UNIT;
}

/* Grow until a set is not served, read once more to be sure: *not_served, 0 where
 * none was found. *served is the largest before it, 0: none could be read. */
static void grow(struct state *x, double *served, double *not_served)
{
    const double most = (double)x->s->most, from = (double)x->s->from;
    double bytes = fmin((double)x->s->start, most);
    bool is = false;

    *served = *not_served = 0;
    for (int i = 1; is_served(x, bytes, &is); i++) {
        if (!is && i > 1 && (!is_served(x, bytes, &is) || !is)) {
            *not_served = bytes;
            return;
        }
        *served = bytes;
        if (bytes >= most)
            return;
        bytes = fmin(fmax(bytes * (bytes < SMALL ? 2 : WIDE), i < N_SMALL ? 0 : from),
                     most);
    }
}

/* Halve what is between the two until they are as near as can be told, or time is over:
 * false. */
static bool bisect(struct state *x, double *served, double *not_served)
{
    while (*not_served > NARROW * *served) {
        const double middle = sqrt(*served * *not_served);
        bool is;

        if (!is_served(x, middle, &is))
            return false;
        *(is ? served : not_served) = middle;
    }
    return true;
}

/* Once more around the result: an end that is not what it was is left, too. */
static void look_again(struct state *x, struct topo_llc *llc)
{
    double served = (double)llc->bytes / WIDE, not_served = (double)llc->bytes * WIDE;
    bool is;

    if (!bisect(x, &served, &not_served) || !is_served(x, served, &is))
        return;
    llc->bytes = rounded(sqrt((double)llc->bytes * sqrt(served * not_served)));
    llc->lo = served < (double)llc->lo ? rounded(served) : llc->lo;
    llc->hi = not_served > (double)llc->hi ? rounded(not_served) : llc->hi;
}

/* All that was read was served. */
static struct topo_llc at_least(const struct cache_search *s, double served)
{
    const double end = fmax(2 * served, (double)s->reported);
    const uint64_t hi =
        served < (double)s->most && end < (double)s->most ? rounded(end) : s->most;

    return (struct topo_llc){rounded(served), rounded(served), hi};
}

struct topo_llc cache_search(const struct cache_search *s)
{
    struct state x = {.s = s};
    struct topo_llc llc;
    double served, not_served;

    grow(&x, &served, &not_served);
    if (!(served > 0))
        return (struct topo_llc){.bytes = 0};
    if (x.cache_share > 1 - MIN_GAIN) /* no set is faster than memory */
        return (struct topo_llc){s->start / 2, s->start / 2, s->start};
    if (!(not_served > 0))
        return at_least(s, served);
    const bool in_time = bisect(&x, &served, &not_served);

    llc = (struct topo_llc){rounded(sqrt(served * not_served)), rounded(served),
                            rounded(not_served)};
    if (in_time)
        look_again(&x, &llc);
    return llc;
}
