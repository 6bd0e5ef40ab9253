/* SPDX-License-Identifier: MIT
 *
 * chart_axes.c - ranges and panels of a chart
 */
#include "harness/show/report/report_chart.h"

#include <math.h>
#include <string.h>

/* Beyond this ratio a linear axis would press the small figures onto zero. */
#define LOG_RATIO 20.0
/* Between neighbouring panels at least; where series are closer the logarithmic axis
 * is full. */
#define PANEL_GAP 4.0
/* A roof so far above all figures of a panel that was split off is not in it. */
#define ROOF_RATIO 5.0
/* Between crosses one above the other, whose texts stand next to them; pixels. */
#define CROSS_STEP 17.0

static void include(double *min, double *max, double value)
{
    if (!isfinite(value))
        return;
    *min = fmin(*min, value);
    *max = fmax(*max, value);
}

/* ---- panels ---------------------------------------------------------------------- */

/* Range of a series' figures; most 0: it has none. */
struct level {
    int series;
    double least, most;
};

static int find_levels(const struct chart *c, struct level *v)
{
    int n = 0;

    for (int s = 0; s < c->n_series; s++) {
        struct level l = {s, INFINITY, 0};
        int at = n;

        for (size_t i = 0; i < c->n; i++)
            if (c->v[i].series == s && c->v[i].y > 0)
                include(&l.least, &l.most, c->v[i].y);
        if (!(l.most > 0))
            continue;
        for (; at > 0 && v[at - 1].most < l.most; at--)
            v[at] = v[at - 1];
        v[at] = l;
        n++;
    }
    return n;
}

static double lowest_of(const struct level *v, int begin, int end)
{
    double least = INFINITY;

    for (int i = begin; i < end; i++)
        least = fmin(least, v[i].least);
    return least;
}

/* Where to split v[begin, end), the fastest first: at the widest gap; 0: nowhere. */
static int find_split(const struct level *v, int begin, int end)
{
    double widest = PANEL_GAP;
    int split = 0;

    if (end - begin < 2 || v[begin].most / lowest_of(v, begin, end) <= LOG_RATIO)
        return 0;
    for (int i = begin + 1; i < end; i++) {
        const double gap = lowest_of(v, begin, i) / v[i].most;

        if (gap >= widest) {
            widest = gap;
            split = i;
        }
    }
    return split;
}

void chart_choose_panels(struct chart *c)
{
    struct level v[CHART_MAX_SERIES];
    const int n = find_levels(c, v);
    int ends[CHART_MAX_PANELS] = {n};

    c->n_panels = 1;
    for (int p = 0; c->may_split && p < c->n_panels;) {
        const int split = find_split(v, p ? ends[p - 1] : 0, ends[p]);

        if (!split || c->n_panels == CHART_MAX_PANELS) {
            p++;
            continue;
        }
        memmove(ends + p + 1, ends + p, (size_t)(c->n_panels - p) * sizeof *ends);
        ends[p] = split;
        c->n_panels++;
    }
    for (int s = 0; s < c->n_series; s++)
        c->panel[s] = c->n_panels - 1; /* without a figure: a cross below */
    for (int p = 0, i = 0; p < c->n_panels; p++)
        for (; i < ends[p]; i++)
            c->panel[v[i].series] = p;
}

/* ---- ranges ---------------------------------------------------------------------- */

/* The largest of 1, 2, 5 x 10^n that is not above v; v > 0. */
static double step_below(double v)
{
    const double decade = pow(10, floor(log10(v)));

    return v >= 5 * decade ? 5 * decade : v >= 2 * decade ? 2 * decade : decade;
}

double chart_panel_height(const struct chart *c, int panel)
{
    static const double heights[][CHART_MAX_PANELS] = {
        {487}, {400, 220}, {360, 190, 190}};

    return heights[c->n_panels - 1][panel];
}

static void find_scale(struct chart *c, int panel, double shrink, struct chart_scale *s)
{
    const double step =
        fmax(0.06, CROSS_STEP / (shrink * chart_panel_height(c, panel)));
    double least = INFINITY, most = -INFINITY, min_end = INFINITY;

    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];

        if (c->panel[m->series] != panel)
            continue;
        include(&least, &most, m->y);
        include(&min_end, &most, m->lo);
        include(&min_end, &most, m->hi);
    }
    if (c->n_panels > 1) {
        for (size_t i = 0; i < c->n; i++)
            if (c->panel[c->v[i].series] == panel && c->v[i].other > ROOF_RATIO * most)
                c->v[i].other = NAN;
    }
    for (size_t i = 0; i < c->n; i++) {
        if (c->panel[c->v[i].series] != panel)
            continue;
        include(&least, &most, c->v[i].other);
        include(&least, &most, c->v[i].extra);
        if (!c->log_x) /* there it is no quantity of this axis */
            include(&least, &most, c->v[i].limit);
    }
    /* an interval that reaches far down is as well seen on a linear axis */
    s->log = !c->bars && least > 0 && most / least > LOG_RATIO;
    least = fmin(least, min_end);
    if (!(least > 0))
        least = most / LOG_RATIO;
    s->min = s->log ? step_below(least / 1.5) : 0;
    s->max = s->log ? most * 1.25 : most * 1.12;
    s->cross = s->log ? s->min * pow(s->max / s->min, 0.04) : 0.04 * s->max;
    s->cross_step = s->log ? pow(s->max / s->min, step) : step * s->max;
}

/* A logarithmic axis from below the least quantity to above the largest, with room
 * for labels. A 0 stands left of all others, beyond a gap in the axis. */
static void find_log_x(struct chart *c, struct chart_axes *a)
{
    double least = INFINITY, most = -INFINITY;
    bool any_zero = false;

    for (size_t i = 0; i < c->n; i++) {
        any_zero |= !(c->v[i].x > 0);
        if (c->v[i].x > 0)
            include(&least, &most, c->v[i].x);
    }
    if (!(most > 0))
        least = most = 1;
    const double room = fmax(3, pow(most / least, 0.12));

    if (any_zero) {
        a->zero_x = least / (room * room);
        a->gap_x = least / room;
        for (size_t i = 0; i < c->n; i++)
            if (!(c->v[i].x > 0))
                c->v[i].x = a->zero_x;
        least = a->zero_x;
    }
    a->x_min = least / pow(most / least * 10, 0.12);
    a->x_max = most * pow(most / least * 10, 0.15);
}

/* Crosses of one panel at one x stand one above the other. */
static void place_crosses(struct chart *c, const struct chart_axes *a)
{
    for (size_t i = 0; i < c->n; i++) {
        const int panel = c->panel[c->v[i].series];
        const struct chart_scale *s = &a->y[panel];
        int below = 0;

        if (c->v[i].state != MARK_CROSS)
            continue;
        for (size_t k = 0; k < i; k++)
            below += c->v[k].state == MARK_CROSS && c->v[k].x == c->v[i].x &&
                     c->panel[c->v[k].series] == panel;
        c->v[i].y = s->log ? s->cross * pow(s->cross_step, below)
                           : s->cross + s->cross_step * below;
    }
}

bool chart_find_axes(struct chart *c, struct chart_axes *a, double shrink)
{
    bool any = false;

    *a = (struct chart_axes){
        .x_min = INFINITY, .x_max = -INFINITY, .zero_x = NAN, .gap_x = NAN};
    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];

        include(&a->x_min, &a->x_max, m->x);
        any |= m->y > 0 || m->other > 0 || m->extra > 0 || (!c->log_x && m->limit > 0);
    }
    if (!any)
        return false;
    for (int p = 0; p < c->n_panels; p++)
        find_scale(c, p, shrink, &a->y[p]);
    if (c->log_x) {
        find_log_x(c, a);
    } else {
        const double pad = c->bars ? 0.6 : fmax(0.08 * (a->x_max - a->x_min), 0.1);

        a->x_min -= pad;
        a->x_max += pad;
    }
    if (!c->extra_name) /* its marks without a figure have their plan */
        place_crosses(c, a);
    return true;
}
