/* SPDX-License-Identifier: MIT
 *
 * page_overview.c - machines side by side
 *
 * The table has the points that occur, by model, quantisation, settings, where the
 * weights are, and depth, and
 * of each the fastest number of threads on each machine; memory limits may differ, as
 * machines do.
 */
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/show/page/html.h"
#include "harness/show/page/page_machine.h"
#include "harness/base/order.h"
#include "harness/judge/users/users.h"

#define MAX_POINTS 2000 /* of the table */

/* ---- what is recommended --------------------------------------------------------- */

/* *any: something was written. Error: ST_NO_MEMORY. */
static enum status put_carried(FILE *f, const struct page_machine *m, bool *any,
                               struct err *err)
{
    char text[1200];
    struct users u;
    const enum status st = users_find(&u, m->rows, m->n_rows, err);

    if (st == ST_OK && u.n) {
        *any = true;
        users_answer(&u, text, sizeof text);
        html_put_in(f, "<div class=\"decision\">\n<p class=\"choice\">", text,
                    "</p>\n</div>\n");
    }
    users_free(&u);
    return st;
}

static enum status put_card(FILE *f, const struct page_machine *m, struct err *err)
{
    bool any = false;
    enum status st;

    fprintf(f, "<div class=\"card\">\n<h3><a href=\"#m%d\">", m->number);
    html_put(f, m->title);
    fputs("</a></h3>\n<p class=\"sub\">", f);
    page_put_summary(f, m);
    fputs("</p>\n", f);
    for (size_t i = 0; i < m->answers.n; i++) {
        const struct recommend_answer *a = &m->answers.v[i];

        if (a->none.code)
            continue;
        any = true;
        html_put_in(f, "<div class=\"decision\">\n<p class=\"choice\">",
                    recommend_choice(&a->rec.best).text, "</p>\n");
        page_put_figures(f, &a->rec);
        fputs("</div>\n", f);
    }
    st = put_carried(f, m, &any, err);
    if (!any)
        fputs("<p class=\"dim\">No recommendation.</p>\n", f);
    fputs("</div>\n", f);
    return st;
}

/* ---- the same points ------------------------------------------------------------- */

static bool is_speed(const struct row *r)
{
    return r->kind == POINT_DECODE || r->kind == POINT_PREFILL;
}

/* A machine with measured users only has no points. */
static bool has_points(const struct page_machine *m)
{
    for (size_t i = 0; i < m->picked.n && i < MAX_POINTS; i++)
        if (is_speed(m->picked.v[i]))
            return true;
    return false;
}

/* A point of one machine under a name that is the same on all. */
struct entry {
    char name[2 * REPORT_NAME_MAX];
    int machine;
    const struct row *row;
};

static void name_point(char *buf, size_t cap, const struct row *r)
{
    buf[0] = '\0';
    text_append(buf, cap, "%s%s%s", report_model_name(r).text, *r->quant ? " " : "",
                r->quant);
    if (*row_residency_text(r)) /* what is streamed is no neighbour of what is mapped */
        text_append(buf, cap, " %s", row_residency_text(r));
    row_append_unusual(r, FIELD_NAMED, buf, cap);
    if (r->kind == POINT_PREFILL)
        text_append(buf, cap, ", prefill of %lld", (long long)r->n_prompt);
    else
        text_append(buf, cap, ", decode at %lld", (long long)(r->ctx > 0 ? r->ctx : 0));
}

/* The better row of one point on one machine comes first. */
static int by_name(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;

    ORDER_BY(strcmp(a->name, b->name));
    ORDER_BY(order_ints(a->machine, b->machine));
    ORDER_BY(
        order_ints(row_trust(a->row) == ROW_FAILED, row_trust(b->row) == ROW_FAILED));
    return (a->row->tok_per_s < b->row->tok_per_s) -
           (a->row->tok_per_s > b->row->tok_per_s);
}

static void put_cell(FILE *f, const struct row *r)
{
    const enum row_trust trust = r ? row_trust(r) : ROW_FAILED;

    fputs("<td class=\"n\" data-v=\"", f);
    if (trust != ROW_FAILED)
        fprintf(f, "%.9g", r->tok_per_s);
    fputs("\">", f);
    if (trust == ROW_FAILED) {
        html_put_in(f, "<span class=\"dim\">", r ? row_failure(r) : "\xe2\x80\x93",
                    "</span></td>");
        return;
    }
    fputs(report_figure(r->tok_per_s).text, f);
    fputs(trust == ROW_GOOD ? "<small>" : " <span class=\"warn\">?</span><small>", f);
    html_printf(f, "%lld thread%s", (long long)r->n_threads, plural(r->n_threads, "s"));
    if (r->mbu > 0)
        html_printf(f, ", %.0f %% of roof", 100 * r->mbu);
    fputs("</small></td>", f);
}

static void put_lines(FILE *f, const struct entry *v, size_t n,
                      const struct page_machine *machines, size_t n_machines)
{
    for (size_t begin = 0, end; begin < n; begin = end) {
        size_t at = begin;

        for (end = begin; end < n && !strcmp(v[end].name, v[begin].name);)
            end++;
        html_put_in(f, "<tr><td class=\"name\">", v[begin].name, "</td>");
        for (size_t k = 0; k < n_machines; k++) {
            while (at < end && v[at].machine < (int)k)
                at++;
            if (has_points(&machines[k]))
                put_cell(f, at < end && v[at].machine == (int)k ? v[at].row : NULL);
        }
        fputs("</tr>\n", f);
    }
}

static void put_head(FILE *f, const struct page_machine *v, size_t n)
{
    fputs(
        "<div class=\"card\">\n<h3>The same points on all machines</h3>\n"
        "<p class=\"sub\">Tokens per second with the fastest number of threads; ? is a "
        "disturbed or partial row.</p>\n<div class=\"scroll\"><table class=\"rows\">"
        "<thead><tr><th class=\"name\"><button type=\"button\">point</button></th>",
        f);
    for (size_t i = 0; i < n; i++) {
        if (!has_points(&v[i]))
            continue;
        html_put_in(f, "<th class=\"n\"><button type=\"button\">", v[i].title,
                    "</button></th>");
    }
    fputs("</tr></thead><tbody>\n", f);
}

static enum status put_table(FILE *f, const struct page_machine *v, size_t n,
                             struct err *err)
{
    struct entry *entries;
    size_t n_all = 0, n_entries = 0;

    for (size_t i = 0; i < n; i++)
        n_all += v[i].picked.n < MAX_POINTS ? v[i].picked.n : MAX_POINTS;
    entries = malloc((n_all + 1) * sizeof *entries);
    if (!entries)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu points", n_all);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < v[i].picked.n && k < MAX_POINTS; k++) {
            const struct row *r = v[i].picked.v[k];
            struct entry *e = &entries[n_entries];

            if (!is_speed(r))
                continue;
            e->machine = (int)i;
            e->row = r;
            name_point(e->name, sizeof e->name, r);
            n_entries++;
        }
    qsort(entries, n_entries, sizeof *entries, by_name);
    put_head(f, v, n);
    put_lines(f, entries, n_entries, v, n);
    fputs("</tbody></table></div>\n</div>\n", f);
    free(entries);
    return ST_OK;
}

enum status page_put_overview(FILE *f, const struct page_machine *v, size_t n,
                              struct err *err)
{
    enum status st = ST_OK;
    size_t n_with = 0;

    fputs("<section>\n<div class=\"grid cards\">\n", f);
    for (size_t i = 0; i < n && st == ST_OK; i++) {
        st = put_card(f, &v[i], err);
        n_with += has_points(&v[i]);
    }
    fputs("</div>\n</section>\n", f);
    if (st || n_with < 2)
        return st;
    fputs("<section>\n", f);
    st = put_table(f, v, n, err);
    fputs("</section>\n", f);
    return st;
}
