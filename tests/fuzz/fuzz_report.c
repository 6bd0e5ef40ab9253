/* SPDX-License-Identifier: MIT
 *
 * fuzz_report.c - a directory of results as `bench recommend` and `bench plot` read it
 *
 * The input is sweep.csv, quality.csv, machine.json, samples.csv and requests.csv, one
 * after another, with a line "%%" between them. What is read gets its names, is
 * drawn and printed, harmless.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/chart/chart_files.h"
#include "harness/chart/svg.h"
#include "harness/rows/quality_rows.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/result_set.h"
#include "harness/rows/samples.h"
#include "harness/show/report/report.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

/* A row takes a few KB, and is sorted, joined and listed. */
static const struct fuzz_bound bound = {
    .cpu_s = 1.0, .cpu_s_per_byte = 2e-5, .bytes = 64u << 20, .bytes_per_byte = 1024};

static void check_shown(const char *text)
{
    for (const char *c = text; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\n') || *c == 0x7f)
            fuzz_fail("the control character %d in what is shown", *c);
}

/* As a file and in a page: places are numbers, and texts harmless. */
static enum status draw(void *arg, const char *name, struct plot *p, struct err *err)
{
    const struct plot_look *look = arg;
    char *text = NULL;
    size_t len;
    FILE *f = p ? open_memstream(&text, &len) : NULL;

    if (!f)
        return ST_OK;
    plot_lay_out(p, look);
    svg_write(f, p, look);
    if (!look->is_page)
        fuzz_accepted(gnuplot_write(f, p, "", err), err);
    fclose(f);
    check_shown(text);
    if (strstr(text, "\"nan") || strstr(text, "\"inf") || strstr(text, "Mnan"))
        fuzz_fail("a place of %s that is no number: %.200s", name, text);
    free(text);
    plot_free(p);
    return ST_OK;
}

static void show(const struct row *rows, size_t n)
{
    struct report_rows p = {0};
    struct err err = ERR_INIT;
    char name[REPORT_NAME_MAX];

    if (!fuzz_accepted(report_rows_pick(&p, rows, n, &err), &err))
        return;
    for (size_t i = 0; i < p.n && i < 64; i++) {
        check_shown(report_setting_name(&p, p.v[i], name, sizeof name));
        check_shown(report_setting_label(&p, p.v[i], name, sizeof name));
        check_shown(report_model_name(p.v[i]).text);
        check_shown(row_failure(p.v[i]));
        row_trust(p.v[i]);
        row_ttft_warm_s(p.v[i]);
        report_fastest_at(&p, i, report_setting_end(&p, i), p.v[i]->ctx);
    }
    struct report_machine machine = {0};
    struct samples none = {0};
    const struct report_source from = {&p, &machine, rows, n, &none};

    for (int i = 0; i < 2; i++)
        fuzz_accepted(report_each_plot(&from, i, draw,
                                       (void *)(i ? &plot_look_page : &plot_look_file),
                                       &err),
                      &err);
    report_rows_free(&p);
}

static void print_quality(const struct row *rows, size_t n)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (!f)
        fuzz_fail("no memory to print");
    quality_rows_print(f, rows, n < 64 ? n : 64);
    fclose(f);
    check_shown(text);
    free(text);
}

/* The files, each the part up to the next separator. */
static void write_files(const char *at, size_t size)
{
    static const char *const names[] = {"sweep.csv", "quality.csv", "machine.json",
                                        "samples.csv", "requests.csv"};
    static const char gap[] = "\n%%\n";

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *end = memmem(at, size, gap, strlen(gap));
        const size_t n = end ? (size_t)(end - at) + 1 : size;

        if (n)
            fuzz_file(names[i], at, n);
        else
            unlink(fuzz_path(names[i]));
        at += end ? n + strlen(gap) - 1 : n;
        size -= end ? n + strlen(gap) - 1 : n;
    }
}

static void read_directory(const uint8_t *data, size_t size)
{
    struct result_set set;
    struct samples samples;
    struct err err = ERR_INIT;
    struct row *rows;
    size_t n;

    write_files((const char *)data, size);
    if (fuzz_accepted(result_set_open(&set, fuzz_dir(), RESULT_LAST, &err), &err)) {
        show(set.parts[0].rows, set.parts[0].n);
        check_shown(set.parts[0].run->about.host);
        check_shown(set.parts[0].run->about.cpu_model);
    }
    result_set_free(&set);
    if (fuzz_accepted(quality_rows_read(fuzz_dir(), &rows, &n, &err), &err)) {
        print_quality(rows, n);
        free(rows);
    }
    if (fuzz_accepted(samples_read(&samples, fuzz_dir(), &err), &err)) {
        for (size_t i = 0; i < samples.n; i++)
            if (!samples.v[i].n || !(samples.v[i].ms[samples.v[i].n - 1] > 0))
                fuzz_fail("launch %zu has a sample that is no time", i);
        samples_free(&samples);
    }
    if (fuzz_accepted(requests_read(&samples, fuzz_dir(), &err), &err)) {
        for (size_t i = 0; i < samples.n * (size_t)REQUEST_CELLS; i++) {
            const struct launch_samples *l = &samples.v[i / REQUEST_CELLS];

            if (!l->n || l->ms[(l->n - 1) * REQUEST_CELLS + i % REQUEST_CELLS] < 0)
                fuzz_fail("step %zu has a request with a time below 0", i);
        }
        samples_free(&samples);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_directory, data, size, &bound);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {
        "\n%%\n",    "utc",       "point",        "kind",       "status",   "model",
        "quant",     "placement", "kv_type",      "quality",    "decode",   "prefill",
        "ok",        "partial",   "oom",          "error",      "spread",   "q8_0",
        "n_threads", "ctx",       "tok_per_s",    "file_bytes", "topology", "cpus",
        "\x1b[2J",   "::error::", SAMPLES_HEADER, NULL};

    return mutate_text(data, size, max_size, seed, words);
}
