/* SPDX-License-Identifier: MIT
 *
 * load_roof.c - passes over a buffer while a server idles
 */
#include "harness/serve/load/load_roof.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/thread_pool.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/stats/stats.h"
#include "harness/rows/roofs.h"
#include "kernels/isa.h"

#define MIB        ((uint64_t)1 << 20)
#define MIN_BYTES  (16 * MIB) /* less is read faster than can be timed well */
#define MAX_SHARE  4          /* the buffer takes at most 1/4 of free memory */
#define MIN_PASSES 5
#define READ_NS \
    UINT64_C(400000000) /* of passes, longer than a neighbour's time slices */
#define MOMENT_NS UINT64_C(2000000000)

bool load_roof_is_here(const char *url)
{
    const char *slashes = strstr(url, "://");
    const char *host = slashes ? slashes + 3 : url;
    const size_t n = !strncmp(host, "127.", 4)        ? strspn(host, "0123456789.")
                     : !strncmp(host, "localhost", 9) ? 9
                     : !strncmp(host, "[::1]", 5)     ? 5
                                                      : 0;

    return n && strchr(":/", host[n]); /* or the end */
}

enum status load_roof_place(struct load_roof *r, const struct topology *topo,
                            struct launch_place *place, pid_t group, struct err *err)
{
    struct topology *own = malloc(sizeof *own);
    enum status st;

    if (!own)
        return err_set(err, ST_NO_MEMORY, "no memory for the machine");
    *own = *topo;
    if (place && place->is_pinned) {
        own->n_allowed = place->n_server;
        for (int i = 0; i < own->n_cpus; i++) {
            own->cpu[i].allowed = false;
            for (int k = 0; k < place->n_server; k++)
                own->cpu[i].allowed |= own->cpu[i].os_id == place->server[k];
        }
    }
    r->group = group;
    r->place = place;
    r->n_server_threads = place ? place->n_threads : 0;
    r->n_threads = r->n_server_threads && r->n_server_threads < own->n_allowed
                       ? r->n_server_threads
                       : own->n_allowed;
    r->before.n = r->after.n = 0;
    st = placement_cpus(own, PLACEMENT_SPREAD, r->n_threads, r->cpus, err);
    free(own);
    return st;
}

void load_roof_begin(struct load_roof *r)
{
    r->usual = load_idle_cpus(r->group);
}

/* Size of the buffer in bytes; 0: too little memory. */
static uint64_t find_bytes(const struct topology *topo, int n_threads)
{
    const uint64_t wanted = probe_pass_bytes(n_threads);
    const uint64_t most = topology_usable_bytes(topo, 0) / MAX_SHARE;

    return wanted <= most ? wanted : most >= MIN_BYTES ? most : 0;
}

static void read_passes(struct load_roof_end *end, const struct probe_buffer *buffer,
                        struct thread_pool *pool)
{
    const struct probe_read_way way = probe_way_find(buffer, pool, isa_usable());
    const uint64_t begin_ns = clock_ns();

    while (end->n < LOAD_ROOF_PASSES && !interrupted() &&
           (end->n < MIN_PASSES || clock_ns() - begin_ns < READ_NS))
        end->gbps[end->n++] = probe_read_pass(buffer, pool, &way);
}

/* Reads the machine again: the server has taken memory since. */
static enum status read_memory(struct load_roof *r, struct load_roof_end *end,
                               struct err *err)
{
    struct topology *topo = NULL;
    struct probe_buffer buffer = {.base = NULL};
    struct thread_pool *pool = NULL;
    uint64_t bytes = 0;
    enum status st = topology_open(&topo, "", err);

    if (st == ST_OK && !(bytes = find_bytes(topo, r->n_threads)))
        st = err_set(err, ST_NO_MEMORY, "memory is short");
    if (st == ST_OK)
        st = thread_pool_start(&pool, r->n_threads, r->cpus, err);
    if (st == ST_OK)
        st = probe_buffer_open(&buffer, pool, bytes, MEM_PAGES_4K, topo, err);
    if (st == ST_OK) {
        read_passes(end, &buffer, pool);
        probe_buffer_close(&buffer);
    }
    thread_pool_stop(pool);
    free(topo);
    return st;
}

/* While it reads, this process is where the server is. */
static void read_end(struct load_roof *r, struct load_roof_end *end)
{
    const bool is_apart = r->place && r->place->is_kept;
    struct err why = ERR_INIT;

    *end = (struct load_roof_end){.n = 0};
    if (is_apart)
        launch_place_leave(r->place);
    if (load_idle_wait(r->group, r->usual, LOAD_ROOF_IDLE_S)) {
        if (read_memory(r, end, &why))
            snprintf(end->why, sizeof end->why, "%.79s", why.msg);
    } else if (!interrupted()) {
        snprintf(end->why, sizeof end->why, "%s not idle within %.0f s",
                 r->group ? "the server was" : "the CPUs were", LOAD_ROOF_IDLE_S);
    }
    if (is_apart)
        launch_place_keep(r->place);
    end->at_ns = clock_ns();
}

void load_roof_before(struct load_roof *r)
{
    if (r->after.n && clock_ns() - r->after.at_ns < MOMENT_NS)
        r->before = r->after;
    else
        read_end(r, &r->before);
    r->after.n = 0;
}

void load_roof_after(struct load_roof *r)
{
    read_end(r, &r->after);
}

static double median(const struct load_roof_end *end)
{
    double scratch[LOAD_ROOF_PASSES];

    return stats_median(end->gbps, (size_t)end->n, scratch);
}

/* Clearly less at one end than at the other: the judgement of roofs.h. */
static void judge(const struct load_roof *r, struct row *row)
{
    const double before = median(&r->before), after = median(&r->after);

    if (fmin(before, after) >= ROOF_LOW_SHARE * fmax(before, after))
        return;
    if (!strncmp(row->validity, "disturbed", 9))
        text_append(row->validity, sizeof row->validity, ",");
    else
        snprintf(row->validity, sizeof row->validity, "disturbed:");
    text_append(row->validity, sizeof row->validity,
                " memory gave %.1f GB/s before and %.1f after", before, after);
}

static void note_missing(const struct load_roof_end *end, const char *which,
                         struct row *row)
{
    if (!end->n && *end->why)
        text_append(row->detail, sizeof row->detail, "%sno bandwidth %s: %s",
                    *row->detail ? "; " : "", which, end->why);
}

void load_roof_note(const struct load_roof *r, struct row *row)
{
    double gbps[2 * LOAD_ROOF_PASSES], scratch[2 * LOAD_ROOF_PASSES];
    const int n_before = r->before.n, n = n_before + r->after.n;
    struct stats s;

    if (r->n_server_threads)
        row->n_threads = r->n_server_threads;
    note_missing(&r->before, "before", row);
    note_missing(&r->after, "after", row);
    if (!n)
        return;
    format_cpus(row->cpus, sizeof row->cpus, r->cpus, r->n_threads);
    memcpy(gbps, r->before.gbps, (size_t)n_before * sizeof *gbps);
    memcpy(gbps + n_before, r->after.gbps, (size_t)r->after.n * sizeof *gbps);
    stats_summary(&s, gbps, (size_t)n, scratch);
    row->roof_gbps = s.median;
    row->roof_gbps_lo = s.lo;
    row->roof_gbps_hi = s.hi;
    if (n_before && r->after.n)
        judge(r, row);
}
