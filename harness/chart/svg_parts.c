/* SPDX-License-Identifier: MIT
 *
 * svg_parts.c - texts, lines, areas and marks as SVG
 */
#include "harness/chart/svg.h"

#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"

#define LINE_WIDTH 1.2 /* pixels of a line of width 1 */

const struct plot_style svg_frame = {.color = PLOT_GREY, .width = 1};
const struct plot_style svg_grid = {.color = PLOT_FAINT, .width = 1};

/* ---- texts ----------------------------------------------------------------------- */

void svg_each_char(FILE *f, const char *text,
                   void (*put)(FILE *f, const char *c, size_t n))
{
    for (size_t left = strlen(text), n; left; text += n, left -= n) {
        const int len = utf8_char_len(text, left);

        n = len > 0 ? (size_t)len : 1;
        if (len > 0)
            put(f, text, n);
        else
            put(f, "\xef\xbf\xbd", 3);
    }
}

static void put_escaped(FILE *f, const char *c, size_t n)
{
    if (utf8_control(c, (int)n))
        fputc(' ', f);
    else if (*c == '\'') /* as gnuplot.c has to write it */
        fputs("\xe2\x80\x99", f);
    else if (n == 1 && strchr("&<>\"", *c))
        fprintf(f, "&#%d;", *c);
    else
        fwrite(c, 1, n, f);
}

void svg_put_escaped(FILE *f, const char *text)
{
    svg_each_char(f, text, put_escaped);
}

static unsigned text_rgb(int color)
{
    return color == SVG_BLACK ? 0 : color == SVG_DIM ? 0x555555 : plot_rgb(color);
}

/* Its class in page.css. */
static const char *class_of(int color, char buf[8])
{
    static const char *const names[] = {"ink", "dim", "rule", "paper", "bad", "warn"};

    if (color < 0)
        return names[(-1 - color) % 6];
    snprintf(buf, 8, "s%d", color % PLOT_STEP % PLOT_COLORS);
    return buf;
}

void svg_text(const struct svg *s, const struct svg_text *at, const char *text)
{
    static const char *const kinds[] = {"tick", "name", "note", "row", "name", "name"};
    static const char *const anchors[] = {"middle", "start", "end"};
    const double size = s->look->size[at->kind];
    char buf[8];

    if (!*text)
        return;
    if (at->rotate != 0)
        fprintf(s->f,
                "<text transform=\"translate(%.1f,%.1f) rotate(%.2f)\" y=\"%.1f\"",
                at->x, at->y, -at->rotate, 0.325 * size);
    else
        fprintf(s->f, "<text x=\"%.1f\" y=\"%.1f\"", at->x, at->y + 0.325 * size);
    fprintf(s->f, " text-anchor=\"%s\"", anchors[at->anchor]);
    if (s->look->is_page)
        fprintf(s->f, " class=\"%s %s\">", kinds[at->kind], class_of(at->color, buf));
    else
        fprintf(s->f, " font-size=\"%g\" fill=\"#%06x\">", size, text_rgb(at->color));
    svg_put_escaped(s->f, text);
    fputs("</text>\n", s->f);
}

/* ---- lines and areas ------------------------------------------------------------- */

/* is_full: what lies below does not show through. */
static void put_stroke(const struct svg *s, int color, double width, bool is_full)
{
    char buf[8];

    if (s->look->is_page)
        fprintf(s->f, " class=\"stroke%s %s\"", is_full ? " hollow" : "",
                class_of(color, buf));
    else
        fprintf(s->f, " fill=\"%s\" stroke=\"#%06x\"", is_full ? "#ffffff" : "none",
                plot_rgb(color));
    fprintf(s->f, " stroke-width=\"%.3g\"", width);
}

static void put_fill(const struct svg *s, int color, double opacity)
{
    char buf[8];

    if (!s->look->is_page)
        fprintf(s->f, " fill=\"#%06x\"", plot_rgb(color));
    else
        fprintf(s->f, " class=\"area %s\"", class_of(color, buf));
    if (opacity < 1)
        fprintf(s->f, " fill-opacity=\"%.2f\"", opacity);
}

void svg_end_line_width(const struct svg *s, const struct plot_style *style,
                        double width)
{
    static const char *const dashes[] = {NULL, "9 6", "2 5", "6 4"};

    put_stroke(s, style->color, width, false);
    if (dashes[style->dash])
        fprintf(s->f, " stroke-dasharray=\"%s\"", dashes[style->dash]);
    fputs("/>\n", s->f);
}

void svg_end_line(const struct svg *s, const struct plot_style *style)
{
    svg_end_line_width(s, style, LINE_WIDTH * style->width);
}

void svg_end_area(const struct svg *s, const struct plot_style *style)
{
    if (style->opacity < 0)
        put_stroke(s, style->color, 2 * LINE_WIDTH, false);
    else
        put_fill(s, style->color, style->opacity);
    fputs("/>\n", s->f);
}

void svg_line(const struct svg *s, double x1, double y1, double x2, double y2,
              const struct plot_style *style)
{
    fprintf(s->f, "<path d=\"M%.1f %.1fL%.1f %.1f\"", x1, y1, x2, y2);
    svg_end_line(s, style);
}

void svg_box(const struct svg *s, double x1, double y1, double x2, double y2,
             const struct plot_style *style)
{
    fprintf(s->f, "<path d=\"M%.1f %.1fH%.1fV%.1fH%.1fz\"", x1, y1, x2, y2, x1);
    svg_end_area(s, style);
}

/* ---- marks ----------------------------------------------------------------------- */

enum { CIRCLE, SQUARE, TRIANGLE, DIAMOND, TIP, PENTAGON, N_SHAPES };

static void put_shape(FILE *f, double x, double y, int shape, double r)
{
    switch (shape) {
    case SQUARE:
        fprintf(f, "M%.1f %.1fh%.1fv%.1fh%.1fz", x - r, y - r, 2 * r, 2 * r, -2 * r);
        return;
    case TRIANGLE:
        fprintf(f, "M%.1f %.1fl%.1f %.1fh%.1fz", x, y - 1.33 * r, -1.33 * r, 2 * r,
                2.66 * r);
        return;
    case TIP:
        fprintf(f, "M%.1f %.1fl%.1f %.1fh%.1fz", x, y + 1.33 * r, 1.33 * r, -2 * r,
                -2.66 * r);
        return;
    case DIAMOND:
        fprintf(f, "M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz", x, y - 1.41 * r,
                1.41 * r, 1.41 * r, -1.41 * r, 1.41 * r, -1.41 * r, -1.41 * r);
        return;
    case PENTAGON:
        for (int i = 0; i < 5; i++)
            fprintf(f, "%c%.1f %.1f", i ? 'L' : 'M',
                    x + 1.33 * r * sin(i * 2 * M_PI / 5),
                    y - 1.33 * r * cos(i * 2 * M_PI / 5));
        fputc('z', f);
        return;
    default:
        fprintf(f, "M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 %.1f 0z", x - r,
                y, r, r, 2 * r, r, r, -2 * r);
    }
}

/* Colours come round after PLOT_COLORS, then with other shapes. */
static int shape_of(const struct plot_style *style)
{
    const int i = style->color >= 0 ? style->color % PLOT_STEP : 0;

    switch (style->mark) {
    case PLOT_SQUARE:
        return SQUARE;
    case PLOT_DIAMOND:
        return DIAMOND;
    case PLOT_TRIANGLE:
        return TIP;
    case PLOT_SHAPE:
    case PLOT_HOLLOW:
        return (i + 3 * (i / PLOT_COLORS)) % N_SHAPES;
    default:
        return CIRCLE;
    }
}

double svg_mark_radius(const struct svg *s, const struct plot_style *style)
{
    return (s->look->is_page ? 3.2 : 2.9) * style->size;
}

void svg_mark(const struct svg *s, double x, double y, const struct plot_style *style)
{
    const double r = svg_mark_radius(s, style);
    const bool is_hollow = style->mark == PLOT_HOLLOW || style->mark == PLOT_TRIANGLE;

    fputs("<path d=\"", s->f);
    if (style->mark == PLOT_CROSS)
        fprintf(s->f, "M%.1f %.1fl%.1f %.1fM%.1f %.1fl%.1f %.1f", x - r, y - r, 2 * r,
                2 * r, x - r, y + r, 2 * r, -2 * r);
    else
        put_shape(s->f, x, y, shape_of(style), r);
    fputc('"', s->f);
    if (is_hollow || style->mark == PLOT_RING || style->mark == PLOT_CROSS)
        put_stroke(s, style->color, 1.6, is_hollow);
    else
        put_fill(s, style->color, 1);
    fputs("/>\n", s->f);
}

/* ---- the picture ----------------------------------------------------------------- */

void svg_begin(const struct svg *s)
{
    const struct plot *p = s->p;

    fputs(s->look->is_page ? "<svg role=\"img\" aria-label=\""
                           : "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                             "font-family=\"DejaVu Sans,Verdana,sans-serif\" "
                             "xml:space=\"preserve",
          s->f);
    if (s->look->is_page)
        svg_put_escaped(s->f, p->title);
    fprintf(s->f, "\" viewBox=\"0 0 %.0f %.0f\">\n", p->width, p->height);
    if (s->look->is_page)
        return;
    fputs("<title>", s->f);
    svg_put_escaped(s->f, p->title);
    fprintf(s->f, "</title>\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
            p->width, p->height);
}
