/* SPDX-License-Identifier: MIT
 *
 * users_chart_levels.c - two figures of each number of users: latencies by throughput,
 * the ladder
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"
#include "harness/judge/users/users_charts_internal.h"
#include "harness/judge/users/users_labels.h"

/* ---- two figures of each level ------------------------------------------------------
 */

/* A figure that one of the two parts of a chart shows; NAN: none. */
typedef struct users_figure figure_fn(const struct users_level *s);

static struct users_figure ttft_of(const struct users_level *s)
{
    return s->ttft_p90_s;
}

static struct users_figure tpot_of(const struct users_level *s)
{
    return s->tpot_p90_ms;
}

static struct users_figure all_of(const struct users_level *s)
{
    return s->tok_per_s;
}

static struct users_figure each_of(const struct users_level *s)
{
    const struct users_figure *f = &s->tok_per_s;

    return (struct users_figure){f->v / s->n_users, f->lo / s->n_users,
                                 f->hi / s->n_users};
}

static double speed_of(const struct users_level *s)
{
    return s->tok_per_s.v;
}

static double users_of(const struct users_level *s)
{
    return s->n_users;
}

struct two {
    const struct users *u;
    double (*x)(const struct users_level *s);
    figure_fn *y[2];
    const char *x_title, *y_title[2];
    bool has_limits;              /* the SLO's, and numbers of users at marks */
    struct users_label *label[2]; /* [levels of all servers], in units of the axes */
    double limit_x[2][USERS_MAX_SERIES]; /* where its name begins, of the width */
};

/* The limits of a part that differ, in v[USERS_MAX_SERIES]. Returns their number. */
static int limits_of(const struct two *t, int part, double *v)
{
    int n = 0;

    for (size_t i = 0; t->has_limits && i < t->u->n; i++) {
        const double limit = users_limit_of(&t->u->v[i].slo, part);
        bool is_new = isfinite(limit);

        for (int k = 0; k < n; k++)
            is_new &= v[k] != limit;
        if (is_new)
            v[n++] = limit;
    }
    return n;
}

static void put_figure(FILE *f, struct users_figure y)
{
    chart_file_number(f, y.v);
    chart_file_number(f, isfinite(y.lo) ? y.lo : y.v);
    chart_file_number(f, isfinite(y.hi) ? y.hi : y.v);
}

static void put_levels(FILE *f, const void *what)
{
    const struct two *t = what;
    size_t at = 0;

    fputs("series,n_users,x,upper,upper_lo,upper_hi,lower,lower_lo,lower_hi,state,"
          "little,upper_label_x,upper_label_y,lower_label_x,lower_label_y,server\n",
          f);
    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++) {
            const struct users_level *s = &t->u->v[i].level[k];

            fprintf(f, "%zu,%d", i, s->n_users);
            chart_file_number(f, t->x(s));
            put_figure(f, t->y[0](s));
            put_figure(f, t->y[1](s));
            fprintf(f, ",%d,%d", s->is_doubtful, s->doubts_little);
            for (int part = 0; part < 2; part++) {
                chart_file_number(f, t->label[part][at].label_x);
                chart_file_number(f, t->label[part][at].label_y);
            }
            at++;
            chart_file_text(f, t->u->v[i].name);
            fputc('\n', f);
        }
}

static struct users_range y_range(const struct two *t, int part)
{
    struct users_range r = {NAN, NAN, false};

    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++) {
            const struct users_figure y = t->y[part](&t->u->v[i].level[k]);

            users_range_widen(&r, y.v);
            if (y.lo > 0 || !t->has_limits) /* of a logarithmic axis */
                users_range_widen(&r, y.lo);
            users_range_widen(&r, y.hi);
        }
    for (size_t i = 0; t->has_limits && i < t->u->n; i++)
        users_range_widen(&r, users_limit_of(&t->u->v[i].slo, part));
    return users_range_with_room(r, !t->has_limits);
}

static struct users_range x_range(const struct two *t)
{
    struct users_range x = {NAN, NAN, false};

    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++)
            users_range_widen(&x, t->x(&t->u->v[i].level[k]));
    if (t->has_limits)
        return users_range_with_room(x, true);
    x.log = x.max / x.min > 8;
    x.min = x.log ? x.min / 1.15 : x.min - 0.5;
    x.max = x.log ? x.max * 1.15 : x.max + 0.5;
    return x;
}

/* ---- numbers at marks --------------------------------------------------------------
 */

/* Size of a panel in pixels; its width is without the legend (users.gp). */
#define PANEL_WIDTH      1162.0
#define KEY_WIDTH        10.8 /* of a character in the legend */
#define KEY_MIN          14
#define KEY_MAX          26 /* what else the legend may have */
#define PANEL_HEIGHT     332.0
#define EM               14.0
#define LIMIT_CHARACTERS 14 /* "limit 250 ms", and room */

static double panel_width(const struct users *u)
{
    size_t longest = KEY_MIN;
    bool is_marked = false;

    for (size_t i = 0; i < u->n; i++) {
        const size_t n = strlen(u->v[i].name);

        longest = n > longest ? n : longest;
        for (size_t k = 0; k < u->v[i].n; k++)
            is_marked |= u->v[i].level[k].is_doubtful || u->v[i].level[k].doubts_little;
    }
    if (is_marked && longest < KEY_MAX)
        longest = KEY_MAX;
    if (longest > USERS_NAME_CHARACTERS)
        longest = USERS_NAME_CHARACTERS;
    return PANEL_WIDTH - KEY_WIDTH * (double)longest;
}

static double to_pixel(double v, const struct users_range *r, double pixels)
{
    return r->log ? pixels * log(v / r->min) / log(r->max / r->min)
                  : pixels * (v - r->min) / (r->max - r->min);
}

static double from_pixel(double at, const struct users_range *r, double pixels)
{
    return r->log ? r->min * exp(at / pixels * log(r->max / r->min))
                  : r->min + at / pixels * (r->max - r->min);
}

/* Levels without a figure have none. */
static enum status place_labels(struct two *t, int part, struct err *err)
{
    const struct users_range x = x_range(t), y = y_range(t, part);
    const double width = panel_width(t->u);
    struct users_label *own = calloc(USERS_MAX_LABELS, sizeof *own);
    double limit[USERS_MAX_SERIES];
    size_t n = 0, at = 0;
    int n_limits;

    if (!own)
        return err_set(err, ST_NO_MEMORY, "no memory for labels");
    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++) {
            const struct users_level *s = &t->u->v[i].level[k];
            const struct users_figure v = t->y[part](s);

            if (!isfinite(v.v) || !isfinite(t->x(s)))
                continue;
            own[n] = (struct users_label){.x = to_pixel(t->x(s), &x, width),
                                          .y = to_pixel(v.v, &y, PANEL_HEIGHT),
                                          .series = (int)i,
                                          .n_characters = s->n_users < 10    ? 1
                                                          : s->n_users < 100 ? 2
                                                                             : 3};
            own[n].lo = v.lo > 0 ? to_pixel(v.lo, &y, PANEL_HEIGHT) : own[n].y;
            own[n].hi = v.hi > 0 ? to_pixel(v.hi, &y, PANEL_HEIGHT) : own[n].y;
            n++;
        }
    users_place_labels(own, n, width, PANEL_HEIGHT, EM);
    n_limits = limits_of(t, part, limit);
    for (int i = 0; i < n_limits; i++)
        t->limit_x[part][i] =
            users_place_above(own, n, width, to_pixel(limit[i], &y, PANEL_HEIGHT), 1,
                              LIMIT_CHARACTERS, EM) /
            width;
    n = 0;
    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++, at++) {
            const struct users_level *s = &t->u->v[i].level[k];
            struct users_label *l = &t->label[part][at];

            *l = (struct users_label){.label_x = NAN, .label_y = NAN};
            if (!isfinite(t->y[part](s).v) || !isfinite(t->x(s)))
                continue;
            l->label_x = from_pixel(own[n].label_x, &x, width);
            l->label_y = from_pixel(own[n].label_y, &y, PANEL_HEIGHT);
            n++;
        }
    free(own);
    return ST_OK;
}

/* ---- the files ------------------------------------------------------------------ */

static void put_limits(FILE *f, const struct two *t, int part)
{
    double v[USERS_MAX_SERIES];
    const int n = limits_of(t, part, v);

    fprintf(f, "limits_%d = '", part + 1);
    for (int i = 0; i < n; i++)
        fprintf(f, "%s%.6g", i ? " " : "", v[i]);
    fprintf(f, "'\nlimits_x_%d = '", part + 1);
    for (int i = 0; i < n; i++)
        fprintf(f, "%s%.3f", i ? " " : "", t->limit_x[part][i]);
    fputs("'\n", f);
}

/* Each number of users as a tick. */
static void put_user_ticks(FILE *f, const struct users *u)
{
    bool any = false;

    fputs("x_ticks = '", f);
    for (int n = 1; n <= 1024; n++) {
        bool is_there = false;

        for (size_t i = 0; i < u->n; i++)
            for (size_t k = 0; k < u->v[i].n; k++)
                is_there |= u->v[i].level[k].n_users == n;
        if (is_there)
            fprintf(f, "%s%d", any ? ", " : "", n);
        any |= is_there;
    }
    fputs("'\n", f);
}

static void put_settings(FILE *f, const void *what)
{
    const struct two *t = what;
    const struct users_range x = x_range(t);
    const char *names[USERS_MAX_SERIES];
    int n_hollow = 0, n_little = 0;

    for (size_t i = 0; i < t->u->n; i++) {
        names[i] = t->u->v[i].name;
        for (size_t k = 0; k < t->u->v[i].n; k++) {
            n_hollow += t->u->v[i].level[k].is_doubtful;
            n_little += t->u->v[i].level[k].doubts_little;
        }
    }
    chart_file_ranges(f, x.min, x.max, 0, 1);
    chart_file_texts(f, "series", names, (int)t->u->n, USERS_NAME_CHARACTERS);
    fprintf(f, "log_x = %d\nhas_limits = %d\nn_hollow = %d\nn_little = %d\nx_title = ",
            x.log, t->has_limits, n_hollow, n_little);
    gnuplot_quote(f, t->x_title);
    fputc('\n', f);
    if (t->has_limits)
        fputs("x_ticks = ''\n", f);
    else
        put_user_ticks(f, t->u);
    for (int part = 0; part < 2; part++) {
        const struct users_range y = y_range(t, part);

        fprintf(f,
                "y_title_%d = '%s'\ny_min_%d = %.6g\ny_max_%d = %.6g\nlog_y_%d = %d\n",
                part + 1, t->y_title[part], part + 1, y.min, part + 1, y.max, part + 1,
                y.log);
        put_limits(f, t, part);
    }
}

static bool has_figures(const struct two *t)
{
    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++)
            if (isfinite(t->y[0](&t->u->v[i].level[k]).v))
                return true;
    return false;
}

static enum status draw_two(struct two *t, const struct chart_text *to,
                            const char *name, const char *title, bool *any,
                            struct err *err)
{
    const struct chart_text text = {.dir = to->dir,
                                    .name = name,
                                    .form = "users",
                                    .title = title,
                                    .subtitle = to->subtitle,
                                    .again = to->again};
    enum status st = ST_OK;

    if (!has_figures(t)) {
        chart_files_remove(to->dir, name);
        return ST_OK;
    }
    for (int part = 0; part < 2 && st == ST_OK; part++) {
        t->label[part] = calloc(USERS_MAX_LABELS, sizeof *t->label[part]);
        st = t->label[part] ? place_labels(t, part, err)
                            : err_set(err, ST_NO_MEMORY, "no memory for labels");
    }
    if (st == ST_OK)
        st = chart_files_make(&text, put_levels, put_settings, t, err);
    *any |= st == ST_OK;
    free(t->label[0]);
    free(t->label[1]);
    return st;
}

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

enum status users_draw_levels(const struct users *u, const struct chart_text *to,
                              bool *any, struct err *err)
{
    struct two latency = {u,
                          speed_of,
                          {ttft_of, tpot_of},
                          "tokens per second, of all users together",
                          {"p90 TTFT, s", "p90 ms per token"},
                          true,
                          {NULL, NULL},
                          {{0}}};
    struct two ladder = {u,
                         users_of,
                         {all_of, each_of},
                         "users",
                         {"tok/s of all users", "tok/s of each"},
                         false,
                         {NULL, NULL},
                         {{0}}};
    char text[500];
    struct chart_text below = *to;
    enum status st;

    snprintf(text, sizeof text, "%s", to->subtitle);
    add_unknown(text, sizeof text, u);
    below.subtitle = text;
    st = draw_two(&latency, &below, USERS_LATENCY,
                  "Throughput against latency; numbers are users", any, err);
    return st ? st
              : draw_two(&ladder, to, USERS_LADDER, "Throughput by number of users",
                         any, err);
}
