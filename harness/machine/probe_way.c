/* SPDX-License-Identifier: MIT
 *
 * probe_way.c - the fastest way to read memory: found once, and kept
 */
#include "harness/machine/probe.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"

#define SHARE_BYTES ((size_t)8 << 20)  /* of a thread's share, for a comparison */
#define PART_BYTES  ((size_t)32 << 20) /* of few threads, together */
#define KEPT_BYTES \
    ((size_t)16 << 20) /* fewer, of a tiny model, show nothing of others */

/* Streams side by side help where one does not keep enough misses in flight,
 * prefetching (beyond the page) where the hardware's prefetcher stops at 4 KiB. */
static const struct {
    int n_streams;
    size_t prefetch_bytes;
} ways[] = {{1, 0},    {1, 1024}, {1, 4096}, {1, 8192}, {1, 16384}, {2, 0},
            {2, 1024}, {2, 4096}, {2, 8192}, {4, 0},    {4, 512},   {4, 2048}};

#define N_WAYS ((int)(sizeof ways / sizeof ways[0]))

/* After its passes a round leaves the fastest ways to the next one. Speeds are the best
 * of all passes: others on the machine only make a pass slower. */
static const struct {
    int n_passes, n_left;
} rounds[] = {{2, 5}, {2, 2}, {4, 1}};

/* ---- finding it ------------------------------------------------------------------ */

struct candidate {
    struct probe_read_way way;
    double gbps;
};

/* By speed, ties as they were. */
static void sort(struct candidate *c, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && c[k].gbps > c[k - 1].gbps; k--) {
            const struct candidate swapped = c[k];

            c[k] = c[k - 1];
            c[k - 1] = swapped;
        }
}

struct probe_read_way probe_read_tune(const struct probe_buffer *b,
                                      struct thread_pool *pool, uint32_t isa_mask)
{
    const struct probe_kernel *kernel =
        probe_kernel_best(PROBE_OP_stream_read, isa_mask);
    const size_t part = PART_BYTES / (size_t)thread_pool_size(pool);
    const size_t share = part > SHARE_BYTES ? part : SHARE_BYTES;
    struct candidate c[N_WAYS];
    int n = N_WAYS;

    for (int i = 0; i < n; i++)
        c[i] =
            (struct candidate){{kernel, ways[i].n_streams, ways[i].prefetch_bytes}, 0};
    if (probe_is_rough())
        return c[2].way; /* as the engine's kernels prefetch */
    for (size_t r = 0; r < sizeof rounds / sizeof rounds[0]; r++) {
        for (int pass = 0; pass < rounds[r].n_passes; pass++)
            for (int i = 0; i < n && !interrupted(); i++) {
                const double gbps = probe_read_part(b, pool, &c[i].way, share);

                c[i].gbps = gbps > c[i].gbps ? gbps : c[i].gbps;
            }
        sort(c, n);
        n = rounds[r].n_left;
    }
    return c[0].way;
}

/* ---- keeping it ------------------------------------------------------------------ */

/* {KEY: [STREAMS, PREFETCH_BYTES]} of this process and of those that it has started. */
static json_t *kept;

#define KEY_MAX 4096

/* "2 on 0-1, 2M, avx512": what decides which way is the fastest. */
static void key_of(char key[KEY_MAX], const struct thread_pool *pool,
                   enum mem_pages pages, enum kern_isa isa)
{
    const int n = thread_pool_size(pool), *cpus = thread_pool_cpus(pool);

    snprintf(key, KEY_MAX, "%s, %s, %d on ", pages == MEM_PAGES_2M ? "2M" : "4K",
             isa_name(isa), n);
    if (cpus)
        format_cpus(key + strlen(key), KEY_MAX - strlen(key), cpus, n);
}

static bool read_way(struct probe_read_way *way, const json_t *list)
{
    const json_int_t n_streams = json_integer_value(json_array_get(list, 0));
    const json_int_t prefetch_bytes = json_integer_value(json_array_get(list, 1));

    for (int i = 0; i < N_WAYS; i++)
        if (ways[i].n_streams == n_streams &&
            (json_int_t)ways[i].prefetch_bytes == prefetch_bytes) {
            way->n_streams = ways[i].n_streams;
            way->prefetch_bytes = ways[i].prefetch_bytes;
            return true;
        }
    return false;
}

static void keep(const char *key, json_t *list)
{
    if (!kept)
        kept = json_object();
    json_object_set_new(kept, key, list);
}

struct probe_read_way probe_way_find(const struct probe_buffer *b,
                                     struct thread_pool *pool, uint32_t isa_mask)
{
    struct probe_read_way way = {probe_kernel_best(PROBE_OP_stream_read, isa_mask), 1,
                                 0};
    char key[KEY_MAX];

    key_of(key, pool, b->pages, way.kernel->isa);
    if (read_way(&way, json_object_get(kept, key)))
        return way;
    way = probe_read_tune(b, pool, isa_mask);
    if (!interrupted() && b->bytes >= KEPT_BYTES)
        keep(key, json_pack("[i, I]", way.n_streams, (json_int_t)way.prefetch_bytes));
    return way;
}

json_t *probe_ways_json(void)
{
    return kept ? json_copy(kept) : json_object();
}

void probe_ways_take(const json_t *object)
{
    struct probe_read_way way;
    const char *key;
    json_t *list;

    json_object_foreach((json_t *)(uintptr_t)object, key,
                        list) if (strlen(key) < KEY_MAX && read_way(&way, list))
        keep(key, json_incref(list));
}
