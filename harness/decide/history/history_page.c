/* SPDX-License-Identifier: MIT
 *
 * history_page.c - the trend page: change points and series, as one HTML file
 */
#include "harness/base/textfile.h"
#include "harness/decide/history/history_report.h"
#include "harness/show/page/html.h"

static void put_cell(FILE *f, const char *text)
{
    fputs("<td>", f);
    html_put(f, text);
    fputs("</td>", f);
}

static void put_changes(FILE *f, const struct history_report *r)
{
    char text[256], before[32], size[64];

    fputs(
        "<div><table>\n<tr><th>series</th><th>machine</th><th>commit</th><th>last "
        "before</th><th>change (95 % interval)</th><th>p</th><th>first run</th></tr>\n",
        f);
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->v[i].n_changes; k++) {
            const struct history_line *line = &r->v[i];
            const struct history_change *c = &line->change[k];
            const size_t at = c->at.at;

            fputs(c->worse ? "<tr class=\"worse\">" : "<tr>", f);
            put_cell(f, line->s->name);
            put_cell(f, line->s->has_machine
                            ? machine_key_name(&line->s->machine, text, sizeof text)
                            : "");
            put_cell(f, history_commit_text(r, line, at, text, sizeof text));
            put_cell(f, history_commit_text(r, line, at - 1, before, sizeof before));
            fputs("<td>", f);
            html_printf(f, "%s, %s", history_size_text(c, size, sizeof size),
                        c->worse ? "worse" : "better");
            fprintf(f, "</td><td>%.3f</td>", c->at.p);
            put_cell(f, line->v[at].utc);
            fputs("</tr>\n", f);
        }
    fputs("</table></div>\n", f);
}

static void write_page(FILE *f, const void *arg)
{
    const struct history_report *r = arg;

    struct plot *p;

    html_begin(f, "Where the history has changed");
    fputs("<p>", f);
    history_report_counts(f, r);
    fputs("</p>\n", f);
    if (r->n_changes)
        put_changes(f, r);
    for (size_t part = 0; history_report_plot(&p, r, part); part++)
        html_put_plot(f, p);
    html_end(f, "bench history changes");
}

enum status history_report_page(const struct history_report *r, const char *path,
                                struct err *err)
{
    return textfile_write(path, write_page, r, err);
}
