/* SPDX-License-Identifier: MIT
 *
 * layout.h - where everything of a plot stands: panels, ticks, legend, labels
 *
 * Model of the world: a picture of a file is 1200 wide and has its title and legend in
 * it; one of a page is a phone's column or the page's width, and its title and legend
 * are HTML around it. In a page the names of rows stand above their bars, so that they
 * have room. Widths of texts are estimated from their characters (texts.c): nobody
 * knows the fonts of whoever looks at the picture. Texts that are wider than their room
 * are cut in their middle.
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

/* Where entry i of the legend begins, and its middle. */
void plot_key_place(const struct plot *p, size_t i, double *x, double *y);

/* The width of a text of that size. */
double plot_text_width(const char *text, double size);

/* ---- texts.c: how wide texts are, and texts that are cut to their room --------------
 *
 * For layout.c, whose panels have their boxes. */

/* The text, or a copy of the plot's that is cut in its middle, or where it is cut
 * already, so that it is no wider than room. */
const char *plot_fit(struct plot *p, const char *text, double room, double size);
/* The head, notes and legend of a file. */
void plot_fit_around(struct plot *p, const struct plot_look *look, double room,
                     double key_room);
/* The width of a panel in which the widest text behind bars leaves room for these. */
double plot_room_for_bars(const struct plot *p, const struct plot_look *look);
/* Names of rows are cut to what is left of their panel, in a page to its width; the
 * panel's title is cut at the picture's edge. */
void plot_fit_names(struct plot *p, const struct plot_look *look, int panel);
/* The axis grows until the texts behind its bars are on it. */
void plot_make_room(struct plot *p, const struct plot_look *look, int panel);

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
