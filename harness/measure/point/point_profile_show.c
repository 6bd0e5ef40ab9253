/* SPDX-License-Identifier: MIT
 *
 * point_profile_show.c - a token's time by operation, as a table and as a chart
 */
#include "harness/measure/point/point_profile_show.h"

#include <string.h>

#include "harness/base/format.h"
#include "harness/chart/chart_files.h"

#define CHART "profile"

/* ---- the table ------------------------------------------------------------------- */

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

/* ---- the chart ------------------------------------------------------------------- */

/* Names of models and CPUs are cut beyond this, so that the line fits the picture. */
#define NAME_CHARACTERS 48

/* Far below any roof it is neither memory nor arithmetic that takes the time. */
#define MIN_SHARE 0.05

static void put_row(struct plot *plot, const struct point_profile *p, size_t i,
                    double roof_gbps)
{
    const struct point_profile_row *r = &p->rows[i];
    const char *bound;
    const double roof = point_profile_roof_ms(p, r, roof_gbps, &bound);
    const double ms = r->work_ms + r->wait_ms;

    PLOT_NUMBERS(plot, (double)i, r->work_ms, r->wait_ms, roof, r->bytes, r->macs);
    plot_string(plot, r->op);
    plot_string(plot, r->weights);
    plot_string(plot, bound);
    plot_number(plot, ms);
    plot_string(plot, roof < MIN_SHARE * ms || !(ms > 0)
                          ? ""
                          : plot_printf(plot, "%.0f %% of the %s roof", 100 * roof / ms,
                                        bound));
}

static void put_layers(struct plot *p)
{
    const struct plot_layer layers[] = {
        {.form = PLOT_BOX,
         .x2 = {"work_ms", 0},
         .y = {"position", -0.36},
         .y2 = {"position", 0.36},
         .style = plot_filled(0, 0.85)},
        {.form = PLOT_BOX,
         .x = {"work_ms", 0},
         .x2 = {"all_ms", 0},
         .y = {"position", -0.36},
         .y2 = {"position", 0.36},
         .style = plot_filled(4, 0.85)},
        {.form = PLOT_SEGMENT,
         .x = {"roof_ms", 0},
         .x2 = {"roof_ms", 0},
         .y = {"position", -0.44},
         .y2 = {"position", 0.44},
         .style = plot_stroke(1, 3, PLOT_WHOLE)},
        {.form = PLOT_TEXT,
         .x = {"all_ms", 0},
         .y = {"position", 0},
         .text = "label",
         .anchor = PLOT_LEFT,
         .dx = 8,
         .style = {.color = PLOT_INK}},
    };

    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        plot_layer(p, layers[i]);
    plot_key(p, "work", layers[0].style);
    plot_key(p, "waiting for the other threads", layers[1].style);
    plot_key(p, "what the roof allows", layers[2].style);
}

static void describe(char *buf, size_t cap, const struct point_profile *p,
                     const struct row *row, const struct topology *topo)
{
    const bool prefill = row->kind == POINT_PREFILL;
    char model[256], cpu[256];

    text_shorten(model, sizeof model, row->model, NAME_CHARACTERS);
    text_shorten(cpu, sizeof cpu, topo->cpu_model, NAME_CHARACTERS);
    snprintf(
        buf, cap,
        "%s %s  \xc2\xb7  %s, %d CPU%s  \xc2\xb7  %lld thread%s, %s %lld  \xc2\xb7  "
        "roof %.1f GB/s, %.0f GOPS",
        model, row->quant, cpu, topo->n_allowed, plural(topo->n_allowed, "s"),
        (long long)row->n_threads, plural(row->n_threads, "s"),
        prefill ? "prompt of" : "context",
        (long long)(prefill ? row->n_prompt : row->ctx), row->roof_gbps, p->int8_gops);
}

static struct plot *make_plot(const struct point_profile *p, const struct row *row,
                              const struct topology *topo)
{
    char title[80], subtitle[800];
    double most = 0;
    struct plot *plot;

    snprintf(title, sizeof title, "Where the %.1f ms of a %s go", p->sample_ms,
             row->kind == POINT_PREFILL ? "prompt" : "token");
    describe(subtitle, sizeof subtitle, p, row, topo);
    plot = plot_new(CHART, title, subtitle);
    if (!plot)
        return NULL;
    if (strcmp(row->validity, "valid") != 0)
        plot->warning = plot_printf(plot, "%s", row->validity);
    plot->keys_below = true;
    plot_columns(plot, "position,work_ms,wait_ms,roof_ms,bytes,macs,operation,weights,"
                       "bound,all_ms,label");
    for (size_t i = 0; i < p->n_rows; i++) {
        const double ms = p->rows[i].work_ms + p->rows[i].wait_ms;

        most = ms > most ? ms : most;
        put_row(plot, p, i, row->roof_gbps);
    }
    struct plot_panel *a = plot_panel(plot, 36, 0, most > 0 ? 1.05 * most : 1,
                                      (double)p->n_rows - 0.5, -0.5);

    a->x.title = "milliseconds";
    a->x.has_room = a->y.has_names = true;
    for (size_t i = 0; i < p->n_rows; i++)
        plot_tick(plot, &a->y, (double)i,
                  plot_printf(plot, "%s%s%s", p->rows[i].op,
                              *p->rows[i].weights ? "  " : "", p->rows[i].weights));
    put_layers(plot);
    return plot;
}

enum status point_profile_draw(const struct point_profile *p, const struct row *row,
                               const struct topology *topo, const char *dir,
                               struct err *err)
{
    if (p->n_rows)
        return chart_files_draw(make_plot(p, row, topo), dir, row->command, err);
    chart_files_remove(dir, CHART);
    return ST_OK;
}
