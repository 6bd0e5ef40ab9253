/* SPDX-License-Identifier: MIT
 *
 * page_machine.c - what is known of a machine, for its parts of the page, and its
 * charts
 */
#include "harness/show/page/page_machine.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/jsonfile.h"
#include "harness/base/format.h"
#include "harness/chart/svg.h"
#include "harness/show/page/html.h"
#include "harness/show/page/page.h"
#include "harness/rows/point/point_row.h"
#include "harness/show/report/report.h"
#include "harness/base/order.h"

static int by_point(const void *x, const void *y)
{
    const struct row *a = *(const struct row *const *)x;
    const struct row *b = *(const struct row *const *)y;

    ORDER_BY(strcmp(a->point, b->point));
    ORDER_BY(order_ints(a->attempt, b->attempt));
    return (a > b) - (a < b);
}

static enum status sort_rows(struct page_machine *m, struct err *err)
{
    m->by_point = malloc((m->n_rows + 1) * sizeof *m->by_point);
    if (!m->by_point)
        return err_set(err, ST_NO_MEMORY, "no memory to sort %zu rows", m->n_rows);
    for (size_t i = 0; i < m->n_rows; i++)
        m->by_point[i] = &m->rows[i];
    qsort(m->by_point, m->n_rows, sizeof *m->by_point, by_point);
    return ST_OK;
}

const struct row **page_launches(const struct page_machine *m, const struct row *point,
                                 size_t *n)
{
    size_t low = 0, high = m->n_rows;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (strcmp(m->by_point[middle]->point, point->point) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (*n = 0;
         low + *n < m->n_rows && !strcmp(m->by_point[low + *n]->point, point->point);)
        ++*n;
    return m->by_point + low;
}

static void read_facts(struct page_machine *m)
{
    struct err ignored = ERR_INIT;
    struct jsonfile file;

    if (m->run->dir && !jsonfile_load(&file, m->run->dir, "machine.json",
                                      MACHINE_JSON_LIMIT, &ignored))
        m->facts = file.root;
}

static void name_machine(struct page_machine *m)
{
    snprintf(m->title, sizeof m->title, "%s", m->machine.cpu_model);
    if (*m->title && m->machine.n_cpus > 0)
        text_append(m->title, sizeof m->title, ", %d CPU%s", m->machine.n_cpus,
                    plural(m->machine.n_cpus, "s"));
    if (!*m->title)
        snprintf(m->title, sizeof m->title, "%s", m->name);
}

void page_name_machines(struct page_machine *v, size_t n)
{
    bool is_again[PAGE_MAX_MACHINES] = {false};

    for (size_t i = 0; i < n; i++)
        name_machine(&v[i]);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            is_again[i] |= i != k && !strcmp(v[i].title, v[k].title);
    for (size_t i = 0; i < n; i++)
        if (is_again[i] && strcmp(v[i].title, v[i].name) != 0)
            text_append(v[i].title, sizeof v[i].title, " (%s)", v[i].name);
}

enum status page_machine_make(struct page_machine *m, const struct result_part *part,
                              const struct recommend_params *wishes, struct err *err)
{
    struct recommend_params params = *wishes;

    *m = (struct page_machine){.name = part->name,
                               .run = part->run,
                               .machine = part->run->about,
                               .rows = part->rows,
                               .n_rows = part->n};
    if (sort_rows(m, err) || samples_read(&m->samples, m->run->dir, err))
        return err->code;
    read_facts(m);
    if (!params.max_threads)
        params.max_threads = m->machine.max_threads;
    recommend_each(&m->answers, m->rows, m->n_rows, &params, &m->no_answer);
    if (m->no_answer.code == ST_NO_MEMORY)
        return err_set(err, ST_NO_MEMORY, "%s", m->no_answer.msg);
    for (size_t i = 0; i < m->n_rows;
         i++) /* after the answers, which explain refusals */
        point_row_remake_command(&m->rows[i]);
    return report_rows_pick(&m->picked, m->rows, m->n_rows, err);
}

void page_machine_free(struct page_machine *m)
{
    json_decref(m->facts);
    recommend_answers_free(&m->answers);
    report_rows_free(&m->picked);
    samples_free(&m->samples);
    free(m->by_point);
    memset(m, 0, sizeof *m);
}

/* ---- charts ---------------------------------------------------------------------- */

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
    for (size_t i = 0; i < p->n_notes; i++)
        html_put_in(f, "<p class=\"sub\">", p->note[i], "</p>");
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
