/* SPDX-License-Identifier: MIT
 *
 * point_limiter.c - the limiter: the first rule that applies
 *
 * - paging: pages are read from disk while measuring, at least one per sample and 2e-5
 * of the bytes a sample touches, and that takes at least 5 % of a sample, by what the
 * disk gives or, for many pages, by the usual wait for one. A model that fits has few
 * after its warm-up, so the threshold need not be fine.
 * - disk: threads waited for streamed weights for at least 20 % of the time.
 * - quota: the CPU quota stopped the threads for more than 2 % of the time.
 * - noise: the row is marked as disturbed.
 * - memory: at least 60 % of the probed read bandwidth was used.
 * - cache: the same, where the last-level cache serves at least half of the bytes. The
 * probe reads the same weights again and again, so it finds the cache's bandwidth.
 * - compute: at least 50 % of the arithmetic peak was used, or of that of vectors where
 * tiles multiply. Where memory is near, too, the one that is further above its
 * threshold is named. Multiply-adds alone are counted, and products of quantised
 * weights unpack and scale them, so half of the peak is near it.
 * - synchronisation: threads waited for each other for at least 20 % of the time.
 * - compute, again: a pass over MANY_TOKENS and more spends at least half of its time
 * in operations that multiply. Each weight that is loaded and unpacked meets all these
 * tokens, so instructions take this time, not loads.
 * - latency: none of these; instructions wait for loads or for each other.
 *
 * Where what is known leaves the limiter open, there is neither a name nor evidence.
 */
#include "harness/measure/point/point_measure.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"

#define PAGE_BYTES        4096.0
#define PAGING_MIN_SHARE  2e-5
#define PAGING_MIN_TIME   0.05
#define USUAL_DISK_GBPS   2.0 /* where it was not probed */
#define MANY_PAGES        64.0 /* a few may be anybody's, one after a pause for example */
#define USUAL_FAULT_MS    0.1 /* of a page that a thread waits for */
#define QUOTA_MIN_SHARE   0.02
#define MEMORY_MIN_SHARE  0.6
#define COMPUTE_MIN_SHARE 0.5
#define CEILING_TOLERANCE 0.03
#define WAIT_MIN_SHARE    0.2
#define DISK_MIN_SHARE    0.2
#define MANY_TOKENS       16.0
#define PRODUCT_MIN_SHARE 0.5

/* Shares of the time of a sample; NaN: not known. */
struct shares {
    double memory, arith, vectors, wait;
    double products;         /* of a pass over many tokens */
    enum topo_cached cached; /* of the bytes that memory is the share of */
};

static double known(double v, bool is_known)
{
    return is_known ? v : NAN;
}

static struct shares shares_of(const struct row *row, const struct point_facts *facts)
{
    const struct topo_llc cache = {(uint64_t)facts->llc_bytes,
                                   (uint64_t)facts->llc_bytes,
                                   (uint64_t)facts->llc_hi_bytes};
    const double ms = row->lat_p50_ms;
    struct shares s = {
        .memory = known(facts->bytes_per_sample * 1e-6 / ms / row->roof_gbps,
                        row->roof_gbps > 0),
        .arith = known(facts->arith_ms / ms, facts->arith_ms > 0),
        .vectors =
            known(row->gops / row->roof_vectors_gops, row->roof_vectors_gops > 0),
        .wait = known(facts->wait_ms / facts->profile_ms, facts->profile_ms > 0),
        .products =
            known(facts->product_ms / facts->profile_ms,
                  facts->profile_ms > 0 && facts->tokens_per_sample >= MANY_TOKENS),
        .cached = topology_cached(&cache, facts->bytes_per_sample),
    };

    /* the ceiling is of memory: what the cache holds can exceed it */
    if (s.cached == TOPO_CACHED &&
        (facts->stand_in_bytes > 0 || s.memory > 1 + CEILING_TOLERANCE))
        s.memory = NAN;
    if (isnan(s.arith) && row->roof_gops > 0)
        s.arith = row->gops / row->roof_gops;
    return s;
}

static int verdict(const struct shares *s)
{
    const double memory = s->memory / MEMORY_MIN_SHARE;
    const double arith = fmax(s->arith, s->vectors) / COMPUTE_MIN_SHARE;

    if (memory >= 1 && !(arith > memory))
        return s->cached == TOPO_CACHED ? LIMITER_CACHE : LIMITER_MEMORY;
    if (arith >= 1)
        return LIMITER_COMPUTE;
    if (s->wait >= WAIT_MIN_SHARE)
        return LIMITER_SYNC;
    if (s->products >= PRODUCT_MIN_SHARE)
        return LIMITER_COMPUTE;
    return isnan(memory) || isnan(arith) ? FIELD_NO_ENUM : LIMITER_LATENCY;
}

static void append_share(char *why, size_t cap, double share, const char *of)
{
    if (isfinite(share))
        text_append(why, cap, "%s%.0f %% %s", *why ? ", " : "", 100 * share, of);
}

static void limit_by_roofs(struct row *row, const struct point_facts *facts)
{
    static const char *const ceilings[] = {
        [TOPO_CACHED_NOT] = "of the bandwidth ceiling",
        [TOPO_CACHED_PARTLY] = "of the bandwidth ceiling (the cache holds part of it)",
        [TOPO_CACHED] = "of memory's bandwidth ceiling (the cache holds it)"};
    const struct shares s = shares_of(row, facts);
    char *why = row->limiter_why;
    const size_t cap = sizeof row->limiter_why;

    row->limiter = verdict(&s);
    if (row->limiter == FIELD_NO_ENUM)
        return;
    append_share(why, cap, s.memory, ceilings[s.cached]);
    append_share(why, cap, s.arith,
                 isnan(s.vectors) ? "of the arithmetic peak" : "of the AMX-INT8 peak");
    append_share(why, cap, s.vectors, "of that of vectors");
    append_share(why, cap, s.products, "multiplying and unpacking");
    append_share(why, cap, s.wait, "waiting");
}

static void limit_by_paging(struct row *row, double pages_per_sample)
{
    const double gbps = pages_per_sample * PAGE_BYTES * 1e-6 / row->lat_p50_ms;

    row->limiter = LIMITER_PAGING;
    snprintf(row->limiter_why, sizeof row->limiter_why, "%.2g GB/s read from disk",
             gbps);
    if (row->roof_disk_gbps > 0)
        append_share(row->limiter_why, sizeof row->limiter_why,
                     gbps / row->roof_disk_gbps, "of what the disk gives");
}

static void limit_by_disk(struct row *row)
{
    row->limiter = LIMITER_DISK;
    append_share(row->limiter_why, sizeof row->limiter_why, row->disk_wait_pct / 100,
                 "waiting for the disk");
    if (row->disk_bytes_per_token > 0)
        text_append(row->limiter_why, sizeof row->limiter_why, ", which gave %.2g GB/s",
                    (double)row->disk_bytes_per_token * row->tok_per_s * 1e-9);
    append_share(row->limiter_why, sizeof row->limiter_why, row->disk_share,
                 "of what it gives");
}

/* Share of a sample's time that its pages from disk take, at least. */
static double paging_time(const struct row *row, double pages)
{
    const double gbps = row->roof_disk_gbps > 0 ? row->roof_disk_gbps : USUAL_DISK_GBPS;
    double ms = pages * PAGE_BYTES * 1e-6 / gbps;

    if (pages >= MANY_PAGES)
        ms = fmax(ms, pages * USUAL_FAULT_MS);
    return ms / row->lat_p50_ms;
}

/* Pages that a token waits for. Without a limit of its own the machine's refaults are
 * counted, and of a model that has no pages of a file they are somebody else's. */
static double pages_of_token(const struct row *row)
{
    const bool in_memory =
        row->residency == WEIGHTS_MEMORY || row->residency == WEIGHTS_PACKED;

    return in_memory && !(row->mem_enforced_bytes > 0)
               ? row->major_faults_per_token
               : fmax(row->major_faults_per_token, row->refaults_per_token);
}

static bool is_paging(const struct row *row, const struct point_facts *facts,
                      double pages)
{
    return pages >= fmax(1, PAGING_MIN_SHARE * facts->bytes_per_sample / PAGE_BYTES) &&
           paging_time(row, pages) >= PAGING_MIN_TIME;
}

void point_limit(struct row *row, const struct point_facts *facts)
{
    static const char disturbed[] = "disturbed: ";
    const double pages = facts->tokens_per_sample * pages_of_token(row);

    row->limiter = FIELD_NO_ENUM;
    row->limiter_why[0] = '\0';
    if (!(row->lat_p50_ms > 0))
        return;
    if (is_paging(row, facts, pages)) {
        limit_by_paging(row, pages);
    } else if (row->disk_wait_pct >= 100 * DISK_MIN_SHARE) {
        limit_by_disk(row);
    } else if (row->throttled_pct > 100 * QUOTA_MIN_SHARE) {
        row->limiter = LIMITER_QUOTA;
        append_share(row->limiter_why, sizeof row->limiter_why,
                     row->throttled_pct / 100, "of the time stopped by the CPU quota");
    } else if (strncmp(row->validity, "valid", 5)) {
        row->limiter = LIMITER_NOISE;
        snprintf(row->limiter_why, sizeof row->limiter_why, "%s",
                 strncmp(row->validity, disturbed, strlen(disturbed))
                     ? row->validity
                     : row->validity + strlen(disturbed));
    } else {
        limit_by_roofs(row, facts);
    }
}
