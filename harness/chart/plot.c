/* SPDX-License-Identifier: MIT
 *
 * plot.c - a chart's description: building it, and what its layers draw
 */
#include "harness/chart/plot.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"

#define TEXT_MAX 4000

struct plot_text {
    struct plot_text *next;
    char text[];
};

struct plot_style plot_stroke(int color, double width, enum plot_dash dash)
{
    return (struct plot_style){.color = color, .width = width, .dash = dash};
}

struct plot_style plot_marked(int color, enum plot_mark mark, double size)
{
    return (struct plot_style){.color = color, .mark = mark, .size = size};
}

struct plot_style plot_filled(int color, double opacity)
{
    return (struct plot_style){.color = color, .opacity = opacity};
}

struct plot *plot_new(const char *name, const char *title, const char *subtitle)
{
    struct plot *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->name = plot_keep(p, name, TEXT_MAX);
    p->title = plot_keep(p, title, TEXT_MAX);
    p->subtitle = plot_keep(p, subtitle, TEXT_MAX);
    p->warning = "";
    return p;
}

void plot_free(struct plot *p)
{
    struct plot_text *t = p ? p->texts : NULL;

    while (t) {
        struct plot_text *next = t->next;

        free(t);
        t = next;
    }
    if (!p)
        return;
    free(p->layer);
    free(p->guide);
    free(p->key);
    free(p->note);
    free(p->cell);
    free(p);
}

/* v[n] with room for one more: it doubles at each power of two. */
static bool grow(struct plot *p, void *v, size_t n, size_t size)
{
    void **to = v;
    void *more = *to;

    if (n & (n - 1) && n)
        return true;
    more = realloc(more, (n ? 2 * n : 1) * size);
    if (more)
        *to = more;
    p->is_incomplete |= !more;
    return more != NULL;
}

/* ---- texts ----------------------------------------------------------------------- */

const char *plot_keep(struct plot *p, const char *text, size_t n)
{
    char buf[TEXT_MAX];
    struct plot_text *t;

    text_shorten(buf, sizeof buf, text, n);
    t = malloc(sizeof *t + strlen(buf) + 1);
    p->is_incomplete |= !t;
    if (!t)
        return "";
    strcpy(t->text, buf);
    t->next = p->texts;
    p->texts = t;
    return t->text;
}

const char *plot_printf(struct plot *p, const char *fmt, ...)
{
    char buf[TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    return plot_keep(p, buf, TEXT_MAX);
}

/* ---- panels ---------------------------------------------------------------------- */

struct plot_panel *plot_panel(struct plot *p, double height, double x_min, double x_max,
                              double y_min, double y_max)
{
    struct plot_panel *a =
        &p->panel[p->n_panels < PLOT_MAX_PANELS ? p->n_panels++ : PLOT_MAX_PANELS - 1];

    *a = (struct plot_panel){.height = height,
                             .x = {.min = x_min, .max = x_max},
                             .y = {.min = y_min, .max = y_max}};
    return a;
}

void plot_tick(struct plot *p, struct plot_axis *a, double at, const char *text)
{
    if (a->n < PLOT_MAX_TICKS)
        a->v[a->n++] =
            (struct plot_tick){at, text ? plot_keep(p, text, TEXT_MAX) : NULL};
}

void plot_layer(struct plot *p, struct plot_layer l)
{
    if (grow(p, &p->layer, p->n_layers, sizeof l))
        p->layer[p->n_layers++] = l;
}

void plot_guide(struct plot *p, struct plot_guide g)
{
    if (g.text)
        g.text = plot_keep(p, g.text, TEXT_MAX);
    if (grow(p, &p->guide, p->n_guides, sizeof g))
        p->guide[p->n_guides++] = g;
}

void plot_across(struct plot *p, int panel, bool is_x, double v, bool is_behind,
                 struct plot_style style)
{
    const struct plot_at at = {v, false}, from = {0, true}, to = {1, true};

    plot_guide(p, (struct plot_guide){.panel = panel,
                                      .form = PLOT_SEGMENT,
                                      .x = is_x ? at : from,
                                      .x2 = is_x ? at : to,
                                      .y = is_x ? from : at,
                                      .y2 = is_x ? to : at,
                                      .is_behind = is_behind,
                                      .style = style});
}

void plot_words(struct plot *p, int panel, struct plot_at x, struct plot_at y,
                double dx, int color, const char *text)
{
    plot_guide(p, (struct plot_guide){.panel = panel,
                                      .form = PLOT_TEXT,
                                      .x = x,
                                      .y = y,
                                      .dx = dx,
                                      .anchor = dx < 0 ? PLOT_RIGHT : PLOT_LEFT,
                                      .style = {.color = color},
                                      .text = text});
}

void plot_break(struct plot *p, int panel, bool is_x, double at)
{
    const double half_x = is_x ? 0.006 : 0.012, half_y = is_x ? 0.014 : 0.012;
    const double x = is_x ? at : 0, y = is_x ? 0 : at;
    struct plot_guide g = {.panel = panel,
                           .form = PLOT_BOX,
                           .x = {x - half_x, true},
                           .x2 = {x + half_x, true},
                           .y = {y - half_y, true},
                           .y2 = {y + half_y, true},
                           .style = plot_filled(PLOT_PAPER, 1)};

    plot_guide(p, g);
    for (int i = -1; i <= 1; i += 2) {
        g = (struct plot_guide){.panel = panel,
                                .form = PLOT_TEXT,
                                .x = {x, true},
                                .y = {y, true},
                                .dx = is_x ? 4 * i : 0,
                                .dy = is_x ? 0 : 4 * i,
                                .rotate = is_x ? 0 : -45,
                                .style = {.color = PLOT_GREY},
                                .text = "/"};
        plot_guide(p, g);
    }
}

void plot_key(struct plot *p, const char *text, struct plot_style s)
{
    const struct plot_key k = {s, plot_keep(p, text, TEXT_MAX)};

    if (grow(p, &p->key, p->n_keys, sizeof k))
        p->key[p->n_keys++] = k;
}

void plot_note(struct plot *p, const char *text)
{
    const char *note = plot_keep(p, text, TEXT_MAX);

    if (grow(p, &p->note, p->n_notes, sizeof note))
        p->note[p->n_notes++] = note;
}

/* ---- the table ------------------------------------------------------------------- */

void plot_columns(struct plot *p, const char *names)
{
    while (*names && p->n_columns < PLOT_MAX_COLUMNS) {
        const size_t n = strcspn(names, ",");

        p->column[p->n_columns++] = plot_printf(p, "%.*s", (int)n, names);
        names += n + (names[n] == ',');
    }
}

static void add_cell(struct plot *p, double v, const char *text)
{
    if (grow(p, &p->cell, p->n_cells, sizeof *p->cell))
        p->cell[p->n_cells++] = (struct plot_cell){v, text};
}

void plot_number(struct plot *p, double v)
{
    add_cell(p, v, NULL);
}

void plot_numbers(struct plot *p, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        plot_number(p, v[i]);
}

/* gnuplot splits a line at commas within quotes, too, and has no quoted quotes. */
void plot_string(struct plot *p, const char *text)
{
    const bool is_written =
        p->n_columns && *p->column[p->n_cells % p->n_columns] != '.';
    char buf[TEXT_MAX];

    text_shorten(buf, sizeof buf, text, TEXT_MAX);
    for (char *s = buf; *s && is_written; s++)
        *s = (unsigned char)*s < ' ' ? ' ' : *s == '"' ? '\'' : *s == ',' ? ';' : *s;
    add_cell(p, NAN, *buf ? plot_keep(p, buf, TEXT_MAX) : "");
}

size_t plot_rows(const struct plot *p)
{
    return p->n_columns ? p->n_cells / p->n_columns : 0;
}

int plot_column(const struct plot *p, const char *name)
{
    int i = (int)p->n_columns - 1;

    while (i >= 0 && strcmp(p->column[i], name) != 0)
        i--;
    return i;
}

double plot_value(const struct plot *p, size_t row, struct plot_place at)
{
    const int i = at.column ? plot_column(p, at.column) : -1;

    if (!at.column)
        return at.plus;
    return i < 0 ? NAN : p->cell[row * p->n_columns + (size_t)i].v + at.plus;
}

const char *plot_cell_text(const struct plot *p, size_t row, const char *column)
{
    const int i = column ? plot_column(p, column) : -1;
    const char *text = i < 0 ? NULL : p->cell[row * p->n_columns + (size_t)i].text;

    return text ? text : "";
}

/* ---- layers ---------------------------------------------------------------------- */

bool plot_draws(const struct plot *p, const struct plot_layer *l, int k, size_t row)
{
    for (int i = 0; i < 3 && l->only[i].column; i++) {
        const double v =
            plot_value(p, row, (struct plot_place){.column = l->only[i].column});

        if (!(v >= l->only[i].low && v <= l->only[i].high))
            return false;
    }
    if (l->by && k >= 0 &&
        plot_value(p, row, (struct plot_place){.column = l->by}) != k)
        return false;
    if (!isfinite(plot_value(p, row, l->x)) || !isfinite(plot_value(p, row, l->y)))
        return false;
    if (l->form == PLOT_TEXT)
        return *plot_cell_text(p, row, l->text) != '\0';
    return l->form < PLOT_INTERVAL ||
           (isfinite(plot_value(p, row, l->x2)) && isfinite(plot_value(p, row, l->y2)));
}

bool plot_has_rows(const struct plot *p, const struct plot_layer *l, int k)
{
    for (size_t row = 0; row < plot_rows(p); row++)
        if (plot_draws(p, l, k, row))
            return true;
    return false;
}

struct plot_style plot_style_of(const struct plot_layer *l, int k)
{
    struct plot_style s = l->style;

    if (s.color == PLOT_OWN)
        s.color = l->is_ordered && l->n_by > PLOT_COLORS
                      ? PLOT_STEP + (int)(8.0 * k / (l->n_by - 1) + 0.5)
                      : k;
    return s;
}

/* ---- colours --------------------------------------------------------------------- */

/* Okabe and Ito's palette: people with any colour vision can distinguish it. */
static const unsigned palette[PLOT_COLORS] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7,
                                              0xe69f00, 0x56b4e9, 0x000000};
/* viridis */
static const unsigned steps[] = {0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e,
                                 0x1f9e89, 0x35b779, 0x6dcd59, 0xa5d935};
static const unsigned named[] = {0x333333, 0x777777, 0xd8d8d8,
                                 0xffffff, 0xb00020, 0xa86a00};

unsigned plot_rgb(int color)
{
    if (color >= PLOT_STEP)
        return steps[(color - PLOT_STEP) % 9];
    return color >= 0 ? palette[color % PLOT_COLORS] : named[(-1 - color) % 6];
}
