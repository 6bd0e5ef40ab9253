/* SPDX-License-Identifier: MIT
 *
 * report_token_charts.c - charts of samples
 */
#include "harness/show/report/report_tokens.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/format.h"
#include "harness/stats/stats.h"

/* Names in a legend are cut beyond this. */
#define NAME_CHARACTERS 60

/* A distribution is drawn by that many of its quantiles, a run by that many dots. */
#define MAX_STEPS 400
#define MAX_DOTS  6000

/* Beyond these ratios an axis is logarithmic; faults are some pages or all. */
#define LOG_RATIO   12.0
#define FAULT_RATIO 1000.0

/* ---- distributions --------------------------------------------------------------- */

static void put_times(struct plot *p, const struct token_series_list *list)
{
    plot_columns(p, "series,ms,percent,doubtful,.hint");
    for (int i = 0; i < list->n; i++) {
        const struct token_series *s = &list->v[i];
        const size_t n = s->n < MAX_STEPS ? s->n : MAX_STEPS;
        const char *hint =
            plot_printf(p, "%s: median %.1f ms, 95 %% within %.1f ms, at most %.1f ms",
                        s->name, stats_quantile_sorted(s->ms, s->n, 0.5),
                        stats_quantile_sorted(s->ms, s->n, 0.95), s->ms[s->n - 1]);

        for (size_t k = 0; k <= n; k++) {
            /* the largest of each share, so that the last step is the slowest token */
            const size_t at = k ? k * s->n / n : 0;

            PLOT_NUMBERS(p, i, s->ms[k ? at - 1 : 0], 100 * (double)at / (double)s->n,
                         s->doubtful);
            plot_string(p, k ? "" : hint);
        }
    }
}

static void put_times_axes(struct plot *p, const struct token_series_list *list)
{
    double least = INFINITY, most = 0;

    for (int i = 0; i < list->n; i++) {
        least = fmin(least, list->v[i].ms[0]);
        most = fmax(most, list->v[i].ms[list->v[i].n - 1]);
    }
    const bool is_log = most / least > LOG_RATIO;
    const double room = 0.08 * (most - least) + 1e-9;
    struct plot_panel *a =
        plot_panel(p, 487, is_log ? least / 1.2 : fmax(0, least - room),
                   is_log ? most * 1.2 : most + room, 0, 103);

    a->x.is_log = is_log;
    a->x.no_grid = true;
    a->x.title = is_log ? "ms per token (logarithmic)" : "ms per token";
    a->y.title = "tokens that took at most that long, %";
}

static struct plot *token_times_plot(const struct token_series_list *list,
                                     const char *subtitle)
{
    struct plot *p = plot_new(
        TOKEN_TIMES, "Token times, at each setting's least context depth", subtitle);
    struct plot_layer l = {.form = PLOT_STEPS,
                           .x = {"ms", 0},
                           .y = {"percent", 0},
                           .by = "series",
                           .n_by = list->n,
                           .is_ordered = true,
                           .only = {{"doubtful", 0, 0}},
                           .style = plot_stroke(PLOT_OWN, 2, PLOT_WHOLE),
                           .text = ".hint"};

    if (!p)
        return NULL;
    put_times(p, list);
    put_times_axes(p, list);
    for (int i = 0; i < 2; i++) {
        plot_layer(p, l);
        l.only[0].low = l.only[0].high = 1;
        l.style.dash = PLOT_DOTTED;
    }
    for (int i = 0; i < list->n; i++) {
        const struct token_series *s = &list->v[i];
        struct plot_style style = plot_style_of(&l, i);

        style.dash = s->doubtful ? PLOT_DOTTED : PLOT_WHOLE;
        plot_key(p,
                 plot_printf(p, "%s, %lld thread%s%s",
                             plot_keep(p, s->name, NAME_CHARACTERS - 12),
                             (long long)s->n_threads, plural(s->n_threads, "s"),
                             s->doubtful ? " (doubtful)" : ""),
                 style);
    }
    return p;
}

/* ---- the run --------------------------------------------------------------------- */

static double taken(const struct row *r)
{
    return fmax(r->steal_pct, 0) + fmax(r->others_pct, 0); /* both pass over a NaN */
}

static double faults(const struct row *r)
{
    return fmax(r->major_faults_per_token, 0) + fmax(r->refaults_per_token, 0);
}

static void put_launch(struct plot *p, const struct token_launch *l, size_t every,
                       size_t *at)
{
    double t = l->first_s;

    PLOT_NUMBERS(p, 1, l->setting, l->begin_s / 60, l->end_s / 60, NAN,
                 l->row->steal_pct, l->row->others_pct, faults(l->row), taken(l->row));
    for (size_t k = 0; l->own && k < l->own->n; k++) {
        t += l->own->ms[k] / 1000;
        if ((*at)++ % every == 0)
            PLOT_NUMBERS(p, 0, l->setting, t / 60, NAN, l->own->ms[k] / l->median_ms,
                         NAN, NAN, NAN, NAN);
    }
}

/* The panel of token times. */
static void put_relative(struct plot *p, const struct token_run *run)
{
    double most = 2;
    size_t n = 0, at = 0;

    for (size_t i = 0; i < run->n; i++) {
        const struct token_launch *l = &run->v[i];

        for (size_t k = 0; l->own && k < l->own->n; k++) {
            const double v = l->own->ms[k] / l->median_ms;

            most = fmax(most, fmax(v, 1 / v) * 1.1);
        }
        n += l->own ? l->own->n : 0;
    }
    plot_columns(p, "kind,series,minutes,end,relative,steal,others,faults,taken");
    for (size_t i = 0; i < run->n; i++)
        put_launch(p, &run->v[i], n / MAX_DOTS + 1, &at);
    struct plot_panel *a =
        plot_panel(p, 360, 0, fmax(run->span_s / 60, 1e-3), 1 / most, most);

    a->y.is_log = true;
    a->y.title = "time of a token, pass or run, relative to the median of its point "
                 "(logarithmic)";
    for (int power = -6; power <= 6; power++)
        if (pow(2, power) >= 1 / most && pow(2, power) <= most)
            plot_tick(p, &a->y, pow(2, power), NULL);
}

typedef double lane_fn(const struct row *r);

/* A panel of launches with what disturbed them. Returns its axis. */
static struct plot_axis *put_lane(struct plot *p, const struct token_run *run,
                                  lane_fn *of, const char *title)
{
    double most = 0, least = INFINITY;

    for (size_t i = 0; i < run->n; i++) {
        const double v = of(run->v[i].row);

        most = fmax(most, v);
        least = v > 0 ? fmin(least, v) : least;
    }
    const bool is_log = most / least > FAULT_RATIO;
    struct plot_panel *a = plot_panel(p, 106, p->panel[0].x.min, p->panel[0].x.max,
                                      is_log ? fmax(least / 2, most * 1e-5) : 0,
                                      is_log     ? 1.5 * most
                                      : most > 0 ? 1.1 * most
                                                 : 1);

    a->y.is_log = is_log;
    a->y.title = title;
    return &a->y;
}

static void put_lane_bars(struct plot *p, int panel, const struct plot_axis *y,
                          const char *column, int color)
{
    plot_layer(p, (struct plot_layer){
                      .panel = panel,
                      .form = PLOT_BOX,
                      .x = {"minutes", 0},
                      .x2 = {"end", 0},
                      .y = {NULL, y->min},
                      .y2 = {column, 0},
                      .only = {{"kind", 1, 1}, {column, y->min + 1e-12, INFINITY}},
                      .style = plot_filled(color, 1)});
}

static void put_pauses(struct plot *p, const struct token_run *run)
{
    for (size_t i = 0; i < run->n; i++) {
        const double x = (run->v[i].begin_s - TOKEN_RUN_PAUSE_S / 2) / 60;

        for (int panel = 0; panel < p->n_panels && run->v[i].after_pause; panel++)
            plot_across(p, panel, true, x, true,
                        plot_stroke(PLOT_GREY, 1, PLOT_DOTTED));
    }
}

static void put_run_keys(struct plot *p, const struct report_rows *rows)
{
    char name[REPORT_NAME_MAX];
    int n = 0;

    for (size_t begin = 0; begin < rows->n && n < CHART_MAX_SERIES;
         begin = report_setting_end(rows, begin)) {
        report_setting_name(rows, rows->v[begin], name, sizeof name);
        plot_key(p, plot_keep(p, name, NAME_CHARACTERS),
                 plot_marked(n++, PLOT_DOT, 1.2));
    }
    plot_key(p, "CPU time stolen", plot_filled(PLOT_BAD, 1));
    plot_key(p, "CPU time of others", plot_filled(PLOT_WARN, 1));
    plot_key(p, "page faults and refaults", plot_filled(PLOT_GREY, 1));
}

static struct plot *token_run_plot(const struct token_run *run,
                                   const struct report_rows *rows, const char *subtitle)
{
    struct plot *p =
        plot_new(TOKEN_RUN, "The run: token times, and what disturbed them", subtitle);
    const struct plot_axis *y;

    if (!p)
        return NULL;
    p->is_wide = p->keys_below = true;
    put_relative(p, run);
    plot_across(p, 0, false, 1, true, plot_stroke(PLOT_GREY, 1, PLOT_WHOLE));
    plot_layer(p, (struct plot_layer){.form = PLOT_MARKS,
                                      .x = {"minutes", 0},
                                      .y = {"relative", 0},
                                      .by = "series",
                                      .n_by = run->n_settings < CHART_MAX_SERIES
                                                  ? run->n_settings
                                                  : CHART_MAX_SERIES,
                                      .only = {{"kind", 0, 0}},
                                      .style = plot_marked(PLOT_OWN, PLOT_DOT, 0.55)});
    y = put_lane(p, run, taken, "CPU time that others took, %");
    put_lane_bars(p, 1, y, "taken", PLOT_WARN);
    put_lane_bars(p, 1, y, "steal", PLOT_BAD);
    y = put_lane(p, run, faults, "page faults and refaults per token");
    put_lane_bars(p, 2, y, "faults", PLOT_GREY);
    for (int i = 0; i < 3; i++) {
        p->panel[i].x.no_grid = true;
        p->panel[i].x.no_figures = i < 2;
    }
    p->panel[2].x.title = "minutes since the run began";
    put_pauses(p, run);
    plot_note(p, plot_printf(p, "Each dot is a token, pass or run%s",
                             run->n_pauses
                                 ? plot_printf(p, "; %d pause%s cut", run->n_pauses,
                                               run->n_pauses == 1 ? " is" : "s are")
                                 : ""));
    put_run_keys(p, rows);
    return p;
}

/* ---- all ------------------------------------------------------------------------- */

/* has_figure: p is NULL for lack of memory only. */
static enum status use_plot(report_plot_fn *use, void *arg, const char *name,
                            bool has_figure, struct plot *p, struct err *err)
{
    if (has_figure && !p)
        return err_set(err, ST_NO_MEMORY, "no memory for the chart %s", name);
    return use(arg, name, p, err);
}

static enum status each_time(const struct report_source *from, const char *subtitle,
                             report_plot_fn *use, void *arg, struct err *err)
{
    struct token_series_list *list = malloc(sizeof *list);
    enum status st;

    if (!list)
        return err_set(err, ST_NO_MEMORY, "no memory for token times");
    st = token_series_find(list, from->points, from->rows, from->n_rows, from->samples,
                           err);
    if (st == ST_OK)
        st = use_plot(use, arg, TOKEN_TIMES, list->n > 0,
                      list->n ? token_times_plot(list, subtitle) : NULL, err);
    token_series_free(list);
    free(list);
    return st;
}

static enum status each_run(const struct report_source *from, const char *subtitle,
                            report_plot_fn *use, void *arg, struct err *err)
{
    struct token_run run;
    bool has = false;
    enum status st = token_run_find(&run, from->points, from->rows, from->n_rows,
                                    from->samples, err);

    for (size_t i = 0; st == ST_OK && i < run.n; i++)
        has |= run.v[i].own && run.v[i].own->n;
    if (st == ST_OK)
        st = use_plot(use, arg, TOKEN_RUN, has,
                      has ? token_run_plot(&run, from->points, subtitle) : NULL, err);
    token_run_free(&run);
    return st;
}

enum status report_each_token_plot(const struct report_source *from,
                                   const char *subtitle, report_plot_fn *use, void *arg,
                                   struct err *err)
{
    if (each_time(from, subtitle, use, arg, err))
        return err->code;
    return each_run(from, subtitle, use, arg, err);
}
