/* SPDX-License-Identifier: MIT
 *
 * svg.c - parts of the pictures in a page
 */
#include "harness/show/page/svg.h"

#include <math.h>
#include <string.h>

#include "harness/show/page/html.h"

#define MARK_SIZE 4.2 /* from its middle to its edge */

static double share(const struct svg_range *r, double v)
{
    if (r->log)
        return log(v / r->min) / log(r->max / r->min);
    return (v - r->min) / (r->max - r->min);
}

double svg_x(const struct svg_area *a, double x)
{
    return a->left + a->width * share(&a->x, x);
}

double svg_y(const struct svg_area *a, double y)
{
    return a->top + a->height * (1 - share(&a->y, y));
}

void svg_begin(FILE *f, int width, double height, const char *title)
{
    fprintf(f, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", width,
            height);
    html_put(f, title);
    fputs("\">\n", f);
}

void svg_end(FILE *f)
{
    fputs("</svg>\n", f);
}

void svg_text(FILE *f, double x, double y, const char *anchor, const char *style,
              const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y,
            anchor, style);
    html_put(f, text);
    fputs("</text>\n", f);
}

void svg_line(FILE *f, double x1, double y1, double x2, double y2, const char *style)
{
    fprintf(f, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", style, x1, y1, x2,
            y2);
}

void svg_rect(FILE *f, double x, double y, double width, double height,
              const char *style)
{
    fprintf(f,
            "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"/>\n",
            style, x, y, width > 0 ? width : 0, height > 0 ? height : 0);
}

/* ---- axes ----------------------------------------------------------------------- */

static int linear_ticks(const struct svg_range *r, int n_wanted,
                        double v[SVG_MAX_TICKS])
{
    const double raw = (r->max - r->min) / n_wanted;
    const double decade = pow(10, floor(log10(raw)));
    const double step = raw > 7.5 * decade   ? 10 * decade
                        : raw > 3.5 * decade ? 5 * decade
                        : raw > 1.5 * decade ? 2 * decade
                                             : decade;
    int n = 0;

    for (double k = ceil(r->min / step - 1e-9); n < SVG_MAX_TICKS; k++) {
        if (k * step > r->max * (1 + 1e-9))
            break;
        v[n++] = k * step + 0.0; /* no -0 */
    }
    return n;
}

/* 1, 2 and 5 of each decade; decades alone where these are too many. */
static int log_ticks(const struct svg_range *r, int n_wanted, double v[SVG_MAX_TICKS])
{
    static const double parts[] = {1, 2, 5};
    const double decades = log10(r->max / r->min);
    const int n_parts = 3 * decades <= 1.7 * n_wanted ? 3 : 1;
    const double every = fmax(1, ceil(decades / (n_wanted + 1)));
    int n = 0;

    for (double d = floor(log10(r->min)); d <= log10(r->max); d += every)
        for (int i = 0; i < n_parts && n < SVG_MAX_TICKS; i++) {
            const double t = parts[i] * pow(10, d);

            if (t >= r->min * (1 - 1e-9) && t <= r->max * (1 + 1e-9))
                v[n++] = t;
        }
    return n;
}

int svg_ticks(const struct svg_range *r, int n_wanted, double v[SVG_MAX_TICKS])
{
    return r->log ? log_ticks(r, n_wanted, v) : linear_ticks(r, n_wanted, v);
}

double svg_y_labels_width(const struct svg_range *r, int n_wanted)
{
    double v[SVG_MAX_TICKS];
    const int n = svg_ticks(r, n_wanted, v);
    int longest = 1;
    char text[32];

    for (int i = 0; i < n; i++) {
        const int len = snprintf(text, sizeof text, "%.6g", v[i]);

        longest = len > longest ? len : longest;
    }
    return 10 + SVG_CHARACTER * longest;
}

void svg_y_axis(FILE *f, const struct svg_area *a, int n_wanted)
{
    double v[SVG_MAX_TICKS];
    const int n = svg_ticks(&a->y, n_wanted, v);
    char text[32];

    for (int i = 0; i < n; i++) {
        const double y = svg_y(a, v[i]);

        snprintf(text, sizeof text, "%.6g", v[i]);
        svg_line(f, a->left, y, a->left + a->width, y, "rule");
        svg_text(f, a->left - 7, y + 4.5, "end", "tick", text);
    }
}

void svg_x_axis(FILE *f, const struct svg_area *a, int n_wanted)
{
    double v[SVG_MAX_TICKS];
    const int n = svg_ticks(&a->x, n_wanted, v);
    const double bottom = a->top + a->height;
    char text[32];

    svg_line(f, a->left, bottom, a->left + a->width, bottom, "axis");
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%.6g", v[i]);
        svg_text(f, svg_x(a, v[i]), bottom + 17, "middle", "tick", text);
    }
}

void svg_x_title(FILE *f, const struct svg_area *a, const char *text)
{
    svg_text(f, a->left + a->width / 2, a->top + a->height + 35, "middle", "name",
             text);
}

/* ---- marks ---------------------------------------------------------------------- */

/* Colours come round after SVG_COLORS, then with other shapes. */
static int shape_of(int series)
{
    return (series + 2 * (series / SVG_COLORS)) % 5;
}

static void put_shape(FILE *f, double x, double y, int shape, double r)
{
    switch (shape) {
    case 0:
        fprintf(f, "M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 %.1f 0z", x - r,
                y, r, r, 2 * r, r, r, -2 * r);
        return;
    case 1:
        fprintf(f, "M%.1f %.1fh%.1fv%.1fh%.1fz", x - 0.9 * r, y - 0.9 * r, 1.8 * r,
                1.8 * r, -1.8 * r);
        return;
    case 2:
        fprintf(f, "M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz", x - 1.3 * r, y, 1.3 * r,
                -1.3 * r, 1.3 * r, 1.3 * r, -1.3 * r, 1.3 * r);
        return;
    case 3:
        fprintf(f, "M%.1f %.1fh%.1fl%.1f %.1fz", x - 1.2 * r, y + r, 2.4 * r, -1.2 * r,
                -2.1 * r);
        return;
    default:
        fprintf(f, "M%.1f %.1fh%.1fl%.1f %.1fz", x - 1.2 * r, y - r, 2.4 * r, -1.2 * r,
                2.1 * r);
    }
}

void svg_mark(FILE *f, double x, double y, int series, enum mark_state state)
{
    const double r = MARK_SIZE;

    fprintf(f, "<path class=\"%s\" d=\"",
            state == MARK_SOLID    ? "mark"
            : state == MARK_HOLLOW ? "mark hollow"
                                   : "line");
    if (state == MARK_CROSS)
        fprintf(f, "M%.1f %.1fl%.1f %.1fm0 %.1fl%.1f %.1f", x - r, y - r, 2 * r, 2 * r,
                -2 * r, -2 * r, 2 * r);
    else
        put_shape(f, x, y, shape_of(series), r);
    fputs("\"/>", f);
}

void svg_key(FILE *f, int series, const char *line, int state, const char *text)
{
    char color[8] = "none";

    if (series >= 0)
        snprintf(color, sizeof color, "s%d", series % SVG_COLORS);
    fprintf(f, "<li><svg viewBox=\"0 0 26 14\" class=\"key %s\" aria-hidden=\"true\">",
            color);
    if (line)
        fprintf(f, "<path class=\"%s\" d=\"M1 7H25\"/>", line);
    if (state >= 0)
        svg_mark(f, 13, 7, series < 0 ? 0 : series, (enum mark_state)state);
    fputs("</svg>", f);
    html_put(f, text);
    fputs("</li>\n", f);
}
