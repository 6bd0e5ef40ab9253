/* SPDX-License-Identifier: MIT
 *
 * page_charts.c - the charts of one machine
 */
#include "harness/chart/svg.h"
#include "harness/show/page/html.h"
#include "harness/show/page/page_machine.h"
#include "harness/show/report/report.h"

enum status page_put_plot(FILE *f, struct plot *p, struct err *err)
{
    const struct plot_look *look = p && p->is_wide ? &plot_look_wide : &plot_look_page;

    if (p)
        plot_lay_out(p, look);
    if (!p || p->is_incomplete) {
        plot_free(p);
        return err_set(err, ST_NO_MEMORY, "no memory for a chart");
    }
    fprintf(f, "<figure class=\"card %s\">\n<figcaption><h3>",
            p->is_wide                ? "wide"
            : p->panel[0].y.has_names ? "short"
                                      : "");
    html_put(f, p->title);
    fputs("</h3>", f);
    for (size_t i = 0; i < p->n_notes; i++) {
        html_put_in(f, "<p class=\"sub\">", p->note[i], "</p>");
    }
    fputs("</figcaption>\n", f);
    fputs(p->is_wide ? "<div class=\"scroll\">\n" : "", f);
    svg_write(f, p, look);
    fputs(p->is_wide ? "</div>\n</figure>\n" : "</figure>\n", f);
    plot_free(p);
    return ST_OK;
}

static enum status put_chart(void *arg, const char *name, struct plot *p,
                             struct err *err)
{
    (void)name;
    return p ? page_put_plot(arg, p, err) : ST_OK;
}

enum status page_put_charts(FILE *f, const struct page_machine *m, struct err *err)
{
    const struct report_source from = {&m->picked, &m->machine, m->rows, m->n_rows,
                                       &m->samples};
    enum status st;

    fputs("<div class=\"grid\">\n", f);
    st = report_each_plot(&from, true, put_chart, f, err);
    fputs("</div>\n", f);
    return st;
}
