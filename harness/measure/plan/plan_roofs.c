/* SPDX-License-Identifier: MIT
 *
 * plan_roofs.c - the roofs of a plan: measured in a second or two, or stored
 */
#include "harness/measure/plan/plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/jsonfile.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/stats/stats.h"
#include "harness/machine/cache.h"
#include "harness/machine/probe.h"
#include "kernels/isa.h"

/* What memory gives changes within a second, with the neighbours. */
#define READ_PASSES     64
#define MIN_READ_PASSES 9
#define READ_NS         (UINT64_C(400) * 1000000)

#define DISK_PASSES 3
#define DISK_BYTES  (UINT64_C(256) << 20)

/* Weights that are mapped have small pages. */
static enum mem_pages pages_of(const struct plan *plan)
{
    return plan->need.residency == WEIGHTS_MMAP ? MEM_PAGES_4K : MEM_PAGES_2M;
}

/* ---- measured -------------------------------------------------------------------- */

static enum status measure_read(struct plan *plan, const struct topology *topo,
                                struct err *err)
{
    struct probe_buffer buffer = {.base = NULL};
    struct thread_pool *pool = NULL;
    double gbps[READ_PASSES], scratch[READ_PASSES];
    const struct model_setup *s = &plan->point.setup;
    enum status st = placement_pool(&pool, topo, s->placement, s->n_threads, err);

    if (st == ST_OK)
        st = probe_buffer_open(&buffer, pool, 0, pages_of(plan), topo, err);
    if (st == ST_OK) {
        const struct probe_read_way way = probe_way_find(&buffer, pool, isa_usable());

        const uint64_t end_ns = clock_ns() + READ_NS;
        size_t n = 0;

        while (n < READ_PASSES && (n < MIN_READ_PASSES || clock_ns() < end_ns) &&
               !(n && interrupted()))
            gbps[n++] = probe_read_pass(&buffer, pool, &way);
        plan->roofs.gbps.read_gbps = stats_median(gbps, n, scratch);
    }
    probe_buffer_close(&buffer);
    thread_pool_stop(pool);
    return st == ST_OK && interrupted()
               ? err_set(err, ST_INTERRUPTED, "interrupted while measuring the roofs")
               : st;
}

/* The model's file, or the directory that is there of those that it will be in. */
static const char *disk_path(const struct plan *plan, char *buf, size_t cap)
{
    snprintf(buf, cap, "%s", plan->point.setup.model.path);
    while (access(buf, R_OK)) {
        char *slash = strrchr(buf, '/');

        if (!slash)
            return ".";
        slash[slash == buf] = '\0';
    }
    return buf;
}

static enum status measure_disk(struct plan *plan, struct err *err)
{
    char buf[sizeof plan->point.setup.model.path];
    double gbps[DISK_PASSES], scratch[DISK_PASSES];
    struct err why = ERR_INIT;
    const enum status st = probe_disk(disk_path(plan, buf, sizeof buf), DISK_BYTES,
                                      &probe_disk_streaming, DISK_PASSES, gbps, &why);

    if (st == ST_INTERRUPTED)
        return err_set(err, st, "%s", why.msg);
    if (st == ST_OK)
        plan->roofs.gbps.disk_gbps = stats_median(gbps, DISK_PASSES, scratch);
    else
        snprintf(plan->roofs.disk_why_not, sizeof plan->roofs.disk_why_not, "%.255s",
                 why.msg);
    return ST_OK;
}

enum status plan_measure_roofs(struct plan *plan, struct topology *topo,
                               struct err *err)
{
    enum status st = cache_find(topo, err);

    plan->cache = topology_cache(topo, plan->point.setup.n_threads);
    if (st == ST_OK)
        st = measure_read(plan, topo, err);

    plan->roofs.pages = pages_of(plan);
    plan->roofs.n_threads = plan->point.setup.n_threads;
    if (st == ST_OK && plan->verdict == PLAN_STREAMS)
        st = measure_disk(plan, err);
    snprintf(plan->roofs.from, sizeof plan->roofs.from, "measured now");
    return st;
}

/* ---- stored ---------------------------------------------------------------------- */

/* Enough for a probe of a thousand thread counts. */
static const struct json_limit limit = {.bytes = 8 << 20, .values = 200000};

#define MAX_GBPS 1e6

static enum status read_median(const struct jsonfile *f, const json_t *row,
                               double *gbps, struct err *err)
{
    double v = 0;

    if (json_get_real(f, json_member(row, "gbps"), "median", 0, MAX_GBPS, &v, err))
        return err->code;
    if (!(v > 0))
        return err_set(err, ST_INPUT, "%s: a speed has no median above 0", f->path);
    *gbps = v;
    return ST_OK;
}

/* The row with these pages and the most threads up to the plan's. */
static enum status read_rows(struct plan *plan, const struct jsonfile *f,
                             const json_t *rows, struct err *err)
{
    const char *pages = mem_pages_name(pages_of(plan));
    const json_t *best = NULL, *row;
    int64_t n_best = 0;
    size_t i;

    json_array_foreach(rows, i, row)
    {
        const char *of = json_text(json_member(row, "pages"));
        int64_t n = 0;

        if (json_get_int(f, row, "n_threads", 1, TOPO_MAX_CPUS, &n, err))
            return err->code;
        if (of && !strcmp(of, pages) && n > n_best &&
            n <= plan->point.setup.n_threads) {
            best = row;
            n_best = n;
        }
    }
    if (!best)
        return err_set(err, ST_INPUT,
                       "%s has no read bandwidth of up to %d thread%s with pages of "
                       "%s; measure it with `bench probe --json`",
                       f->path, plan->point.setup.n_threads,
                       plural(plan->point.setup.n_threads, "s"), pages);
    plan->roofs.n_threads = (int)n_best;
    plan->roofs.pages = pages_of(plan);
    return read_median(f, best, &plan->roofs.gbps.read_gbps, err);
}

static enum status read_disk(struct plan *plan, const struct jsonfile *f,
                             const json_t *disk, struct err *err)
{
    char why[160];

    if (plan->verdict != PLAN_STREAMS)
        return ST_OK;
    if (json_member(disk, "gbps"))
        return read_median(f, disk, &plan->roofs.gbps.disk_gbps, err);
    text_harmless(why, sizeof why, json_text(json_member(disk, "why_not")));
    return err_set(
        err, ST_INPUT,
        "%s has no speed of a disk%s%s, and the plan streams from one; leave "
        "out --machine to measure it",
        f->path, *why ? ": " : "", why);
}

/* The output of `bench probe` does not describe a machine. Its cache is then unknown:
 * what this machine reports may be its host's, and its roofs may be another machine's.
 */
static enum status read_cache(struct plan *plan, const json_t *root, struct err *err)
{
    const json_t *cpu = json_member(json_member(root, "topology"), "cpu");
    struct topology *topo;

    if (!cpu) {
        plan->cache = (struct topo_llc){0};
        return ST_OK;
    }
    topo = calloc(1, sizeof *topo);
    if (!topo)
        return err_set(err, ST_NO_MEMORY, "no memory for a plan");
    topology_cache_from_json(topo, cpu);
    plan->cache = topology_cache(topo, plan->point.setup.n_threads);
    free(topo);
    return ST_OK;
}

enum status plan_read_roofs(struct plan *plan, const char *path, struct err *err)
{
    struct jsonfile f;
    const json_t *probe;
    enum status st = jsonfile_read(&f, path, limit, err);

    if (st)
        return st;
    probe = json_member(f.root, "probe");
    if (!probe)
        probe = f.root;
    st = json_is_array(json_member(probe, "read"))
             ? read_rows(plan, &f, json_member(probe, "read"), err)
             : err_set(err, ST_INPUT,
                       "%s holds no measured read bandwidth; name the output of `bench "
                       "probe --json`, or the machine.json of a sweep",
                       f.path);
    if (st == ST_OK)
        st = read_disk(plan, &f, json_member(probe, "disk"), err);
    if (st == ST_OK)
        st = read_cache(plan, f.root, err);
    if (st == ST_OK)
        snprintf(plan->roofs.from, sizeof plan->roofs.from, "from %.300s",
                 format_path(path).text);
    jsonfile_free(&f);
    return st;
}
