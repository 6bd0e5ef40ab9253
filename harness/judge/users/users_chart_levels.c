/* SPDX-License-Identifier: MIT
 *
 * users_chart_levels.c - two figures of each level: latencies by throughput, the
 * ladder, turns of conversations, open loops
 */
#include <math.h>

#include "harness/base/format.h"
#include "harness/judge/users/users_charts_internal.h"

#define HEIGHT 285.0 /* of each of two panels; one alone is higher */

/* ---- two figures of each level --------------------------------------------------- */

struct about {
    const char *name, *titles[3]; /* of both parts, of the first, of the second */
    const char *x_title, *y_title[2], *note; /* note: for a part alone; NULL: none */
};

static const struct about charts[USERS_N_CHARTS] = {
    [USERS_LATENCY] = {"users_latency",
                       {"Throughput against latency; numbers are users",
                        "Throughput against the time to the first visible token",
                        "Throughput against the time of a token"},
                       "tokens per second, of all users together",
                       {"p90 TTFT (visible), s", "p90 ms per token"},
                       "Numbers are users; a server can serve those who are below both "
                       "limits."},
    [USERS_LADDER] = {"users_ladder",
                      {"Throughput by number of users", "", ""},
                      "users",
                      {"tok/s of all users", "tok/s of each"},
                      NULL},
    [USERS_TURNS] = {"users_turns",
                     {"Time to the first token by turn of a conversation",
                      "Time to the first token of first turns",
                      "Time to the first token of later turns"},
                     "users",
                     {"median TTFT of first turns, s", "median of later turns, s"},
                     NULL},
    [USERS_OPEN] = {"users_open",
                    {"Open loop: time to the first visible token, and goodput",
                     "Open loop: time to the first visible token",
                     "Open loop: requests that met both limits"},
                    "requests (or sessions) per second that were due",
                    {"p90 TTFT (visible), s", "goodput, requests per second"},
                    NULL},
};

struct two {
    const struct users *u;
    enum users_chart chart;
};

static const struct about *about_of(const struct two *t)
{
    return &charts[t->chart];
}

const char *users_chart_name(enum users_chart chart)
{
    return charts[chart].name;
}

static double x_of(const struct two *t, const struct users_level *s)
{
    return t->chart == USERS_LATENCY ? s->tok_per_s.v
           : t->chart == USERS_OPEN  ? s->rate
                                     : s->n_users;
}

/* NAN: none. */
static struct users_figure y_of(const struct two *t, int part,
                                const struct users_level *s)
{
    const struct users_figure *all = &s->tok_per_s;

    if (t->chart == USERS_LATENCY)
        return part ? s->tpot_p90_ms : s->ttft_p90_s;
    if (t->chart == USERS_TURNS)
        return s->more[part ? USERS_LATER_P50 : USERS_TURN1_P50];
    if (t->chart == USERS_OPEN)
        return part ? s->more[USERS_GOODPUT] : s->ttft_p90_s;
    return !part ? *all
                 : (struct users_figure){all->v / s->n_users, all->lo / s->n_users,
                                         all->hi / s->n_users};
}

/* A part with the SLO's limit, whose axis may be logarithmic. */
static bool has_limit(const struct two *t, int part)
{
    return t->chart == USERS_LATENCY || (t->chart == USERS_OPEN && !part);
}

static bool has_figures(const struct two *t, int part)
{
    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++)
            if (isfinite(y_of(t, part, &t->u->v[i].level[k]).v))
                return true;
    return false;
}

bool users_has_plot(const struct users *u, enum users_chart chart)
{
    const struct two t = {u, chart};

    /* answers of one token have no time per token */
    return has_figures(&t, 0) && (chart == USERS_LATENCY || has_figures(&t, 1));
}

/* ---- the table ------------------------------------------------------------------- */

static void put_figure(struct plot *p, struct users_figure y)
{
    PLOT_NUMBERS(p, y.v, isfinite(y.lo) ? y.lo : y.v, isfinite(y.hi) ? y.hi : y.v);
}

static void put_level(struct plot *p, const struct two *t, size_t series,
                      const struct users_level *s)
{
    const char *load =
        s->n_users ? plot_printf(p, "%d user%s", s->n_users, plural(s->n_users, "s"))
                   : plot_printf(p, "%.3g a second", s->rate);

    plot_number(p, (double)series);
    plot_string(p, plot_printf(p, "%d", s->n_users));
    plot_number(p, x_of(t, s));
    put_figure(p, y_of(t, 0, s));
    put_figure(p, y_of(t, 1, s));
    PLOT_NUMBERS(p, s->is_doubtful, s->doubts_little);
    for (int i = 0; i < 4; i++)
        plot_number(p, NAN); /* places of labels */
    plot_string(p, t->u->v[series].name);
    plot_string(p, plot_printf(p,
                               "%s, %s: %.3g tok/s, p90 TTFT %.3g s, %.3g ms per "
                               "token",
                               t->u->v[series].name, load, s->tok_per_s.v,
                               s->ttft_p90_s.v, s->tpot_p90_ms.v));
}

static void put_levels(struct plot *p, const struct two *t)
{
    plot_columns(p, "series,n_users,x,upper,upper_lo,upper_hi,lower,lower_lo,lower_hi,"
                    "state,little,upper_label_x,upper_label_y,lower_label_x,"
                    "lower_label_y,server,.hint");
    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++)
            put_level(p, t, i, &t->u->v[i].level[k]);
}

/* ---- axes ------------------------------------------------------------------------ */

static struct users_range y_range(const struct two *t, int part)
{
    struct users_range r = {NAN, NAN, false};

    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++) {
            const struct users_figure y = y_of(t, part, &t->u->v[i].level[k]);

            users_range_widen(&r, y.v);
            if (y.lo > 0 || !has_limit(t, part)) /* of a logarithmic axis */
                users_range_widen(&r, y.lo);
            users_range_widen(&r, y.hi);
        }
    for (size_t i = 0; has_limit(t, part) && i < t->u->n; i++)
        users_range_widen(&r, users_limit_of(&t->u->v[i].slo, part));
    return users_range_with_room(r, !has_limit(t, part));
}

static struct users_range x_range(const struct two *t)
{
    struct users_range x = {NAN, NAN, false};

    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++)
            users_range_widen(&x, x_of(t, &t->u->v[i].level[k]));
    if (has_limit(t, 0))
        return users_range_with_room(x, true);
    x.log = x.max / x.min > 8;
    x.min = x.log ? x.min / 1.15 : x.min - 0.5;
    x.max = x.log ? x.max * 1.15 : x.max + 0.5;
    return x;
}

/* Each number of users as a tick. */
static void put_user_ticks(struct plot *p, struct plot_axis *x, const struct users *u)
{
    for (int n = 1; n <= 1024; n++) {
        bool is_there = false;

        for (size_t i = 0; i < u->n; i++)
            for (size_t k = 0; k < u->v[i].n; k++)
                is_there |= u->v[i].level[k].n_users == n;
        if (is_there)
            plot_tick(p, x, n, NULL);
    }
}

/* Limits of a part that differ, each once. */
static void put_limits(struct plot *p, const struct two *t, int part, int panel)
{
    for (size_t i = 0; has_limit(t, part) && i < t->u->n; i++) {
        const double limit = users_limit_of(&t->u->v[i].slo, part);
        bool is_new = isfinite(limit);

        for (size_t k = 0; k < i; k++)
            is_new &= users_limit_of(&t->u->v[k].slo, part) != limit;
        if (!is_new)
            continue;
        plot_across(p, panel, false, limit, false,
                    plot_stroke(PLOT_BAD, 1.6, PLOT_DASHED));
        plot_guide(p, (struct plot_guide){.panel = panel,
                                          .form = PLOT_TEXT,
                                          .y = {limit, false},
                                          .dy = -10,
                                          .anchor = PLOT_LEFT,
                                          .is_free = true,
                                          .style = {.color = PLOT_BAD},
                                          .text = plot_printf(p, "limit %g %s", limit,
                                                              part ? "ms" : "s")});
    }
}

/* ---- panels ---------------------------------------------------------------------- */

static void put_layers(struct plot *p, const struct two *t, int part, int panel)
{
    const char *y = part ? "lower" : "upper";
    const char *lo = plot_printf(p, "%s_lo", y), *hi = plot_printf(p, "%s_hi", y);
    struct plot_layer l = {.panel = panel,
                           .form = PLOT_LINE,
                           .x = {"x", 0},
                           .x2 = {"x", 0},
                           .y = {y, 0},
                           .by = "series",
                           .n_by = (int)t->u->n,
                           .style = plot_stroke(PLOT_OWN, 2, PLOT_WHOLE)};

    plot_layer(p, l);
    l.form = PLOT_INTERVAL;
    l.y.column = lo;
    l.y2.column = hi;
    l.style.width = 1.2;
    plot_layer(p, l);
    l.form = PLOT_MARKS;
    l.y.column = y;
    l.text = ".hint";
    for (int state = 0; state < 2; state++) {
        l.only[0] = (struct plot_only){"state", state, state};
        l.style =
            plot_marked(PLOT_OWN, state ? PLOT_HOLLOW : PLOT_SHAPE, state ? 1.5 : 1.3);
        plot_layer(p, l);
    }
    l.text = NULL;
    l.by = NULL;
    l.only[0] = (struct plot_only){"little", 1, 1};
    l.style = plot_marked(PLOT_INK, PLOT_RING, 2.8);
    plot_layer(p, l);
    l = (struct plot_layer){.panel = panel,
                            .form = PLOT_TEXT,
                            .x = {plot_printf(p, "%s_label_x", y), 0},
                            .y = {plot_printf(p, "%s_label_y", y), 0},
                            .mark_x = "x",
                            .mark_y = y,
                            .by = "series",
                            .n_by = (int)t->u->n,
                            .style = {.color = PLOT_OWN},
                            .text = "n_users"};
    if (t->chart == USERS_LATENCY)
        plot_layer(p, l);
}

static void put_panel(struct plot *p, const struct two *t, int part, bool is_alone)
{
    const bool is_last = is_alone || part == 1;
    const struct users_range x = x_range(t), y = y_range(t, part);
    const int panel = p->n_panels;
    struct plot_panel *a =
        plot_panel(p, is_alone ? 1.5 * HEIGHT : HEIGHT, x.min, x.max, y.min, y.max);

    a->x.is_log = x.log;
    a->y.is_log = y.log;
    a->y.title = about_of(t)->y_title[part];
    a->x.no_grid = true;
    a->x.no_figures = !is_last;
    if (is_last)
        a->x.title = about_of(t)->x_title;
    if (!has_limit(t, 0))
        put_user_ticks(p, &a->x, t->u);
    put_limits(p, t, part, panel);
    put_layers(p, t, part, panel);
}

static void put_keys(struct plot *p, const struct users *u)
{
    bool any_hollow = false, any_little = false;

    for (size_t i = 0; i < u->n; i++) {
        plot_key(p, plot_keep(p, u->v[i].name, USERS_NAME_CHARACTERS),
                 (struct plot_style){(int)i, 2, PLOT_WHOLE, PLOT_SHAPE, 1.3, 0});
        for (size_t k = 0; k < u->v[i].n; k++) {
            any_hollow |= u->v[i].level[k].is_doubtful;
            any_little |= u->v[i].level[k].doubts_little;
        }
    }
    if (any_hollow)
        plot_key(p, "partial or disturbed", plot_marked(PLOT_GREY, PLOT_HOLLOW, 1.5));
    if (any_little)
        plot_key(p, "Little's law does not hold",
                 plot_marked(PLOT_INK, PLOT_RING, 2.8));
}

struct plot *users_plot(const struct users *u, enum users_chart chart, int part,
                        const char *subtitle)
{
    const struct two t = {u, chart};
    const struct about *about = about_of(&t);
    struct plot *p = plot_new(about->name, about->titles[part + 1], subtitle);

    if (!p)
        return NULL;
    put_levels(p, &t);
    if (part != 1)
        put_panel(p, &t, 0, part == 0);
    if (part != 0)
        put_panel(p, &t, 1, part == 1);
    put_keys(p, u);
    if (part >= 0 && about->note)
        plot_note(p, about->note);
    return p;
}

/* ---- files ----------------------------------------------------------------------- */

/* Adds to the line below the title whose levels have no p90, and so no mark:
 * "p90 not known: a with 1, 2 users; b with 1 user". */
static void add_unknown(char *buf, size_t cap, const struct users *u)
{
    const char *before = USERS_DOT "p90 not known:";

    for (size_t i = 0; i < u->n; i++) {
        const struct users_series *s = &u->v[i];
        char name[REPORT_NAME_MAX];
        int last = 0;

        for (size_t k = 0; k < s->n; k++) {
            if (isfinite(s->level[k].ttft_p90_s.v))
                continue;
            if (last)
                text_append(buf, cap, ", %d", s->level[k].n_users);
            else
                text_append(
                    buf, cap, "%s %s with %d", before,
                    text_shorten(name, sizeof name, s->name, USERS_NAME_CHARACTERS),
                    s->level[k].n_users);
            last = s->level[k].n_users;
        }
        if (!last)
            continue;
        text_append(buf, cap, " user%s", plural(last, "s"));
        before = ";";
    }
}

enum status users_draw(struct plot *p, const struct chart_place *to, bool *any,
                       struct err *err)
{
    if (p && *to->origin)
        plot_note(p, to->origin);
    const enum status st = chart_files_draw(p, to->dir, to->again, err);

    *any |= st == ST_OK;
    return st;
}

enum status users_draw_levels(const struct users *u, enum users_chart chart,
                              const struct chart_place *to, bool *any, struct err *err)
{
    char text[500];

    if (!users_has_plot(u, chart)) {
        chart_files_remove(to->dir, charts[chart].name);
        return ST_OK;
    }
    snprintf(text, sizeof text, "%s", to->subtitle);
    if (chart == USERS_LATENCY)
        add_unknown(text, sizeof text, u);
    return users_draw(users_plot(u, chart, -1, text), to, any, err);
}
