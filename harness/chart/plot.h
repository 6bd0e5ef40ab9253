/* SPDX-License-Identifier: MIT
 *
 * plot.h - a chart, described once
 *
 * Model of the world: a chart is a table and panels one below the other. A panel has
 * two axes and layers; a layer draws columns of the table in one form (a line, marks,
 * bars, texts), by default for all rows, in a colour of its own or in one for each
 * value of a column. What no row stands for (a limit, a band) is a guide. A legend and
 * notes are below or next to the panels. Where everything stands is computed (layout.h)
 * and not given; two writers draw the result: gnuplot.c as a script that reads the
 * table as CSV, svg.h as SVG, for files and for pages.
 *
 * Lengths are pixels of a picture that is 1200 wide. Texts are copied. Without memory a
 * plot becomes incomplete, and plot_draw() reports it; so building it cannot fail.
 *
 * Threading: one thread per plot.
 */
#ifndef SLM_HARNESS_CHART_PLOT_H
#define SLM_HARNESS_CHART_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#define PLOT_COLORS      7 /* then they come round, with other marks */
#define PLOT_MAX_PANELS  6
#define PLOT_MAX_COLUMNS 24
#define PLOT_MAX_TICKS   256

/* Colours of series are 0, 1, 2, ... */
enum plot_color {
    PLOT_INK = -1,
    PLOT_GREY = -2,
    PLOT_FAINT = -3,
    PLOT_PAPER = -4,
    PLOT_BAD = -5,
    PLOT_WARN = -6,
    PLOT_OWN = -10,   /* that of the row's value of plot_layer.by */
    PLOT_STEP = 1000, /* + 0 to 8: a quantity's steps from dark to light */
};

enum plot_dash { PLOT_WHOLE, PLOT_DASHED, PLOT_DOTTED, PLOT_SHORT };

enum plot_mark {
    PLOT_NO_MARK,
    PLOT_SHAPE,  /* the shape that goes with the colour, full */
    PLOT_HOLLOW, /* and empty */
    PLOT_DOT,
    PLOT_RING,
    PLOT_SQUARE,
    PLOT_DIAMOND,
    PLOT_TRIANGLE, /* hollow, on its tip */
    PLOT_CROSS,
};

/* width 0: no line. opacity 0: no area; below 0: its outline alone. */
struct plot_style {
    int color;
    double width;
    enum plot_dash dash;
    enum plot_mark mark;
    double size; /* of a mark, as gnuplot has it */
    double opacity;
};

struct plot_style plot_stroke(int color, double width, enum plot_dash dash);
struct plot_style plot_marked(int color, enum plot_mark mark, double size);
struct plot_style plot_filled(int color, double opacity);

/* ---- panels ---------------------------------------------------------------------- */

struct plot_tick {
    double at;
    const char *text; /* NULL: the figure */
};

struct plot_axis {
    double min, max; /* max < min: the other way round */
    bool is_log;
    bool has_names; /* y: ticks are names of 0, 1, 2, ... from the top */
    bool has_room;  /* max grows so that texts behind bars fit; linear from 0 */
    bool no_grid, no_figures;
    const char *title; /* y: above the panel */
    const char *unit;  /* of differences: figures have a sign and it, but 0 */
    struct plot_tick v[PLOT_MAX_TICKS];
    int n; /* 0: they are found */
};

struct plot_box {
    double left, top, width, height;
};

struct plot_panel {
    double height;   /* or, of names on y, that of each */
    double top_room; /* more room above and right of it, for guides */
    double right_room;
    bool has_lines; /* in a page each row has a line for its text below its name */
    struct plot_axis x, y;
    struct plot_box box; /* out, set by layout.h */
};

/* ---- layers ---------------------------------------------------------------------- */

/* A figure of a row, and what is added to it; column NULL: `plus` alone. */
struct plot_place {
    const char *column;
    double plus;
};

enum plot_form {
    PLOT_LINE,     /* x, y; where a row between two is not drawn it is broken */
    PLOT_STEPS,    /* across, then up or down */
    PLOT_MARKS,    /* x, y */
    PLOT_INTERVAL, /* x, y to x2, y2, with ends */
    PLOT_SEGMENT,  /* the same without */
    PLOT_BOX,      /* x, y and x2, y2 are corners */
    PLOT_BAND,     /* between y and y2 along x */
    PLOT_TEXT,     /* x, y: its anchor */
};

enum plot_anchor { PLOT_CENTER, PLOT_LEFT, PLOT_RIGHT };

/* Rows whose column is from low to high. */
struct plot_only {
    const char *column;
    double low, high;
};

struct plot_layer {
    int panel;
    enum plot_form form;
    struct plot_place x, y, x2, y2;
    const char *by;  /* with PLOT_OWN */
    int n_by;        /* its values are 0 to n_by - 1 */
    bool is_ordered; /* of a quantity: more values than colours have PLOT_STEP */
    struct plot_only only[3];
    struct plot_style style;
    const char *text; /* column; but for PLOT_TEXT what a pointer over it shows */
    enum plot_anchor anchor;
    double dx; /* of a text, to the right */
    /* Marks' columns: the text stands next to its mark where it covers least, and x, y
     * are columns that receive its place. */
    const char *mark_x, *mark_y;
};

/* A place without a row: in the axis' units, or as a share of the panel from its left
 * or lower end. */
struct plot_at {
    double v;
    bool is_share;
};

struct plot_guide {
    int panel;
    enum plot_form form; /* PLOT_SEGMENT, PLOT_BOX, PLOT_TEXT */
    struct plot_at x, y, x2, y2;
    struct plot_style style;
    bool is_behind;
    const char *text;
    enum plot_anchor anchor;
    double dx, dy; /* of a text, right and down */
    double rotate; /* degrees, to the left */
    bool is_slope; /* a text along the line of its guide before, upon it */
    bool is_free;  /* a text above the line y: x is where it covers least */
};

/* ---- the legend ------------------------------------------------------------------ */

struct plot_key {
    struct plot_style style;
    const char *text;
};

/* ---- all of it ------------------------------------------------------------------- */

struct plot_text; /* a copied text */

struct plot_cell {
    double v;
    const char *text; /* NULL: a figure */
};

struct plot {
    const char *name; /* of its files, without ending */
    const char *title, *subtitle, *warning;
    struct plot_panel panel[PLOT_MAX_PANELS];
    int n_panels;
    struct plot_layer *layer;
    struct plot_guide *guide;
    struct plot_key *key;
    const char **note; /* lines at the bottom */
    size_t n_layers, n_guides, n_keys, n_notes;
    bool is_wide;    /* in a page: over its whole width */
    bool keys_below; /* the legend is never next to the panels */

    /* The table; columns whose names begin with a dot are not written into files. */
    const char *column[PLOT_MAX_COLUMNS];
    size_t n_columns, n_cells;
    struct plot_cell *cell; /* [rows][n_columns] */

    /* out, of layout.h */
    double width, height, foot;
    struct plot_box keys; /* where the legend is; height 0: none in the picture */
    int key_columns;

    struct plot_text *texts;
    bool is_incomplete;
};

/* A plot without a panel; NULL without memory. */
struct plot *plot_new(const char *name, const char *title, const char *subtitle);
void plot_free(struct plot *p);

/* A copy that the plot owns; cut in its middle beyond n characters. */
const char *plot_keep(struct plot *p, const char *text, size_t n);
const char *plot_printf(struct plot *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The next panel, of that height, with these axes' ranges. */
struct plot_panel *plot_panel(struct plot *p, double height, double x_min, double x_max,
                              double y_min, double y_max);
/* One more tick; text NULL: the figure. Beyond PLOT_MAX_TICKS there is no more. */
void plot_tick(struct plot *p, struct plot_axis *a, double at, const char *text);

void plot_layer(struct plot *p, struct plot_layer l);
void plot_guide(struct plot *p, struct plot_guide g);
/* A guide across the panel, at v of its x axis (upright) or its y axis; and one with a
 * text at a place right (dx > 0) or left of x, at y. */
void plot_across(struct plot *p, int panel, bool is_x, double v, bool is_behind,
                 struct plot_style style);
void plot_words(struct plot *p, int panel, struct plot_at x, struct plot_at y,
                double dx, int color, const char *text);
/* Shows that the axis is broken there, at a share of it. */
void plot_break(struct plot *p, int panel, bool is_x, double at);
void plot_key(struct plot *p, const char *text, struct plot_style s);
void plot_note(struct plot *p, const char *text);

/* "a,b,c"; then cells, row after row. */
void plot_columns(struct plot *p, const char *names);
void plot_number(struct plot *p, double v);
void plot_numbers(struct plot *p, const double *v, size_t n);
#define PLOT_NUMBERS(p, ...)                       \
    plot_numbers(p, (const double[]){__VA_ARGS__}, \
                 sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
/* Commas and quotes become others: gnuplot splits at commas within quotes. */
void plot_string(struct plot *p, const char *text);

/* ---- reading it ------------------------------------------------------------------ */

size_t plot_rows(const struct plot *p);
int plot_column(const struct plot *p, const char *name); /* -1: no such column */
double plot_value(const struct plot *p, size_t row, struct plot_place at);
const char *plot_cell_text(const struct plot *p, size_t row, const char *column);

/* Whether the layer draws that row, of value k of its column `by` (-1: whichever). */
bool plot_draws(const struct plot *p, const struct plot_layer *l, int k, size_t row);
/* Whether there is such a row: without one gnuplot warns, and ends in some versions
 * where these are texts (5.4). */
bool plot_has_rows(const struct plot *p, const struct plot_layer *l, int k);
/* The colour and mark of value k. */
struct plot_style plot_style_of(const struct plot_layer *l, int k);
/* 0xRRGGBB */
unsigned plot_rgb(int color);

#endif
