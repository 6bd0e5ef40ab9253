/* SPDX-License-Identifier: MIT
 *
 * layout.c - sizes of panels, ticks, the legend; labels of panels
 */
#include "harness/chart/layout.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD       100.0
#define WARNING    24.0
#define RIM        24.0 /* left and right of a file's picture */
#define TICK_ROOM  32.0 /* below a panel: figures, and what they are */
#define TITLE_ROOM 32.0
#define NOTE_ROOM  21.0
#define KEY_ROOM   44.0 /* of an entry: its mark, and what is behind its text */
#define KEY_HEIGHT 26.0
#define MAX_KEYS   20   /* next to the panels */
#define KEY_SHARE  0.36 /* of the picture's width, next to the panels */
#define LEFT_SHARE 0.52
#define LEFT_MIN   0.2  /* what names on y have in any case */
#define ROW_NAME   20.0 /* in a page, above a row */

const struct plot_look plot_look_file = {false, 1200, 1, {14, 12, 12, 13, 12, 18},
                                         110,   62};
/* In a page texts are as large as on a phone (page.css), rows' names are bold. */
const struct plot_look plot_look_page = {true, 370, 0.4, {14, 14, 13, 15.4, 14, 14},
                                         70,   36};
const struct plot_look plot_look_wide = {true, 1100, 0.53, {14, 14, 13, 15.4, 14, 14},
                                         110,  36};

/* ---- ticks ----------------------------------------------------------------------- */

static int find_linear(double min, double max, int n_wanted, double *v)
{
    const double raw = (max - min) / n_wanted, decade = pow(10, floor(log10(raw)));
    const double step = decade * (raw > 7.5 * decade   ? 10
                                  : raw > 3.5 * decade ? 5
                                  : raw > 1.5 * decade ? 2
                                                       : 1);
    int n = 0;

    for (double k = ceil(min / step - 1e-9); step > 0 && n < PLOT_MAX_TICKS; k++) {
        if (k * step > max + 1e-9 * step)
            break;
        v[n++] = k * step + 0.0; /* no -0 */
    }
    return n;
}

/* 1, 2 and 5 of each decade; decades alone, or not all of them, where these are too
 * many. */
static int find_log(double min, double max, int n_wanted, double *v)
{
    static const double parts[] = {1, 2, 5};
    const double decades = log10(max / min);
    const int n_parts = 3 * decades <= 1.7 * n_wanted ? 3 : 1;
    const double every = fmax(1, ceil(decades / (n_wanted + 1)));
    int n = 0;

    for (double d = floor(log10(min)); d <= log10(max); d += every)
        for (int i = 0; i < n_parts && n < PLOT_MAX_TICKS; i++) {
            const double t = parts[i] * pow(10, d);

            if (t >= min * (1 - 1e-9) && t <= max * (1 + 1e-9))
                v[n++] = t;
        }
    return n;
}

int plot_find_ticks(double min, double max, bool is_log, int n_wanted, double *v)
{
    if (!(max > min) || (is_log && !(min > 0)))
        return 0;
    return is_log ? find_log(min, max, n_wanted, v)
                  : find_linear(min, max, n_wanted, v);
}

const char *plot_tick_text(const struct plot_axis *a, const struct plot_tick *t,
                           char buf[40])
{
    if (t->text)
        return t->text;
    if (a->unit && t->at != 0)
        snprintf(buf, 40, "%+.4g %s", t->at, a->unit);
    else
        snprintf(buf, 40, "%.6g", t->at);
    return buf;
}

static void find_ticks(struct plot_axis *a, double length, double apart)
{
    double v[PLOT_MAX_TICKS];
    const int n_wanted = (int)fmin(fmax(length / apart, 2), 10);

    if (a->n)
        return;
    a->n = plot_find_ticks(fmin(a->min, a->max), fmax(a->min, a->max), a->is_log,
                           n_wanted, v);
    for (int i = 0; i < a->n; i++)
        a->v[i] = (struct plot_tick){.at = v[i]};
}

/* Ticks that are not on the axis, or whose texts would touch the one before, go. */
static void thin_ticks(const struct plot_panel *p, struct plot_axis *a, double size)
{
    double end = -INFINITY;
    char buf[40];
    int n = 0;

    for (int i = 0; i < a->n; i++) {
        const double half = plot_text_width(plot_tick_text(a, &a->v[i], buf), size) / 2;
        const double x = plot_x(p, a->v[i].at);

        if (!plot_is_within(a, a->v[i].at) || x - half < end + 8)
            continue;
        a->v[n++] = a->v[i];
        end = x + half;
    }
    a->n = n;
}

static double longest_tick(const struct plot_axis *a, double size)
{
    double longest = 0;
    char buf[40];

    for (int i = 0; i < a->n; i++)
        longest =
            fmax(longest, plot_text_width(plot_tick_text(a, &a->v[i], buf), size));
    return longest;
}

/* ---- places ---------------------------------------------------------------------- */

static double share(const struct plot_axis *a, double v)
{
    return a->is_log ? log(v / a->min) / log(a->max / a->min)
                     : (v - a->min) / (a->max - a->min);
}

static double value(const struct plot_axis *a, double part)
{
    return a->is_log ? a->min * pow(a->max / a->min, part)
                     : a->min + part * (a->max - a->min);
}

bool plot_is_within(const struct plot_axis *a, double v)
{
    const double s = share(a, v);

    return s >= -1e-6 && s <= 1 + 1e-6;
}

double plot_x(const struct plot_panel *a, double v)
{
    return a->box.left + a->box.width * fmin(fmax(share(&a->x, v), 0), 1);
}

/* In a page the upper part of a row has its name and perhaps its text, what is drawn
 * the rest. */
static double names_height(const struct plot_panel *a)
{
    return ROW_NAME * (a->has_lines ? 2 : 1);
}

static double row_share(const struct plot_panel *a, double v)
{
    const double above = names_height(a);
    const double row = fmin(fmax(floor(v + 0.5), 0), a->y.n - 1);
    const double height = a->box.height / a->y.n;

    return (row + (above + (height - above) * (v - row + 0.5)) / height) / a->y.n;
}

double plot_y(const struct plot_panel *a, const struct plot_look *look, double v)
{
    if (look->is_page && a->y.has_names)
        return a->box.top + a->box.height * row_share(a, v);
    return a->box.top + a->box.height * (1 - fmin(fmax(share(&a->y, v), 0), 1));
}

double plot_guide_x(const struct plot_panel *a, struct plot_at at)
{
    return at.is_share ? a->box.left + a->box.width * at.v : plot_x(a, at.v);
}

double plot_guide_y(const struct plot_panel *a, const struct plot_look *look,
                    struct plot_at at)
{
    return at.is_share ? a->box.top + a->box.height * (1 - at.v)
                       : plot_y(a, look, at.v);
}

void plot_key_place(const struct plot *p, size_t i, double *x, double *y)
{
    const size_t n_lines =
        (p->n_keys + (size_t)p->key_columns - 1) / (size_t)p->key_columns;

    *x = p->keys.left + p->keys.width / p->key_columns * (double)(i / n_lines);
    *y = p->keys.top + KEY_HEIGHT * ((double)(i % n_lines) + 0.5);
}

/* ---- sizes ----------------------------------------------------------------------- */

/* The legend is next to the panels, or below them where that would take too much. The
 * room that it takes on the right. */
static double lay_out_keys(struct plot *p, const struct plot_look *look)
{
    double longest = 0;

    p->keys = (struct plot_box){0, 0, 0, 0};
    p->key_columns = 1;
    if (look->is_page || !p->n_keys)
        return look->is_page ? 14 : RIM;
    for (size_t i = 0; i < p->n_keys; i++)
        longest = fmax(longest, plot_text_width(p->key[i].text, look->size[TEXT_TICK]));
    const double width = KEY_ROOM + longest;

    p->keys.width = width;
    p->keys.left = look->width - width - 8;
    p->keys.height = KEY_HEIGHT * (double)p->n_keys;
    if (!p->keys_below && width <= KEY_SHARE * look->width && p->n_keys <= MAX_KEYS)
        return width + 24;
    p->key_columns = (int)fmax(1, floor((look->width - 2 * RIM) / width));
    if (p->key_columns > (int)p->n_keys)
        p->key_columns = (int)p->n_keys;
    p->keys.left = RIM;
    p->keys.width *= p->key_columns;
    p->keys.height =
        KEY_HEIGHT * ceil((double)p->n_keys / (double)p->key_columns) + 0.1;
    return RIM;
}

static bool keys_are_below(const struct plot *p)
{
    return p->keys.height > 0 && p->keys.left < 100;
}

static double panel_height(const struct plot_panel *a, const struct plot_look *look)
{
    if (!a->y.has_names)
        return a->height * look->shrink;
    return a->y.n *
           (look->is_page ? names_height(a) + 10 + 0.6 * a->height : a->height);
}

/* Below a panel. */
static double room_below(const struct plot_panel *a, const struct plot_look *look)
{
    const double room = a->x.no_figures ? 8 : look->is_page ? 24 : TICK_ROOM;

    return room + (a->x.title ? look->is_page ? 20 : TITLE_ROOM : 0);
}

/* The left edge of all panels: figures of y and names of rows are left of it. */
static double left_edge(const struct plot *p, const struct plot_look *look)
{
    double room = look->is_page ? 1 : RIM + 16;

    for (int i = 0; i < p->n_panels; i++) {
        const struct plot_axis *a = &p->panel[i].y;
        const double size = look->size[a->has_names ? TEXT_ROW : TEXT_TICK];

        if (!look->is_page || !a->has_names)
            room = fmax(room, longest_tick(a, size) + (look->is_page ? 10 : 36));
    }
    return fmin(room, LEFT_SHARE * look->width);
}

/* Heights first: how many ticks there are depends on them, on the ticks' texts the
 * panels' left edge, and on their widths whether names are turned. */
static void lay_out_panels(struct plot *p, const struct plot_look *look, double right)
{
    double top = look->is_page ? 4 : HEAD + (*p->warning ? WARNING : 0);
    double left;

    for (int i = 0; i < p->n_panels; i++) {
        p->panel[i].box.height = panel_height(&p->panel[i], look);
        find_ticks(&p->panel[i].y, p->panel[i].box.height, look->apart_y);
    }
    left = left_edge(p, look);
    if (left > LEFT_MIN * look->width)
        left = fmin(left, fmax(LEFT_MIN * look->width,
                               look->width - right - plot_room_for_bars(p, look)));
    for (int i = 0; i < p->n_panels; i++) {
        struct plot_panel *a = &p->panel[i];
        const double extra = look->is_page ? 0 : a->right_room;

        a->box.left = left;
        a->box.width = look->width - left - right - extra;
        plot_fit_names(p, look, i);
        plot_make_room(p, look, i);
        find_ticks(&a->x, a->box.width, look->apart_x);
        thin_ticks(a, &a->x, look->size[TEXT_TICK]);
        top += (a->y.title ? look->is_page ? 20 : 28 : 10) + a->top_room;
        a->box.top = top;
        top += a->box.height + room_below(a, look);
    }
    p->foot = top;
}

static void lay_out_foot(struct plot *p, const struct plot_look *look)
{
    const struct plot_panel *last = &p->panel[p->n_panels - 1];
    const double middle = (p->panel[0].box.top + last->box.top + last->box.height) / 2;

    p->width = look->width;
    p->height = p->foot + 4;
    if (look->is_page)
        return;
    if (keys_are_below(p)) {
        p->keys.top = p->height + 4;
        p->height += p->keys.height + 12;
    } else if (p->keys.height > 0) {
        p->keys.top = fmax(HEAD, middle - p->keys.height / 2);
        p->height = fmax(p->height, p->keys.top + p->keys.height);
    }
    p->foot = p->height;
    p->height += NOTE_ROOM * (double)p->n_notes + 6;
}

/* ---- labels ---------------------------------------------------------------------- */

struct gathered {
    struct plot_label *label, *mark; /* [2 * rows] */
    struct plot_line *line;          /* [4 * rows * layers] at most */
    size_t *row;                     /* of a label */
    size_t n_labels, n_marks, n_lines;
};

static void gather_lines(const struct plot *p, const struct plot_layer *l,
                         const struct plot_look *look, struct gathered *g)
{
    const struct plot_panel *a = &p->panel[l->panel];
    const bool is_path = l->form == PLOT_LINE || l->form == PLOT_STEPS;

    for (int k = l->by ? 0 : -1; k < (l->by ? l->n_by : 0); k++) {
        bool is_open = false;
        double x = 0, y = 0;

        for (size_t row = 0; row < plot_rows(p); row++) {
            const bool draws = plot_draws(p, l, k, row);
            const double to_x = draws ? plot_x(a, plot_value(p, row, l->x)) : 0;
            const double to_y = draws ? plot_y(a, look, plot_value(p, row, l->y)) : 0;

            if (draws && !is_path) {
                x = plot_x(a, plot_value(p, row, l->x2));
                y = plot_y(a, look, plot_value(p, row, l->y2));
            }
            if (draws && l->form == PLOT_STEPS && is_open) {
                g->line[g->n_lines++] = (struct plot_line){x, y, to_x, y};
                g->line[g->n_lines++] = (struct plot_line){to_x, y, to_x, to_y};
            } else if (draws && (is_open || !is_path)) {
                g->line[g->n_lines++] = (struct plot_line){x, y, to_x, to_y};
            }
            is_open = draws;
            x = is_path ? to_x : x;
            y = is_path ? to_y : y;
        }
    }
}

static void gather_label(const struct plot *p, const struct plot_layer *l,
                         const struct plot_look *look, struct gathered *g, size_t row)
{
    const struct plot_panel *a = &p->panel[l->panel];
    const struct plot_place x = {l->mark_x, 0}, y = {l->mark_y, 0};
    const double size = look->size[TEXT_LABEL];

    if (!isfinite(plot_value(p, row, x)) || !isfinite(plot_value(p, row, y)))
        return;
    g->row[g->n_labels] = row;
    g->label[g->n_labels++] = (struct plot_label){
        .x = plot_x(a, plot_value(p, row, x)),
        .y = plot_y(a, look, plot_value(p, row, y)),
        .half_x = plot_text_width(plot_cell_text(p, row, l->text), size) / 2,
        .half_y = size / 2};
}

/* What is drawn in a panel, and the labels of the layer `own`; false: no memory. */
static bool gather(const struct plot *p, const struct plot_look *look, int panel,
                   const struct plot_layer *own, struct gathered *g)
{
    const size_t rows = plot_rows(p) + 1, n = rows * (p->n_layers + 1);

    *g = (struct gathered){.label = calloc(rows, sizeof *g->label),
                           .mark = calloc(n, sizeof *g->mark),
                           .line = calloc(2 * n + p->n_guides, sizeof *g->line),
                           .row = calloc(rows, sizeof *g->row)};
    if (!g->label || !g->mark || !g->line || !g->row)
        return false;
    for (size_t i = 0; i < p->n_layers; i++) {
        const struct plot_layer *l = &p->layer[i];
        const struct plot_panel *a = &p->panel[l->panel];

        if (l->panel != panel)
            continue;
        if (l->form == PLOT_LINE || l->form == PLOT_STEPS || l->form == PLOT_INTERVAL ||
            l->form == PLOT_SEGMENT)
            gather_lines(p, l, look, g);
        for (size_t row = 0; row + 1 < rows; row++)
            if (l->form == PLOT_MARKS && plot_draws(p, l, -1, row))
                g->mark[g->n_marks++] =
                    (struct plot_label){.x = plot_x(a, plot_value(p, row, l->x)),
                                        .y = plot_y(a, look, plot_value(p, row, l->y))};
    }
    for (size_t i = 0; i < p->n_guides; i++) {
        const struct plot_guide *t = &p->guide[i];
        const struct plot_panel *a = &p->panel[t->panel];

        if (t->panel == panel && t->form == PLOT_SEGMENT)
            g->line[g->n_lines++] = (struct plot_line){
                plot_guide_x(a, t->x), plot_guide_y(a, look, t->y),
                plot_guide_x(a, t->x2), plot_guide_y(a, look, t->y2)};
    }
    for (size_t row = 0; own && row + 1 < rows; row++)
        gather_label(p, own, look, g, row);
    return true;
}

static void put_labels(struct plot *p, const struct plot_layer *l,
                       const struct gathered *g)
{
    const struct plot_panel *a = &p->panel[l->panel];
    const int x = plot_column(p, l->x.column), y = plot_column(p, l->y.column);

    for (size_t i = 0; i < g->n_labels && x >= 0 && y >= 0; i++) {
        struct plot_cell *cell = &p->cell[g->row[i] * p->n_columns];
        const struct plot_label *at = &g->label[i];

        cell[x].v = value(&a->x, (at->at_x - a->box.left) / a->box.width);
        cell[y].v = value(&a->y, 1 - (at->at_y - a->box.top) / a->box.height);
    }
}

static const struct plot_layer *labels_of(const struct plot *p, int panel)
{
    for (size_t i = 0; i < p->n_layers; i++)
        if (p->layer[i].panel == panel && p->layer[i].mark_x)
            return &p->layer[i];
    return NULL;
}

/* A panel has labels of one layer, and names of levels that keep clear of them. */
static void lay_out_labels(struct plot *p, const struct plot_look *look, int panel)
{
    const struct plot_layer *own = labels_of(p, panel);
    struct plot_panel *a = &p->panel[panel];
    struct gathered g;

    if (gather(p, look, panel, own, &g)) {
        const struct plot_around around = {a->box, g.mark, g.n_marks, g.line,
                                           g.n_lines};

        plot_place_labels(g.label, g.n_labels, &around);
        if (own)
            put_labels(p, own, &g);
        for (size_t i = 0; i < p->n_guides; i++) {
            struct plot_guide *t = &p->guide[i];
            const double size = look->size[TEXT_LABEL];

            if (t->panel == panel && t->is_free)
                t->x = (struct plot_at){
                    (plot_place_above(g.label, g.n_labels, &around,
                                      plot_guide_y(a, look, t->y),
                                      plot_text_width(t->text, size), 1.4 * size) -
                     a->box.left) /
                        a->box.width,
                    true};
        }
    } else {
        p->is_incomplete = true;
    }
    free(g.label);
    free(g.mark);
    free(g.line);
    free(g.row);
}

static bool has_labels(const struct plot *p, int panel)
{
    bool any = labels_of(p, panel) != NULL;

    for (size_t i = 0; i < p->n_guides; i++)
        any |= p->guide[i].panel == panel && p->guide[i].is_free;
    return any;
}

/* Names of slopes lie along them. */
static void turn_slopes(struct plot *p, const struct plot_look *look)
{
    for (size_t i = 1; i < p->n_guides; i++) {
        const struct plot_guide *on = &p->guide[i - 1];
        const struct plot_panel *a = &p->panel[on->panel];

        if (p->guide[i].is_slope)
            p->guide[i].rotate =
                atan2(plot_guide_y(a, look, on->y) - plot_guide_y(a, look, on->y2),
                      plot_guide_x(a, on->x2) - plot_guide_x(a, on->x)) *
                180 / M_PI;
    }
}

void plot_lay_out(struct plot *p, const struct plot_look *look)
{
    double right;

    if (!look->is_page)
        plot_fit_around(p, look, look->width - 2 * RIM, KEY_ROOM);
    right = lay_out_keys(p, look);
    lay_out_panels(p, look, right);
    lay_out_foot(p, look);
    turn_slopes(p, look);
    for (int i = 0; i < p->n_panels; i++)
        if (has_labels(p, i))
            lay_out_labels(p, look, i);
}
