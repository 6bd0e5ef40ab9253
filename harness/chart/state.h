/* SPDX-License-Identifier: MIT
 *
 * state.h - what a script has set so far, and where it is read
 *
 * Model of the world: a script is read from d->p on; statements and expressions move
 * it. The first error stops everything: d->err->code is set, and whatever reads on
 * finds nothing. While d->skip > 0 expressions are read and not evaluated.
 *
 * Threading: one thread per struct draw.
 */
#ifndef SLM_HARNESS_CHART_STATE_H
#define SLM_HARNESS_CHART_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/chart/value.h"

#define DRAW_MAX_TICKS   400
#define DRAW_MAX_KEYS    200
#define DRAW_MAX_COLUMNS 96
#define DRAW_MAX_STOPS   8
#define STATEMENT_STEPS  20

/* ---- styles ---------------------------------------------------------------------- */

enum draw_from { FROM_GIVEN, FROM_PALETTE, FROM_VARIABLE };
enum draw_anchor { ANCHOR_LEFT, ANCHOR_CENTER, ANCHOR_RIGHT };
enum draw_layer { LAYER_BACK, LAYER_FRONT };

/* Attributes that lines, marks, texts and areas have in common. */
struct style {
    uint32_t color; /* 0xAARRGGBB, A = 0 is opaque, as gnuplot has it */
    enum draw_from from;
    double line_width;
    double dash[2]; /* in half line widths; 0: none */
    int point_type; /* -1: none */
    double point_size;
    bool has_point;
    uint32_t text_color;
    double font_size; /* 0: the terminal's */
    enum draw_anchor anchor;
    double offset[2]; /* characters */
    bool has_offset;
    double rotate; /* degrees */
    enum draw_layer layer;
    bool is_filled, has_border; /* an area; borders have .border's colour */
    double fill_opacity;
    uint32_t border;
    bool has_heads; /* vectors that end in bars */
    const char *title;
};

/* ---- places ---------------------------------------------------------------------- */

enum draw_system { SYSTEM_FIRST, SYSTEM_GRAPH, SYSTEM_SCREEN };

struct place {
    enum draw_system system[2];
    double v[2];
};

/* ---- what is set ----------------------------------------------------------------- */

struct tick {
    double at;
    const char *text; /* NULL: the axis' format of at */
};

struct axis {
    double min, max;
    bool is_log;
    bool has_ticks, is_auto;  /* is_auto: multiples of step in addition to the list */
    double step, first, last; /* step 0: a round one; first and last NAN: the range's */
    struct tick tick[DRAW_MAX_TICKS];
    int n_ticks;
    const char *format, *title;
    struct style text, title_style;
    double tick_scale;
    bool has_grid;
};

enum object_kind { OBJECT_LABEL, OBJECT_ARROW, OBJECT_RECTANGLE };

struct object {
    enum object_kind kind;
    int tag;
    const char *text; /* of a label */
    struct place at,
        to; /* to: an arrow's end; the other corner or, if centred, the size */
    bool is_centered;
    struct style style;
    struct object *next;
};

struct key_entry {
    struct style style;
    char form; /* line, point, both, area: l p b a */
    const char *text;
};

struct key {
    bool is_shown, is_placed, is_below, is_top;
    struct place at;
    double sample, spacing, font_size;
    int max_rows;
};

struct palette_stop {
    double at;
    uint32_t color;
};

struct draw {
    const char *script, *p; /* read from p on; the script, for the number of a line */
    const char *text;       /* what p points into: the script or a text of eval */
    int skip, depth;
    long n_steps, max_steps; /* calls so far, statements as STATEMENT_STEPS */
    struct err *err;
    struct variables variables;
    struct arena arena;
    const struct variable *function; /* that is evaluated, with its arguments */
    const struct value *arguments;
    bool has_svg, is_drawing; /* a terminal svg was set; it is the one that is set */
    FILE *f;

    double width, height, font_size, line_scale;
    double margin[4]; /* left, right, top, bottom, of the screen; NAN: automatic */
    struct axis x, y;
    double color_min, color_max, color_step, color_box[4], color_font_size;
    const char *color_format;
    struct palette_stop stop[DRAW_MAX_STOPS];
    int n_stops;
    int border;
    struct style border_style, grid_style;
    struct object *objects;
    struct key key;
    double fill_opacity;
    double user_dash[2]; /* of dash type 2 */
    int n_samples;
    int n_clips;

    /* the plot that is drawn */
    double left, right, top, bottom;
    bool is_collecting; /* entries of the key, before anything is drawn */
    struct key_entry entry[DRAW_MAX_KEYS];
    int n_entries;

    /* data: cells of the row that is evaluated */
    const char *column[DRAW_MAX_COLUMNS];
    int n_columns;
    const char *const *row; /* NULL: outside of data */
    const char **cells;     /* n_columns of each row */
    size_t n_rows, at_row;
};

/* "[i=1:3]", "[i=1:9:2]" or "[s in TEXT]". */
struct draw_loop {
    char name[DRAW_NAME];
    const char *words; /* NULL: numbers */
    double next, last, step;
};

/* ---- reading and evaluating (expression.c)
 * -------------------------------------------------------
 */

/* Sets the error "<what>, line N of the chart's script"; what has at most 200 bytes. */
void draw_fail(struct draw *d, const char *what);
/* n more steps, and an error where these are more than the script may take. */
void draw_step(struct draw *d, int n);
/* Blanks are skipped; then the operator or word is taken if it is next. */
bool draw_take(struct draw *d, const char *word);
/* The same, and an error without it. */
void draw_expect(struct draw *d, const char *word);
/* A name is next: copied and taken. */
bool draw_take_name(struct draw *d, char name[DRAW_NAME]);
bool draw_ends(struct draw *d); /* the statement ends here */
void draw_skip_statement(struct draw *d);

struct value draw_value(struct draw *d);
double draw_number(struct draw *d);
const char *draw_text(struct draw *d); /* never NULL */

/* The figure in a column, by name or number, of the row that is evaluated. */
struct value draw_column(struct draw *d, struct value which);

/* ---- texts (text.c) ----------------------------------------------------------------
 */

/* d->p is behind the opening quote. */
struct value draw_read_text(struct draw *d, char quote);
const char *draw_copy(struct draw *d, const char *text, size_t len);
const char *draw_to_text(struct draw *d, struct value v);
/* sprintf(), and of one number for an axis. */
const char *draw_format_values(struct draw *d, const char *format,
                               const struct value *v, int n);
const char *draw_format(struct draw *d, const char *format, double v);
struct value draw_word(struct draw *d, const char *text, double wanted);

/* gnuplot's strstrt() and substr(): positions are characters from 1; 0: not found. */
struct value draw_find(const char *text, const char *wanted);
struct value draw_part(struct draw *d, const char *text, double first, double last);
int draw_count_words(const char *text);
/* Characters of UTF-8. */
int draw_length(const char *text);

/* ---- loops and variables (script.c) ------------------------------------------------
 */

void draw_assign(struct draw *d, const char *name, struct value v);
void draw_take_loop(struct draw *d, struct draw_loop *l);
/* The loop's variable is set to the next; false: there is no next. */
bool draw_loop_next(struct draw *d, struct draw_loop *l);

/* ---- settings (settings.c, style.c) ------------------------------------------------
 */

void draw_defaults(struct draw *d);
void draw_set(struct draw *d);
void draw_unset(struct draw *d);

struct style draw_style(const struct draw *d);
/* One attribute is read; false: something else is next. */
bool draw_take_style(struct draw *d, struct style *s);
uint32_t draw_color(struct draw *d, struct value v);
uint32_t draw_palette(const struct draw *d, double v);
void draw_take_place(struct draw *d, struct place *to);

/* ---- drawing (plot.c, figure.c, canvas.c) ------------------------------------------
 */

void draw_plot(struct draw *d);

/* The frame of the plot is set, what lies behind and before the data is drawn. */
void figure_lay_out(struct draw *d);
void figure_put_back(struct draw *d);
void figure_put_front(struct draw *d);
double figure_x(const struct draw *d, double v);
double figure_y(const struct draw *d, double v);

void canvas_begin(struct draw *d);
void canvas_end(struct draw *d);
void canvas_text(struct draw *d, double x, double y, const struct style *s,
                 const char *text);
void canvas_line(struct draw *d, double x1, double y1, double x2, double y2,
                 const struct style *s);
/* A path is begun, its parts are written to d->f, and it is ended. */
void canvas_begin_path(struct draw *d);
void canvas_end_path(struct draw *d, const struct style *s);
void canvas_end_area(struct draw *d, const struct style *s);
void canvas_rectangle(struct draw *d, double x, double y, double width, double height,
                      const struct style *s);
void canvas_mark(struct draw *d, double x, double y, const struct style *s);
void canvas_begin_clip(struct draw *d);
void canvas_end_clip(struct draw *d);

#endif
