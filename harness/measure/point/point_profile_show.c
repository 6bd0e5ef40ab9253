/* SPDX-License-Identifier: MIT
 *
 * point_profile_show.c - a token's time by operation, as a table and as a chart
 */
#include "harness/measure/point/point_profile_show.h"

#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/chart/chart_files.h"

#define CHART "profile"

/* ---- the table ---------------------------------------------------------------- */

static void print_line(FILE *f, const struct point_profile *p, const char *op,
                       const char *weights, double work_ms, double wait_ms)
{
    fprintf(f, "  %-15s %-8s %9.3f %8.3f %6.1f", op, weights, work_ms, wait_ms,
            100 * (work_ms + wait_ms) / p->sample_ms);
}

static void print_figures(FILE *f, double ms, double bytes, double macs, double roof_ms,
                          const char *bound)
{
    if (!(ms > 0) || !*bound) {
        fputc('\n', f);
        return;
    }
    fprintf(f, " %9.2f %8.2f %9.1f %6.1f  %s\n", bytes * 1e-6, bytes / ms * 1e-6,
            2 * macs / ms * 1e-6, 100 * roof_ms / ms, bound);
}

void point_profile_print(FILE *f, const struct point_profile *p, const struct row *row)
{
    double work = 0, wait = 0, bytes = 0, macs = 0, roof_ms = 0;

    if (!p->n_rows || !(p->sample_ms > 0))
        return;
    fprintf(
        f,
        "\nWhere the time of a %s goes: the mean of %zu, per thread (%lld of them)\n"
        "Roofs of this run: %.1f GB/s, %.0f GOPS int8, %.0f GFLOPS f32\n\n"
        "  %-15s %-8s %9s %8s %6s %9s %8s %9s %6s  %s\n",
        row->kind != POINT_PREFILL ? "token" : "prompt", p->n_samples,
        (long long)row->n_threads, row->roof_gbps, p->int8_gops, p->f32_gops,
        "operation", "weights", "work ms", "wait ms", "%", "MB", "GB/s", "GOPS",
        "% roof", "bound by");
    for (size_t i = 0; i < p->n_rows; i++) {
        const struct point_profile_row *r = &p->rows[i];
        const char *bound;
        const double roof = point_profile_roof_ms(p, r, row->roof_gbps, &bound);

        print_line(f, p, r->op, r->weights, r->work_ms, r->wait_ms);
        print_figures(f, r->work_ms + r->wait_ms, r->bytes, r->macs, roof, bound);
        work += r->work_ms;
        wait += r->wait_ms;
        bytes += r->bytes;
        macs += r->macs;
        roof_ms += roof;
    }
    print_line(f, p, "outside", "", p->sample_ms - work - wait, 0);
    fputc('\n', f);
    print_line(f, p, "all", "", p->sample_ms - wait, wait);
    print_figures(f, p->sample_ms, bytes, macs, roof_ms, "its roofs");
}

/* ---- the chart ---------------------------------------------------------------- */

static enum status write_data(const struct point_profile *p, const struct row *row,
                              const char *dir, struct err *err)
{
    struct chart_file c;
    FILE *f = chart_file_create(&c, dir, CHART, "csv", err);

    if (!f)
        return err->code;
    fprintf(f, "position,work_ms,wait_ms,roof_ms,bytes,macs,operation,weights,bound\n");
    for (size_t i = 0; i < p->n_rows; i++) {
        const struct point_profile_row *r = &p->rows[i];
        const char *bound;
        const double roof = point_profile_roof_ms(p, r, row->roof_gbps, &bound);

        fprintf(f, "%zu,%.6g,%.6g,%.6g,%.9g,%.9g", i, r->work_ms, r->wait_ms, roof,
                r->bytes, r->macs);
        chart_file_text(f, r->op);
        chart_file_text(f, r->weights);
        chart_file_text(f, bound);
        fputc('\n', f);
    }
    return chart_file_finish(&c, err);
}

/* Names of models and CPUs are cut beyond this, so that the line fits the picture. */
#define NAME_CHARACTERS 48

static void write_subtitle(FILE *f, const struct point_profile *p,
                           const struct row *row, const struct topology *topo)
{
    const bool prefill = row->kind == POINT_PREFILL;
    char model[256], cpu[256], text[800];

    text_shorten(model, sizeof model, row->model, NAME_CHARACTERS);
    text_shorten(cpu, sizeof cpu, topo->cpu_model, NAME_CHARACTERS);
    snprintf(
        text, sizeof text,
        "%s %s  \xc2\xb7  %s, %d CPU%s  \xc2\xb7  %lld thread%s, %s %lld  \xc2\xb7  "
        "roof %.1f GB/s, %.0f GOPS",
        model, row->quant, cpu, topo->n_allowed, plural(topo->n_allowed, "s"),
        (long long)row->n_threads, plural(row->n_threads, "s"),
        prefill ? "prompt of" : "context",
        (long long)(prefill ? row->n_prompt : row->ctx), row->roof_gbps, p->int8_gops);
    fputs("\nsubtitle_text = ", f);
    gnuplot_quote(f, text);
    fputs("\nwarning_text = ", f);
    gnuplot_quote(f, !strcmp(row->validity, "valid") ? "" : row->validity);
}

static void write_settings(FILE *f, const struct point_profile *p,
                           const struct row *row, const struct topology *topo)
{
    const bool prefill = row->kind == POINT_PREFILL;
    char text[256];
    double most = 0;

    for (size_t i = 0; i < p->n_rows; i++) {
        const double ms = p->rows[i].work_ms + p->rows[i].wait_ms;

        most = ms > most ? ms : most;
    }
    fprintf(f, "# " CHART ".gp - written by bench; draw it again with: gnuplot " CHART
               ".gp\nname = '" CHART "'\ndata = '" CHART ".csv'\ntitle_text = ");
    snprintf(text, sizeof text, "Where the %.1f ms of a %s go", p->sample_ms,
             prefill ? "prompt" : "token");
    gnuplot_quote(f, text);
    write_subtitle(f, p, row, topo);
    fprintf(f, "\nn_rows = %zu\narray rows[%zu]\n", p->n_rows, p->n_rows);
    for (size_t i = 0; i < p->n_rows; i++) {
        snprintf(text, sizeof text, "%s%s%s", p->rows[i].op,
                 *p->rows[i].weights ? "  " : "", p->rows[i].weights);
        fprintf(f, "rows[%zu] = ", i + 1);
        gnuplot_quote(f, text);
        fputc('\n', f);
    }
    fprintf(f,
            "x_min = 0\nx_max = %.6g\ny_min = %zu.5\ny_max = -0.5\nlog_y = 0\n"
            "y_ticks = ''\n\n",
            1.25 * most, p->n_rows - 1);
}

enum status point_profile_draw(const struct point_profile *p, const struct row *row,
                               const struct topology *topo, const char *dir,
                               struct err *err)
{
    struct chart_file c;
    enum status st;
    FILE *f;

    if (!p->n_rows) {
        chart_files_remove(dir, CHART);
        return ST_OK;
    }
    st = write_data(p, row, dir, err);
    f = st ? NULL : chart_file_create(&c, dir, CHART, "gp", err);
    if (!f)
        return err->code;
    write_settings(f, p, row, topo);
    return chart_file_draw(&c, row->command, err);
}
