/* SPDX-License-Identifier: MIT
 *
 * figure.c - a plot's frame: axes, ticks, titles, labels and the key
 *
 * Distances are those of gnuplot's SVG: a character is 0.7 of the font's size wide and
 * a line 1.5 of it high, whatever the font really is.
 */
#include <math.h>
#include <string.h>

#include "harness/chart/state.h"

#define TICK (0.75 * d->font_size) /* length of scale 1 */

static double character(const struct draw *d)
{
    return 0.7 * d->font_size;
}

static double line_height(const struct draw *d)
{
    return 1.5 * d->font_size;
}

/* ---- places -------------------------------------------------------------------------
 */

static double share(const struct axis *a, double v)
{
    return a->is_log ? log(v / a->min) / log(a->max / a->min)
                     : (v - a->min) / (a->max - a->min);
}

/* Far out places stay numbers that every viewer reads. */
static double within(double v)
{
    return fmin(fmax(v, -1e5), 1e5);
}

double figure_x(const struct draw *d, double v)
{
    return isnan(v) ? v : within(d->left + (d->right - d->left) * share(&d->x, v));
}

double figure_y(const struct draw *d, double v)
{
    return isnan(v) ? v : within(d->bottom - (d->bottom - d->top) * share(&d->y, v));
}

static double place_x(const struct draw *d, const struct place *p)
{
    return p->system[0] == SYSTEM_SCREEN  ? d->width * p->v[0]
           : p->system[0] == SYSTEM_GRAPH ? d->left + (d->right - d->left) * p->v[0]
                                          : figure_x(d, p->v[0]);
}

static double place_y(const struct draw *d, const struct place *p)
{
    return p->system[1] == SYSTEM_SCREEN  ? d->height * (1 - p->v[1])
           : p->system[1] == SYSTEM_GRAPH ? d->bottom - (d->bottom - d->top) * p->v[1]
                                          : figure_y(d, p->v[1]);
}

/* ---- the key ------------------------------------------------------------------------
 */

struct key_size {
    double character, line, sample, first; /* first: from its left to its texts */
    double column, height;
    int n_rows;
};

static struct key_size key_size(const struct draw *d)
{
    const struct key *k = &d->key;
    const double size = k->font_size > 0 ? k->font_size : d->font_size;
    struct key_size s = {.character = 0.7 * size, .n_rows = d->n_entries};
    int longest = 0;

    for (int i = 0; i < d->n_entries; i++) {
        const int len = draw_length(d->entry[i].text);

        longest = len > longest ? len : longest;
    }
    if (k->max_rows > 0 && k->max_rows < s.n_rows)
        s.n_rows = k->max_rows;
    s.line = 1.5 * size * k->spacing;
    s.sample = k->sample * s.character + 0.75 * size;
    s.first = s.sample + 2 * s.character + 0.75;
    s.column = s.first + longest * s.character;
    s.height = s.n_rows * s.line;
    return s;
}

static void put_sample(struct draw *d, const struct key_entry *e, double x, double y,
                       const struct key_size *k)
{
    if (e->form == 'a')
        canvas_rectangle(d, x, y - 0.2 * k->line, k->sample, 0.4 * k->line, &e->style);
    if (e->form == 'l' || e->form == 'b')
        canvas_line(d, x, y, x + k->sample, y, &e->style);
    if (e->form == 'p' || e->form == 'b')
        canvas_mark(d, x + k->sample / 2, y, &e->style);
}

static void put_key(struct draw *d)
{
    const struct key_size k = key_size(d);
    struct style text = draw_style(d);
    double x = d->width - character(d) - k.column,
           y = (d->top + d->bottom - k.height) / 2;

    if (d->key.is_placed) {
        x = place_x(d, &d->key.at);
        y = place_y(d, &d->key.at) - (d->key.is_top ? 0 : k.height / 2);
    } else if (d->key.is_below) {
        x = (d->left + d->right - k.column) / 2;
        y = d->height - k.height - 0.5 * k.line;
    }
    text.text_color = 0x333333;
    text.font_size = d->key.font_size;
    for (int i = 0; i < d->n_entries; i++) {
        const double left = x + k.column * (i / k.n_rows);
        const double middle = y + k.line * (i % k.n_rows + 0.5);

        put_sample(d, &d->entry[i], left + k.character, middle, &k);
        canvas_text(d, left + k.first, middle, &text, d->entry[i].text);
    }
}

static bool has_key(const struct draw *d)
{
    return d->key.is_shown && d->n_entries > 0;
}

/* ---- ticks --------------------------------------------------------------------------
 */

/* About as many as gnuplot takes: 4 to 10. */
static double round_step(double range)
{
    const double decade = pow(10, floor(log10(range))), norm = range / decade;

    return decade * (norm < 2 ? 0.2 : norm < 5 ? 0.5 : 1);
}

/* All ticks of an axis within its range, at most DRAW_MAX_TICKS. */
static int find_ticks(const struct axis *a, struct tick v[])
{
    const double low = fmin(a->min, a->max), high = fmax(a->min, a->max);
    const double slack = 1e-9 * (high - low);
    int n = 0;

    if (!a->has_ticks || !(high > low))
        return 0;
    for (int i = 0; i < a->n_ticks; i++)
        if (a->tick[i].at >= low - slack && a->tick[i].at <= high + slack)
            v[n++] = a->tick[i];
    if (!a->is_auto)
        return n;
    const double step = a->step > 0 ? a->step : round_step(high - low);
    const double first = isnan(a->first) ? 0 : a->first;
    const double last = isnan(a->last) ? high : a->last;

    for (double k = ceil((low - first) / step - 1e-9); n < DRAW_MAX_TICKS; k++) {
        const double at = first + k * step;
        bool is_own = !isnan(a->first) && at < a->first - slack;

        if (at > high + slack || at > last + slack)
            break;
        for (int i = 0; i < a->n_ticks; i++)
            is_own |= fabs(a->tick[i].at - at) < 1e-6 * step;
        if (!is_own)
            v[n++] = (struct tick){at + 0.0, NULL};
    }
    return n;
}

static const char *tick_text(struct draw *d, const struct axis *a, const struct tick *t)
{
    return t->text ? t->text : draw_format(d, a->format, t->at);
}

static double tick_length(const struct draw *d, const struct axis *a)
{
    return TICK * a->tick_scale;
}

static void put_x_ticks(struct draw *d)
{
    const struct axis *a = &d->x;
    struct tick v[DRAW_MAX_TICKS];
    const int n = find_ticks(a, v);
    const double length = tick_length(d, a);
    struct style text = a->text;

    text.anchor = text.rotate != 0 ? ANCHOR_RIGHT : ANCHOR_CENTER;
    for (int i = 0; i < n; i++) {
        const double x = figure_x(d, v[i].at);

        if (a->has_grid)
            canvas_line(d, x, d->top, x, d->bottom, &d->grid_style);
        if (length > 0)
            canvas_line(d, x, d->bottom, x, d->bottom + length, &d->border_style);
        canvas_text(d, x,
                    d->bottom + length + (text.rotate != 0 ? 0.6 : 1) * line_height(d),
                    &text, tick_text(d, a, &v[i]));
    }
}

static void put_y_ticks(struct draw *d)
{
    const struct axis *a = &d->y;
    struct tick v[DRAW_MAX_TICKS];
    const int n = find_ticks(a, v);
    const double length = tick_length(d, a);
    struct style text = a->text;

    text.anchor = ANCHOR_RIGHT;
    for (int i = 0; i < n; i++) {
        const double y = figure_y(d, v[i].at);

        if (a->has_grid)
            canvas_line(d, d->left, y, d->right, y, &d->grid_style);
        if (length > 0)
            canvas_line(d, d->left - length, y, d->left, y, &d->border_style);
        canvas_text(d, d->left - length - character(d), y, &text,
                    tick_text(d, a, &v[i]));
    }
}

static void put_axis_titles(struct draw *d)
{
    struct tick v[DRAW_MAX_TICKS];
    struct style s = d->x.title_style;
    const int n = d->y.title ? find_ticks(&d->y, v) : 0;
    int longest = 0;

    s.anchor = ANCHOR_CENTER;
    if (d->x.title)
        canvas_text(d, (d->left + d->right) / 2,
                    d->bottom + tick_length(d, &d->x) +
                        (2.5 - s.offset[1]) * line_height(d),
                    &s, d->x.title);
    for (int i = 0; i < n; i++) {
        const int len = draw_length(tick_text(d, &d->y, &v[i]));

        longest = len > longest ? len : longest;
    }
    s = d->y.title_style;
    s.anchor = ANCHOR_CENTER;
    s.rotate = 90;
    if (d->y.title)
        canvas_text(d,
                    d->left - tick_length(d, &d->y) - (longest + 1) * character(d) -
                        1.3 * d->font_size,
                    (d->top + d->bottom) / 2, &s, d->y.title);
}

/* ---- labels, arrows, rectangles
 * ------------------------------------------------------- */

static void put_label(struct draw *d, const struct object *o)
{
    double x = place_x(d, &o->at), y = place_y(d, &o->at);

    if (o->style.has_point) {
        canvas_mark(d, x, y, &o->style);
        x += TICK / 2; /* the text stands above and right of it */
        y -= TICK / 2;
    }
    canvas_text(d, x + o->style.offset[0] * character(d),
                y - o->style.offset[1] * line_height(d), &o->style, o->text);
}

static void put_rectangle(struct draw *d, const struct object *o)
{
    double x = place_x(d, &o->at), y = place_y(d, &o->at);
    double width = d->width * o->to.v[0], height = d->height * o->to.v[1];

    if (!o->is_centered) {
        width = place_x(d, &o->to) - x;
        height = place_y(d, &o->to) - y;
    } else { /* its size is one of the screen */
        x -= width / 2;
        y -= height / 2;
    }
    canvas_rectangle(d, fmin(x, x + width), fmin(y, y + height), fabs(width),
                     fabs(height), &o->style);
}

static void put_objects(struct draw *d, enum draw_layer layer)
{
    static const enum object_kind order[] = {OBJECT_RECTANGLE, OBJECT_ARROW,
                                             OBJECT_LABEL};

    for (int k = 0; k < 3; k++)
        for (const struct object *o = d->objects; o; o = o->next) {
            if (o->kind != order[k] || o->style.layer != layer)
                continue;
            if (o->kind == OBJECT_LABEL)
                put_label(d, o);
            else if (o->kind == OBJECT_RECTANGLE)
                put_rectangle(d, o);
            else
                canvas_line(d, place_x(d, &o->at), place_y(d, &o->at),
                            place_x(d, &o->to), place_y(d, &o->to), &o->style);
        }
}

/* ---- the box of the palette
 * ----------------------------------------------------------- */

#define N_SHADES 50

static void put_color_box(struct draw *d)
{
    const double x = d->width * d->color_box[0], width = d->width * d->color_box[2];
    const double height = d->height * d->color_box[3];
    const double bottom = d->height * (1 - d->color_box[1]);
    struct style s = draw_style(d);

    for (int i = 0; i < N_SHADES; i++) {
        s.color = draw_palette(d, d->color_min + (i + 0.5) / N_SHADES *
                                                     (d->color_max - d->color_min));
        canvas_rectangle(d, x, bottom - height * (i + 1) / N_SHADES, width,
                         height / N_SHADES + 0.3, &s);
    }
    s.is_filled = false;
    s.has_border = true;
    s.border = d->border_style.color;
    canvas_rectangle(d, x, bottom - height, width, height, &s);
    s = draw_style(d);
    s.text_color = 0x333333;
    s.font_size = d->color_font_size;
    for (int i = 0; i < 100 && d->color_step > 0; i++) {
        const double at = i * d->color_step / (d->color_max - d->color_min);

        if (!(at <= 1))
            break;
        canvas_text(d, x + width + character(d), bottom - height * at, &s,
                    draw_format(d, d->color_format, d->color_min + i * d->color_step));
    }
}

/* ---- all
 * ----------------------------------------------------------------------------- */

void figure_lay_out(struct draw *d)
{
    const double key_width = has_key(d) && !d->key.is_placed && !d->key.is_below
                                 ? key_size(d).column + 28.6
                                 : 20;

    d->left = isnan(d->margin[0]) ? 0.1 * d->width : d->margin[0] * d->width;
    d->right = isnan(d->margin[1]) ? d->width - key_width : d->margin[1] * d->width;
    d->top = isnan(d->margin[2]) ? 20 : (1 - d->margin[2]) * d->height;
    d->bottom = isnan(d->margin[3]) ? d->height - 60 : (1 - d->margin[3]) * d->height;
}

void figure_put_back(struct draw *d)
{
    put_x_ticks(d);
    put_y_ticks(d);
    put_objects(d, LAYER_BACK);
}

void figure_put_front(struct draw *d)
{
    if (d->border & 1)
        canvas_line(d, d->left, d->bottom, d->right, d->bottom, &d->border_style);
    if (d->border & 2)
        canvas_line(d, d->left, d->top, d->left, d->bottom, &d->border_style);
    put_axis_titles(d);
    if (d->n_stops && d->color_box[2] > 0)
        put_color_box(d);
    if (has_key(d))
        put_key(d);
    put_objects(d, LAYER_FRONT);
}
