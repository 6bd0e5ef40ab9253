/* SPDX-License-Identifier: MIT
 *
 * svg.h - a plot as SVG: a file, or a part of a page
 *
 * A file has its colours in it. In a page colours are classes of page.css (s0 to s6 for
 * series, ink, dim, rule, paper, bad, warn), light and dark, and the legend is a
 * list of HTML before the picture, so that it wraps on a phone. Sizes and distances of
 * a file are those of gnuplot's own SVG, within a few pixels;
 * tests/support/same_charts.py compares texts and places of both.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_CHART_SVG_H
#define SLM_HARNESS_CHART_SVG_H

#include <stdio.h>

#include "harness/chart/layout.h"

/* p is laid out for that look. Failed writes are left in f. */
void svg_write(FILE *f, const struct plot *p, const struct plot_look *look);

/* ---- its parts: texts, lines, areas and marks, with colours or with classes ------ */

/* Two more colours of texts in files. */
enum { SVG_BLACK = -20, SVG_DIM };

struct svg {
    FILE *f;
    const struct plot *p;
    const struct plot_look *look;
};

struct svg_text {
    double x, y; /* the middle of its height */
    enum plot_kind kind;
    enum plot_anchor anchor;
    double rotate;
    int color;
};

extern const struct plot_style svg_frame, svg_grid;

void svg_begin(const struct svg *s);
void svg_put_escaped(FILE *f, const char *text);

/* Calls put with each character, of n bytes; what is no UTF-8 is U+FFFD. */
void svg_each_char(FILE *f, const char *text,
                   void (*put)(FILE *f, const char *c, size_t n));
void svg_text(const struct svg *s, const struct svg_text *at, const char *text);

void svg_line(const struct svg *s, double x1, double y1, double x2, double y2,
              const struct plot_style *style);
void svg_box(const struct svg *s, double x1, double y1, double x2, double y2,
             const struct plot_style *style);
void svg_mark(const struct svg *s, double x, double y, const struct plot_style *style);
double svg_mark_radius(const struct svg *s, const struct plot_style *style);

/* The rest of an element "<path d=\"...\"" */
void svg_end_line(const struct svg *s, const struct plot_style *style);
void svg_end_line_width(const struct svg *s, const struct plot_style *style,
                        double width);
void svg_end_area(const struct svg *s, const struct plot_style *style);

#endif
