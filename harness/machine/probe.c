/* SPDX-License-Identifier: MIT
 *
 * probe.c - all roofs of the machine in one go, and their JSON
 */
#include "harness/machine/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/interrupt.h"
#include "harness/base/json_number.h"
#include "harness/machine/noise.h"

#define MIB           ((uint64_t)1 << 20)
#define DISK_BYTES    (512 * MIB)
#define DISK_PASSES   5
#define MAX_PASSES    1000
#define ALL_COUNTS_TO 8 /* every thread count up to here, then doubling */

/* Shares of the whole, for the progress line. */
#define READ_SHARE    0.6
#define COMPUTE_SHARE 0.1

struct series {
    struct probe_read_row *row;
    struct probe_read_way way;
    double *gbps; /* [n_passes] */
};

struct run {
    const struct probe_params *p;
    int n_passes;
    double *scratch; /* [n_passes] */
    double done;     /* share of the work */
};

static enum status step(struct run *run, double share, const char *what,
                        struct err *err)
{
    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted while probing");
    run->done += share;
    if (run->p->progress)
        run->p->progress(run->p->progress_arg, run->done, what);
    return ST_OK;
}

/* ---- reading --------------------------------------------------------------------- */

static int next_count(int n, int max)
{
    const int next = n < ALL_COUNTS_TO ? n + 1 : 2 * n;

    return n == max ? max + 1 : next > max ? max : next;
}

static enum status open_buffers(struct probe_buffer *buffers, const struct run *run,
                                int n_threads, struct err *err)
{
    struct thread_pool *pool = NULL;
    enum status st =
        placement_pool(&pool, run->p->topo, run->p->placement, n_threads, err);

    for (int pages = MEM_PAGES_4K; pages <= MEM_PAGES_2M && st == ST_OK; pages++)
        st = probe_buffer_open(&buffers[pages], pool, run->p->bytes,
                               (enum mem_pages)pages, run->p->topo, err);
    thread_pool_stop(pool);
    return st;
}

/* One visit to one series: pass -1 finds the best way, the others count. */
static enum status visit(struct series *s, int pass, const struct run *run,
                         const struct probe_buffer *b, struct err *err)
{
    struct thread_pool *pool;

    if (placement_pool(&pool, run->p->topo, run->p->placement, s->row->n_threads, err))
        return err->code;
    if (pass < 0)
        s->way = probe_way_find(b, pool, run->p->isa_mask);
    else
        s->gbps[pass] = probe_read_pass(b, pool, &s->way);
    thread_pool_stop(pool);
    return ST_OK;
}

/* Measure n series, interleaved: each round begins one further on, so that none
 * always follows the same neighbour. */
static enum status read_group(struct series *s, int n, double share, struct run *run,
                              struct err *err)
{
    struct probe_buffer buffers[2] = {{.huge_bytes = 0}, {.huge_bytes = 0}};
    enum status st = open_buffers(buffers, run, s[n - 1].row->n_threads, err);

    for (int pass = -1; pass < run->n_passes && st == ST_OK; pass++)
        for (int i = 0; i < n && st == ST_OK; i++) {
            struct series *at = &s[(i + pass + 1) % n];
            char what[48];

            snprintf(what, sizeof what, "read, %d thread%s", at->row->n_threads,
                     at->row->n_threads == 1 ? "" : "s");
            st = step(run, share / (n * (run->n_passes + 1)), what, err);
            if (st == ST_OK)
                st = visit(at, pass, run, &buffers[at->row->pages], err);
        }
    for (int i = 0; i < n && st == ST_OK; i++) {
        const struct probe_buffer *b = &buffers[s[i].row->pages];

        s[i].row->bytes = b->bytes;
        s[i].row->huge_bytes = b->huge_bytes;
        stats_summary(&s[i].row->gbps, s[i].gbps, (size_t)run->n_passes, run->scratch);
    }
    probe_buffer_close(&buffers[0]);
    probe_buffer_close(&buffers[1]);
    return st;
}

static enum status read_all(struct probe_report *r, struct run *run, struct err *err)
{
    const int max = run->p->max_threads;
    struct noise before, after;
    enum status st = ST_OK;
    int n_counts = 0;

    for (int t = 1; t <= max; t = next_count(t, max))
        n_counts++;
    const int n_rows = 2 * n_counts;
    const size_t n_passes = (size_t)run->n_passes;
    struct series *s = calloc((size_t)n_rows, sizeof *s);
    double *gbps = calloc((size_t)n_rows * n_passes, sizeof *gbps);
    r->read = calloc((size_t)n_rows, sizeof *r->read);
    if (!s || !gbps || !r->read) {
        st = err_set(err, ST_NO_MEMORY, "no memory for %d rows of the probe", n_rows);
        goto out;
    }
    for (int t = 1, i = 0; t <= max; t = next_count(t, max))
        for (int pages = MEM_PAGES_4K; pages <= MEM_PAGES_2M; pages++, i++) {
            r->read[i].n_threads = t;
            r->read[i].pages = (enum mem_pages)pages;
            s[i].row = &r->read[i];
            s[i].gbps = gbps + (size_t)i * n_passes;
        }
    r->n_read_rows = n_rows;

    const int group = run->p->topo->n_nodes > 1 ? 2 : n_rows;
    noise_read(&before, "");
    for (int i = 0; i < n_rows && st == ST_OK; i += group)
        st = read_group(s + i, group, READ_SHARE * group / n_rows, run, err);
    noise_since(&after, &before, "");
    noise_verdict(&after, 0, r->validity, sizeof r->validity);
out:
    free(gbps);
    free(s);
    return st;
}

/* ---- arithmetic, disk ------------------------------------------------------------ */

static enum status compute_all(struct probe_report *r, struct run *run, struct err *err)
{
    const int counts[2] = {1, run->p->max_threads};
    double *gops = calloc((size_t)run->n_passes, sizeof *gops);
    enum status st = ST_OK;

    if (!gops)
        return err_set(err, ST_NO_MEMORY, "no memory for %d passes", run->n_passes);
    r->n_peak_threads = run->p->max_threads;
    for (int i = 0; i < 2 && st == ST_OK; i++) {
        struct thread_pool *pool = NULL;

        st = step(run, COMPUTE_SHARE / 2, "arithmetic", err);
        if (st == ST_OK)
            st = placement_pool(&pool, run->p->topo, run->p->placement, counts[i], err);
        if (st)
            break;
        r->int8_isa =
            probe_compute(PROBE_PEAK_INT8, run->p->isa_mask, pool, run->n_passes, gops);
        stats_summary(&r->int8_gops[i], gops, (size_t)run->n_passes, run->scratch);
        r->vectors_isa = probe_compute(PROBE_PEAK_VECTORS, run->p->isa_mask, pool,
                                       run->n_passes, gops);
        stats_summary(&r->vectors_gops[i], gops, (size_t)run->n_passes, run->scratch);
        r->f32_isa =
            probe_compute(PROBE_PEAK_F32, run->p->isa_mask, pool, run->n_passes, gops);
        stats_summary(&r->f32_gops[i], gops, (size_t)run->n_passes, run->scratch);
        thread_pool_stop(pool);
    }
    free(gops);
    return st;
}

static enum status disk_all(struct probe_report *r, struct run *run, struct err *err)
{
    const struct probe_params *p = run->p;
    double gbps[DISK_PASSES], scratch[DISK_PASSES];
    struct err e = ERR_INIT;

    if (!p->disk_dir) {
        snprintf(r->disk_why_not, sizeof r->disk_why_not, "not requested");
        return ST_OK;
    }
    if (step(run, 0, "disk", err))
        return err->code;
    snprintf(r->disk_path, sizeof r->disk_path, "%s", p->disk_dir);
    if (probe_disk(p->disk_dir, p->disk_bytes ? p->disk_bytes : DISK_BYTES, NULL,
                   DISK_PASSES, gbps, &e) == ST_INTERRUPTED)
        return err_set(err, ST_INTERRUPTED, "%s", e.msg);
    r->has_disk = e.code == ST_OK;
    if (r->has_disk)
        stats_summary(&r->disk_gbps, gbps, DISK_PASSES, scratch);
    else
        snprintf(r->disk_why_not, sizeof r->disk_why_not, "%.255s", e.msg);
    return ST_OK;
}

enum status probe_all(struct probe_report *r, const struct probe_params *p,
                      struct err *err)
{
    struct probe_report report = {.n_read_rows = 0};
    struct run run = {.p = p, .n_passes = p->n_passes};
    enum status st = ST_OK;

    if (p->max_threads < 1 || p->max_threads > TOPO_MAX_CPUS)
        return err_set(err, ST_USAGE, "%d threads cannot be probed; 1 to %d can",
                       p->max_threads, TOPO_MAX_CPUS);
    if (p->n_passes < 1 || p->n_passes > MAX_PASSES)
        return err_set(err, ST_USAGE, "%d passes cannot be made; 1 to %d can",
                       p->n_passes, MAX_PASSES);
    run.scratch = calloc((size_t)p->n_passes, sizeof *run.scratch);
    if (!run.scratch)
        return err_set(err, ST_NO_MEMORY, "no memory for %d passes", p->n_passes);

    if (read_all(&report, &run, err) || compute_all(&report, &run, err) ||
        disk_all(&report, &run, err) || step(&run, 0, "done", err))
        st = err->code;
    free(run.scratch);
    if (st) {
        probe_report_free(&report);
        return st;
    }
    *r = report;
    return ST_OK;
}

void probe_report_free(struct probe_report *r)
{
    free(r->read);
    memset(r, 0, sizeof *r);
}

/* ---- JSON ------------------------------------------------------------------------ */

static json_t *stats_json(const struct stats *s)
{
    return json_pack("{s:f, s:o, s:o, s:f, s:f, s:I}", "median", s->median, "lo",
                     json_number(s->lo), "hi", json_number(s->hi), "min", s->min, "max",
                     s->max, "n", (json_int_t)s->n);
}

static json_t *peak_json(enum kern_isa isa, const struct stats gops[2])
{
    return json_pack("{s:s, s:o, s:o}", "isa", isa_name(isa), "one_thread_gops",
                     stats_json(&gops[0]), "all_threads_gops", stats_json(&gops[1]));
}

json_t *probe_report_json(const struct probe_report *r)
{
    json_t *rows = json_array(), *disk;

    for (int i = 0; i < r->n_read_rows; i++) {
        const struct probe_read_row *row = &r->read[i];

        json_array_append_new(rows, json_pack("{s:i, s:s, s:I, s:I, s:o}", "n_threads",
                                              row->n_threads, "pages",
                                              mem_pages_name(row->pages), "bytes",
                                              (json_int_t)row->bytes, "huge_bytes",
                                              (json_int_t)row->huge_bytes, "gbps",
                                              stats_json(&row->gbps)));
    }
    if (r->has_disk)
        disk = json_pack("{s:s, s:o}", "path", r->disk_path, "gbps",
                         stats_json(&r->disk_gbps));
    else
        disk = json_pack("{s:s}", "why_not", r->disk_why_not);
    return json_pack("{s:o, s:s, s:i, s:o, s:o, s:o, s:o}", "read", rows, "validity",
                     r->validity, "peak_threads", r->n_peak_threads, "int8",
                     peak_json(r->int8_isa, r->int8_gops), "int8_vectors",
                     peak_json(r->vectors_isa, r->vectors_gops), "f32",
                     peak_json(r->f32_isa, r->f32_gops), "disk", disk);
}
