/* SPDX-License-Identifier: MIT
 *
 * page_table.c - the table of points, with the launches of each
 *
 * A point's row has its combined figures. Below it, shown on demand, stand its command
 * and every column that a launch of it has; the script makes that table from data that
 * stands once in the page: {"used": columns, "points": [[launch, ...], ...]}.
 */
#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/show/page/html.h"
#include "harness/show/page/page_machine.h"

#define N_COLUMNS 9

/* ---- cells ----------------------------------------------------------------------- */

/* A cell that is sorted by v; NAN: it comes last. */
static void put_number(FILE *f, double v, const char *text, const char *small)
{
    fputs("<td class=\"n\" data-v=\"", f);
    if (isfinite(v))
        fprintf(f, "%.9g", v);
    fputs("\">", f);
    html_put(f, text);
    if (*small)
        html_put_in(f, "<small>", small, "</small>");
    fputs("</td>", f);
}

static void put_text(FILE *f, const char *style, const char *text)
{
    fprintf(f, "<td class=\"%s\">", style);
    html_put(f, text);
    fputs("</td>", f);
}

static void put_speed(FILE *f, const struct row *r)
{
    const int digits = report_decimals(r->tok_per_s);
    const bool known = row_trust(r) != ROW_FAILED;
    char interval[64] = "";

    if (known && r->tok_per_s_lo > 0 && r->tok_per_s_hi > 0)
        snprintf(interval, sizeof interval, "%.*f to %.*f", digits, r->tok_per_s_lo,
                 digits, r->tok_per_s_hi);
    put_number(f, known ? r->tok_per_s : NAN,
               known ? report_figure(r->tok_per_s).text : "", interval);
}

static void put_memory(FILE *f, const struct row *r)
{
    const int64_t bytes = row_needed_bytes(r);
    char text[32] = "";

    if (bytes > 0)
        format_bytes(text, sizeof text, (uint64_t)bytes);
    put_number(f, bytes > 0 ? (double)bytes : NAN, text, "");
}

/* What makes the figure doubtful, and how many launches it is of. */
static void put_doubt(FILE *f, const struct row *r, const struct launches *l)
{
    static const char *const styles[] = {[ROW_FAILED] = "bad",
                                         [ROW_PARTIAL] = "warn",
                                         [ROW_DISTURBED] = "warn",
                                         [ROW_GOOD] = "dim"};
    const enum row_trust trust = row_trust(r);
    const size_t n_used = l->n_used ? l->n_used : 1;

    fprintf(f, "<td class=\"doubt %s\">", styles[trust]);
    html_put(f, trust == ROW_GOOD ? "none" : row_doubt(r));
    fputs("<small>", f);
    if (l->n_left_out)
        html_printf(f, "%zu of %zu launches", n_used, n_used + l->n_left_out);
    else
        html_printf(f, "%zu launch%s", n_used, plural((long long)n_used, "es"));
    fputs("</small></td>", f);
}

/* ---- rows ------------------------------------------------------------------------ */

static bool is_chosen(const struct page_machine *m, const struct row *r)
{
    for (size_t i = 0; i < m->answers.n; i++)
        if (!m->answers.v[i].none.code &&
            !strcmp(m->answers.v[i].rec.best.point, r->point))
            return true;
    return false;
}

static void put_detail(FILE *f, const struct page_machine *m, size_t i)
{
    const struct row *r = m->picked.v[i];

    fprintf(f, "<tr class=\"detail\"><td colspan=\"%d\"><div class=\"inner\">",
            N_COLUMNS);
    if (*r->detail)
        html_put_in(f, "<p>", r->detail, "</p>");
    if (*r->command) {
        html_put_in(f, "<code class=\"command\">", r->command, "</code>");
    } else {
        fputs("<p class=\"dim\">No command measures it again.</p>", f);
    }
    fprintf(f,
            "<div class=\"columns scroll\" data-from=\"rows%d\" data-point=\"%zu\">"
            "</div></div></td></tr>\n",
            m->number, i);
}

static void put_point(FILE *f, const struct page_machine *m, size_t i)
{
    const struct row *r = m->picked.v[i];
    char text[REPORT_NAME_MAX];
    const double ttft = row_ttft_warm_s(r);

    fprintf(f,
            "<tr%s><td class=\"name\"><button type=\"button\" aria-expanded=\"false\">",
            is_chosen(m, r) ? " class=\"chosen\"" : "");
    html_put(f, report_setting_name(&m->picked, r, text, sizeof text));
    fputs("</button></td>", f);
    row_point_text(text, sizeof text, r);
    put_text(f, "point", text);
    put_speed(f, r);
    snprintf(text, sizeof text, "%lld", (long long)r->n_threads);
    put_number(f, r->n_threads > 0 ? (double)r->n_threads : NAN,
               r->n_threads > 0 ? text : "", "");
    put_doubt(f, r, &m->picked.launches[i]);
    text[0] = '\0';
    if (r->mbu > 0 && row_trust(r) != ROW_FAILED)
        snprintf(text, sizeof text, "%.0f %%", 100 * r->mbu);
    put_number(f, *text ? r->mbu : NAN, text, "");
    text[0] = '\0';
    if (ttft > 0 && row_trust(r) != ROW_FAILED)
        snprintf(text, sizeof text, "%s s", report_figure(ttft).text);
    put_number(f, *text ? ttft : NAN, text, "");
    put_memory(f, r);
    put_text(f, "", row_trust(r) == ROW_FAILED ? "" : row_limiter_text(r));
    fputs("</tr>\n", f);
    put_detail(f, m, i);
}

/* ---- data of the details --------------------------------------------------------- */

static bool is_used(const struct page_machine *m, const struct field *field)
{
    char cell[ROW_CELL_MAX];

    for (size_t i = 0; i < m->n_rows; i++)
        if (*row_cell(&m->rows[i], field, cell, sizeof cell))
            return true;
    return false;
}

static void put_data(FILE *f, const struct page_machine *m)
{
    const struct field *used[512];
    char cell[ROW_CELL_MAX];
    size_t n, n_used = 0, n_launches;
    const struct field *field = row_fields(&n);

    fprintf(f, "<script type=\"application/json\" id=\"rows%d\">{\"used\":[",
            m->number);
    for (size_t i = 0; i < n && n_used < sizeof used / sizeof *used; i++)
        if (is_used(m, &field[i])) {
            fprintf(f, "%s%zu", n_used ? "," : "", i);
            used[n_used++] = &field[i];
        }
    fputs("],\"points\":[", f);
    for (size_t i = 0; i < m->picked.n; i++) {
        const struct row **launch = page_launches(m, m->picked.v[i], &n_launches);

        fputs(i ? ",\n[" : "\n[", f);
        for (size_t k = 0; k < n_launches; k++) {
            fputs(k ? ",[" : "[", f);
            for (size_t c = 0; c < n_used; c++) {
                if (c)
                    fputc(',', f);
                html_put_json(f, row_cell(launch[k], used[c], cell, sizeof cell));
            }
            fputc(']', f);
        }
        fputc(']', f);
    }
    fputs("]}</script>\n", f);
}

void page_put_fields(FILE *f)
{
    const struct field *const first = row_fields(NULL);

    fputs("<script type=\"application/json\" id=\"fields\">[", f);
    for (const struct field *field = first; field->name; field++) {
        fputs(field == first ? "[" : ",\n[", f);
        html_put_json(f, field->name);
        fputc(',', f);
        html_put_json(f, field->unit);
        fputc(',', f);
        html_put_json(f, field->doc);
        fputc(',', f);
        html_put_json(f, field->group);
        fputc(']', f);
    }
    fputs("]</script>\n", f);
}

void page_put_table(FILE *f, const struct page_machine *m)
{
    static const struct {
        const char *name, *style, *hint;
    } heads[N_COLUMNS] = {
        {"setting", "name", "press it for the command and all columns"},
        {"point", "", "what was measured, at which depth or of which prompt"},
        {"tok/s", "n", "median over launches, with its 95 % interval"},
        {"threads", "n", ""},
        {"doubt", "", "what disturbed the measurement"},
        {"of roof", "n", "share of the bandwidth ceiling"},
        {"first token", "n", "the model loaded"},
        {"memory", "n", "what must stay resident"},
        {"limited by", "", ""}};

    fprintf(f,
            "<div class=\"card\">\n<div class=\"tools\"><h3>Every point</h3>"
            "<input type=\"search\" placeholder=\"only rows with\xe2\x80\xa6\" "
            "aria-label=\"only rows with these words\" data-table=\"table%d\"></div>\n"
            "<div class=\"scroll\"><table class=\"rows\" id=\"table%d\"><thead><tr>",
            m->number, m->number);
    for (int i = 0; i < N_COLUMNS; i++)
        fprintf(
            f, "<th class=\"%s\" title=\"%s\"><button type=\"button\">%s</button></th>",
            heads[i].style, heads[i].hint, heads[i].name);
    fputs("</tr></thead><tbody>\n", f);
    for (size_t i = 0; i < m->picked.n; i++)
        put_point(f, m, i);
    fputs("</tbody></table></div>\n</div>\n", f);
    put_data(f, m);
}
