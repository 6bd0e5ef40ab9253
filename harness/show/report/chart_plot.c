/* SPDX-License-Identifier: MIT
 *
 * chart_plot.c - a chart of rows as a plot: lines with roofs, bars, memory, a frontier
 */
#include "harness/show/report/report_chart.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/chart/layout.h"

/* Names are cut beyond this; the HTML of a page wraps them. */
#define NAME_CHARACTERS 64
#define HEIGHT          487.0
#define GIB             ((double)((uint64_t)1 << 30))

/* Rows whose state is known, and how. */
#define GOOD                            \
    {                                   \
        "state", MARK_SOLID, MARK_SOLID \
    }
#define DOUBTFUL                          \
    {                                     \
        "state", MARK_HOLLOW, MARK_HOLLOW \
    }
#define FIGURES                          \
    {                                    \
        "state", MARK_SOLID, MARK_HOLLOW \
    }
#define NONE                            \
    {                                   \
        "state", MARK_CROSS, MARK_CROSS \
    }

/* What a chart has of what a legend may explain. */
struct count {
    int state[3], roofs[2], limits, too_large, extra;
};

static struct count count_of(const struct chart *c)
{
    struct count n = {.limits = 0};

    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];

        n.state[m->state]++;
        n.roofs[m->doubtful] += isfinite(m->other) != 0;
        n.limits += isfinite(m->limit) != 0;
        n.too_large += m->group == 1;
        n.extra += isfinite(m->extra) != 0;
    }
    return n;
}

static const char *series_name(const struct chart *c, int i)
{
    return *c->legend[i] ? c->legend[i] : c->series[i];
}

static const char *unit_of(const struct chart *c)
{
    return c->unit ? c->unit : "tok/s";
}

/* ---- the table ------------------------------------------------------------------- */

static const char *hint_of(struct plot *p, const struct chart *c, const struct mark *m)
{
    const char *name = c->series[m->series];
    char text[REPORT_NAME_MAX + 160];

    if (m->state == MARK_CROSS)
        return plot_printf(p, "%s: %s", name, *m->note ? m->note : "no figure");
    snprintf(text, sizeof text, "%s: %.3g %s", name, m->y, unit_of(c));
    if (isfinite(m->lo) && isfinite(m->hi))
        text_append(text, sizeof text, " (%.3g to %.3g)", m->lo, m->hi);
    if (!c->log_x && !c->bars && isfinite(m->other) && m->other > 0)
        text_append(text, sizeof text, ", %.0f %% of the roof", 100 * m->y / m->other);
    return plot_printf(p, "%s", text);
}

typedef const char *label_fn(struct plot *p, const struct chart *c, struct mark *m);

static void put_marks(struct plot *p, struct chart *c, label_fn *label)
{
    plot_columns(p, plot_printf(p,
                                "series,group,%s,%s,lo,hi,%s,limit,state,name,note,"
                                "label_x,label_y,panel,doubtful,%s,label,.hint",
                                c->x_name, c->y_name, c->other_name,
                                c->extra_name ? c->extra_name : ".extra"));
    for (size_t i = 0; i < c->n; i++) {
        struct mark *m = &c->v[i];
        const char *text = label ? label(p, c, m) : "";

        PLOT_NUMBERS(p, m->series, m->group, m->x, m->y, isfinite(m->lo) ? m->lo : m->y,
                     isfinite(m->hi) ? m->hi : m->y, m->other, m->limit, m->state);
        plot_string(p, c->series[m->series]);
        plot_string(p, m->note);
        PLOT_NUMBERS(p, m->label_x, m->label_y, c->panel[m->series], m->doubtful,
                     m->extra);
        plot_string(p, text);
        plot_string(p, hint_of(p, c, m));
    }
}

/* The mark of each row, by its state: marks at (x, y), with intervals. */
static void put_mark_layers(struct plot *p, struct plot_layer l)
{
    static const struct {
        struct plot_only state;
        enum plot_mark mark;
        double size;
    } states[] = {
        {GOOD, PLOT_SHAPE, 1.3}, {DOUBTFUL, PLOT_HOLLOW, 1.4}, {NONE, PLOT_CROSS, 1.4}};
    struct plot_layer interval = l;
    int at = 0;

    while (l.only[at].column)
        at++;
    interval.form = PLOT_INTERVAL;
    interval.x2 = l.x;
    interval.y = (struct plot_place){"lo", 0};
    interval.y2 = (struct plot_place){"hi", 0};
    interval.only[at] = (struct plot_only)FIGURES;
    interval.style = plot_stroke(PLOT_OWN, 1.2, PLOT_WHOLE);
    interval.text = NULL;
    plot_layer(p, interval);
    for (int i = 0; i < 3; i++) {
        l.only[at] = states[i].state;
        l.style = plot_marked(PLOT_OWN, states[i].mark, states[i].size);
        plot_layer(p, l);
    }
}

/* Entries for marks that are not full. */
static void put_state_keys(struct plot *p, const struct count *n)
{
    if (n->state[MARK_HOLLOW])
        plot_key(p, "partial or disturbed", plot_marked(PLOT_GREY, PLOT_HOLLOW, 1.4));
    if (n->state[MARK_CROSS] > n->too_large)
        plot_key(p, "no figure", plot_marked(PLOT_GREY, PLOT_CROSS, 1.4));
}

static void put_series_keys(struct plot *p, const struct chart *c, const char *before)
{
    for (int i = 0; i < c->n_series; i++)
        plot_key(p,
                 plot_printf(p, "%s%s", before,
                             plot_keep(p, series_name(c, i), NAME_CHARACTERS)),
                 (struct plot_style){i, 2, PLOT_WHOLE, PLOT_SHAPE, 1.3, 0});
}

/* ---- lines ----------------------------------------------------------------------- */

static void put_line_panel(struct plot *p, const struct chart *c,
                           const struct chart_axes *a, int panel)
{
    const struct chart_scale *s = &a->y[panel];
    struct plot_panel *to =
        plot_panel(p, chart_panel_height(c, panel), a->x_min, a->x_max, s->min, s->max);
    const struct plot_only here = {"panel", panel, panel};
    struct plot_layer l = {.panel = panel,
                           .form = PLOT_LINE,
                           .x = {c->x_name, 0},
                           .y = {c->other_name, 0},
                           .by = "series",
                           .n_by = c->n_series,
                           .only = {here, {"doubtful", 0, 0}},
                           .style = plot_stroke(PLOT_OWN, 1.6, PLOT_DASHED)};

    to->x.no_grid = true;
    to->y.is_log = s->log;
    to->y.title = plot_printf(p, "%s%s", c->y_title ? c->y_title : "tokens per second",
                              panel    ? " (slower series)"
                              : s->log ? " (logarithmic)"
                                       : "");
    to->x.no_figures = panel + 1 < c->n_panels;
    if (!to->x.no_figures)
        to->x.title = c->x_title;
    for (double x = -INFINITY; isfinite(x = chart_next_x(c, x));)
        plot_tick(p, &to->x, x, NULL);
    plot_layer(p, l);
    l.only[1] = (struct plot_only){"doubtful", 1, 1};
    l.style = plot_stroke(PLOT_OWN, 1.4, PLOT_DOTTED);
    plot_layer(p, l);
    l.y.column = c->y_name;
    l.only[1] = (struct plot_only)FIGURES;
    l.style = plot_stroke(PLOT_OWN, 2, PLOT_WHOLE);
    plot_layer(p, l);
    l.form = PLOT_MARKS;
    l.only[1] = (struct plot_only){NULL, 0, 0};
    l.text = ".hint";
    put_mark_layers(p, l);
    l.form = PLOT_TEXT;
    l.only[1] = (struct plot_only)NONE;
    l.text = "note";
    l.anchor = PLOT_LEFT;
    l.dx = 10;
    plot_layer(p, l);
}

static void put_lines(struct plot *p, struct chart *c, const struct chart_axes *a)
{
    const struct count n = count_of(c);

    put_marks(p, c, NULL);
    for (int panel = 0; panel < c->n_panels; panel++)
        put_line_panel(p, c, a, panel);
    put_series_keys(p, c, "");
    if (n.roofs[0])
        plot_key(p, plot_printf(p, "roof: %s", chart_roof(c)),
                 plot_stroke(PLOT_GREY, 1.6, PLOT_DASHED));
    if (n.roofs[1])
        plot_key(p, "roof of disturbed runs", plot_stroke(PLOT_GREY, 1.4, PLOT_DOTTED));
    put_state_keys(p, &n);
}

/* ---- bars ------------------------------------------------------------------------ */

struct bar_size {
    double bar, row; /* pixels */
};

static struct bar_size bar_size(const struct chart *c)
{
    const double bar = c->n_groups <= 1 ? 26 : c->n_groups == 2 ? 22 : 18;

    return (struct bar_size){bar, fmax(32, bar * c->n_groups + 12)};
}

/* Bars of one series are side by side, or one below the other as rows go. */
static void place_bars(struct chart *c)
{
    const struct bar_size size = bar_size(c);

    for (size_t i = 0; i < c->n; i++)
        c->v[i].x = c->v[i].series +
                    (c->v[i].group - (c->n_groups - 1) / 2.0) * size.bar / size.row;
}

static bool is_speedup(const struct chart *c)
{
    return !strcmp(c->y_name, "speedup");
}

static const char *bar_label(struct plot *p, const struct chart *c, struct mark *m)
{
    m->label_x = fmax(m->y, m->hi); /* it passes over a NaN */
    m->label_y = m->x;
    if (m->state == MARK_CROSS)
        return *m->note ? m->note : "no figure";
    return is_speedup(c) ? plot_printf(p, "%.2f   %s", m->y, m->note)
                         : plot_printf(p, "%s", report_figure(m->y).text);
}

/* The panel of rows that are series. */
static struct plot_panel *put_rows(struct plot *p, const struct chart *c, double height,
                                   double x_max)
{
    struct plot_panel *to = plot_panel(p, height, 0, x_max, c->n_series - 0.5, -0.5);

    to->y.has_names = true;
    to->x.has_room = true;
    for (int i = 0; i < c->n_series; i++)
        plot_tick(p, &to->y, i, plot_keep(p, series_name(c, i), NAME_CHARACTERS));
    return to;
}

/* The texts behind bars, dx pixels from their ends. */
static void put_bar_texts(struct plot *p, double dx)
{
    plot_layer(p, (struct plot_layer){.form = PLOT_TEXT,
                                      .x = {"label_x", 0},
                                      .y = {"label_y", 0},
                                      .text = "label",
                                      .anchor = PLOT_LEFT,
                                      .dx = dx,
                                      .style = {.color = PLOT_INK}});
}

static void put_bar_layers(struct plot *p, const struct chart *c, double half)
{
    struct plot_layer l = {.form = PLOT_BOX,
                           .x2 = {c->y_name, 0},
                           .y = {c->x_name, -half},
                           .y2 = {c->x_name, half},
                           .by = "group",
                           .n_by = c->n_groups,
                           .is_ordered = !is_speedup(c),
                           .only = {GOOD},
                           .style = plot_filled(PLOT_OWN, 0.85),
                           .text = ".hint"};

    plot_layer(p, l);
    l.only[0] = (struct plot_only)DOUBTFUL;
    l.style.opacity = -1;
    plot_layer(p, l);
    l.form = PLOT_MARKS;
    l.x = (struct plot_place){c->y_name, 0};
    l.y.plus = 0;
    l.only[0] = (struct plot_only)NONE;
    l.style = plot_marked(PLOT_OWN, PLOT_CROSS, 1.1);
    plot_layer(p, l);
    l = (struct plot_layer){.form = PLOT_INTERVAL,
                            .x = {"lo", 0},
                            .x2 = {"hi", 0},
                            .y = {c->x_name, 0},
                            .y2 = {c->x_name, 0},
                            .only = {FIGURES},
                            .style = plot_stroke(PLOT_INK, 1.2, PLOT_WHOLE)};
    plot_layer(p, l);
    put_bar_texts(p, 9);
}

static void put_bars(struct plot *p, struct chart *c, const struct chart_axes *a)
{
    const struct bar_size size = bar_size(c);
    const struct count n = count_of(c);
    struct plot_panel *to = put_rows(p, c, size.row, a->y[0].max / 1.12);

    to->x.title = c->x_title;
    put_marks(p, c, bar_label);
    put_bar_layers(p, c, 0.43 * size.bar / size.row);
    if (is_speedup(c))
        plot_across(p, 0, true, 1, false, plot_stroke(PLOT_INK, 1.2, PLOT_SHORT));
    for (int k = 0; k < c->n_groups; k++) {
        const struct plot_layer l = {.n_by = c->n_groups,
                                     .is_ordered = !is_speedup(c),
                                     .style = plot_filled(PLOT_OWN, 0.85)};

        plot_key(p, c->group[k], plot_style_of(&l, k));
    }
    if (n.state[MARK_HOLLOW])
        plot_key(p, "partial or disturbed", plot_filled(PLOT_GREY, -1));
    if (n.state[MARK_CROSS])
        plot_key(p, "no figure", plot_marked(PLOT_GREY, PLOT_CROSS, 1.1));
}

/* ---- memory ---------------------------------------------------------------------- */

static double figure_or_0(double v)
{
    return isfinite(v) ? v : 0;
}

static const char *amount(char buf[32], double gib)
{
    return format_bytes(buf, 32, (uint64_t)(gib * GIB));
}

/* Texts are behind the bar and the mark of the plan, and behind the limit where that
 * would cross them. */
static const char *memory_label(struct plot *p, const struct chart *c, struct mark *m)
{
    const double end =
        fmax(fmax(figure_or_0(m->extra), figure_or_0(m->y)), figure_or_0(m->other));
    const double needed = figure_or_0(isfinite(m->extra) ? m->extra : m->y);
    const bool crosses = m->limit > 0.98 * end && m->limit < 1.55 * end;
    char own[32], charged[32];
    const bool has_both = isfinite(m->extra) && isfinite(m->y);

    (void)c;
    m->label_x = crosses ? m->limit : end;
    m->label_y = m->x;
    if (!(needed > 0))
        return m->note;
    return plot_printf(p, "%s%s%s%s%s%s", amount(own, needed),
                       has_both ? " (charged " : "",
                       has_both ? amount(charged, m->y) : "", has_both ? ")" : "",
                       *m->note ? "  " : "", m->note);
}

static const char *short_memory_label(struct plot *p, const struct chart *c,
                                      struct mark *m)
{
    const double needed = figure_or_0(isfinite(m->extra) ? m->extra : m->y);
    const char *whole = memory_label(p, c, m);
    char own[32];

    return !(needed > 0) ? whole
                         : plot_printf(p, "%s%s%s", amount(own, needed),
                                       *m->note ? "  " : "", m->note);
}

static void put_memory_layers(struct plot *p, const struct chart *c)
{
    const double half = c->n_series < 3 ? 0.2 : 0.34;
    struct plot_layer l = {.form = PLOT_BOX, .text = ".hint"};

    for (int is_extra = 0; is_extra < 2; is_extra++)
        for (int state = 0; state < 2; state++) {
            const double h = is_extra ? 0.6 * half : half;

            l.x2.column = is_extra ? c->extra_name : c->y_name;
            l.y = (struct plot_place){c->x_name, -h};
            l.y2 = (struct plot_place){c->x_name, h};
            l.only[0] = (struct plot_only){"state", state, state};
            l.style = plot_filled(state, is_extra ? 1 : 0.28);
            plot_layer(p, l);
        }
    l = (struct plot_layer){.form = PLOT_SEGMENT,
                            .x = {"limit", 0},
                            .x2 = {"limit", 0},
                            .y = {c->x_name, -0.45},
                            .y2 = {c->x_name, 0.45},
                            .style = plot_stroke(PLOT_BAD, 2.2, PLOT_WHOLE)};
    plot_layer(p, l);
    l = (struct plot_layer){.form = PLOT_MARKS,
                            .x = {c->other_name, 0},
                            .y = {c->x_name, 0},
                            .style = plot_marked(4, PLOT_DIAMOND, 1.4)};
    plot_layer(p, l);
    put_bar_texts(p, 11);
}

/* A small model's axis is in MiB. */
static void put_memory_axis(struct plot *p, struct plot_axis *x)
{
    const bool is_small = x->max < 2;
    double v[PLOT_MAX_TICKS];
    const int n = is_small ? plot_find_ticks(0, 4096 * x->max, false, 30, v) : 0;

    x->title = is_small ? "MiB" : "GiB";
    for (int i = 0; i < n; i++)
        plot_tick(p, x, v[i] / 1024, plot_printf(p, "%.6g", v[i]));
}

static void put_memory(struct plot *p, struct chart *c, const struct chart_axes *a,
                       bool in_page)
{
    const double row = fmin(fmax(452.0 / c->n_series, 24), 70);
    const struct count n = count_of(c);
    struct plot_panel *to = put_rows(p, c, row, a->y[0].max);

    p->keys_below = true;
    to->has_lines = true;
    put_memory_axis(p, &to->x);
    put_marks(p, c, in_page ? short_memory_label : memory_label);
    put_memory_layers(p, c);
    if (n.extra)
        plot_key(p, "must stay resident", plot_filled(0, 1));
    if (n.extra && n.state[MARK_HOLLOW])
        plot_key(p, "the same, where points page or failed", plot_filled(1, 1));
    plot_key(p, "charged, with page cache that can be given back",
             plot_filled(0, 0.28));
    plot_key(p, "planned", plot_marked(4, PLOT_DIAMOND, 1.4));
    if (n.limits)
        plot_key(p, "limit", plot_stroke(PLOT_BAD, 2.2, PLOT_WHOLE));
}

/* ---- a frontier ------------------------------------------------------------------ */

/* Powers of ten, and where 0 is: a divergence of 0 has no place on a logarithmic axis,
 * and is beyond a gap in it. */
static void put_pareto_axis(struct plot *p, struct plot_panel *to,
                            const struct chart_axes *a, bool in_page)
{
    to->x.is_log = true;
    to->x.title = in_page ? "divergence from the reference, nats"
                          : "Kullback-Leibler divergence from the reference, nats "
                            "(logarithmic; less is better)";
    if (isfinite(a->zero_x))
        plot_tick(p, &to->x, a->zero_x, "0");
    for (double t = pow(10, ceil(log10(a->x_min))); t > 0 && t <= a->x_max; t *= 10)
        if (!isfinite(a->gap_x) || t >= a->gap_x * 1.1)
            plot_tick(p, &to->x, t, NULL);
    if (!isfinite(a->gap_x))
        return;
    plot_break(p, 0, true, log(a->gap_x / a->x_min) / log(a->x_max / a->x_min));
    plot_across(p, 0, true, a->gap_x, true, plot_stroke(PLOT_GREY, 1, PLOT_DOTTED));
}

static void put_pareto(struct plot *p, struct chart *c, const struct chart_axes *a,
                       bool in_page)
{
    const struct count n = count_of(c);
    struct plot_panel *to =
        plot_panel(p, HEIGHT, a->x_min, a->x_max, a->y[0].min, a->y[0].max);
    struct plot_layer l = {.form = PLOT_STEPS,
                           .x = {c->x_name, 0},
                           .y = {c->other_name, 0},
                           .by = "series",
                           .n_by = c->n_series,
                           .style = plot_stroke(PLOT_OWN, 2, PLOT_WHOLE)};

    to->y.is_log = a->y[0].log;
    to->x.no_grid = true;
    to->y.title = a->y[0].log ? "tokens per second (logarithmic)" : "tokens per second";
    put_pareto_axis(p, to, a, in_page);
    put_marks(p, c, NULL);
    plot_layer(p, l);
    l.form = PLOT_MARKS;
    l.y.column = c->y_name;
    l.only[0] = (struct plot_only){"group", 0, 0};
    l.text = ".hint";
    put_mark_layers(p, l);
    l.only[0] = (struct plot_only){"group", 1, 1};
    l.style = plot_marked(PLOT_OWN, PLOT_TRIANGLE, 1.6);
    plot_layer(p, l);
    l = (struct plot_layer){.form = PLOT_TEXT,
                            .x = {"label_x", 0},
                            .y = {"label_y", 0},
                            .text = "note",
                            .mark_x = c->x_name,
                            .mark_y = c->y_name,
                            .style = {.color = PLOT_INK}};
    plot_layer(p, l);
    put_series_keys(p, c, "against ");
    plot_key(p, "nothing better in both", plot_stroke(PLOT_GREY, 2, PLOT_WHOLE));
    plot_key(p, n.limits ? "fits the memory limit" : "measured",
             plot_marked(PLOT_GREY, PLOT_DOT, 1.3));
    if (n.too_large)
        plot_key(p, "does not fit the limit",
                 plot_marked(PLOT_GREY, PLOT_TRIANGLE, 1.6));
    put_state_keys(p, &n);
}

/* ---- all ------------------------------------------------------------------------- */

struct plot *chart_plot(struct chart *c, bool in_page)
{
    struct chart_axes a;
    struct plot *p;

    chart_choose_panels(c);
    if (c->bars && !c->extra_name)
        place_bars(c);
    c->has_figure =
        chart_find_axes(c, &a, in_page ? plot_look_page.shrink : plot_look_file.shrink);
    if (!c->has_figure)
        return NULL;
    p = plot_new(c->name, c->title, c->subtitle);
    if (!p)
        return NULL;
    for (size_t i = 0; i < c->n; i++)
        c->v[i].label_x = c->v[i].label_y = NAN;
    if (c->extra_name)
        put_memory(p, c, &a, in_page);
    else if (c->log_x)
        put_pareto(p, c, &a, in_page);
    else if (c->bars)
        put_bars(p, c, &a);
    else
        put_lines(p, c, &a);
    return p;
}
