/* SPDX-License-Identifier: MIT
 *
 * history_chart.c - series over their runs, a panel each
 */
#include <math.h>
#include <string.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"
#include "harness/stats/stats.h"
#include "harness/decide/history/history_report.h"

#define MAX_PANELS PLOT_MAX_PANELS
#define N_TICKS    9 /* commits named below a panel */

/* Series with a change first; without the first `skip` of them. */
static size_t choose(const struct history_line *panel[MAX_PANELS],
                     const struct history_report *r, size_t skip)
{
    size_t n = 0;

    for (int changed = 1; changed >= 0; changed--)
        for (size_t i = 0; i < r->n && n < MAX_PANELS; i++)
            if (r->v[i].n > 1 && (r->v[i].n_changes > 0) == changed) {
                if (skip)
                    skip--;
                else
                    panel[n++] = &r->v[i];
            }
    return n;
}

/* The change that begins at value i, or NULL. */
static const struct history_change *change_at(const struct history_line *line, size_t i)
{
    for (size_t k = 0; k < line->n_changes; k++)
        if (line->change[k].at.at == i)
            return &line->change[k];
    return NULL;
}

static double first_level(const struct history_line *line)
{
    double v[CHANGE_MAX_POINTS], scratch[CHANGE_MAX_POINTS];

    if (line->n_changes)
        return line->change[0].at.before;
    for (size_t i = 0; i < line->n; i++)
        v[i] = line->v[i].v;
    return stats_median(v, line->n, scratch);
}

/* Columns as they are drawn: a run's step from at to its next, the change's line. */
static void put_series(struct plot *p, const struct history_report *r,
                       const struct history_line *line, size_t index)
{
    const struct plot_axis *y = &p->panel[index].y;
    double level = first_level(line);
    int nth = 0;

    for (size_t i = 0; i < line->n; i++) {
        const struct result_run *run = &r->h->runs[line->v[i].run];
        const struct history_change *c = change_at(line, i);
        const bool is_left = (double)i > 0.6 * (double)(line->n - 1);
        const char *label = "";
        const struct shown_figure commit = result_run_commit(run);

        if (c) {
            level = c->at.after;
            nth++;
            label =
                plot_printf(p, "%s %+.1f %%", commit.text, 100 * (c->size.ratio - 1));
        }
        PLOT_NUMBERS(p, (double)index, (double)i, line->v[i].v, level,
                     !c         ? 0
                     : c->worse ? 2
                                : 1);
        plot_string(p, label);
        plot_string(p, commit.text);
        plot_string(p, line->v[i].utc);
        plot_number(p, nth);
        /* labels of neighbouring changes stand on two lines */
        PLOT_NUMBERS(p, y->max - (0.06 + 0.09 * (nth % 2)) * (y->max - y->min),
                     is_left);
    }
}

/* Space above is for the labels. An axis that does not begin at 0 is broken at its
 * foot.
 */
static void put_panel(struct plot *p, const struct history_report *r,
                      const struct history_line *line)
{
    const size_t step = (line->n + N_TICKS - 1) / N_TICKS;
    const int panel = p->n_panels;
    double lo = INFINITY, hi = 0;

    for (size_t i = 0; i < line->n; i++) {
        lo = fmin(lo, line->v[i].v);
        hi = fmax(hi, line->v[i].v);
    }
    const double range = fmax(hi - lo, 0.02 * hi), from = fmax(0, lo - 0.1 * range);
    struct plot_panel *a = plot_panel(p, 240, -0.5, (double)line->n - 0.5, from,
                                      hi > 0 ? hi + 0.25 * range : 1);

    a->x.no_grid = true;
    a->y.title = plot_printf(
        p, "%s, %s%s", line->s->name, line->s->metric->unit,
        from > 0 ? plot_printf(p, "   (the axis begins at %.4g)", from) : "");
    for (size_t i = 0; i < line->n; i += step)
        plot_tick(p, &a->x, (double)i,
                  result_run_commit(&r->h->runs[line->v[i].run]).text);
    if (from > 0)
        plot_break(p, panel, false, 0.05);
}

static void put_layers(struct plot *p, int panel)
{
    struct plot_layer l = {.panel = panel,
                           .form = PLOT_SEGMENT,
                           .x = {"run", -0.5},
                           .x2 = {"run", -0.5},
                           .y = {NULL, p->panel[panel].y.min},
                           .y2 = {NULL, p->panel[panel].y.max},
                           .only = {{"panel", panel, panel}}};

    for (int kind = 1; kind <= 2; kind++) {
        l.only[1] = (struct plot_only){"change", kind, kind};
        l.style = plot_stroke(3 - kind, 1.5, PLOT_SHORT);
        plot_layer(p, l);
    }
    l.x2.plus = 0.5;
    l.y = l.y2 = (struct plot_place){"level", 0};
    l.only[1].column = NULL;
    l.style = plot_stroke(5, 2.5, PLOT_WHOLE);
    plot_layer(p, l);
    l.form = PLOT_MARKS;
    l.x.plus = 0;
    l.y.column = "value";
    l.style = plot_marked(0, PLOT_DOT, 0.8);
    plot_layer(p, l);
    l.form = PLOT_TEXT;
    l.x.plus = -0.5;
    l.y.column = "label_y";
    l.text = "label";
    for (int kind = 1; kind <= 2; kind++)
        for (int left = 0; left < 2; left++) {
            l.only[1] = (struct plot_only){"change", kind, kind};
            l.only[2] = (struct plot_only){"left", left, left};
            l.style.color = 3 - kind;
            l.anchor = left ? PLOT_RIGHT : PLOT_LEFT;
            l.dx = left ? -5 : 5;
            plot_layer(p, l);
        }
}

/* Days are compared as texts. */
static void put_days(struct plot *p, const struct history_line *const *panel, size_t n)
{
    const char *first = panel[0]->v[0].utc, *last = first;

    for (size_t i = 0; i < n; i++) {
        const char *begin = panel[i]->v[0].utc, *end = panel[i]->v[panel[i]->n - 1].utc;

        first = strcmp(begin, first) < 0 ? begin : first;
        last = strcmp(end, last) > 0 ? end : last;
    }
    if (*last)
        plot_note(p, plot_printf(p, "measured %.10s to %.10s", first, last));
}

static struct plot *make_plot(const struct history_report *r,
                              const struct history_line *const *panel, size_t n)
{
    const struct series *first = panel[0]->s;
    char subtitle[320], machine[256];
    struct plot *p;

    snprintf(subtitle, sizeof subtitle, "%s  \xc2\xb7  %zu of %zu series, %zu change%s",
             first->has_machine
                 ? machine_key_name(&first->machine, machine, sizeof machine)
                 : "machine not known",
             n, r->n, r->n_changes, plural(r->n_changes, "s"));
    p = plot_new(HISTORY_CHART, "Where the history has changed", subtitle);
    if (!p)
        return NULL;
    p->keys_below = true;
    plot_columns(p, "panel,run,value,level,change,label,commit,utc,nth,label_y,left");
    for (size_t i = 0; i < n; i++) {
        put_panel(p, r, panel[i]);
        put_series(p, r, panel[i], i);
        put_layers(p, (int)i);
    }
    plot_key(p, "a run", plot_marked(0, PLOT_DOT, 0.8));
    plot_key(p, "median between changes", plot_stroke(5, 2.5, PLOT_WHOLE));
    for (int kind = 2; kind >= 1 && r->n_changes; kind--)
        plot_key(p,
                 kind == 2 ? "a change for the worse, with its commit"
                           : "a change for the better, with its commit",
                 plot_stroke(3 - kind, 1.5, PLOT_SHORT));
    put_days(p, panel, n);
    return p;
}

enum status history_report_chart(const struct history_report *r, const char *dir,
                                 const char *again, struct err *err)
{
    const struct history_line *panel[MAX_PANELS];
    const size_t n = choose(panel, r, 0);

    if (n)
        return chart_files_draw(make_plot(r, panel, n), dir, again, err);
    chart_files_remove(dir, HISTORY_CHART);
    return ST_OK;
}

bool history_report_plot(struct plot **p, const struct history_report *r, size_t part)
{
    const struct history_line *panel[MAX_PANELS];
    const size_t n = choose(panel, r, part * MAX_PANELS);

    if (n)
        *p = make_plot(r, panel, n);
    return n > 0;
}
