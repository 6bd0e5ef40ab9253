/* SPDX-License-Identifier: MIT
 *
 * canvas.c - lines, marks and texts as SVG
 */
#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "harness/chart/state.h"

#define MARK_SIZE 5.25 /* half of a mark of size 1 */

/* ---- texts
 * --------------------------------------------------------------------------- */

static void put_text(FILE *f, const char *text)
{
    for (size_t left = strlen(text); left;) {
        const int n = utf8_char_len(text, left);

        if (n <= 0)
            fputs("\xef\xbf\xbd", f);
        else if (utf8_control(text, n))
            fputc(' ', f);
        else if (n == 1 && strchr("&<>\"", *text))
            fprintf(f, "&#%d;", *text);
        else
            fwrite(text, 1, (size_t)n, f);
        text += n > 0 ? n : 1;
        left -= n > 0 ? (size_t)n : 1;
    }
}

/* fill or stroke, and its opacity. */
static void put_color(struct draw *d, const char *name, uint32_t color, double opacity)
{
    const double own = (255 - (color >> 24)) / 255.0 * opacity;

    fprintf(d->f, " %s=\"#%06x\"", name, (unsigned)(color & 0xffffff));
    if (own < 1)
        fprintf(d->f, " %s-opacity=\"%.2f\"", name, own);
}

void canvas_text(struct draw *d, double x, double y, const struct style *s,
                 const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    const double size = s->font_size > 0 ? s->font_size : d->font_size;

    /* what stands beyond the picture, as at a roof far below the axis, is no text */
    if (!*text || !(x >= 0 && x <= d->width && y >= 0 && y <= d->height))
        return;
    if (s->rotate != 0)
        fprintf(d->f,
                "<text transform=\"translate(%.2f,%.2f) rotate(%.2f)\" y=\"%.2f\"", x,
                y, -s->rotate, 0.325 * size);
    else
        fprintf(d->f, "<text x=\"%.2f\" y=\"%.2f\"", x, y + 0.325 * size);
    fprintf(d->f, " font-size=\"%g\" text-anchor=\"%s\"", size, anchors[s->anchor]);
    put_color(d, "fill", s->text_color, 1);
    fputs(">", d->f);
    put_text(d->f, text);
    fputs("</text>\n", d->f);
}

/* ---- lines and areas
 * ------------------------------------------------------------------ */

void canvas_begin_path(struct draw *d)
{
    fputs("<path d=\"", d->f);
}

void canvas_end_path(struct draw *d, const struct style *s)
{
    const double width = s->line_width * d->line_scale;

    fprintf(d->f, "\" fill=\"none\" stroke-width=\"%.2f\"", width);
    put_color(d, "stroke", s->color, 1);
    if (s->dash[0] > 0)
        fprintf(d->f, " stroke-dasharray=\"%.1f,%.1f\"", s->dash[0] * width / 2,
                s->dash[1] * width / 2);
    fputs("/>\n", d->f);
}

void canvas_end_area(struct draw *d, const struct style *s)
{
    fputc('"', d->f);
    if (s->is_filled)
        put_color(d, "fill", s->color, s->fill_opacity);
    else
        fputs(" fill=\"none\"", d->f);
    if (!s->is_filled && s->has_border) {
        fprintf(d->f, " stroke-width=\"%.2f\"", s->line_width * d->line_scale);
        put_color(d, "stroke", s->border, 1);
    }
    fputs("/>\n", d->f);
}

void canvas_line(struct draw *d, double x1, double y1, double x2, double y2,
                 const struct style *s)
{
    canvas_begin_path(d);
    fprintf(d->f, "M%.2f %.2fL%.2f %.2f", x1, y1, x2, y2);
    canvas_end_path(d, s);
}

void canvas_rectangle(struct draw *d, double x, double y, double width, double height,
                      const struct style *s)
{
    canvas_begin_path(d);
    fprintf(d->f, "M%.2f %.2fh%.2fv%.2fh%.2fz", x, y, width, height, -width);
    canvas_end_area(d, s);
}

/* ---- marks -------------------------------------------------------------------------
 */

static void put_shape(FILE *f, double x, double y, int type, double r)
{
    switch (type / 2) {
    case 0: /* 1: a plus */
        fprintf(f, "M%.2f %.2fh%.2fM%.2f %.2fv%.2f", x - r, y, 2 * r, x, y - r, 2 * r);
        return;
    case 2: /* a square */
        fprintf(f, "M%.2f %.2fh%.2fv%.2fh%.2fz", x - r, y - r, 2 * r, 2 * r, -2 * r);
        return;
    case 3: /* a circle */
        fprintf(f, "M%.2f %.2fa%.2f %.2f 0 1 0 %.2f 0a%.2f %.2f 0 1 0 %.2f 0z", x - r,
                y, r, r, 2 * r, r, r, -2 * r);
        return;
    case 4: /* a triangle */
        fprintf(f, "M%.2f %.2fl%.2f %.2fh%.2fz", x, y - 1.33 * r, -1.33 * r, 2 * r,
                2.66 * r);
        return;
    case 5: /* one that stands on its tip */
        fprintf(f, "M%.2f %.2fl%.2f %.2fh%.2fz", x, y + 1.33 * r, 1.33 * r, -2 * r,
                -2.66 * r);
        return;
    case 6: /* a square on its tip */
        fprintf(f, "M%.2f %.2fl%.2f %.2fl%.2f %.2fl%.2f %.2fz", x, y - 1.41 * r,
                1.41 * r, 1.41 * r, -1.41 * r, 1.41 * r, -1.41 * r, -1.41 * r);
        return;
    default: /* a pentagon */
        for (int i = 0; i < 5; i++)
            fprintf(f, "%c%.2f %.2f", i ? 'L' : 'M',
                    x + 1.33 * r * sin(i * 2 * M_PI / 5),
                    y - 1.33 * r * cos(i * 2 * M_PI / 5));
        fputc('z', f);
    }
}

void canvas_mark(struct draw *d, double x, double y, const struct style *s)
{
    const double r = MARK_SIZE * s->point_size;
    const bool is_solid = s->point_type >= 4 && s->point_type % 2 == 1;

    if (s->point_type < 1 || !isfinite(x) || !isfinite(y))
        return;
    canvas_begin_path(d);
    if (s->point_type == 2) /* a cross */
        fprintf(d->f, "M%.2f %.2fl%.2f %.2fM%.2f %.2fl%.2f %.2f", x - r, y - r, 2 * r,
                2 * r, x - r, y + r, 2 * r, -2 * r);
    else
        put_shape(d->f, x, y, s->point_type, r);
    if (is_solid || s->point_type < 3) {
        fprintf(d->f, "\" stroke-width=\"%.2f\"",
                is_solid ? 0 : 0.19 * MARK_SIZE * 1.5);
        if (is_solid)
            put_color(d, "fill", s->color, 1);
        else
            put_color(d, "stroke", s->color, 1);
    } else { /* what lies below does not show through */
        fprintf(d->f, "\" fill=\"#ffffff\" stroke-width=\"%.2f\"",
                fmax(1, s->line_width * d->line_scale * 0.8));
        put_color(d, "stroke", s->color, 1);
    }
    fputs("/>\n", d->f);
}

/* ---- the picture -------------------------------------------------------------------
 */

void canvas_begin(struct draw *d)
{
    const struct variable *title = variable_find(&d->variables, "title_text");

    fprintf(d->f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
            "font-family=\"DejaVu Sans,Verdana,sans-serif\" xml:space=\"preserve\">\n"
            "<title>",
            d->width, d->height);
    put_text(d->f, title && title->v.kind == VALUE_TEXT ? title->v.text : "");
    fprintf(d->f, "</title>\n<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n",
            d->width, d->height);
    d->n_clips = 0;
}

void canvas_end(struct draw *d)
{
    fputs("</svg>\n", d->f);
}

void canvas_begin_clip(struct draw *d)
{
    d->n_clips++;
    fprintf(d->f,
            "<clipPath id=\"c%d\"><rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
            "height=\"%.2f\"/></clipPath>\n<g clip-path=\"url(#c%d)\">\n",
            d->n_clips, d->left - 1, d->top - 1, fmax(d->right - d->left, 0) + 2,
            fmax(d->bottom - d->top, 0) + 2, d->n_clips);
}

void canvas_end_clip(struct draw *d)
{
    fputs("</g>\n", d->f);
}
