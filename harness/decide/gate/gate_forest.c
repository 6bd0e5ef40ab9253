/* SPDX-License-Identifier: MIT
 *
 * gate_forest.c - the forest plot: every metric's effect with its interval, the margin,
 * and the launches that it was found from
 */
#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "harness/chart/chart_files.h"
#include "harness/base/format.h"
#include "harness/decide/gate/gate_report.h"

#define NAME     "gate_forest"
#define NAME_CAP 56 /* bytes of a metric's name that fit */

#define MODEL_CHARACTERS 60 /* of the model's name, next to the rest of its line */

/* Least and most of the axis, in percent. */
struct range {
    double lo, hi;
};

static double percent(double ratio)
{
    return 100 * (ratio - 1);
}

static void include(struct range *x, double v)
{
    if (!isfinite(v))
        return;
    x->lo = fmin(x->lo, v);
    x->hi = fmax(x->hi, v);
}

/* The launch's ratio; NAN where all of its rounds were disturbed. */
static double launch_percent(const struct gate_series *s, size_t launch)
{
    return s->n_rounds[launch]
               ? percent(exp(gate_middle(s->v[launch], s->n_rounds[launch])))
               : NAN;
}

static bool has_effect(const struct gate_metric *m)
{
    return isfinite(m->effect.ratio);
}

/* Intervals, 0 and the least margin are shown whole; a wider margin need not be seen.
 * Launches are shown up to the same distance again, so that one outlier does not
 * compress everything else.
 */
static struct range find_range(const struct gate_result *r)
{
    double least = INFINITY;
    struct range x;

    for (size_t i = 0; i < r->n_metrics; i++)
        least = fmin(least, 100 * r->metric[i].margin);
    least = fmax(least, 0.1); /* where all are alike */
    x = (struct range){-1.5 * least, least};
    for (size_t i = 0; i < r->n_metrics; i++) {
        const struct gate_effect *e = &r->metric[i].effect;

        include(&x, percent(e->ratio));
        include(&x, percent(e->lo));
        include(&x, percent(e->hi));
    }
    const struct range core = x;
    const double reach = 0.5 * (core.hi - core.lo);
    for (size_t i = 0; i < r->n_metrics; i++)
        for (size_t l = 0; l < r->metric[i].series.n_launches; l++) {
            const double v = launch_percent(&r->metric[i].series, l);

            if (isfinite(v))
                include(&x, fmax(core.lo - reach, fmin(core.hi + reach, v)));
        }
    const double rim = 0.03 * (x.hi - x.lo);
    return (struct range){x.lo - rim, x.hi + rim};
}

/* Where in its line, from -1 to 1, launch i's dot stands: evenly spread whatever their
 * number, and not in their order (the golden ratio's multiples). */
static double scatter(size_t i)
{
    return 2 * fmod((double)(i + 1) * 0.6180339887498949, 1) - 1;
}

enum { KIND_METRIC, KIND_LAUNCH, KIND_BEYOND };

static void put_row(struct plot *p, int kind, const struct gate_metric *m, double y,
                    double value, double lo, double hi)
{

    PLOT_NUMBERS(p, kind, gate_metric_verdict(m), y, value, lo, hi);
    plot_string(p, m->name);
}

static void put_metric(struct plot *p, const struct gate_metric *m, size_t line,
                       const struct range *x)
{
    const struct gate_effect *e = &m->effect;
    const bool whole = isfinite(e->lo) && isfinite(e->hi);

    put_row(p, KIND_METRIC, m, (double)line, percent(e->ratio),
            percent(whole ? e->lo : e->ratio), percent(whole ? e->hi : e->ratio));
    for (size_t l = 0; l < m->series.n_launches; l++) {
        const double v = launch_percent(&m->series, l);
        const bool beyond = v < x->lo || v > x->hi;

        if (isfinite(v))
            put_row(p, beyond ? KIND_BEYOND : KIND_LAUNCH, m,
                    (double)line + 0.3 * scatter(l), fmax(x->lo, fmin(x->hi, v)), NAN,
                    NAN);
    }
}

static void count_kinds(const struct gate_result *r, const struct range *x,
                        int n_verdict[4], int *n_dots, int *n_beyond)
{
    for (size_t i = 0; i < r->n_metrics; i++) {
        const struct gate_metric *m = &r->metric[i];

        n_verdict[gate_metric_verdict(m)]++;
        for (size_t l = 0; l < m->series.n_launches; l++) {
            const double v = launch_percent(&m->series, l);

            *n_dots += v >= x->lo && v <= x->hi;
            *n_beyond += v < x->lo || v > x->hi;
        }
    }
}

/* Colours of verdicts: a pass, a failure, neither. */
static int color_of(enum gate_verdict v)
{
    return v == GATE_PASS ? 2 : v == GATE_FAIL ? 1 : PLOT_WARN;
}

/* ---- texts right of the lines ---------------------------------------------------- */

/* Columns, in pixels from the panel's right edge. */
static const struct {
    double x;
    enum plot_anchor anchor;
    const char *name;
} columns[] = {{95, PLOT_RIGHT, "change"},
               {115, PLOT_LEFT, "95 % interval"},
               {310, PLOT_RIGHT, "margin"},
               {330, PLOT_LEFT, "verdict"}};
enum { CHANGE, INTERVAL, MARGIN, VERDICT };
#define COLUMNS_WIDTH 410

static void put_text(struct plot *p, int column, struct plot_at y, double dy, int color,
                     const char *text)
{
    plot_guide(p, (struct plot_guide){.form = PLOT_TEXT,
                                      .x = {1, true},
                                      .y = y,
                                      .dx = columns[column].x,
                                      .dy = dy,
                                      .anchor = columns[column].anchor,
                                      .text = text,
                                      .style = {.color = color}});
}

static void put_texts(struct plot *p, const struct gate_metric *m, size_t line)
{
    const struct plot_at y = {(double)line, false};
    const enum gate_verdict verdict = gate_metric_verdict(m);
    const struct gate_text interval = gate_interval_text(&m->effect);

    put_text(p, CHANGE, y, 0, PLOT_INK, gate_change_text(m->effect.ratio).text);
    put_text(p, INTERVAL, y, 0, PLOT_INK,
             *interval.text  ? interval.text
             : has_effect(m) ? "no interval"
                             : "not measured");
    put_text(p, MARGIN, y, 0, PLOT_INK, plot_printf(p, "%+g %%", -100 * m->margin));
    put_text(p, VERDICT, y, 0, color_of(verdict), gate_verdict_word(verdict));
}

/* Beyond its margin a line's ground is tinted; every other line has a faint band. */
static void put_ground(struct plot *p, const struct gate_metric *m, size_t line)
{
    const double margin = -100 * m->margin;
    struct plot_guide g = {.form = PLOT_BOX,
                           .x = {0, true},
                           .x2 = {1, true},
                           .y = {(double)line - 0.5, false},
                           .y2 = {(double)line + 0.5, false},
                           .is_behind = true,
                           .style = plot_filled(PLOT_INK, 0.04)};

    if (line % 2)
        plot_guide(p, g);
    if (!(margin > p->panel[0].x.min))
        return;
    g.x2 = (struct plot_at){margin, false};
    g.style = plot_filled(1, 0.1);
    plot_guide(p, g);
    g.form = PLOT_SEGMENT;
    g.x = g.x2;
    g.style = plot_stroke(1, 1.4, PLOT_SHORT);
    plot_guide(p, g);
}

/* ---- marks ----------------------------------------------------------------------- */

static void put_layers(struct plot *p)
{
    static const struct {
        int verdict;
        enum plot_mark mark;
        double size;
    } marks[] = {{GATE_PASS, PLOT_DOT, 1.9},
                 {GATE_FAIL, PLOT_DIAMOND, 2.5},
                 {GATE_UNCLEAR, PLOT_RING, 1.9}};
    struct plot_layer l = {.form = PLOT_MARKS,
                           .x = {"percent", 0},
                           .y = {"y", 0},
                           .y2 = {"y", 0},
                           .only = {{"kind", KIND_LAUNCH, KIND_LAUNCH}},
                           .style = plot_marked(PLOT_GREY, PLOT_DOT, 0.6)};

    plot_layer(p, l);
    l.only[0].low = l.only[0].high = KIND_BEYOND;
    l.style = plot_marked(PLOT_GREY, PLOT_CROSS, 0.8);
    plot_layer(p, l);
    l.only[0].low = l.only[0].high = KIND_METRIC;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const int color = color_of((enum gate_verdict)marks[i].verdict);

        l.only[1] = (struct plot_only){"verdict", marks[i].verdict, marks[i].verdict};
        l.form = PLOT_INTERVAL;
        l.x.column = "lo";
        l.x2.column = "hi";
        l.style = plot_stroke(color, 2.6, PLOT_WHOLE);
        plot_layer(p, l);
        l.form = PLOT_MARKS;
        l.x.column = "percent";
        if (marks[i].mark == PLOT_RING) { /* its line does not show through */
            l.style = plot_marked(PLOT_PAPER, PLOT_DOT, marks[i].size);
            plot_layer(p, l);
        }
        l.style = plot_marked(color, marks[i].mark, marks[i].size);
        plot_layer(p, l);
    }
}

static void put_keys(struct plot *p, const int n_verdict[4], int n_dots, int n_beyond,
                     bool is_stored)
{
    if (n_verdict[GATE_PASS])
        plot_key(p, "pass", plot_marked(2, PLOT_DOT, 1.9));
    if (n_verdict[GATE_FAIL])
        plot_key(p, "fail", plot_marked(1, PLOT_DIAMOND, 2.5));
    if (n_verdict[GATE_UNCLEAR])
        plot_key(p, "inconclusive", plot_marked(PLOT_WARN, PLOT_RING, 1.9));
    if (n_dots)
        plot_key(p, is_stored ? "one new run" : "one launch of both programs",
                 plot_marked(PLOT_GREY, PLOT_DOT, 0.8));
    if (n_beyond)
        plot_key(p, is_stored ? "a run further out" : "a launch further out",
                 plot_marked(PLOT_GREY, PLOT_CROSS, 0.8));
}

static size_t n_margins(const struct gate_result *r)
{
    size_t n = r->n_metrics > 0;

    for (size_t i = 1; i < r->n_metrics; i++)
        n += r->metric[i].margin != r->metric[i - 1].margin;
    return n;
}

static void make_title(char *buf, size_t cap, const struct gate_result *r,
                       const int n_verdict[4])
{
    const char *word = gate_verdict_word(r->verdict);
    const struct gate_metric *m = gate_worst(r);
    char margin[48];

    snprintf(margin, sizeof margin, n_margins(r) > 1 ? "the margin" : "%.3g %%",
             m ? 100 * m->margin : 0);

    if (gate_stands_alone(r))
        snprintf(buf, cap, "Gate: %s", word);
    else if (r->verdict == GATE_FAIL)
        snprintf(buf, cap, "Gate: %s, %d of %zu metric%s lost more than %s", word,
                 n_verdict[GATE_FAIL], r->n_metrics, plural(r->n_metrics, "s"), margin);
    else if (r->verdict == GATE_PASS)
        snprintf(buf, cap, "Gate: %s, no metric lost more than %s", word, margin);
    else
        snprintf(buf, cap, "Gate: %s, %d of %zu metric%s undecided", word,
                 n_verdict[GATE_UNCLEAR], r->n_metrics, plural(r->n_metrics, "s"));
}

static void describe(char *buf, size_t cap, const struct gate_result *r)
{
    char measured[160], model[256], text[1024];

    if (r->mode == GATE_MODE_BASELINE)
        snprintf(measured, sizeof measured, "%zu new run%s against %.80s",
                 r->n_launches, plural(r->n_launches, "s"), r->settings);
    else
        snprintf(measured, sizeof measured, "%zu round%s of %zu launch%s", r->n_rounds,
                 plural(r->n_rounds, "s"), r->n_launches, plural(r->n_launches, "es"));
    snprintf(text, sizeof text, "%s%s%s%s%s%s",
             text_shorten(model, sizeof model, r->model, MODEL_CHARACTERS),
             r->model[0] ? " \xc2\xb7 " : "", r->cpu, r->cpu[0] ? " \xc2\xb7 " : "",
             measured, r->injected > 0 ? " \xc2\xb7 B slowed on purpose" : "");
    utf8_printable(buf, cap, text, strlen(text));
}

/* A panel with a line for each metric, and room for the texts right of it. */
static void put_panel(struct plot *p, const struct gate_result *r,
                      const struct range *x)
{
    const double height = r->n_metrics == 1 ? 80 : r->n_metrics < 5 ? 56 : 40;
    struct plot_panel *a =
        plot_panel(p, height, x->lo, x->hi, (double)r->n_metrics - 0.5, -0.5);

    a->top_room = 16;
    a->right_room = COLUMNS_WIDTH;
    a->y.has_names = true;
    a->x.no_grid = true;
    a->x.unit = "%";
    a->x.title = "change of B against A (left of 0: B is worse)";
    for (size_t i = 0; i < r->n_metrics; i++) {
        const struct gate_metric *m = &r->metric[i];
        char name[NAME_CAP];

        plot_tick(p, &a->y, (double)i,
                  utf8_printable(name, sizeof name, m->name, strlen(m->name)));
        put_ground(p, m, i);
        put_texts(p, m, i);
        put_metric(p, m, i, x);
    }
    for (int i = 0; i < 4; i++)
        put_text(p, i, (struct plot_at){1, true}, -12, i == MARGIN ? 1 : PLOT_GREY,
                 columns[i].name);
    plot_across(p, 0, true, 0, true, plot_stroke(PLOT_GREY, 1.2, PLOT_WHOLE));
}

struct plot *gate_forest_plot(const struct gate_result *r)
{
    const struct range x = find_range(r);
    char title[96], subtitle[1024];
    int n_verdict[4] = {0}, n_dots = 0, n_beyond = 0;
    struct plot *p;

    count_kinds(r, &x, n_verdict, &n_dots, &n_beyond);
    make_title(title, sizeof title, r, n_verdict);
    describe(subtitle, sizeof subtitle, r);
    p = plot_new(NAME, title, subtitle);
    if (!p)
        return NULL;
    plot_columns(p, "kind,verdict,y,percent,lo,hi,name");
    put_panel(p, r, &x);
    put_layers(p);
    put_keys(p, n_verdict, n_dots, n_beyond, r->mode == GATE_MODE_BASELINE);
    if (*r->when)
        plot_note(p, plot_printf(p, "measured %.10s", r->when));
    p->keys_below = true;
    return p;
}

bool gate_forest_has_any(const struct gate_result *r)
{
    bool any = false;

    for (size_t i = 0; i < r->n_metrics; i++)
        any = any || has_effect(&r->metric[i]);
    return any;
}

enum status gate_forest_draw(const struct gate_result *r, const char *dir,
                             struct err *err)
{
    char again[300];

    if (!gate_forest_has_any(r)) {
        chart_files_remove(dir, NAME);
        return ST_OK;
    }
    snprintf(again, sizeof again, "bench gate --report %.200s", dir);
    return chart_files_draw(gate_forest_plot(r), dir, again, err);
}
