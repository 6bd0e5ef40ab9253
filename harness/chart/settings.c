/* SPDX-License-Identifier: MIT
 *
 * settings.c - what "set" and "unset" change
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/state.h"

#define MAX_SIDE 20000.0 /* of a picture */

static void reset_ticks(struct axis *a)
{
    a->has_ticks = a->is_auto = true;
    a->step = 0;
    a->first = a->last = NAN;
    a->n_ticks = 0;
}

void draw_defaults(struct draw *d)
{
    d->font_size = 14;
    d->line_scale = 1;
    d->fill_opacity = 1;
    d->n_samples = 100;
    d->border = 31;
    d->user_dash[0] = 5;
    d->user_dash[1] = 7;
    d->border_style = d->grid_style = draw_style(d);
    d->key = (struct key){.is_shown = true, .sample = 4, .spacing = 1};
    for (int i = 0; i < 4; i++)
        d->margin[i] = NAN;
    d->x = d->y = (struct axis){.min = 0, .max = 1, .tick_scale = 1, .format = "%g"};
    d->x.text = d->y.text = d->x.title_style = d->y.title_style = draw_style(d);
    reset_ticks(&d->x);
    reset_ticks(&d->y);
    d->color_max = 1;
    d->color_format = "%g";
}

static void take_styles(struct draw *d, struct style *s)
{
    while (!draw_ends(d) && draw_take_style(d, s))
        ;
}

/* ---- axes -------------------------------------------------------------------------
 */

static void set_range(struct draw *d, double *min, double *max)
{
    draw_expect(d, "[");
    *min = draw_number(d);
    draw_expect(d, ":");
    *max = draw_number(d);
    draw_expect(d, "]");
}

static void add_tick(struct draw *d, struct axis *a, struct tick t)
{
    for (int i = 0; i < a->n_ticks; i++)
        if (a->tick[i].at == t.at) {
            a->tick[i] = t;
            return;
        }
    if (a->n_ticks == DRAW_MAX_TICKS)
        draw_fail(d, "an axis has too many ticks");
    else
        a->tick[a->n_ticks++] = t;
}

/* A label is a format of gnuplot's, in which "%%" is one "%". */
static const char *tick_label(struct draw *d, const char *format)
{
    char *to = arena_take(&d->arena, strlen(format) + 1), *end = to;

    if (!to) {
        err_set(d->err, ST_NO_MEMORY, "no memory for the texts of a chart");
        return "";
    }
    for (; *format; format++) {
        *end++ = *format;
        format += *format == '%' && format[1] == '%';
    }
    *end = '\0';
    return to;
}

/* Behind "(": positions, each with a text before it or without. */
static void take_tick_list(struct draw *d, struct axis *a)
{
    if (draw_take(d, ")"))
        return;
    do {
        const struct value v = draw_value(d);
        const bool has_text = v.kind == VALUE_TEXT;

        add_tick(d, a,
                 (struct tick){has_text ? draw_number(d) : v.v,
                               has_text ? tick_label(d, v.text) : NULL});
    } while (draw_take(d, ",") && !d->err->code);
    draw_expect(d, ")");
}

/* "step", "first,step" or "first,step,last". */
static void take_tick_steps(struct draw *d, struct axis *a)
{
    double v[3];
    int n = 0;

    do
        v[n++] = draw_number(d);
    while (n < 3 && draw_take(d, ","));
    reset_ticks(a);
    a->step = n > 1 ? v[1] : v[0];
    a->first = n > 1 ? v[0] : NAN;
    a->last = n > 2 ? v[2] : NAN;
}

static void set_ticks(struct draw *d, struct axis *a)
{
    while (!draw_ends(d)) {
        if (draw_take(d, "scale")) {
            a->tick_scale = draw_number(d);
        } else if (draw_take(d, "autofreq")) {
            reset_ticks(a);
        } else if (draw_take(d, "add")) {
            draw_expect(d, "(");
            take_tick_list(d, a);
        } else if (draw_take(d, "(")) {
            a->has_ticks = true;
            a->is_auto = false;
            a->n_ticks = 0;
            take_tick_list(d, a);
        } else if (!draw_take_style(d, &a->text)) {
            take_tick_steps(d, a);
        }
    }
}

static void set_all_ticks(struct draw *d)
{
    const char *p = d->p;

    set_ticks(d, &d->x);
    d->p = p;
    set_ticks(d, &d->y);
}

static void set_format(struct draw *d)
{
    if (draw_take(d, "x"))
        d->x.format = draw_text(d);
    else if (draw_take(d, "y"))
        d->y.format = draw_text(d);
    else if (draw_take(d, "cb"))
        d->color_format = draw_text(d);
    else
        d->x.format = d->y.format = d->color_format = draw_text(d);
}

static void set_title(struct draw *d, struct axis *a)
{
    a->title_style = draw_style(d);
    a->title = draw_text(d);
    take_styles(d, &a->title_style);
}

static void set_log(struct draw *d, bool is_log)
{
    struct axis *a = draw_take(d, "x") ? &d->x : draw_take(d, "y") ? &d->y : NULL;

    if (!a)
        draw_expect(d, "y");
    else
        a->is_log = is_log;
    if (!draw_ends(d))
        draw_number(d); /* the base: no tick depends on it */
}

static void set_grid(struct draw *d)
{
    while (!draw_ends(d)) {
        if (draw_take(d, "xtics"))
            d->x.has_grid = true;
        else if (draw_take(d, "noxtics"))
            d->x.has_grid = false;
        else if (draw_take(d, "ytics"))
            d->y.has_grid = true;
        else if (draw_take(d, "noytics"))
            d->y.has_grid = false;
        else if (!draw_take_style(d, &d->grid_style))
            return;
    }
}

/* ---- labels, arrows, rectangles -----------------------------------------------------
 */

static struct object *object_of(struct draw *d, enum object_kind kind, int tag)
{
    struct object **at = &d->objects;

    while (*at && ((*at)->kind != kind || (*at)->tag < tag))
        at = &(*at)->next;
    if (*at && (*at)->tag == tag)
        return *at;
    struct object *o = arena_take(&d->arena, sizeof *o);

    if (!o) {
        err_set(d->err, ST_NO_MEMORY, "no memory for the labels of a chart");
        return NULL;
    }
    *o = (struct object){.kind = kind, .tag = tag, .text = "", .next = *at};
    o->style = draw_style(d);
    *at = o;
    return o;
}

static void set_label(struct draw *d)
{
    struct object *o = object_of(d, OBJECT_LABEL, (int)draw_number(d));

    if (!o)
        return;
    o->text = draw_text(d);
    while (!draw_ends(d)) {
        if (draw_take(d, "at"))
            draw_take_place(d, &o->at);
        else if (!draw_take_style(d, &o->style))
            return;
    }
}

static void set_arrow(struct draw *d)
{
    struct object *o = object_of(d, OBJECT_ARROW, (int)draw_number(d));

    if (!o)
        return;
    draw_expect(d, "from");
    draw_take_place(d, &o->at);
    draw_expect(d, "to");
    draw_take_place(d, &o->to);
    o->style = draw_style(d);
    take_styles(d, &o->style);
}

static void set_object(struct draw *d)
{
    struct object *o = object_of(d, OBJECT_RECTANGLE, (int)draw_number(d));

    if (!o)
        return;
    draw_expect(d, "rectangle");
    o->is_centered = draw_take(d, "center");
    if (!o->is_centered)
        draw_expect(d, "from");
    draw_take_place(d, &o->at);
    draw_expect(d, o->is_centered ? "size" : "to");
    draw_take_place(d, &o->to);
    o->style = draw_style(d);
    take_styles(d, &o->style);
}

static void unset_object(struct draw *d, enum object_kind kind)
{
    const bool all = draw_ends(d);
    const int tag = all ? 0 : (int)draw_number(d);

    for (struct object **at = &d->objects; *at;)
        if ((*at)->kind == kind && (all || (*at)->tag == tag))
            *at = (*at)->next;
        else
            at = &(*at)->next;
}

/* ---- the key ------------------------------------------------------------------------
 */

static void set_key(struct draw *d)
{
    static const char *const passed[] = {"outside", "vertical", "Left", "reverse",
                                         "center",  "right",    "left"};
    struct key *k = &d->key;
    bool is_known = true;
    struct style s = draw_style(d);

    k->is_shown = true;
    while (!draw_ends(d) && is_known) {
        if (draw_take(d, "at")) {
            draw_take_place(d, &k->at);
            k->is_placed = true;
            k->is_top = false;
        } else if (draw_take(d, "below")) {
            k->is_below = true;
        } else if (draw_take(d, "top")) {
            k->is_top = true;
        } else if (draw_take(d, "samplen")) {
            k->sample = draw_number(d);
        } else if (draw_take(d, "spacing")) {
            k->spacing = draw_number(d);
        } else if (draw_take(d, "maxrows")) {
            k->max_rows = (int)draw_number(d);
        } else if (draw_take(d, "outside")) {
            k->is_placed = k->is_below = false;
        } else {
            is_known = false;
            for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
                is_known |= draw_take(d, passed[i]);
            if (!is_known)
                is_known = draw_take_style(d, &s);
            k->font_size = s.font_size;
        }
    }
}

/* ---- the picture
 * --------------------------------------------------------------------- */

static void set_terminal(struct draw *d)
{
    d->is_drawing = draw_take(d, "svg");
    if (!d->is_drawing) {
        draw_skip_statement(d);
        return;
    }
    d->has_svg = true;
    d->font_size = 14;
    while (!draw_ends(d)) {
        if (draw_take(d, "size")) {
            d->width = draw_number(d);
            draw_expect(d, ",");
            d->height = draw_number(d);
        } else if (draw_take(d, "font")) {
            const char *comma = strrchr(draw_text(d), ',');

            d->font_size = comma && atof(comma + 1) > 0 ? atof(comma + 1) : 14;
        } else if (draw_take(d, "lw")) {
            d->line_scale = draw_number(d);
        } else if (draw_take(d, "background")) {
            draw_text(d);
        } else if (!draw_take(d, "dynamic") && !draw_take(d, "noenhanced")) {
            return;
        }
    }
    if (!d->err->code && !(d->width >= 10 && d->width <= MAX_SIDE && d->height >= 10 &&
                           d->height <= MAX_SIDE))
        draw_fail(d, "a picture has no side from 10 to 20000");
}

static void set_output(struct draw *d)
{
    if (draw_ends(d)) {
        if (d->is_drawing)
            canvas_end(d);
        return;
    }
    draw_text(d);
    if (d->is_drawing)
        canvas_begin(d);
}

static void set_margin(struct draw *d, int at)
{
    draw_expect(d, "at");
    draw_expect(d, "screen");
    d->margin[at] = draw_number(d);
}

static void set_palette(struct draw *d)
{
    draw_expect(d, "defined");
    draw_expect(d, "(");
    d->n_stops = 0;
    do {
        const double at = draw_number(d);

        if (d->n_stops == DRAW_MAX_STOPS)
            draw_fail(d, "a palette has too many colours");
        else
            d->stop[d->n_stops++] =
                (struct palette_stop){at, draw_color(d, draw_value(d))};
    } while (draw_take(d, ",") && !d->err->code);
    draw_expect(d, ")");
}

static void set_color_box(struct draw *d)
{
    draw_expect(d, "user");
    draw_expect(d, "origin");
    d->color_box[0] = draw_number(d);
    draw_expect(d, ",");
    d->color_box[1] = draw_number(d);
    draw_expect(d, "size");
    d->color_box[2] = draw_number(d);
    draw_expect(d, ",");
    d->color_box[3] = draw_number(d);
}

static void set_color_ticks(struct draw *d)
{
    struct style s = draw_style(d);

    d->color_step = draw_number(d);
    take_styles(d, &s);
    d->color_font_size = s.font_size;
}

static void set_fill(struct draw *d)
{
    struct style s = draw_style(d);

    draw_expect(d, "fill");
    draw_take(d, "transparent");
    draw_expect(d, "solid");
    d->fill_opacity = draw_number(d);
    take_styles(d, &s);
}

static void set_dash_type(struct draw *d)
{
    if (draw_number(d) != 2)
        draw_fail(d, "a dash type is not 2");
    draw_expect(d, "(");
    d->user_dash[0] = draw_number(d);
    draw_expect(d, ",");
    d->user_dash[1] = draw_number(d);
    draw_expect(d, ")");
}

static void set_border(struct draw *d)
{
    d->border = (int)draw_number(d);
    take_styles(d, &d->border_style);
}

/* ---- all
 * ----------------------------------------------------------------------------- */

static bool set_axis(struct draw *d)
{
    if (draw_take(d, "xrange"))
        set_range(d, &d->x.min, &d->x.max);
    else if (draw_take(d, "yrange"))
        set_range(d, &d->y.min, &d->y.max);
    else if (draw_take(d, "cbrange"))
        set_range(d, &d->color_min, &d->color_max);
    else if (draw_take(d, "tics"))
        set_all_ticks(d);
    else if (draw_take(d, "xtics"))
        set_ticks(d, &d->x);
    else if (draw_take(d, "ytics"))
        set_ticks(d, &d->y);
    else if (draw_take(d, "cbtics"))
        set_color_ticks(d);
    else if (draw_take(d, "format"))
        set_format(d);
    else if (draw_take(d, "xlabel"))
        set_title(d, &d->x);
    else if (draw_take(d, "ylabel"))
        set_title(d, &d->y);
    else if (draw_take(d, "logscale"))
        set_log(d, true);
    else if (draw_take(d, "grid"))
        set_grid(d);
    else
        return false;
    return true;
}

static bool set_picture(struct draw *d)
{
    static const char *const margins[] = {"lmargin", "rmargin", "tmargin", "bmargin"};

    for (int i = 0; i < 4; i++)
        if (draw_take(d, margins[i])) {
            set_margin(d, i);
            return true;
        }
    if (draw_take(d, "terminal"))
        set_terminal(d);
    else if (draw_take(d, "output"))
        set_output(d);
    else if (draw_take(d, "palette"))
        set_palette(d);
    else if (draw_take(d, "colorbox"))
        set_color_box(d);
    else if (draw_take(d, "style"))
        set_fill(d);
    else if (draw_take(d, "dashtype"))
        set_dash_type(d);
    else if (draw_take(d, "border"))
        set_border(d);
    else if (draw_take(d, "samples"))
        d->n_samples = (int)draw_number(d);
    else if (draw_take(d, "encoding") || draw_take(d, "datafile"))
        draw_skip_statement(d);
    else
        return draw_take(d, "multiplot");
    return true;
}

void draw_set(struct draw *d)
{
    if (set_axis(d) || set_picture(d))
        return;
    if (draw_take(d, "label"))
        set_label(d);
    else if (draw_take(d, "arrow"))
        set_arrow(d);
    else if (draw_take(d, "object"))
        set_object(d);
    else if (draw_take(d, "key"))
        set_key(d);
}

void draw_unset(struct draw *d)
{
    if (draw_take(d, "label"))
        unset_object(d, OBJECT_LABEL);
    else if (draw_take(d, "arrow"))
        unset_object(d, OBJECT_ARROW);
    else if (draw_take(d, "object"))
        unset_object(d, OBJECT_RECTANGLE);
    else if (draw_take(d, "key"))
        d->key.is_shown = false;
    else if (draw_take(d, "grid"))
        d->x.has_grid = d->y.has_grid = false;
    else if (draw_take(d, "xlabel"))
        d->x.title = NULL;
    else if (draw_take(d, "ylabel"))
        d->y.title = NULL;
    else if (draw_take(d, "xtics"))
        d->x.has_ticks = false;
    else if (draw_take(d, "ytics"))
        d->y.has_ticks = false;
    else if (draw_take(d, "logscale"))
        set_log(d, false);
    else
        draw_take(d, "multiplot");
}
