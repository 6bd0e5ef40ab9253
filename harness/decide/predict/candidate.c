/* SPDX-License-Identifier: MIT
 *
 * candidate.c - figures of a machine, from wherever they are
 */
#include "harness/decide/predict/candidate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/jsonfile.h"
#include "harness/base/format.h"
#include "harness/base/program.h"
#include "harness/machine/probe.h"
#include "harness/measure/kernels/kernel_work.h"
#include "harness/measure/plan/plan.h"
#include "harness/rows/result_set.h"

#define PEAK_PASSES 5

/* ---- by figures and data sheets -------------------------------------------------- */

static enum status need_memory(struct candidate *c, const struct candidate_params *p,
                               struct err *err)
{
    if (!p->mem_bytes)
        return err_set(err, ST_USAGE,
                       "give the memory of the machine, as in --mem 8G: a bandwidth or "
                       "a data sheet does not include it");
    c->topo.mem_total = c->topo.mem_available = p->mem_bytes;
    return ST_OK;
}

static enum status by_figures(struct candidate *c, const struct candidate_params *p,
                              struct err *err)
{
    snprintf(c->name, sizeof c->name, "a machine that reads %g GB/s", p->gbps);
    snprintf(c->from, sizeof c->from, "as given");
    c->roofs.read_gbps = c->max_gbps = p->gbps;
    c->peak_gops = p->gops;
    return need_memory(c, p, err);
}

/* What is given in addition to the name replaces the data sheet's. */
static enum status by_cpu(struct candidate *c, const struct candidate_params *p,
                          struct err *err)
{
    char path[4096];
    struct cpus cpus = {NULL, 0};
    const struct cpu *cpu = NULL;
    enum status st;

    data_file_find(path, sizeof path, "machines", "cpus.yaml");
    st = cpus_load(&cpus, path, err);
    if (st == ST_OK)
        st = cpus_find(&cpus, p->cpu, &cpu, err);
    if (st == ST_OK) {
        const double share =
            c->n_threads ? fmin(1, (double)c->n_threads / cpu->n_cores) : 1;

        snprintf(c->name, sizeof c->name, "%s", cpu->name);
        snprintf(c->from, sizeof c->from, "%s, %g GB/s at most; %s, %s", cpu->memory,
                 cpu->peak_gbps, cpu->source, cpu->date);
        c->by_data_sheet = true;
        c->max_gbps = cpu->peak_gbps;
        c->roofs.read_gbps = cpu_read_gbps(cpu, c->n_threads);
        c->roof_lo = CPU_MIN_SHARE / CPU_USUAL_SHARE;
        c->roof_hi = CPU_MAX_SHARE / CPU_USUAL_SHARE;
        c->peak_gops = p->gops > 0 ? p->gops : cpu->gops * share;
        c->topo.llc_bytes = cpu->llc_bytes;
        if (!(c->roofs.read_gbps > 0))
            st = err_set(err, ST_USAGE,
                         "what %d thread%s of %s read is not known; measure it (`bench "
                         "probe`) and give --gbps, or leave out --threads",
                         c->n_threads, plural(c->n_threads, "s"), cpu->name);
    }
    cpus_free(&cpus);
    return st ? st : need_memory(c, p, err);
}

/* ---- by a file ------------------------------------------------------------------- */

/* What plans take roofs by: pages of packed weights, and a disk where disk_too. */
static void plan_for_roofs(struct plan *plan, const struct candidate *c, bool disk_too)
{
    memset(plan, 0, sizeof *plan);
    point_init(&plan->point);
    plan->point.setup.n_threads = c->n_threads > 0 ? c->n_threads : 1;
    snprintf(plan->point.setup.model.path, sizeof plan->point.setup.model.path, ".");
    plan->need.residency = WEIGHTS_PACKED;
    plan->verdict = disk_too ? PLAN_STREAMS : PLAN_FITS;
}

static double median_of(const json_t *stats)
{
    return json_number_value(json_member(stats, "median"));
}

/* The peak of n threads between that of one and of all, for vectors as shares are. */
static double read_peak(const json_t *probe, int n_threads)
{
    const json_t *vectors = json_member(probe, "int8_vectors");
    const json_t *int8 = vectors ? vectors : json_member(probe, "int8");
    const double one = median_of(json_member(int8, "one_thread_gops"));
    const double all = median_of(json_member(int8, "all_threads_gops"));
    const double most = (double)json_integer_value(json_member(probe, "peak_threads"));

    if (!(one > 0 && all > 0) || n_threads >= most)
        return all > 0 ? all : 0;
    return fmin(n_threads * one, fmax(one, all));
}

static uint64_t bytes_of(const json_t *object, const char *key)
{
    const json_int_t v = json_integer_value(json_member(object, key));

    return v > 0 ? (uint64_t)v : 0;
}

static void read_topology(struct candidate *c, const json_t *topology)
{
    const json_t *cpu = json_member(topology, "cpu");
    const json_t *limits = json_member(topology, "limits");
    const json_int_t n = json_integer_value(json_member(topology, "threads_default"));
    struct machine_key key;

    c->topo.mem_available =
        bytes_of(json_member(topology, "memory"), "available_bytes");
    c->topo.mem_limit = bytes_of(limits, "memory_bytes");
    c->topo.mem_left = bytes_of(limits, "memory_left_bytes");
    topology_cache_from_json(&c->topo, cpu);
    if (!c->n_threads && n > 0 && n <= TOPO_MAX_CPUS)
        c->n_threads = (int)n;
    if (!machine_key_read(&key, topology))
        return;
    share_machine_name(&key, c->machine, sizeof c->machine);
    machine_key_name(&key, c->name, sizeof c->name);
}

static enum status read_roofs(struct candidate *c, const char *path, struct err *err)
{
    struct plan *plan = malloc(sizeof *plan);
    struct err ignored = ERR_INIT;
    enum status st;

    if (!plan)
        return err_set(err, ST_NO_MEMORY, "no memory for a plan");
    plan_for_roofs(plan, c, true);
    st = plan_read_roofs(plan, path, &ignored);
    if (st) { /* it may have no disk */
        plan_for_roofs(plan, c, false);
        st = plan_read_roofs(plan, path, err);
    }
    c->roofs = plan->roofs.gbps;
    c->max_gbps = c->roofs.read_gbps;
    snprintf(c->from, sizeof c->from, "%s", plan->roofs.from);
    free(plan);
    return st;
}

/* A disk that launches probed several times has a distribution of its own; each launch
 * then differs from its probe. */
#define MIN_PROBES 8

static void take_disk(struct candidate *c)
{
    double *v = malloc((c->n_rows + 1) * sizeof *v);
    struct token_roofs *roofs = &c->roofs;
    size_t n = 0;

    for (size_t i = 0; v && i < c->n_rows; i++)
        if (c->rows[i].roof_disk_gbps > 0)
            v[n++] = c->rows[i].roof_disk_gbps;
    if (n >= MIN_PROBES) {
        stats_sort(v, n);
        roofs->disk_gbps = stats_quantile_sorted(v, n, 0.5);
        roofs->disk_lo =
            stats_quantile_sorted(v, n, 0.05) / roofs->disk_gbps * TOKEN_TIME_DISK_LO;
        roofs->disk_hi =
            stats_quantile_sorted(v, n, 0.95) / roofs->disk_gbps * TOKEN_TIME_DISK_HI;
    }
    free(v);
}

/* The sweep that the machine.json is of, if there is one. */
static void read_own_rows(struct candidate *c, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct err ignored = ERR_INIT;
    struct result_set set;
    char csv[4096];

    if (strcmp(slash ? slash + 1 : path, "machine.json"))
        return;
    snprintf(csv, sizeof csv, "%.*ssweep.csv", slash ? (int)(slash - path) + 1 : 0,
             path);
    if (result_set_open(&set, csv, RESULT_LAST, &ignored) == ST_OK) {
        c->rows = set.parts[0].rows;
        c->n_rows = set.parts[0].n;
        set.parts[0].rows = NULL;
        take_disk(c);
    }
    result_set_free(&set);
}

static enum status by_file(struct candidate *c, const struct candidate_params *p,
                           struct err *err)
{
    struct jsonfile f = {.root = NULL};
    const json_t *probe;
    enum status st;

    if (access(p->machine, F_OK) && errno == ENOENT)
        return err_set(err, ST_USAGE,
                       "--machine: there is no file %.200s; a machine that was not "
                       "probed is given by --cpu NAME or --gbps X",
                       format_path(p->machine).text);
    if (jsonfile_read(&f, p->machine, MACHINE_JSON_LIMIT, err))
        return err->code;
    snprintf(c->name, sizeof c->name, "the machine of %.100s",
             format_path(p->machine).text);
    read_topology(c, json_member(f.root, "topology"));
    probe = json_member(f.root, "probe") ? json_member(f.root, "probe") : f.root;
    st = read_roofs(c, p->machine, err);
    c->peak_gops = p->gops > 0 ? p->gops : read_peak(probe, c->n_threads);
    result_products_read(c->product_share, probe);
    jsonfile_free(&f);
    if (st == ST_OK && !c->topo.mem_available)
        st = need_memory(c, p, err);
    if (st == ST_OK)
        read_own_rows(c, p->machine);
    return st;
}

/* ---- the one at hand ------------------------------------------------------------- */

static enum status here(struct candidate *c, struct err *err)
{
    struct machine_key key;
    json_t *object;

    if (topology_read(&c->topo, "", err))
        return err->code;
    c->is_here = true;
    if (!c->n_threads)
        c->n_threads = c->topo.threads_default;
    object = topology_json(&c->topo);
    if (object && machine_key_read(&key, object)) {
        share_machine_name(&key, c->machine, sizeof c->machine);
        machine_key_name(&key, c->name, sizeof c->name);
    }
    json_decref(object);
    return ST_OK;
}

static enum status measure_peak(struct candidate *c, struct err *err)
{
    double gops[PEAK_PASSES], scratch[PEAK_PASSES];
    struct thread_pool *pool = NULL;

    if (placement_pool(&pool, &c->topo, PLACEMENT_SPREAD, c->n_threads, err))
        return err->code;
    probe_compute(PROBE_PEAK_VECTORS, isa_usable(), pool, PEAK_PASSES, gops);
    c->peak_gops = stats_median(gops, PEAK_PASSES, scratch);
    thread_pool_stop(pool);
    return ST_OK;
}

enum status candidate_measure(struct candidate *c, bool disk_too, const bool *wanted,
                              struct err *err)
{
    struct plan *plan = malloc(sizeof *plan);
    const double disk_gbps = c->roofs.disk_gbps, gops = c->peak_gops;
    enum status st;

    if (!plan)
        return err_set(err, ST_NO_MEMORY, "no memory for a plan");
    plan_for_roofs(plan, c, disk_too && !(disk_gbps > 0));
    st = plan_measure_roofs(plan, &c->topo, err);
    c->roofs = plan->roofs.gbps;
    c->max_gbps = c->roofs.read_gbps;
    if (disk_gbps > 0)
        c->roofs.disk_gbps = disk_gbps;
    snprintf(c->from, sizeof c->from, "%s", plan->roofs.from);
    free(plan);
    if (st == ST_OK && !(gops > 0))
        st = measure_peak(c, err);
    if (st == ST_OK && wanted)
        st = kernel_product_shares(c->product_share, wanted, &c->topo, err);
    return st;
}

enum status candidate_open(struct candidate *c, const struct candidate_params *p,
                           struct err *err)
{
    enum status st;

    memset(c, 0, sizeof *c);
    c->n_threads = p->n_threads;
    c->roof_lo = c->roof_hi = 1;
    c->peak_gops = p->gops;
    st = p->gbps > 0  ? by_figures(c, p, err)
         : p->cpu     ? by_cpu(c, p, err)
         : p->machine ? by_file(c, p, err)
                      : here(c, err);
    if (p->disk_gbps > 0)
        c->roofs.disk_gbps = p->disk_gbps;
    return st;
}

void candidate_free(struct candidate *c)
{
    free(c->rows);
    c->rows = NULL;
}
