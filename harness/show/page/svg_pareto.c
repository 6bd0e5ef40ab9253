/* SPDX-License-Identifier: MIT
 *
 * svg_pareto.c - decode speed against divergence from the reference, frontier drawn
 */
#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/show/page/html.h"
#include "harness/show/page/svg.h"
#include "harness/show/page/svg_chart.h"

#define HEIGHT     250.0
#define FOOT       46.0
#define LINE       14.0 /* height of a label */
#define CHARACTER  7.0  /* and width of one of its characters */
#define MOST_NAMES 128  /* labels that are kept apart */

/* ---- labels -----------------------------------------------------------------------
 */

struct box {
    double left, top, right, bottom;
};

static bool overlap(const struct box *a, const struct box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom &&
           b->top < a->bottom;
}

/* Boxes that are taken: marks, and labels placed so far. */
struct boxes {
    struct box v[2 * MOST_NAMES];
    size_t n;
};

static void take(struct boxes *taken, const struct box *b)
{
    if (taken->n < sizeof taken->v / sizeof *taken->v)
        taken->v[taken->n++] = *b;
}

static bool is_free(const struct boxes *taken, const struct box *b,
                    const struct svg_area *a)
{
    if (b->left < a->left || b->right > a->left + a->width + 12 || b->top < 0 ||
        b->bottom > a->top + a->height)
        return false;
    for (size_t i = 0; i < taken->n; i++)
        if (overlap(b, &taken->v[i]))
            return false;
    return true;
}

/* A label beside the mark at x, y: above it, below, right, left, then further away, at
 * the first place that is free; above where none is. */
static void put_label(FILE *f, const struct svg_area *a, struct boxes *taken, double x,
                      double y, const char *text)
{
    static const struct {
        double x, y; /* of the box's middle, in half widths and pixels from the mark */
        double gap;  /* pixels beside it */
    } places[] = {{0, -15, 0}, {0, 16, 0},   {1, 0, 9},   {-1, 0, -9},
                  {1, -13, 4}, {-1, 13, -4}, {1, 13, 4},  {-1, -13, -4},
                  {0, -29, 0}, {0, 30, 0},   {0, -43, 0}, {0, 44, 0}};
    const double half = CHARACTER * (double)strlen(text) / 2;
    struct box best = {0};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const double middle = x + places[i].x * half + places[i].gap;
        const double level = y + places[i].y;
        const struct box b = {middle - half, level - LINE / 2, middle + half,
                              level + LINE / 2};

        if (i == 0)
            best = b;
        if (is_free(taken, &b, a)) {
            best = b;
            break;
        }
    }
    take(taken, &best);
    svg_text(f, (best.left + best.right) / 2, best.bottom - 3, "middle", "note", text);
}

/* ---- axis -------------------------------------------------------------------------
 */

/* Decades; where 0 stands it has a place beyond a gap. */
static void put_x_axis(FILE *f, const struct svg_area *a, const struct chart_axes *axes)
{
    const double bottom = a->top + a->height;
    char text[32];

    svg_line(f, a->left, bottom, a->left + a->width, bottom, "axis");
    if (isfinite(axes->zero_x))
        svg_text(f, svg_x(a, axes->zero_x), bottom + 17, "middle", "tick", "0");
    if (isfinite(axes->gap_x))
        svg_line(f, svg_x(a, axes->gap_x), a->top, svg_x(a, axes->gap_x), bottom,
                 "rule dashed");
    for (double t = pow(10, ceil(log10(axes->x_min))); t <= axes->x_max; t *= 10) {
        if (isfinite(axes->gap_x) && t < axes->gap_x * 1.1)
            continue;
        snprintf(text, sizeof text, "%.6g", t);
        svg_text(f, svg_x(a, t), bottom + 17, "middle", "tick", text);
    }
    svg_x_title(f, a, "divergence from the reference, nats");
}

/* ---- marks ------------------------------------------------------------------------
 */

static void put_frontier(FILE *f, const struct chart *c, const struct svg_area *a,
                         int series)
{
    double last = NAN;

    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];

        if (m->series != series || !(m->other > 0))
            continue;
        if (isfinite(last)) /* a step: nothing between is better in both */
            fprintf(f, "H%.1fV%.1f", svg_x(a, m->x), svg_y(a, m->other));
        else
            fprintf(f, "<path class=\"line\" d=\"M%.1f %.1f", svg_x(a, m->x),
                    svg_y(a, m->other));
        last = m->other;
    }
    if (isfinite(last))
        fputs("\"/>\n", f);
}

static void put_marks(FILE *f, const struct chart *c, const struct svg_area *a,
                      struct boxes *taken, int series)
{
    fprintf(f, "<g class=\"s%d\">\n", series % SVG_COLORS);
    put_frontier(f, c, a, series);
    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];
        const double x = svg_x(a, m->x), y = svg_y(a, m->y);

        if (m->series != series)
            continue;
        fputs("<g>", f);
        svg_chart_hint(f, c, m);
        svg_mark(f, x, y, series, m->state);
        fputs("</g>", f);
        put_label(f, a, taken, x, y, m->note);
    }
    fputs("</g>\n", f);
}

static void put_legend(FILE *f, const struct chart *c)
{
    char name[REPORT_NAME_MAX], text[REPORT_NAME_MAX + 16];

    fputs("<ul class=\"legend\">\n", f);
    for (int s = 0; s < c->n_series; s++) {
        snprintf(text, sizeof text, "against %s",
                 svg_chart_series(c, s, name, sizeof name));
        svg_key(f, s, "line", MARK_SOLID, text);
    }
    svg_chart_key_states(f, c);
    fputs("</ul>\n", f);
}

void svg_chart_pareto(FILE *f, const struct chart *c, const struct chart_axes *axes)
{
    struct svg_area a = {.top = 12,
                         .height = HEIGHT,
                         .x = {axes->x_min, axes->x_max, true},
                         .y = {axes->y[0].min, axes->y[0].max, axes->y[0].log}};
    struct boxes taken = {.n = 0};

    put_legend(f, c);
    a.left = svg_y_labels_width(&a.y, 5);
    a.width = SVG_WIDTH - a.left - 14;
    for (size_t i = 0; i < c->n && i < MOST_NAMES; i++) {
        const double x = svg_x(&a, c->v[i].x), y = svg_y(&a, c->v[i].y);

        take(&taken, &(struct box){x - 5, y - 5, x + 5, y + 5});
    }
    svg_begin(f, SVG_WIDTH, a.top + a.height + FOOT, c->title);
    svg_y_axis(f, &a, 5);
    put_x_axis(f, &a, axes);
    for (int s = 0; s < c->n_series; s++)
        put_marks(f, c, &a, &taken, s);
    svg_end(f);
}
