/* SPDX-License-Identifier: MIT
 *
 * topology_cache.c - how large the last-level cache is, measured or reported: as an
 * answer and as a text
 */
#include "harness/machine/topology.h"

#include <stdio.h>

#include "harness/base/format.h"
#include "harness/machine/cache.h"

/* A set twice as large as what is served half is served by a few per cent. */
#define PARTLY 2.0

static uint64_t between(uint64_t one, uint64_t all, double share)
{
    return (uint64_t)((double)one + share * ((double)all - (double)one));
}

struct topo_llc topology_cache(const struct topology *t, int n_threads)
{
    const struct topo_llc *one = &t->llc_one, *all = &t->llc_all;
    double share = 1;

    if (!all->bytes)
        return (struct topo_llc){t->llc_bytes, t->llc_bytes, t->llc_bytes};
    if (n_threads < t->llc_threads)
        share = (double)(n_threads - 1) / (t->llc_threads - 1);
    return (struct topo_llc){between(one->bytes, all->bytes, share),
                             between(one->lo, all->lo, share),
                             between(one->hi, all->hi, share)};
}

enum topo_cached topology_cached(const struct topo_llc *cache, double bytes)
{
    return bytes <= (double)cache->bytes         ? TOPO_CACHED
           : bytes <= PARTLY * (double)cache->hi ? TOPO_CACHED_PARTLY
                                                 : TOPO_CACHED_NOT;
}

/* "80 MiB"; a tenth where it is small. */
static void append_mib(char *buf, size_t cap, uint64_t bytes, const char *unit)
{
    const double mib = (double)bytes / (1 << 20);

    text_append(buf, cap, "%.*f%s", mib < 10 ? 1 : 0, mib, unit);
}

static void append_measured(char *buf, size_t cap, const struct topo_llc *llc)
{
    append_mib(buf, cap, llc->bytes, " MiB");
}

static void append_range(char *buf, size_t cap, const struct topo_llc *llc)
{
    append_mib(buf, cap, llc->lo, " to ");
    append_mib(buf, cap, llc->hi, "");
}

/* A set that the caches serve half can be larger than the last of them. */
static void append_share(char *buf, size_t cap, const struct topology *t)
{
    const char *about = t->llc_disturbed ? "at least" : "about";
    const bool whole = t->llc_bytes && t->llc_all.bytes > t->llc_bytes;

    text_append(buf, cap, whole ? "and sets of up to %s " : "%s ", about);
    append_measured(buf, cap, &t->llc_all);
    text_append(buf, cap, "%s (",
                whole          ? " are read from it"
                : t->llc_bytes ? " of it serve this machine"
                               : " serve this machine");
}

const char *topology_cache_text(const struct topology *t, char *buf, size_t cap)
{
    char size[32];

    snprintf(buf, cap, "%s reported, ",
             t->llc_bytes ? format_bytes(size, sizeof size, t->llc_bytes) : "no size");
    if (!t->llc_all.bytes) {
        text_append(buf, cap, "not measured");
        return buf;
    }
    append_share(buf, cap, t);
    append_range(buf, cap, &t->llc_all);
    if (t->llc_threads > 1) {
        text_append(buf, cap, "; one thread: ");
        append_measured(buf, cap, &t->llc_one);
        text_append(buf, cap, ", ");
        append_range(buf, cap, &t->llc_one);
    }
    text_append(buf, cap, "%s)",
                t->llc_disturbed ? "; other programs used the CPUs" : "");
    return buf;
}
