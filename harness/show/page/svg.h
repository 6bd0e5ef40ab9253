/* SPDX-License-Identifier: MIT
 *
 * svg.h - parts of the pictures in a page
 *
 * Model of the world: a picture has a width and a height of its own units, of which a
 * phone and a column of a desktop show some 0.9 pixels each; so texts of 13 units can
 * be read on both. Colours are the page's: classes s0 to s6 of a series, which page.css
 * defines for light and dark. Series also differ by the shape of their marks.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_SHOW_PAGE_SVG_H
#define SLM_HARNESS_SHOW_PAGE_SVG_H

#include <stdbool.h>
#include <stdio.h>

#include "harness/show/report/report_chart.h"

#define SVG_WIDTH     370
#define SVG_COLORS    7
#define SVG_MAX_TICKS 20
#define SVG_CHARACTER 8.0 /* width of a digit, at most */

struct svg_range {
    double min, max;
    bool log;
};

/* Where figures are drawn. */
struct svg_area {
    double left, top, width, height;
    struct svg_range x, y;
};

/* Place of a figure in the picture. */
double svg_x(const struct svg_area *a, double x);
double svg_y(const struct svg_area *a, double y);

void svg_begin(FILE *f, int width, double height, const char *title);
void svg_end(FILE *f);

/* anchor: start, middle or end. style: classes of page.css. */
void svg_text(FILE *f, double x, double y, const char *anchor, const char *style,
              const char *text);
void svg_line(FILE *f, double x1, double y1, double x2, double y2, const char *style);
void svg_rect(FILE *f, double x, double y, double width, double height,
              const char *style);

/* Round figures within r, about n_wanted (<= SVG_MAX_TICKS / 2); returns how many. */
int svg_ticks(const struct svg_range *r, int n_wanted, double v[SVG_MAX_TICKS]);

/* Width that the figures left of a vertical axis need. */
double svg_y_labels_width(const struct svg_range *r, int n_wanted);

/* Lines across with figures left of them; figures below, and what they are. */
void svg_y_axis(FILE *f, const struct svg_area *a, int n_wanted);
void svg_x_axis(FILE *f, const struct svg_area *a, int n_wanted);
void svg_x_title(FILE *f, const struct svg_area *a, const char *text);

/* The mark of a series at a place of the picture. */
void svg_mark(FILE *f, double x, double y, int series, enum mark_state state);

/* The entry of a legend: a line (style: its classes; NULL: none), a mark or both. */
void svg_key(FILE *f, int series, const char *line, int state, const char *text);

#endif
