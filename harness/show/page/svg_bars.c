/* SPDX-License-Identifier: MIT
 *
 * svg_bars.c - bars: speeds side by side, and memory with its limit
 *
 * Bars lie, and each setting's name stands above its own, so that long names have room
 * on a phone.
 */
#include "harness/show/page/svg_chart.h"

#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/show/page/html.h"
#include "harness/show/page/svg.h"
#include "harness/rows/report_rows.h"

#define BAR         16.0
#define BAR_STEP    21.0
#define NAME_HEIGHT 20.0
#define SPACE       10.0 /* between settings */
#define CHARACTER   7.0  /* width of one behind a bar, at most */
#define FOOT        44.0
#define GIB         ((double)((uint64_t)1 << 30))

/* Marks of one series have their bars below each other. */
static int count_marks(const struct chart *c, int series)
{
    int n = 0;

    for (size_t i = 0; i < c->n; i++)
        n += c->v[i].series == series;
    return n;
}

static void put_name(FILE *f, const struct chart *c, int series, double y)
{
    char name[REPORT_NAME_MAX];

    svg_text(f, 0, y + 13, "start", "bar-name",
             svg_chart_series(c, series, name, sizeof name));
}

/* What stands behind a bar: its figure and group. Returns how many characters. */
static int figure_text(const struct chart *c, const struct mark *m, char *buf,
                       size_t cap)
{
    const char *group = c->n_groups > 1 ? c->group[m->group] : "";

    if (m->state == MARK_CROSS)
        return snprintf(buf, cap, "%s%s%s", *m->note ? m->note : "no figure",
                        *group ? ", " : "", group);
    return snprintf(buf, cap, "%.*f%s%s%s", report_decimals(m->y), m->y,
                    *group ? ", " : "", group,
                    m->state == MARK_HOLLOW ? ", disturbed" : "");
}

/* One bar with its interval. */
static void put_bar(FILE *f, const struct chart *c, const struct svg_area *a,
                    const struct mark *m, double y)
{
    const double end = m->state == MARK_CROSS ? a->left : svg_x(a, m->y);
    const double behind = fmax(end, isfinite(m->hi) ? svg_x(a, m->hi) : end) + 7;
    char text[160];

    fprintf(f, "<g class=\"g%d\">", c->n_groups > 1 ? m->group % 4 : 0);
    svg_rect(f, a->left, y, end - a->left, BAR,
             m->state == MARK_HOLLOW ? "bar hollow" : "bar");
    if (m->state != MARK_CROSS && isfinite(m->lo) && isfinite(m->hi))
        fprintf(f, "<path class=\"whisker over\" d=\"M%.1f %.1fH%.1f\"/>",
                svg_x(a, fmax(m->lo, 0)), y + BAR / 2, svg_x(a, m->hi));
    fputs("</g>", f);
    figure_text(c, m, text, sizeof text);
    svg_text(f, behind, y + 12.5, "start", "value", text);
}

/* The end of the axis, so that figures have room behind their bars. */
static double axis_end(const struct chart *c, double width)
{
    double most = 0;
    char text[160];

    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];
        const double v =
            m->state == MARK_CROSS ? 0 : fmax(m->y, isfinite(m->hi) ? m->hi : 0);
        const double room = 9 + CHARACTER * figure_text(c, m, text, sizeof text);

        most = fmax(most, v * width / fmax(width - room, 0.3 * width));
    }
    return most > 0 ? most : 1;
}

void svg_chart_bars(FILE *f, const struct chart *c)
{
    struct svg_area area = {.left = 0, .width = SVG_WIDTH - 8};
    double y = 4;

    area.x.max = axis_end(c, area.width);
    for (int s = 0; s < c->n_series; s++)
        area.height += NAME_HEIGHT + BAR_STEP * count_marks(c, s) + SPACE;
    area.top = y;
    svg_begin(f, SVG_WIDTH, area.height + y + FOOT, c->title);
    for (int s = 0; s < c->n_series; s++) {
        put_name(f, c, s, y);
        y += NAME_HEIGHT;
        for (size_t i = 0; i < c->n; i++)
            if (c->v[i].series == s) {
                put_bar(f, c, &area, &c->v[i], y);
                y += BAR_STEP;
            }
        y += SPACE;
    }
    svg_x_axis(f, &area, 4);
    svg_x_title(f, &area, c->x_title);
    svg_end(f);
}

/* ---- memory --------------------------------------------------------------------- */

static void put_memory(FILE *f, const struct svg_area *a, const struct mark *m,
                       double y)
{
    const double charged =
        fmax(isfinite(m->y) ? m->y : 0, isfinite(m->extra) ? m->extra : 0);

    fputs("<g class=\"g0\">", f);
    svg_rect(f, a->left, y, svg_x(a, charged) - a->left, BAR, "bar soft");
    if (isfinite(m->extra))
        svg_rect(f, a->left, y, svg_x(a, m->extra) - a->left, BAR, "bar");
    fputs("</g>", f);
    if (isfinite(m->other))
        svg_line(f, svg_x(a, m->other), y - 2, svg_x(a, m->other), y + BAR + 2, "plan");
    if (isfinite(m->limit))
        svg_line(f, svg_x(a, m->limit), y - 5, svg_x(a, m->limit), y + BAR + 5,
                 "limit");
}

/* "5.10 GiB, pages from disk", above the right end of the bars. */
static void put_amount(FILE *f, const struct mark *m, double y)
{
    const double needed = isfinite(m->extra) ? m->extra : m->y;
    char text[96] = "no figure";

    if (isfinite(needed))
        format_bytes(text, sizeof text, (uint64_t)(needed * GIB));
    if (*m->note)
        text_append(text, sizeof text, ", %s", m->note);
    svg_text(f, SVG_WIDTH - 4, y + 13, "end", *m->note ? "value warn" : "value", text);
}

/* Entries for what the chart has. */
static void put_memory_legend(FILE *f, const struct chart *c)
{
    int n_resident = 0, n_charged = 0, n_planned = 0, n_limits = 0;

    for (size_t i = 0; i < c->n; i++) {
        n_resident += isfinite(c->v[i].extra) != 0;
        n_charged += isfinite(c->v[i].y) != 0;
        n_planned += isfinite(c->v[i].other) != 0;
        n_limits += isfinite(c->v[i].limit) != 0;
    }
    fprintf(f, "<ul class=\"legend\">%s%s%s%s</ul>\n",
            n_resident ? "<li><span class=\"box g0\"></span>must stay resident</li>"
                       : "",
            n_charged ? "<li><span class=\"box g0 soft\"></span>charged, page cache "
                        "included</li>"
                      : "",
            n_planned ? "<li><span class=\"box plan\"></span>planned</li>" : "",
            n_limits ? "<li><span class=\"box limit\"></span>limit</li>" : "");
}

void svg_chart_memory(FILE *f, const struct chart *c, const struct chart_axes *a)
{
    struct svg_area area = {.left = 0,
                            .top = 4,
                            .width = SVG_WIDTH - 8,
                            .height = c->n_series * (NAME_HEIGHT + BAR_STEP + SPACE),
                            .x = {0, a->y[0].max, false}};
    double y = area.top;

    put_memory_legend(f, c);
    svg_begin(f, SVG_WIDTH, area.height + area.top + FOOT, c->title);
    for (size_t i = 0; i < c->n; i++) {
        put_name(f, c, c->v[i].series, y);
        put_amount(f, &c->v[i], y);
        put_memory(f, &area, &c->v[i], y + NAME_HEIGHT);
        y += NAME_HEIGHT + BAR_STEP + SPACE;
    }
    svg_x_axis(f, &area, 5);
    svg_x_title(f, &area, "GiB");
    svg_end(f);
}
