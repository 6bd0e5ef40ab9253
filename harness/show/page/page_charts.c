/* SPDX-License-Identifier: MIT
 *
 * page_charts.c - the charts of one machine
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/show/page/html.h"
#include "harness/show/page/page_machine.h"
#include "harness/show/page/svg_chart.h"
#include "harness/show/page/svg_tokens.h"
#include "harness/show/report/report.h"

/* style: "", short or wide. */
static void begin_figure(FILE *f, const char *style, const char *title, const char *sub)
{
    fprintf(f, "<figure class=\"card %s\">\n<figcaption><h3>", style);
    html_put(f, title);
    fputs("</h3>", f);
    if (*sub) {
        fputs("<p class=\"sub\">", f);
        html_put(f, sub);
        fputs("</p>", f);
    }
    fputs("</figcaption>\n", f);
}

static void end_figure(FILE *f)
{
    fputs("</figure>\n", f);
}

/* ---- charts of rows ----------------------------------------------------------------
 */

static enum status put_chart(void *arg, struct chart *c, struct err *err)
{
    FILE *f = arg;
    struct chart_axes axes;
    char left_out[64] = "";

    (void)err;
    chart_choose_panels(c);
    if (!chart_find_axes(c, &axes))
        return ST_OK;
    if (c->n_left_out)
        snprintf(left_out, sizeof left_out, "%d more setting%s not shown",
                 c->n_left_out, c->n_left_out == 1 ? " is" : "s are");
    begin_figure(f, c->bars ? "short" : "", c->title, left_out);
    if (!strcmp(c->name, "memory"))
        svg_chart_memory(f, c, &axes);
    else if (c->log_x)
        svg_chart_pareto(f, c, &axes);
    else if (c->bars)
        svg_chart_bars(f, c);
    else
        svg_chart_lines(f, c, &axes);
    end_figure(f);
    return ST_OK;
}

/* ---- charts of samples
 * --------------------------------------------------------------- */

static enum status put_times(FILE *f, const struct page_machine *m, struct err *err)
{
    struct token_series_list *list = malloc(sizeof *list);
    enum status st;
    char sub[128];

    if (!list)
        return err_set(err, ST_NO_MEMORY, "no memory for token times");
    st = token_series_find(list, &m->picked, m->rows, m->n_rows, &m->samples, err);
    if (st == ST_OK && list->n) {
        snprintf(sub, sizeof sub,
                 "Share of tokens that took at most so long, in %%, at "
                 "each setting's least context depth");
        begin_figure(f, "", "Token times", sub);
        svg_token_times(f, list);
        end_figure(f);
    }
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
        begin_figure(f, "wide", "The run: token times, and what disturbed them", sub);
        svg_token_run(f, &run, &m->picked);
        end_figure(f);
    }
    token_run_free(&run);
    return st;
}

static enum status put_map(FILE *f, const struct page_machine *m, struct err *err)
{
    struct roof_map *map = malloc(sizeof *map);

    if (!map)
        return err_set(err, ST_NO_MEMORY, "no memory for shares of the roof");
    roof_map_fill(map, &m->picked);
    if (map->n_settings) {
        begin_figure(
            f, "short", "Share of the roof",
            "Decoding at each setting's least context depth; ? is disturbed or "
            "partial");
        svg_roof_map(f, map);
        end_figure(f);
    }
    free(map);
    return ST_OK;
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
