/* SPDX-License-Identifier: MIT
 *
 * svg_chart.c - lines with intervals and roofs
 */
#include "harness/show/page/svg_chart.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/show/page/html.h"
#include "harness/show/page/svg.h"

#define NAME_CHARACTERS 44
#define FIRST_HEIGHT    196.0 /* of the first panel, and of those below it */
#define NEXT_HEIGHT     96.0
#define PANEL_GAP       30.0
#define FOOT            46.0 /* below the last: figures and what they are */

const char *svg_chart_series(const struct chart *c, int series, char *buf, size_t cap)
{
    return text_shorten(buf, cap,
                        *c->legend[series] ? c->legend[series] : c->series[series],
                        NAME_CHARACTERS);
}

void svg_chart_key_states(FILE *f, const struct chart *c)
{
    int n_state[3] = {0}, n_roofs[2] = {0};
    char name[80];

    snprintf(name, sizeof name, "roof: %s", chart_roof(c));
    for (size_t i = 0; i < c->n; i++) {
        n_state[c->v[i].state]++;
        n_roofs[c->v[i].doubtful] += isfinite(c->v[i].other) != 0;
    }
    if (!c->bars && !c->log_x && n_roofs[0])
        svg_key(f, -1, "line roof", -1, name);
    if (!c->bars && !c->log_x && n_roofs[1])
        svg_key(f, -1, "line roof doubtful", -1, "roof of disturbed runs");
    if (n_state[MARK_HOLLOW] && !c->bars)
        svg_key(f, -1, NULL, MARK_HOLLOW, "partial or disturbed");
    if (n_state[MARK_CROSS] && !c->bars)
        svg_key(f, -1, NULL, MARK_CROSS, "no figure");
}

static void put_legend(FILE *f, const struct chart *c)
{
    char name[REPORT_NAME_MAX];

    fputs("<ul class=\"legend\">\n", f);
    for (int s = 0; s < c->n_series; s++)
        svg_key(f, s, "line", MARK_SOLID, svg_chart_series(c, s, name, sizeof name));
    svg_chart_key_states(f, c);
    fputs("</ul>\n", f);
}

/* ---- lines ---------------------------------------------------------------------- */

/* A path through the marks of a series that `wanted` says have a place. */
static void put_path(FILE *f, const struct chart *c, const struct svg_area *a,
                     int series, const char *style,
                     double (*wanted)(const struct mark *))
{
    const char *move = "M";
    bool open = false;

    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];
        const double y = m->series == series ? wanted(m) : NAN;

        if (!isfinite(y))
            continue;
        if (!open)
            fprintf(f, "<path class=\"%s\" d=\"", style);
        open = true;
        fprintf(f, "%s%.1f %.1f", move, svg_x(a, m->x), svg_y(a, y));
        move = "L";
    }
    if (open)
        fputs("\"/>\n", f);
}

static double sure_roof(const struct mark *m)
{
    return m->doubtful ? NAN : m->other;
}

static double doubtful_roof(const struct mark *m)
{
    return m->doubtful ? m->other : NAN;
}

static double figure(const struct mark *m)
{
    return m->state == MARK_CROSS ? NAN : m->y;
}

void svg_chart_hint(FILE *f, const struct chart *c, const struct mark *m)
{
    fputs("<title>", f);
    html_put(f, c->series[m->series]);
    if (m->state == MARK_CROSS) {
        html_printf(f, ": %s", *m->note ? m->note : "no figure");
    } else {
        html_printf(f, ": %.3g %s", m->y, c->unit ? c->unit : "tok/s");
        if (isfinite(m->lo) && isfinite(m->hi))
            html_printf(f, " (%.3g to %.3g)", m->lo, m->hi);
        if (isfinite(m->other) && m->other > 0)
            html_printf(f, ", %.0f %% of the roof", 100 * m->y / m->other);
    }
    fputs("</title>", f);
}

static void put_mark(FILE *f, const struct chart *c, const struct svg_area *a,
                     const struct mark *m)
{
    const double x = svg_x(a, m->x), y = svg_y(a, m->y);

    fputs("<g>", f);
    svg_chart_hint(f, c, m);
    if (m->state != MARK_CROSS && isfinite(m->lo) && isfinite(m->hi)) {
        const double low = svg_y(a, fmax(m->lo, a->y.min)), high = svg_y(a, m->hi);

        fprintf(f,
                "<path class=\"whisker\" d=\"M%.1f %.1fV%.1fM%.1f %.1fh6M%.1f "
                "%.1fh6\"/>",
                x, low, high, x - 3, low, x - 3, high);
    }
    svg_mark(f, x, y, m->series, m->state);
    fputs("</g>\n", f);
    if (m->state == MARK_CROSS && *m->note)
        svg_text(f, x + 9, y + 4.5, "start", "note", m->note);
}

static void put_series(FILE *f, const struct chart *c, const struct svg_area *a,
                       int series)
{
    fprintf(f, "<g class=\"s%d\">\n", series % SVG_COLORS);
    put_path(f, c, a, series, "line roof", sure_roof);
    put_path(f, c, a, series, "line roof doubtful", doubtful_roof);
    put_path(f, c, a, series, "line", figure);
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].series == series)
            put_mark(f, c, a, &c->v[i]);
    fputs("</g>\n", f);
}

/* Each x that occurs, as far as they do not stand too close. */
static void put_x_values(FILE *f, const struct chart *c, const struct svg_area *a)
{
    const double bottom = a->top + a->height;
    double last = -INFINITY, end = -INFINITY;
    char text[32];

    svg_line(f, a->left, bottom, a->left + a->width, bottom, "axis");
    for (;;) {
        const double next = chart_next_x(c, last);

        if (!isfinite(next))
            return;
        last = next;
        const double half =
            SVG_CHARACTER * snprintf(text, sizeof text, "%.6g", next) / 2;
        if (svg_x(a, next) - half < end + 8)
            continue;
        end = svg_x(a, next) + half;
        svg_text(f, svg_x(a, next), bottom + 17, "middle", "tick", text);
    }
}

void svg_chart_lines(FILE *f, const struct chart *c, const struct chart_axes *a)
{
    struct svg_area area = {.top = 12, .x = {a->x_min, a->x_max, false}};

    put_legend(f, c);
    svg_begin(f, SVG_WIDTH,
              area.top + FIRST_HEIGHT + (c->n_panels - 1) * (NEXT_HEIGHT + PANEL_GAP) +
                  FOOT,
              c->title);
    for (int p = 0; p < c->n_panels; p++) {
        const struct svg_range y = {a->y[p].min, a->y[p].max, a->y[p].log};

        area.left = fmax(area.left, svg_y_labels_width(&y, p ? 2 : 5));
    }
    area.width = SVG_WIDTH - area.left - 14;
    for (int p = 0; p < c->n_panels; p++) {
        area.height = p ? NEXT_HEIGHT : FIRST_HEIGHT;
        area.y = (struct svg_range){a->y[p].min, a->y[p].max, a->y[p].log};
        svg_y_axis(f, &area, p ? 2 : 5);
        if (p)
            svg_text(f, area.left, area.top - 9, "start", "name",
                     "slower settings, on an axis of their own");
        for (int s = 0; s < c->n_series; s++)
            if (c->panel[s] == p)
                put_series(f, c, &area, s);
        if (p + 1 == c->n_panels) {
            put_x_values(f, c, &area);
            svg_x_title(f, &area, c->x_title);
        }
        area.top += area.height + PANEL_GAP;
    }
    svg_end(f);
}
