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
          "<th class=\"n\">of each</th><th class=\"n\">p90 TTFT (visible), s</th>"
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

/* ---- conversations, open loops --------------------------------------------------- */

/* "4" users, or "0.5/s". */
static void put_load(FILE *f, const struct users_series *s, const struct users_level *t)
{
    html_put_in(f, "<tr><td class=\"name\">", s->name, "</td>");
    if (t->n_users)
        fprintf(f, "<td class=\"n\">%d</td>", t->n_users);
    else
        fprintf(f, "<td class=\"n\">%.3g/s</td>", t->rate);
}

/* A median with its 90th percentile below. */
static void put_two(FILE *f, struct users_figure p50, struct users_figure p90)
{
    fprintf(f, "<td class=\"n\">%s",
            isfinite(p50.v) ? report_figure(p50.v).text : "\xe2\x80\x93");
    if (isfinite(p90.v))
        fprintf(f, "<small>p90 %s</small>", report_figure(p90.v).text);
    fputs("</td>", f);
}

static void put_share(FILE *f, struct users_figure v)
{
    if (isfinite(v.v))
        fprintf(f, "<td class=\"n\">%.0f %%</td>", v.v);
    else
        fputs("<td class=\"n\">\xe2\x80\x93</td>", f);
}

/* Whether a request continued another one, shared its beginning, or was thought about.
 */
static bool is_talk(const struct users_level *t)
{
    return *t->row->sessions || t->more[USERS_THOUGHTS].v >= 0.05 ||
           t->more[USERS_KNOWN].v > 0;
}

static void put_talk(FILE *f, const struct users_series *s, const struct users_level *t)
{
    const struct users_figure *v = t->more;

    put_load(f, s, t);
    put_two(f, v[USERS_TURN1_P50], v[USERS_TURN1_P90]);
    put_two(f, v[USERS_LATER_P50], v[USERS_LATER_P90]);
    put_share(f, v[USERS_HIT]);
    put_share(f, v[USERS_KNOWN]);
    put_two(f, v[USERS_FIRST_P50], v[USERS_FIRST_P90]);
    put_two(f, v[USERS_VISIBLE_P50], t->ttft_p90_s);
    put_figure(f, v[USERS_GOODPUT]);
    fputs("</tr>\n", f);
}

static void put_open(FILE *f, const struct users_series *s, const struct users_level *t)
{
    put_load(f, s, t);
    put_figure(f, (struct users_figure){t->more[USERS_ACHIEVED].v, NAN, NAN});
    put_two(f, t->more[USERS_VISIBLE_P50], t->ttft_p90_s);
    put_share(f, t->more[USERS_BACKLOG]);
    put_share(f, t->more[USERS_MET]);
    put_figure(f, t->more[USERS_GOODPUT]);
    html_put_in(f, "<td class=\"doubt\">", doubt_of(t), "</td></tr>\n");
}

#define HEAD(text) "<th class=\"n\">" text "</th>"

static const struct {
    const char *label, *about, *columns;
    void (*put)(FILE *f, const struct users_series *s, const struct users_level *t);
} cards[] = {
    {"Conversations",
     "Median times in seconds: to the first token in first and in later turns; in all "
     "of them to the first token, thoughts included, and to the first visible one. "
     "Cached: prompt tokens that the server reports as cached; there before: those "
     "that it has had before by our count.",
     HEAD("load") HEAD("first turns") HEAD("later turns") HEAD("cached")
         HEAD("there before") HEAD("first token") HEAD("first visible token")
             HEAD("goodput, 1/s"),
     put_talk},
    {"Open loops",
     "Requests (or sessions) at times of their own, from which latency counts; median "
     "TTFT to the first visible token, in seconds. Backlog: the share of the requests "
     "that the server does not keep up with.",
     HEAD("rate") HEAD("requests/s sent") HEAD("TTFT (visible)") HEAD("backlog")
         HEAD("met both limits") HEAD("goodput, 1/s") "<th>doubt</th>",
     put_open},
};

/* The first card, or the second, of the levels of all[n] that belong there. */
static void put_card(FILE *f, int card, const struct users *const *all, size_t n)
{
    bool any = false;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < all[i]->n; k++)
            for (size_t j = 0; j < all[i]->v[k].n; j++) {
                const struct users_level *t = &all[i]->v[k].level[j];

                if (!card && !is_talk(t))
                    continue;
                if (!any)
                    fprintf(f,
                            "<div class=\"card users\">\n<p class=\"label\">%s</p>\n"
                            "<p class=\"sub\">%s</p>\n<div class=\"scroll\"><table>"
                            "<thead><tr><th class=\"name\">server</th>%s</tr>"
                            "</thead><tbody>\n",
                            cards[card].label, cards[card].about, cards[card].columns);
                any = true;
                cards[card].put(f, &all[i]->v[k], t);
            }
    if (any)
        fputs("</tbody></table></div>\n</div>\n", f);
}

static enum status put_plots(FILE *f, const struct users *u, enum users_chart chart,
                             struct err *err)
{
    enum status st = ST_OK;

    if (!users_has_plot(u, chart))
        return ST_OK;
    fputs("<div class=\"grid\">\n", f);
    for (int part = 0; part < 2 && st == ST_OK; part++)
        st = page_put_plot(f, users_plot(u, chart, part, ""), err);
    fputs("</div>\n", f);
    return st;
}

/* ---- all of it ------------------------------------------------------------------- */

static void put_closed(FILE *f, const struct users *u)
{
    char text[1200];

    users_answer(u, text, sizeof text);
    fputs("<div class=\"card users\">\n<p class=\"label\">Users</p>\n"
          "<p class=\"choice\">",
          f);
    html_put(f, text);
    fputs("</p>\n<p class=\"sub\">", f);
    users_describe(u, text, sizeof text);
    html_put(f, text);
    fputs("</p>\n", f);
    put_table(f, u);
    fputs("</div>\n", f);
}

enum status page_put_users(FILE *f, const struct page_machine *m, struct err *err)
{
    struct users u, open = {0};
    const struct users *const all[] = {&u, &open};
    enum status st = users_find(&u, m->rows, m->n_rows, err);

    if (st == ST_OK)
        st = users_find_open(&open, m->rows, m->n_rows, err);
    if (st == ST_OK && u.n) {
        put_closed(f, &u);
        st = put_plots(f, &u, USERS_LATENCY, err);
    }
    if (st == ST_OK) {
        put_card(f, 0, all, 2);
        st = put_plots(f, &u, USERS_TURNS, err);
    }
    if (st == ST_OK) {
        put_card(f, 1, &all[1], 1);
        st = put_plots(f, &open, USERS_OPEN, err);
    }
    users_free(&u);
    users_free(&open);
    return st;
}
