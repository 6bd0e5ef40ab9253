/* SPDX-License-Identifier: MIT
 *
 * page_users.c - what servers carry: the answer, throughput against latency, each level
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/show/page/html.h"
#include "harness/show/page/page_machine.h"
#include "harness/show/page/svg.h"
#include "harness/judge/users/users.h"
#include "harness/judge/users/users_labels.h"

#define PICTURE_HEIGHT  170.0
#define TOP             24.0
#define FOOT            46.0
#define NAME_CHARACTERS 44
#define EM              11.0 /* of a number at a mark */
#define LIMIT_EM        13.0 /* of a limit's name */
#define BASELINE        4.0  /* below the middle of a text */
#define LOG_RATIO       12.0 /* beyond it an axis is logarithmic */

/* ---- a picture ---------------------------------------------------------------------
 *
 * part: 0 is the time to the first token, 1 that of the others.
 */

static struct users_figure latency_of(const struct users_level *s, int part)
{
    return part ? s->tpot_p90_ms : s->ttft_p90_s;
}

static double limit_of(const struct users_series *s, int part)
{
    const double v = part ? s->slo.tpot_ms : s->slo.ttft_s;

    return v > 0 ? v : NAN;
}

static bool has_latencies(const struct users *u)
{
    for (size_t i = 0; i < u->n; i++)
        for (size_t k = 0; k < u->v[i].n; k++)
            if (isfinite(u->v[i].level[k].ttft_p90_s.v))
                return true;
    return false;
}

static struct svg_range y_range(const struct users *u, int part)
{
    double least = NAN, most = NAN;

    for (size_t i = 0; i < u->n; i++) {
        least = fmin(least, limit_of(&u->v[i], part)); /* passes over a NaN */
        most = fmax(most, limit_of(&u->v[i], part));
        for (size_t k = 0; k < u->v[i].n; k++) {
            const struct users_figure y = latency_of(&u->v[i].level[k], part);

            least = fmin(least, y.lo > 0 ? fmin(y.v, y.lo) : y.v);
            most = fmax(most, fmax(y.v, y.hi));
        }
    }
    if (!(most > 0))
        return (struct svg_range){0, 1, false};
    if (least > 0 && most / least > LOG_RATIO)
        return (struct svg_range){least / 1.3, 1.3 * most, true};
    return (struct svg_range){0, 1.25 * most, false};
}

/* Of those that are drawn. */
static double most_tok_per_s(const struct users *u, int part)
{
    double most = 1e-9;

    for (size_t i = 0; i < u->n; i++)
        for (size_t k = 0; k < u->v[i].n; k++)
            if (isfinite(latency_of(&u->v[i].level[k], part).v))
                most = fmax(most, u->v[i].level[k].tok_per_s.v);
    return most;
}

static bool is_drawn(const struct users_series *s, int part)
{
    for (size_t k = 0; k < s->n; k++)
        if (isfinite(latency_of(&s->level[k], part).v))
            return true;
    return false;
}

static void put_level(FILE *f, const struct svg_area *a, const struct users_level *s,
                      int series, int part, const struct users_label *label)
{
    const struct users_figure y = latency_of(s, part);
    const double x = svg_x(a, s->tok_per_s.v), at = svg_y(a, y.v);
    char text[16];

    fputs("<g><title>", f);
    html_printf(f, "%d user%s: %.3g tok/s, p90 %.3g %s", s->n_users,
                plural(s->n_users, "s"), s->tok_per_s.v, y.v, part ? "ms" : "s");
    fputs("</title>", f);
    if (isfinite(y.lo) && isfinite(y.hi))
        fprintf(f, "<path class=\"whisker\" d=\"M%.1f %.1fV%.1f\"/>", x,
                svg_y(a, fmax(y.lo, a->y.min)), svg_y(a, y.hi));
    svg_mark(f, x, at, series, s->is_doubtful ? MARK_HOLLOW : MARK_SOLID);
    fputs("</g>\n", f);
    snprintf(text, sizeof text, "%d", s->n_users);
    svg_text(f, a->left + label->label_x, a->top + label->label_y + BASELINE, "middle",
             "note", text);
}

/* label: those of the levels that have a latency. Returns how many these are. */
static size_t put_series(FILE *f, const struct svg_area *a,
                         const struct users_series *s, int series, int part,
                         const struct users_label *label)
{
    const char *move = "<path class=\"line\" d=\"M";
    size_t n = 0;
    bool any = false;

    fprintf(f, "<g class=\"s%d\">\n", series % SVG_COLORS);
    for (size_t k = 0; k < s->n; k++) {
        const double y = latency_of(&s->level[k], part).v;

        if (!isfinite(y))
            continue;
        fprintf(f, "%s%.1f %.1f", move, svg_x(a, s->level[k].tok_per_s.v), svg_y(a, y));
        move = "L";
        any = true;
    }
    if (any)
        fputs("\"/>\n", f);
    for (size_t k = 0; k < s->n; k++)
        if (isfinite(latency_of(&s->level[k], part).v))
            put_level(f, a, &s->level[k], series, part, &label[n++]);
    fputs("</g>\n", f);
    return n;
}

/* The numbers of all levels that have a latency, in the picture's units from the corner
 * of the area; v is [USERS_MAX_LABELS]. Returns how many these are. */
static size_t place_labels(struct users_label *v, const struct svg_area *a,
                           const struct users *u, int part)
{
    size_t n = 0;

    for (size_t i = 0; i < u->n; i++)
        for (size_t k = 0; k < u->v[i].n; k++) {
            const struct users_level *s = &u->v[i].level[k];
            const struct users_figure y = latency_of(s, part);

            if (!isfinite(y.v))
                continue;
            v[n] = (struct users_label){.x = svg_x(a, s->tok_per_s.v) - a->left,
                                        .y = svg_y(a, y.v) - a->top,
                                        .series = (int)i,
                                        .n_characters = s->n_users < 10    ? 1
                                                        : s->n_users < 100 ? 2
                                                                           : 3};
            v[n].lo = y.lo > 0 ? svg_y(a, fmax(y.lo, a->y.min)) - a->top : v[n].y;
            v[n].hi = y.hi > 0 ? svg_y(a, y.hi) - a->top : v[n].y;
            n++;
        }
    users_place_labels(v, n, a->width, a->height, EM);
    return n;
}

/* Each limit once. */
static void put_limits(FILE *f, const struct svg_area *a, const struct users *u,
                       int part, const struct users_label *label, size_t n_labels)
{
    for (size_t i = 0; i < u->n; i++) {
        const double limit = limit_of(&u->v[i], part);
        bool is_new = isfinite(limit);
        char text[48];

        for (size_t k = 0; k < i; k++)
            is_new &= limit_of(&u->v[k], part) != limit;
        if (!is_new)
            continue;
        svg_line(f, a->left, svg_y(a, limit), a->left + a->width, svg_y(a, limit),
                 "limit dashed");
        snprintf(text, sizeof text, "limit %g %s", limit, part ? "ms" : "s");
        svg_text(f,
                 a->left + users_place_above(label, n_labels, a->width,
                                             svg_y(a, limit) - a->top, -1,
                                             (int)strlen(text), LIMIT_EM),
                 svg_y(a, limit) - 5, "start", "tick", text);
    }
}

/* label: room for [USERS_MAX_LABELS]. */
static void put_picture(FILE *f, const struct users *u, int part,
                        struct users_label *label)
{
    struct svg_area a = {.top = TOP,
                         .height = PICTURE_HEIGHT,
                         .x = {0, 1.1 * most_tok_per_s(u, part), false},
                         .y = y_range(u, part)};
    char name[REPORT_NAME_MAX];
    size_t n_labels;

    fprintf(f,
            "<figure class=\"card\">\n<figcaption><h3>Throughput against %s</h3>"
            "<p class=\"sub\">Numbers are users; a server can serve those who are "
            "below both limits.</p></figcaption>\n<ul class=\"legend\">\n",
            part ? "the time of a token" : "the time to the first token");
    for (size_t i = 0; i < u->n; i++)
        if (is_drawn(&u->v[i], part))
            svg_key(f, (int)i, "line", MARK_SOLID,
                    text_shorten(name, sizeof name, u->v[i].name, NAME_CHARACTERS));
    fputs("</ul>\n", f);
    svg_begin(f, SVG_WIDTH, TOP + PICTURE_HEIGHT + FOOT, "Throughput against latency");
    a.left = svg_y_labels_width(&a.y, 4);
    a.width = SVG_WIDTH - a.left - 14;
    svg_text(f, a.left, a.top - 9, "start", "name",
             part ? "p90 ms per token" : "p90 seconds to the first token");
    svg_y_axis(f, &a, 4);
    n_labels = place_labels(label, &a, u, part);
    put_limits(f, &a, u, part, label, n_labels);
    for (size_t i = 0, n = 0; i < u->n; i++)
        n += put_series(f, &a, &u->v[i], (int)i, part, label + n);
    svg_x_axis(f, &a, 5);
    svg_x_title(f, &a, "tokens per second, of all users");
    svg_end(f);
    fputs("</figure>\n", f);
}

/* ---- the table ---------------------------------------------------------------------
 */

static void put_figure(FILE *f, struct users_figure v)
{
    fputs("<td class=\"n\">", f);
    if (isfinite(v.v))
        html_printf(f, "%.*f", report_decimals(v.v), v.v);
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

    fputs("<tr><td>", f);
    html_put(f, s->name);
    fputs("</td>", f);
    fprintf(f, "<td class=\"n\">%d</td>", t->n_users);
    fprintf(f, "<td class=\"%s\">",
            t->verdict == SLO_MISSES      ? "bad"
            : t->verdict == SLO_UNDECIDED ? "warn"
                                          : "");
    fputs(t->verdict == SLO_MEETS    ? "meets"
          : t->verdict == SLO_MISSES ? "misses"
                                     : "undecided",
          f);
    fputs("</td>", f);
    put_figure(f, t->tok_per_s);
    put_figure(f, each);
    put_figure(f, t->ttft_p90_s);
    put_figure(f, t->tpot_p90_ms);
    if (with_roof)
        put_figure(f, t->roof_gbps);
    fputs("<td class=\"doubt\">", f);
    html_put(f, doubt_of(t));
    fputs("</td></tr>\n", f);
}

static void put_table(FILE *f, const struct users *u)
{
    const bool with_roof = has_roofs(u);

    fputs("<div class=\"scroll\"><table><thead><tr><th>server</th>"
          "<th class=\"n\">users</th><th>limits</th><th class=\"n\">tok/s</th>"
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

/* ---- all of it ----------------------------------------------------------------------
 */

enum status page_put_users(FILE *f, const struct page_machine *m, struct err *err)
{
    char text[1200];
    struct users_label *label = calloc(USERS_MAX_LABELS, sizeof *label);
    struct users u;
    enum status st = users_find(&u, m->rows, m->n_rows, err);

    if (st == ST_OK && !label)
        st = err_set(err, ST_NO_MEMORY, "no memory for labels");
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
        if (has_latencies(&u)) {
            fputs("<div class=\"grid\">\n", f);
            for (int part = 0; part < 2; part++)
                put_picture(f, &u, part, label);
            fputs("</div>\n", f);
        }
    }
    users_free(&u);
    free(label);
    return st;
}
