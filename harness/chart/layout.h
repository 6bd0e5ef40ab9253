/* SPDX-License-Identifier: MIT
 *
 * layout.h - where everything of a plot stands: panels, ticks, legend, labels
 *
 * Model of the world: a picture of a file is 1200 wide and has its title and legend in
 * it; one of a page is a phone's column or the page's width, and its title and legend
 * are HTML around it. In a page the names of rows stand above their bars, so that they
 * have room. Widths of texts are estimated from their characters: nobody knows the
 * fonts of whoever looks at the picture.
 *
 * Threading: one thread per plot.
 */
#ifndef SLM_HARNESS_CHART_LAYOUT_H
#define SLM_HARNESS_CHART_LAYOUT_H

#include "harness/chart/plot.h"

enum plot_kind { TEXT_TICK, TEXT_NAME, TEXT_LABEL, TEXT_ROW, TEXT_SUB, TEXT_TITLE };

struct plot_look {
    bool is_page;
    double width;
    double shrink;           /* of heights of panels */
    double size[6];          /* of texts, by kind */
    double apart_x, apart_y; /* from tick to tick, about */
};

extern const struct plot_look plot_look_file, plot_look_page, plot_look_wide;

/* Sets what plot.h calls "out", ticks that the plot does not give, the ends of axes
 * that have_room, and the places of labels: figures in the columns of their layers. */
void plot_lay_out(struct plot *p, const struct plot_look *look);

/* Round figures within min to max, about n_wanted and at most PLOT_MAX_TICKS; returns
 * how many. */
int plot_find_ticks(double min, double max, bool is_log, int n_wanted, double *v);

/* Pixels of the picture from its upper left corner, kept within the panel. */
double plot_x(const struct plot_panel *a, double v);
double plot_y(const struct plot_panel *a, const struct plot_look *look, double v);
double plot_guide_x(const struct plot_panel *a, struct plot_at at);
double plot_guide_y(const struct plot_panel *a, const struct plot_look *look,
                    struct plot_at at);
/* Whether v is on the axis, but for rounding. */
bool plot_is_within(const struct plot_axis *a, double v);

/* The tick's text, in buf or not. */
const char *plot_tick_text(const struct plot_axis *a, const struct plot_tick *t,
                           char buf[40]);

double plot_text_width(const char *text, double size);
/* Where entry i of the legend begins, and its middle. */
void plot_key_place(const struct plot *p, size_t i, double *x, double *y);

/* ---- labels.c: texts next to their marks ------------------------------------------
 *
 * Lengths are pixels, y grows downwards. */

struct plot_label {
    double x, y;           /* of its mark */
    double half_x, half_y; /* half of the text */
    double at_x, at_y;     /* out: its middle */
};

struct plot_line {
    double x1, y1, x2, y2;
};

struct plot_around {
    struct plot_box box;           /* the panel */
    const struct plot_label *mark; /* [n_marks]: x, y of every mark there */
    size_t n_marks;
    const struct plot_line *line; /* lines and intervals */
    size_t n_lines;
};

/* Puts each label next to its mark, so that as far as possible none covers another, a
 * mark or a line, leaves the panel, or is closer to another mark. */
void plot_place_labels(struct plot_label *v, size_t n,
                       const struct plot_around *around);

/* The left end of a text of that size above the level y, where it covers least. */
double plot_place_above(const struct plot_label *v, size_t n,
                        const struct plot_around *around, double y, double width,
                        double height);

#endif
