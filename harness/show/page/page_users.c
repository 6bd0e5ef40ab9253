/* SPDX-License-Identifier: MIT
 *
 * page_users.c - what servers carry: the answer, throughput against latency, each level
 */
#include <math.h>

#include "harness/show/page/html.h"
#include "harness/show/page/page_machine.h"
#include "harness/judge/users/users.h"

/* ---- the table ------------------------------------------------------------------- */

static void put_figure(FILE *f, struct users_figure v)
{
    fputs("<td class=\"n\">", f);
    if (isfinite(v.v))
        fputs(report_figure(v.v).text, f);
    else
        fputs("\xe2\x80\x93", f);
    if (isfinite(v.lo) && isfinite(v.hi)) {
        fputs("<small>", f);
        html_printf(f, "%.*f to %.*f", report_decimals(v.v), v.lo, report_decimals(v.v),
                    v.hi);
        fputs("</small>", f);
    }
    fputs("</td>", f);
}

static bool has_roofs(const struct users *u)
{
    for (size_t i = 0; i < u->n; i++)
        for (size_t k = 0; k < u->v[i].n; k++)
            if (isfinite(u->v[i].level[k].roof_gbps.v))
                return true;
    return false;
}

static const char *doubt_of(const struct users_level *t)
{
    if (t->is_doubtful && row_trust(t->row) == ROW_PARTIAL)
        return "partial: few requests";
    if (t->is_doubtful && row_trust(t->row) == ROW_FAILED)
        return "all requests failed";
    if (t->is_doubtful)
        return t->row->validity;
    return t->doubts_little ? "Little's law does not hold" : "none";
}

static void put_line(FILE *f, const struct users_series *s, const struct users_level *t,
                     bool with_roof)
{
    const struct users_figure each = {t->tok_per_s.v / t->n_users,
                                      t->tok_per_s.lo / t->n_users,
                                      t->tok_per_s.hi / t->n_users};

    html_put_in(f, "<tr><td class=\"name\">", s->name, "</td>");
    fprintf(f, "<td class=\"n\">%d</td>", t->n_users);
    put_figure(f, t->tok_per_s);
    fprintf(f, "<td class=\"%s\">",
            t->verdict == SLO_MISSES      ? "bad"
            : t->verdict == SLO_UNDECIDED ? "warn"
                                          : "");
    fputs(t->verdict == SLO_MEETS    ? "meets"
          : t->verdict == SLO_MISSES ? "misses"
                                     : "undecided",
          f);
    fputs("</td>", f);
    put_figure(f, each);
    put_figure(f, t->ttft_p90_s);
    put_figure(f, t->tpot_p90_ms);
    if (with_roof)
        put_figure(f, t->roof_gbps);
    html_put_in(f, "<td class=\"doubt\">", doubt_of(t), "</td></tr>\n");
}

static void put_table(FILE *f, const struct users *u)
{
    const bool with_roof = has_roofs(u);

    fputs("<div class=\"scroll\"><table><thead><tr><th class=\"name\">server</th>"
          "<th class=\"n\">users</th><th class=\"n\">tok/s</th><th>limits</th>"
          "<th class=\"n\">of each</th><th class=\"n\">p90 TTFT, s</th>"
          "<th class=\"n\">p90 ms per token</th>",
          f);
    if (with_roof)
        fputs("<th class=\"n\">memory, GB/s</th>", f);
    fputs("<th>doubt</th></tr></thead><tbody>\n", f);
    for (size_t i = 0; i < u->n; i++)
        for (size_t k = 0; k < u->v[i].n; k++)
            put_line(f, &u->v[i], &u->v[i].level[k], with_roof);
    fputs("</tbody></table></div>\n", f);
}

/* ---- all of it ------------------------------------------------------------------- */

enum status page_put_users(FILE *f, const struct page_machine *m, struct err *err)
{
    char text[1200];
    struct users u;
    enum status st = users_find(&u, m->rows, m->n_rows, err);

    if (st == ST_OK && u.n) {
        users_answer(&u, text, sizeof text);
        fputs("<div class=\"card users\">\n<p class=\"label\">Users</p>\n"
              "<p class=\"choice\">",
              f);
        html_put(f, text);
        fputs("</p>\n<p class=\"sub\">", f);
        users_describe(&u, text, sizeof text);
        html_put(f, text);
        fputs("</p>\n", f);
        put_table(f, &u);
        fputs("</div>\n", f);
        if (users_has_latencies(&u)) {
            fputs("<div class=\"grid\">\n", f);
            for (int part = 0; part < 2 && st == ST_OK; part++)
                st = page_put_plot(f, users_latency_plot(&u, part, ""), err);
            fputs("</div>\n", f);
        }
    }
    users_free(&u);
    return st;
}
