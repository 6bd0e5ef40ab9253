/* SPDX-License-Identifier: MIT
 *
 * compare_chart.c - cost against speed, a mark for each machine
 */
#include "harness/judge/compare/compare.h"

#include <math.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"

/* Space beside the marks, as a share of the largest figure: names stand there. */
#define MARGIN 0.15

static bool is_drawn(const struct compare_machine *m)
{
    return !m->none.code && isfinite(m->cost_out.mid);
}

/* "Q4_0", "Q4_0 of llama.cpp" */
static const char *chosen_of(const struct row *r, char *buf, size_t cap)
{
    snprintf(buf, cap, "%.24s%s%.24s", r->quant, *r->engine ? " of " : "", r->engine);
    return buf;
}

static enum status write_values(const struct comparison *c, const char *dir,
                                struct err *err)
{
    struct chart_file out;
    FILE *f = chart_file_create(&out, dir, COMPARE_CHART, "csv", err);

    if (!f)
        return err->code;
    fputs("place,tok_per_s,lo,hi,cost,cost_lo,cost_hi,p_first,name,setting\n", f);
    for (size_t i = 0; i < c->n; i++) {
        const struct compare_machine *m = &c->v[i];
        char name[96], setting[64];

        if (!is_drawn(m))
            continue;
        fprintf(f, "%zu", i + 1);
        chart_file_number(f, m->tok_per_s.mid);
        chart_file_number(f, m->tok_per_s.lo);
        chart_file_number(f, m->tok_per_s.hi);
        chart_file_number(f, m->cost_out.mid);
        chart_file_number(f, m->cost_out.lo);
        chart_file_number(f, m->cost_out.hi);
        chart_file_number(f, m->p_first);
        chart_file_text(f, text_shorten(name, sizeof name, m->name, 40));
        chart_file_text(f, chosen_of(&m->rec.best, setting, sizeof setting));
        fputc('\n', f);
    }
    return chart_file_finish(&out, err);
}

/* For the legend: marks may lie close to each other. */
static void write_names(FILE *f, const struct comparison *c)
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < c->n; i++)
        n += is_drawn(&c->v[i]);
    fprintf(f, "\nn_machines = %zu\narray names[%zu]\n", n, n);
    for (size_t i = 0; i < c->n; i++) {
        const struct compare_machine *m = &c->v[i];
        char name[96], setting[64], text[200];

        if (!is_drawn(m))
            continue;
        snprintf(text, sizeof text, "%s, %s",
                 text_shorten(name, sizeof name, m->name, 30),
                 chosen_of(&m->rec.best, setting, sizeof setting));
        fprintf(f, "names[%zu] = ", ++at);
        gnuplot_quote(f, text);
        fputc('\n', f);
    }
    fputc('\n', f);
}

static void write_settings(FILE *f, const struct comparison *c)
{
    double most_speed = 0, most_cost = 0;
    const char *currency = "";
    char text[512];

    for (size_t i = 0; i < c->n; i++)
        if (is_drawn(&c->v[i])) {
            most_speed = fmax(most_speed, c->v[i].tok_per_s.hi);
            most_cost = fmax(most_cost, c->v[i].cost_out.hi);
            currency = c->v[i].price.currency;
        }
    snprintf(text, sizeof text,
             "%s  \xc2\xb7  context depth %lld  \xc2\xb7  95 %% intervals  \xc2\xb7  "
             "machines that work %.3g %% of the time on one sequence",
             c->model, (long long)c->ctx, 100 * c->utilisation);
    chart_file_head(f, COMPARE_CHART, "What an answer costs, and how fast it comes",
                    text);
    fprintf(f,
            "x_min = 0\nx_max = %.6g\ny_min = 0\ny_max = %.6g\nlog_y = 0\n"
            "y_ticks = ''\ncurrency = ",
            most_speed * (1 + MARGIN), most_cost * (1 + MARGIN));
    gnuplot_quote(f, currency);
    write_names(f, c);
}

enum status compare_chart(const struct comparison *c, const char *dir,
                          const char *again, bool *drawn, struct err *err)
{
    struct chart_file out;
    size_t n = 0;
    FILE *f;

    for (size_t i = 0; i < c->n; i++)
        n += is_drawn(&c->v[i]);
    *drawn = n > 0;
    if (!n) {
        chart_files_remove(dir, COMPARE_CHART);
        return ST_OK;
    }
    if (write_values(c, dir, err))
        return err->code;
    f = chart_file_create(&out, dir, COMPARE_CHART, "gp", err);
    if (!f)
        return err->code;
    write_settings(f, c);
    return chart_file_draw(&out, again, err);
}
