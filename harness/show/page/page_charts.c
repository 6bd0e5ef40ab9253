/* SPDX-License-Identifier: MIT
 *
 * page_charts.c - the charts of one machine
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/chart/svg.h"
#include "harness/show/page/html.h"
#include "harness/show/page/page_machine.h"
#include "harness/show/report/chart_plot.h"
#include "harness/show/report/report.h"
#include "harness/show/report/report_token_charts.h"

enum status page_put_plot(FILE *f, struct plot *p, const char *style, const char *title,
                          const char *sub, struct err *err)
{
    const struct plot_look *look = p && p->is_wide ? &plot_look_wide : &plot_look_page;

    if (p)
        plot_lay_out(p, look);
    if (!p || p->is_incomplete) {
        plot_free(p);
        return err_set(err, ST_NO_MEMORY, "no memory for the chart: %s", title);
    }
    fprintf(f, "<figure class=\"card %s\">\n<figcaption><h3>", style);
    html_put(f, title);
    fputs("</h3>", f);
    if (*sub) {
        fputs("<p class=\"sub\">", f);
        html_put(f, sub);
        fputs("</p>", f);
    }
    fputs("</figcaption>\n", f);
    fputs(p->is_wide ? "<div class=\"scroll\">\n" : "", f);
    svg_write(f, p, look);
    fputs(p->is_wide ? "</div>\n</figure>\n" : "</figure>\n", f);
    plot_free(p);
    return ST_OK;
}

/* ---- charts of rows ----------------------------------------------------------------
 */

static enum status put_chart(void *arg, struct chart *c, struct err *err)
{
    struct plot *p = chart_plot(c, true);
    char left_out[64] = "";

    if (!c->is_drawn)
        return ST_OK;
    if (c->n_left_out)
        snprintf(left_out, sizeof left_out, "%d more setting%s not shown",
                 c->n_left_out, c->n_left_out == 1 ? " is" : "s are");
    return page_put_plot(arg, p, c->bars ? "short" : "", c->title, left_out, err);
}

/* ---- charts of samples
 * --------------------------------------------------------------- */

static enum status put_times(FILE *f, const struct page_machine *m, struct err *err)
{
    struct token_series_list *list = malloc(sizeof *list);
    enum status st;

    if (!list)
        return err_set(err, ST_NO_MEMORY, "no memory for token times");
    st = token_series_find(list, &m->picked, m->rows, m->n_rows, &m->samples, err);
    if (st == ST_OK && list->n)
        st = page_put_plot(f, token_times_plot(list, ""), "", "Token times",
                           "Share of tokens that took at most that long, in %, at each "
                           "setting's least context depth",
                           err);
    token_series_free(list);
    free(list);
    return st;
}

static enum status put_run(FILE *f, const struct page_machine *m, struct err *err)
{
    struct token_run run;
    char sub[160];
    enum status st =
        token_run_find(&run, &m->picked, m->rows, m->n_rows, &m->samples, err);

    if (st == ST_OK && run.n && m->samples.n) {
        snprintf(sub, sizeof sub,
                 "Each dot is a token, pass or run, relative to the "
                 "median of its point");
        if (run.n_pauses)
            text_append(sub, sizeof sub, "; %d pause%s cut", run.n_pauses,
                        run.n_pauses == 1 ? " is" : "s are");
        st = page_put_plot(f, token_run_plot(&run, &m->picked, ""), "wide",
                           "The run: token times, and what disturbed them", sub, err);
    }
    token_run_free(&run);
    return st;
}

static enum status put_map(FILE *f, const struct page_machine *m, struct err *err)
{
    struct roof_map *map = malloc(sizeof *map);
    enum status st = ST_OK;

    if (!map)
        return err_set(err, ST_NO_MEMORY, "no memory for shares of the roof");
    roof_map_fill(map, &m->picked);
    if (map->n_settings)
        st = page_put_plot(
            f, roof_share_plot(map, ""), "short", "Share of the roof",
            "Decoding at each setting's least context depth; ? is disturbed or partial",
            err);
    free(map);
    return st;
}

enum status page_put_charts(FILE *f, const struct page_machine *m, struct err *err)
{
    enum status st;

    fputs("<div class=\"grid\">\n", f);
    st = report_each_chart(&m->picked, &m->machine, put_chart, f, err);
    if (st == ST_OK)
        st = put_map(f, m, err);
    if (st == ST_OK)
        st = put_times(f, m, err);
    if (st == ST_OK)
        st = put_run(f, m, err);
    fputs("</div>\n", f);
    return st;
}
