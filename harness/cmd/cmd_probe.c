/* SPDX-License-Identifier: MIT
 *
 * cmd_probe.c - `bench probe`: bandwidth, arithmetic and disk
 */
#include "harness/cmd/cmd.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/machine/probe.h"
#include "harness/machine/measuring.h"

static const struct opt_usage usage = {
    .synopsis = "probe [-t N] [--bytes B] [--passes N] [--disk DIR|none] [--json]",
    .about = "Measures read-only memory bandwidth for 1 to N threads with 4 KiB and 2 "
             "MiB pages, int8 and f32 multiply-adds, and sequential disk reads past "
             "the page cache. Before each pass the buffer is taken out of every cache, "
             "so its size does not matter. Decoding one token reads all weights once, "
             "so bandwidth divided by the model's bytes is the upper bound of tok/s "
             "(the roof).\n\nEvery figure is the median over passes with its 95 % "
             "confidence interval (none below six passes). The disk probe writes an "
             "unnamed file of 512 MiB and reads it back; in a virtual machine, the "
             "host's cache may make a disk look faster than it is.",
    .example = "bench probe\nbench probe --threads 4 --disk none --json",
    .no_arguments = "see `bench probe --help`",
};

struct settings {
    int n_threads; /* 0: the machine's default */
    int n_passes;
    uint64_t bytes;
    enum placement placement;
    const char *disk;
    bool json;
};

static void show_progress(void *arg, double fraction, const char *what)
{
    progress_update(arg, fraction, what);
}

/* ---- text output ----------------------------------------------------------------- */

/* "" where there were too few passes for one; returns buf. */
static const char *interval(char *buf, size_t cap, const struct stats *s)
{
    buf[0] = '\0';
    if (isfinite(s->lo))
        snprintf(buf, cap, "%6.2f .. %6.2f", s->lo, s->hi);
    return buf;
}

static void print_read(const struct probe_report *r, const struct topology *topo)
{
    char interval_text[32];
    bool any_missing = false;

    printf("Read bandwidth, GB/s, buffer %s\n", bytes_text(r->read[0].bytes).text);
    printf("  threads  pages    median   95 %% interval   in 2 MiB pages\n");
    for (int i = 0; i < r->n_read_rows; i++) {
        const struct probe_read_row *row = &r->read[i];

        printf("  %7d  %s  %8.2f  %-16s", row->n_threads,
               row->pages == MEM_PAGES_2M ? "2 MiB" : "4 KiB", row->gbps.median,
               interval(interval_text, sizeof interval_text, &row->gbps));
        if (row->pages == MEM_PAGES_2M) {
            printf("   %s", bytes_text(row->huge_bytes).text);
            any_missing |= row->huge_bytes < row->bytes / 100 * 95;
        }
        printf("\n");
    }
    if (any_missing)
        printf("  Part of the buffer has no 2 MiB pages (transparent huge pages: "
               "%s),\n  so its rows are lower than this machine can reach.\n",
               topo->thp[0] ? topo->thp : "not offered by this kernel");
    if (r->validity[0] && strcmp(r->validity, "valid"))
        printf("  %s\n", r->validity);
}

static void print_peak(const char *what, enum kern_isa isa, const struct stats gops[2],
                       int n_threads)
{
    printf("  %-4s  %-10s  %8.1f", what, isa_name(isa), gops[0].median);
    if (n_threads > 1)
        printf("  %8.1f", gops[1].median);
    printf("\n");
}

static void print_advice(const struct probe_report *r, const struct topology *topo)
{
    struct topo_advice advice[PROBE_MAX_ADVICE];
    const int n = probe_advice(r, topo, advice);

    printf("\nWhat follows\n");
    for (int i = 0; i < n; i++) {
        printf("  - ");
        text_wrap(stdout, advice[i].text, 4, 4, 79, false);
    }
}

static void print_report(const struct probe_report *r, const struct topology *topo)
{
    char many[32];

    print_read(r, topo);
    snprintf(many, sizeof many, "%d threads", r->n_peak_threads);
    printf("\nArithmetic peak, GOPS (a multiply-add counts as two)\n");
    printf("        level       1 thread%s%s\n", r->n_peak_threads > 1 ? "  " : "",
           r->n_peak_threads > 1 ? many : "");
    print_peak("int8", r->int8_isa, r->int8_gops, r->n_peak_threads);
    if (r->vectors_isa != r->int8_isa)
        print_peak("int8", r->vectors_isa, r->vectors_gops, r->n_peak_threads);
    print_peak("f32", r->f32_isa, r->f32_gops, r->n_peak_threads);
    printf("\nDisk, sequential read past the page cache\n");
    if (r->has_disk)
        printf("  %.2f GB/s (range of %zu passes: %.2f .. %.2f) in %s\n",
               r->disk_gbps.median, r->disk_gbps.n, r->disk_gbps.min, r->disk_gbps.max,
               format_path(r->disk_path).text);
    else
        printf("  not measured: %s\n", r->disk_why_not);
    print_advice(r, topo);
}

/* ---------------------------------------------------------------------------- */

/* Below, starting a pass takes no less time than reading. */
#define MIN_BYTES (UINT64_C(1) << 20)

/* Reads of two buffers, one of small and one of large pages, are interleaved. */
static enum status check_bytes(uint64_t bytes, const struct topology *topo,
                               struct err *err)
{
    const uint64_t most = topology_usable_bytes(topo, 0) / 2;

    if (bytes && bytes < MIN_BYTES)
        return err_set(err, ST_USAGE,
                       "--bytes: a buffer of %s is read faster than can be timed; the "
                       "minimum is %s",
                       bytes_text(bytes).text, bytes_text(MIN_BYTES).text);
    if (!most || bytes <= most)
        return ST_OK;
    return err_set(err, ST_NO_MEMORY,
                   "--bytes: two buffers of %s do not fit; memory holds two of %s",
                   bytes_text(bytes).text, bytes_text(most).text);
}

static enum status measure(struct probe_report *report, const struct topology *topo,
                           const struct settings *s, struct err *err)
{
    struct progress progress;
    struct probe_params params = {
        .topo = topo,
        .max_threads = s->n_threads ? s->n_threads : topo->threads_default,
        .bytes = s->bytes,
        .n_passes = s->n_passes,
        .disk_dir = strcmp(s->disk, "none") ? s->disk : NULL,
        .placement = s->placement,
        .isa_mask = isa_usable(),
        .progress = show_progress,
        .progress_arg = &progress,
    };
    enum status st = check_bytes(s->bytes, topo, err);

    if (st)
        return st;
    if (params.disk_dir && access(params.disk_dir, F_OK))
        return err_set_errno(err, ST_IO, "--disk: no directory %s", params.disk_dir);
    if (measuring_begin(err))
        return err->code;
    progress_begin(&progress, "probe");
    st = probe_all(report, &params, err);
    progress_end(&progress);
    return st;
}

int cmd_probe(int argc, char **argv)
{
    struct settings s = {.n_passes = 25, .disk = "."};
    const struct opt opts[] = {
        OPT_INT('t', "threads", &s.n_threads, "N",
                "1 to N threads (default: as many as allowed)", 1, TOPO_MAX_CPUS),
        OPT_BYTES(0, "bytes", &s.bytes, "B",
                  "buffer size (default: 256M, more for many threads)"),
        OPT_INT(0, "passes", &s.n_passes, "N", "passes per figure (default 25)", 1,
                1000),
        OPT_CHOICE(0, "placement", &s.placement, "P",
                   "spread, compact, smt or none (default spread)", &choices_placement),
        OPT_STR(0, "disk", &s.disk, "DIR",
                "disk of this directory, or none (default: .)"),
        OPT_FLAG(0, "json", &s.json, "print JSON"),
        OPT_END,
    };
    struct err err = ERR_INIT;
    struct opt_args args;
    struct probe_report report;
    struct topology *topo;

    if (opt_parse(&args, argc, argv, opts, &usage, &err) || args.help)
        return cmd_end(&err);
    interrupt_catch();
    if (topology_open(&topo, "", &err) || measure(&report, topo, &s, &err)) {
        free(topo);
        return cmd_end(&err);
    }
    if (s.json)
        cmd_print_json(probe_report_json(&report), 6, &err);
    else
        print_report(&report, topo);
    probe_report_free(&report);
    free(topo);
    return cmd_end(&err);
}
