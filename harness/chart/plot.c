/* SPDX-License-Identifier: MIT
 *
 * plot.c - what "plot" draws: data, functions, and entries of the key
 *
 * A plot is read twice: for its key, whose width the frame depends on, and to draw. An
 * element's expressions stay text, and are evaluated for each row.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/state.h"

#define MAX_ITEMS 8
#define CAP       4.5 /* half of the bar at an interval's end */

struct element {
    const char *item[MAX_ITEMS]; /* of "using" */
    int n_items;
    const char *function; /* of x; NULL: data, or an entry of the key alone */
    char form[16];
    struct style style;
};

/* ---- rows ---------------------------------------------------------------------------
 */

static struct value evaluate(struct draw *d, const char *item)
{
    const char *p = d->p;
    const bool is_expression = item[strspn(item, " \t\v")] == '(';

    d->p = item;
    struct value v = draw_value(d);

    d->p = p;
    return is_expression || d->err->code ? v : draw_column(d, v);
}

static size_t count_points(const struct draw *d, const struct element *e)
{
    if (e->function)
        return d->n_samples > 1 && d->n_samples <= 10000 ? (size_t)d->n_samples : 2;
    return e->n_items ? d->n_rows : 0;
}

/* Point i of an element: what "using" lists, or x and the function's. */
static void read_point(struct draw *d, const struct element *e, size_t i,
                       struct value v[MAX_ITEMS])
{
    for (int k = 0; k < MAX_ITEMS; k++)
        v[k] = value_real(NAN);
    draw_step(d, 1);
    if (e->function) {
        const double at = (double)i / (double)(count_points(d, e) - 1);
        const struct axis *a = &d->x;
        const double x = a->is_log ? a->min * pow(a->max / a->min, at)
                                   : a->min + at * (a->max - a->min);
        const char *p = d->p;

        draw_assign(d, "x", value_real(x));
        d->p = e->function;
        v[0] = value_real(x);
        v[1] = draw_value(d);
        d->p = p;
        return;
    }
    d->at_row = i;
    d->row = d->cells + i * (size_t)d->n_columns;
    for (int k = 0; k < e->n_items; k++)
        v[k] = evaluate(d, e->item[k]);
    d->row = NULL;
}

static double x_of(const struct draw *d, struct value v)
{
    return figure_x(d, v.kind == VALUE_TEXT ? NAN : v.v);
}

static double y_of(const struct draw *d, struct value v)
{
    return figure_y(d, v.kind == VALUE_TEXT ? NAN : v.v);
}

/* Points beyond the axes are not drawn, not even at their edge. */
static bool is_inside(const struct draw *d, double x, double y)
{
    return x >= d->left - 0.5 && x <= d->right + 0.5 && y >= d->top - 0.5 &&
           y <= d->bottom + 0.5;
}

/* ---- forms --------------------------------------------------------------------------
 */

/* Lines break where a point has no place. */
static void put_lines(struct draw *d, const struct element *e, bool is_steps)
{
    bool is_open = false, has_any = false;
    struct value v[MAX_ITEMS];

    for (size_t i = 0; i < count_points(d, e) && !d->err->code; i++) {
        const struct arena_mark mark = arena_mark(&d->arena);

        read_point(d, e, i, v);
        const double x = x_of(d, v[0]), y = y_of(d, v[1]);

        arena_return(&d->arena, mark);
        if (!isfinite(x) || !isfinite(y)) {
            is_open = false;
            continue;
        }
        if (!has_any)
            canvas_begin_path(d);
        has_any = true;
        if (is_open && is_steps)
            fprintf(d->f, "H%.2fV%.2f", x, y);
        else
            fprintf(d->f, "%c%.2f %.2f", is_open ? 'L' : 'M', x, y);
        is_open = true;
    }
    if (has_any)
        canvas_end_path(d, &e->style);
}

/* Between two curves: forth along the one, back along the other. */
static void put_band(struct draw *d, const struct element *e)
{
    const size_t n = count_points(d, e);
    struct value v[MAX_ITEMS];
    bool has_any = false;

    for (size_t i = 0; i < 2 * n && !d->err->code; i++) {
        const struct arena_mark mark = arena_mark(&d->arena);

        read_point(d, e, i < n ? i : 2 * n - 1 - i, v);
        const double x = x_of(d, v[0]), y = y_of(d, v[i < n ? 1 : 2]);

        arena_return(&d->arena, mark);
        if (!isfinite(x) || !isfinite(y))
            continue;
        if (!has_any)
            canvas_begin_path(d);
        fprintf(d->f, "%c%.2f %.2f", has_any ? 'L' : 'M', x, y);
        has_any = true;
    }
    if (has_any)
        canvas_end_area(d, &e->style);
}

static void put_interval(struct draw *d, const struct style *s, double x1, double y1,
                         double x2, double y2)
{
    const double across_x = y1 == y2 ? 0 : CAP, across_y = y1 == y2 ? CAP : 0;

    if (!isfinite(x1 + y1 + x2 + y2))
        return;
    canvas_begin_path(d);
    fprintf(d->f, "M%.2f %.2fL%.2f %.2f", x1, y1, x2, y2);
    for (int end = 0; end < 2; end++)
        fprintf(d->f, "M%.2f %.2fl%.2f %.2f", (end ? x2 : x1) - across_x,
                (end ? y2 : y1) - across_y, 2 * across_x, 2 * across_y);
    canvas_end_path(d, s);
}

static double to_x(const struct draw *d, double x)
{
    return fmin(fmax(x, d->left), d->right);
}

static double to_y(const struct draw *d, double y)
{
    return fmin(fmax(y, d->top), d->bottom);
}

/* A point with intervals of x, y or both: "points", "x|y|xyerrorbars". */
static void put_point(struct draw *d, const struct element *e, struct value v[],
                      const struct style *s)
{
    const double x = x_of(d, v[0]), y = y_of(d, v[1]);
    const bool has_x = *e->form == 'x', has_y = e->form[has_x] == 'y';
    const int at = has_x ? 4 : 2;

    if (!is_inside(d, x, y))
        return;
    if (has_x)
        put_interval(d, s, to_x(d, x_of(d, v[2])), y, to_x(d, x_of(d, v[3])), y);
    if (has_y && v[at].v != v[at + 1].v)
        put_interval(d, s, x, to_y(d, y_of(d, v[at])), x, to_y(d, y_of(d, v[at + 1])));
    canvas_mark(d, x, y, s);
}

static void put_box(struct draw *d, struct value v[], const struct style *s)
{
    const double x1 = x_of(d, v[2]), x2 = x_of(d, v[3]);
    const double y1 = y_of(d, v[4]), y2 = y_of(d, v[5]);

    if (isfinite(x_of(d, v[0]) + y_of(d, v[1]) + x1 + x2 + y1 + y2))
        canvas_rectangle(d, fmin(x1, x2), fmin(y1, y2), fabs(x2 - x1), fabs(y2 - y1),
                         s);
}

/* A box of four columns has its middle and its height's ends by a fifth and sixth. */
static void put_vector(struct draw *d, struct value v[], const struct style *s)
{
    const double x1 = x_of(d, v[0]), y1 = y_of(d, v[1]);
    const double x2 = figure_x(d, v[0].v + v[2].v), y2 = figure_y(d, v[1].v + v[3].v);

    if (s->has_heads)
        put_interval(d, s, x1, y1, x2, y2);
    else if (isfinite(x1 + y1 + x2 + y2))
        canvas_line(d, x1, y1, x2, y2, s);
}

static void put_label(struct draw *d, struct value v[], const struct style *s)
{
    const double x = x_of(d, v[0]), y = y_of(d, v[1]);

    if (is_inside(d, x, y) && v[2].kind == VALUE_TEXT)
        canvas_text(d, x + s->offset[0] * 0.7 * d->font_size,
                    y - s->offset[1] * 1.5 * d->font_size, s, v[2].text);
}

static void put_each(struct draw *d, const struct element *e)
{
    struct value v[MAX_ITEMS];

    for (size_t i = 0; i < count_points(d, e) && !d->err->code; i++) {
        const struct arena_mark mark = arena_mark(&d->arena);
        struct style s = e->style;

        read_point(d, e, i, v);
        const struct value last = v[e->n_items > 0 ? e->n_items - 1 : 0];

        if (s.from == FROM_PALETTE)
            s.color = s.text_color = draw_palette(d, last.v);
        else if (s.from == FROM_VARIABLE)
            s.color = s.text_color = draw_color(d, last);
        if (d->err->code)
            return;
        if (!strcmp(e->form, "labels"))
            put_label(d, v, &s);
        else if (!strcmp(e->form, "vectors"))
            put_vector(d, v, &s);
        else if (!strcmp(e->form, "boxxyerror"))
            put_box(d, v, &s);
        else
            put_point(d, e, v, &s);
        arena_return(&d->arena, mark);
    }
}

static void put_element(struct draw *d, const struct element *e)
{
    const bool is_clipped = !strstr(e->form, "points") && !strstr(e->form, "bars") &&
                            strcmp(e->form, "labels") != 0;

    if (is_clipped)
        canvas_begin_clip(d);
    if (!strcmp(e->form, "lines") || !strcmp(e->form, "steps"))
        put_lines(d, e, *e->form == 's');
    else if (!strcmp(e->form, "filledcurves"))
        put_band(d, e);
    else
        put_each(d, e);
    if (is_clipped)
        canvas_end_clip(d);
}

/* ---- reading
 * ------------------------------------------------------------------------- */

static void take_form(struct draw *d, struct element *e)
{
    static const char *const forms[] = {
        "lines",      "points",     "linespoints",  "steps",
        "yerrorbars", "xerrorbars", "xyerrorbars",  "boxxyerror",
        "boxes",      "vectors",    "filledcurves", "labels",
    };

    draw_expect(d, "with");
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (draw_take(d, forms[i])) {
            snprintf(e->form, sizeof e->form, "%s", forms[i]);
            return;
        }
    draw_fail(d, "a chart is drawn with an unknown style");
}

static void take_source(struct draw *d, struct element *e)
{
    if (draw_take(d, "keyentry"))
        return;
    e->function = d->p;
    d->skip++;
    draw_value(d);
    if (draw_take(d, "using")) {
        e->function = NULL;
        do {
            if (e->n_items == MAX_ITEMS)
                draw_fail(d, "a chart uses too many columns");
            else
                e->item[e->n_items++] = d->p;
            draw_value(d);
        } while (draw_take(d, ":") && !d->err->code);
    }
    d->skip--;
}

static void add_entry(struct draw *d, const struct element *e)
{
    if (d->n_entries == DRAW_MAX_KEYS) {
        draw_fail(d, "a key has too many entries");
        return;
    }
    d->entry[d->n_entries++] = (struct key_entry){
        .style = e->style,
        .text = e->style.title,
        .form = !strcmp(e->form, "boxes")                              ? 'a'
                : !strcmp(e->form, "linespoints")                      ? 'b'
                : strstr(e->form, "points") || strstr(e->form, "bars") ? 'p'
                                                                       : 'l',
    };
}

static void element(struct draw *d)
{
    struct element e = {.style = draw_style(d)};

    take_source(d, &e);
    take_form(d, &e);
    if (!strcmp(e.form, "labels"))
        e.style.anchor = ANCHOR_CENTER;
    while (!draw_ends(d) && *d->p != ',' && draw_take_style(d, &e.style))
        ;
    if (d->err->code || d->skip)
        return;
    if (!d->is_collecting)
        put_element(d, &e);
    else if (e.style.title)
        add_entry(d, &e);
}

/* "for" before an element repeats it; where that is never, it is read over. */
static void elements(struct draw *d)
{
    struct draw_loop l;
    bool has_run = false;

    if (!draw_take(d, "for")) {
        element(d);
        return;
    }
    draw_take_loop(d, &l);
    const char *begin = d->p;

    while (!d->skip && !d->err->code && draw_loop_next(d, &l)) {
        d->p = begin;
        elements(d);
        has_run = true;
    }
    if (!has_run) {
        d->skip++;
        elements(d);
        d->skip--;
    }
}

static void read_plot(struct draw *d)
{
    do
        elements(d);
    while (draw_take(d, ",") && !d->err->code);
}

void draw_plot(struct draw *d)
{
    const char *begin = d->p;

    if (!d->is_drawing) {
        d->skip++;
        read_plot(d);
        d->skip--;
        return;
    }
    d->n_entries = 0;
    d->is_collecting = true;
    read_plot(d);
    d->is_collecting = false;
    if (d->err->code)
        return;
    figure_lay_out(d);
    figure_put_back(d);
    d->p = begin;
    read_plot(d);
    figure_put_front(d);
}
