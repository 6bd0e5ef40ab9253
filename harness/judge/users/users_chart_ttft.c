/* SPDX-License-Identifier: MIT
 *
 * users_chart_ttft.c - the distribution of times to the first visible token
 */
#include <math.h>
#include <stdlib.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"
#include "harness/stats/stats.h"
#include "harness/rows/samples.h"
#include "harness/judge/users/users_charts_internal.h"

#define MAX_LINES 18  /* distributions in a picture */
#define MAX_STEPS 400 /* quantiles that a distribution is drawn by */

struct line {
    int series, n_users;
    bool is_doubtful;
    double *ttft_s; /* [n], sorted; malloc'ed */
    size_t n, n_failed;
};

struct lines {
    const struct users *u;
    struct line v[MAX_LINES];
    int n, n_left_out;
};

/* Launches whose times are in a line; a row that stands there twice has those of the
 * later one both times. */
struct taken {
    const struct launch_samples *v[USERS_MAX_ROUNDS];
    size_t n;
};

static bool take(struct taken *t, const struct launch_samples *own)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i] == own)
            return false;
    if (!own || t->n == USERS_MAX_ROUNDS)
        return false;
    t->v[t->n++] = own;
    return true;
}

static enum status add_line(struct lines *lines, const struct samples *requests,
                            int series, const struct users_level *s, struct err *err)
{
    const struct users *u = lines->u;
    struct line l = {
        .series = series, .n_users = s->n_users, .is_doubtful = s->is_doubtful};
    size_t n = 0;

    for (int fill = 0; fill < 2; fill++) {
        struct taken taken = {.n = 0};

        for (size_t i = 0; i < u->n_rows; i++) {
            const struct row *r = &u->rows[i];
            const struct launch_samples *own =
                r->n_users == s->n_users && users_is_of(&u->v[series], r) &&
                        (s->is_doubtful || row_trust(r) == ROW_GOOD)
                    ? samples_of(requests, r)
                    : NULL;

            if (!take(&taken, own))
                continue;
            for (size_t k = 0; k < own->n; k++) {
                const double *cells = own->ms + k * REQUEST_CELLS;
                const double v = isnan(cells[REQUEST_VISIBLE_S])
                                     ? cells[REQUEST_TTFT_S]
                                     : cells[REQUEST_VISIBLE_S];

                if (!fill)
                    n += isfinite(v) != 0;
                else if (isfinite(v))
                    l.ttft_s[l.n++] = v;
                else
                    l.n_failed++;
            }
        }
        if (!n)
            return ST_OK;
        if (lines->n == MAX_LINES) {
            lines->n_left_out++;
            return ST_OK;
        }
        if (!fill && !(l.ttft_s = malloc(n * sizeof *l.ttft_s)))
            return err_set(err, ST_NO_MEMORY, "no memory for the times of %zu requests",
                           n);
    }
    stats_sort(l.ttft_s, l.n);
    lines->v[lines->n++] = l;
    return ST_OK;
}

/* Its number among those of its server, the least users first. */
static int step_of(const struct lines *lines, int i)
{
    int step = 0;

    for (int k = 0; k < i; k++)
        step += lines->v[k].series == lines->v[i].series;
    return step;
}

static void put_row(struct plot *p, const struct lines *lines, int i, double seconds,
                    double percent)
{
    PLOT_NUMBERS(p, i, seconds, percent, lines->v[i].series, step_of(lines, i));
}

static void put_lines(struct plot *p, const struct lines *lines)
{
    plot_columns(p, "line,seconds,percent,server,step");
    for (int i = 0; i < lines->n; i++) {
        const struct line *l = &lines->v[i];
        const size_t n = l->n < MAX_STEPS ? l->n : MAX_STEPS;

        put_row(p, lines, i, l->ttft_s[0], 0);
        for (size_t k = 0; k < n; k++) {
            const size_t at = (k + 1) * l->n / n - 1;

            put_row(p, lines, i, l->ttft_s[at],
                    100 * (double)(at + 1) / (double)(l->n + l->n_failed));
        }
    }
}

/* The SLO's limit, where all have the same and it is not far off; NAN: none. */
static double limit_of(const struct lines *lines, double last)
{
    double limit = NAN;

    for (int i = 0; i < lines->n; i++) {
        const double own = users_limit_of(&lines->u->v[lines->v[i].series].slo, 0);

        if (i && own != limit)
            return NAN;
        limit = own;
    }
    return limit < 4 * last ? limit : NAN;
}

static void put_limit(struct plot *p, double limit)
{
    if (!isfinite(limit))
        return;
    plot_across(p, 0, true, limit, false, plot_stroke(PLOT_BAD, 1.6, PLOT_DASHED));
    plot_words(p, 0, (struct plot_at){limit, false}, (struct plot_at){0.03, true}, 6,
               PLOT_BAD, plot_printf(p, "limit %g s", limit));
}

static void put_panel(struct plot *p, const struct lines *lines)
{
    struct users_range x = {NAN, NAN, false};
    double limit;

    for (int i = 0; i < lines->n; i++) {
        users_range_widen(&x, lines->v[i].ttft_s[0]);
        users_range_widen(&x, lines->v[i].ttft_s[lines->v[i].n - 1]);
    }
    limit = limit_of(lines, x.max);
    users_range_widen(&x, limit);
    x = users_range_with_room(x, false);
    struct plot_panel *a = plot_panel(p, 487, x.min, x.max, 0, 103);

    a->x.is_log = x.log;
    a->x.no_grid = true;
    a->x.title = x.log ? "seconds to the first visible token (logarithmic)"
                       : "seconds to the first visible token";
    a->y.title = "requests whose first visible token came within, %";
    put_limit(p, limit);
    plot_across(p, 0, false, 90, false, plot_stroke(PLOT_GREY, 1, PLOT_DOTTED));
}

/* Numbers of users differ by colour, servers by dashes. */
static void put_layers(struct plot *p, const struct lines *lines)
{
    struct plot_layer l = {.form = PLOT_STEPS,
                           .x = {"seconds", 0},
                           .y = {"percent", 0},
                           .by = "step",
                           .n_by = 1,
                           .is_ordered = true,
                           .style = plot_stroke(PLOT_OWN, 2, PLOT_WHOLE)};

    for (int i = 0; i < lines->n; i++)
        if (step_of(lines, i) + 1 > l.n_by)
            l.n_by = step_of(lines, i) + 1;
    for (int server = 0; server < (int)lines->u->n; server++) {
        l.only[0] = (struct plot_only){"server", server, server};
        l.style.dash = (enum plot_dash)(server % 4);
        plot_layer(p, l);
    }
    for (int i = 0; i < lines->n; i++) {
        const struct line *own = &lines->v[i];
        struct plot_style style = plot_style_of(&l, step_of(lines, i));
        const char *name =
            plot_keep(p, lines->u->v[own->series].name, USERS_NAME_CHARACTERS);

        style.dash = (enum plot_dash)(own->series % 4);
        plot_key(p,
                 plot_printf(p, "%s%s%d user%s%s", lines->u->n > 1 ? name : "",
                             lines->u->n > 1 ? ", " : "", own->n_users,
                             plural(own->n_users, "s"),
                             own->is_doubtful ? " (disturbed)" : ""),
                 style);
    }
}

static struct plot *make(const struct lines *lines, const char *subtitle)
{
    struct plot *p =
        plot_new(USERS_TTFT, "Time to the first visible token, of each number of users",
                 subtitle);

    if (!p)
        return NULL;
    put_lines(p, lines);
    put_panel(p, lines);
    put_layers(p, lines);
    return p;
}

enum status users_draw_ttft(const struct users *u, const struct chart_place *to,
                            const char *from, bool *any, struct err *err)
{
    char below[500];
    struct lines *lines = calloc(1, sizeof *lines);
    struct samples requests = {0};
    enum status st = lines ? requests_read(&requests, from, err)
                           : err_set(err, ST_NO_MEMORY, "no memory for a chart");

    snprintf(below, sizeof below, "%s", to->subtitle);
    if (lines)
        lines->u = u;
    for (size_t i = 0; st == ST_OK && i < u->n; i++)
        for (size_t k = 0; k < u->v[i].n && st == ST_OK; k++)
            st = add_line(lines, &requests, (int)i, &u->v[i].level[k], err);
    if (lines && lines->n_left_out)
        text_append(below, sizeof below, "%s%d more numbers of users are not shown",
                    USERS_DOT, lines->n_left_out);
    if (st == ST_OK && lines->n) {
        st = users_draw(make(lines, below), to, any, err);
    } else if (st == ST_OK) {
        chart_files_remove(to->dir, USERS_TTFT);
    }
    for (int i = 0; lines && i < lines->n; i++)
        free(lines->v[i].ttft_s);
    samples_free(&requests);
    free(lines);
    return st;
}
