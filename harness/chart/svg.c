/* SPDX-License-Identifier: MIT
 *
 * svg.c - a plot as SVG
 */
#include "harness/chart/svg.h"

#include <math.h>

#define TICK 6.3 /* gnuplot's, of scale 0.6 */

/* ---- axes ------------------------------------------------------------------------ */

static void put_x_tick(const struct svg *s, const struct plot_panel *a,
                       const struct plot_tick *t)
{
    const bool is_page = s->look->is_page;
    const double x = plot_x(a, t->at), bottom = a->box.top + a->box.height;
    const double length = is_page ? 0 : TICK;
    struct svg_text text = {.x = x,
                            .y = bottom + length + (is_page ? 13 : 21),
                            .kind = TEXT_TICK,
                            .color = is_page ? PLOT_GREY : PLOT_INK};
    char buf[40];

    if (length > 0)
        svg_line(s, x, bottom, x, bottom + length, &svg_frame);
    if (!a->x.no_figures)
        svg_text(s, &text, plot_tick_text(&a->x, t, buf));
}

static void put_y_tick(const struct svg *s, const struct plot_panel *a, int i)
{
    const bool is_page = s->look->is_page, has_names = a->y.has_names;
    const struct plot_tick *t = &a->y.v[i];
    const double y = plot_y(a, s->look, t->at);
    const double length = has_names || is_page ? 0 : TICK;
    struct svg_text text = {.x = a->box.left - length - (is_page ? 7 : 9.8),
                            .y = y,
                            .kind = has_names ? TEXT_ROW : TEXT_TICK,
                            .anchor = PLOT_RIGHT,
                            .color = is_page && !has_names ? PLOT_GREY : PLOT_INK};
    char buf[40];

    if (length > 0)
        svg_line(s, a->box.left - length, y, a->box.left, y, &svg_frame);
    if (is_page && has_names) {
        text.x = a->box.left;
        text.y = a->box.top + a->box.height * i / a->y.n + 9;
        text.anchor = PLOT_LEFT;
    }
    svg_text(s, &text, plot_tick_text(&a->y, t, buf));
}

static void put_grid(const struct svg *s, const struct plot_panel *a)
{
    const struct plot_box *b = &a->box;

    for (int i = 0; i < a->x.n && !a->x.no_grid; i++) {
        const double x = plot_x(a, a->x.v[i].at);

        svg_line(s, x, b->top, x, b->top + b->height, &svg_grid);
    }
    for (int i = 0; i < a->y.n && !a->y.has_names && !a->y.no_grid; i++) {
        const double y = plot_y(a, s->look, a->y.v[i].at);

        svg_line(s, b->left, y, b->left + b->width, y, &svg_grid);
    }
}

static void put_axes(const struct svg *s, const struct plot_panel *a)
{
    const struct plot_box *b = &a->box;
    const double bottom = b->top + b->height;
    const bool is_page = s->look->is_page;
    struct svg_text text = {.x = b->left,
                            .y = b->top - (is_page ? 9 : a->top_room + 15),
                            .kind = TEXT_NAME,
                            .anchor = PLOT_LEFT,
                            .color = is_page ? PLOT_GREY : PLOT_INK};

    svg_line(s, b->left, bottom, b->left + b->width, bottom, &svg_frame);
    if (!is_page)
        svg_line(s, b->left, b->top, b->left, bottom, &svg_frame);
    for (int i = 0; i < a->x.n; i++)
        put_x_tick(s, a, &a->x.v[i]);
    for (int i = 0; i < a->y.n; i++)
        put_y_tick(s, a, i);
    if (a->y.title)
        svg_text(s, &text, a->y.title);
    text.x = b->left + b->width / 2;
    text.y = bottom + (is_page ? 31 : TICK + 52.5);
    text.kind = is_page ? TEXT_NAME : TEXT_TICK;
    text.anchor = PLOT_CENTER;
    if (a->x.title)
        svg_text(s, &text, a->x.title);
}

/* ---- guides ---------------------------------------------------------------------- */

static void put_guide(const struct svg *s, const struct plot_guide *g)
{
    const struct plot_panel *a = &s->p->panel[g->panel];
    const double x = plot_guide_x(a, g->x), y = plot_guide_y(a, s->look, g->y);
    const double x2 = plot_guide_x(a, g->x2), y2 = plot_guide_y(a, s->look, g->y2);
    const struct svg_text text = {.x = x + g->dx,
                                  .y = y + g->dy,
                                  .kind = TEXT_LABEL,
                                  .anchor = g->anchor,
                                  .rotate = g->rotate,
                                  .color = g->style.color};

    if (g->form == PLOT_TEXT)
        svg_text(s, &text, g->text);
    else if (g->form == PLOT_BOX)
        svg_box(s, x, y, x2, y2, &g->style);
    else
        svg_line(s, x, y, x2, y2, &g->style);
}

static void put_guides(const struct svg *s, int panel, bool is_behind)
{
    for (size_t i = 0; i < s->p->n_guides; i++)
        if (s->p->guide[i].panel == panel && s->p->guide[i].is_behind == is_behind)
            put_guide(s, &s->p->guide[i]);
}

/* ---- layers ---------------------------------------------------------------------- */

struct corner {
    double x, y;
};

static struct corner corner_of(const struct svg *s, const struct plot_layer *l,
                               size_t row, bool is_second)
{
    const struct plot_panel *a = &s->p->panel[l->panel];

    return (struct corner){
        plot_x(a, plot_value(s->p, row, is_second ? l->x2 : l->x)),
        plot_y(a, s->look, plot_value(s->p, row, is_second ? l->y2 : l->y))};
}

static void put_path(const struct svg *s, const struct plot_layer *l, int k,
                     const struct plot_style *style)
{
    bool is_open = false;

    fputs("<path d=\"", s->f);
    for (size_t row = 0; row < plot_rows(s->p); row++) {
        const bool draws = plot_draws(s->p, l, k, row);
        const struct corner at =
            draws ? corner_of(s, l, row, false) : (struct corner){0, 0};

        if (draws && l->form == PLOT_STEPS && is_open)
            fprintf(s->f, "H%.1fV%.1f", at.x, at.y);
        else if (draws)
            fprintf(s->f, "%c%.1f %.1f", is_open ? 'L' : 'M', at.x, at.y);
        is_open = draws;
    }
    fputc('"', s->f);
    svg_end_line(s, style);
}

static void put_band(const struct svg *s, const struct plot_layer *l, int k,
                     const struct plot_style *style)
{
    const struct plot_layer upper = {.panel = l->panel, .x = l->x, .y = l->y2};
    const size_t n = plot_rows(s->p);
    char move = 'M';

    fputs("<path d=\"", s->f);
    for (size_t i = 0; i < 2 * n; i++) {
        const size_t row = i < n ? i : 2 * n - 1 - i;

        if (!plot_draws(s->p, l, k, row))
            continue;
        const struct corner at = corner_of(s, i < n ? l : &upper, row, false);
        fprintf(s->f, "%c%.1f %.1f", move, at.x, at.y);
        move = 'L';
    }
    fputs(move == 'L' ? "z\"" : "\"", s->f);
    svg_end_area(s, style);
}

/* Many dots are one path: each is the round end of nothing. */
static void put_dots(const struct svg *s, const struct plot_layer *l, int k,
                     const struct plot_style *style)
{
    struct plot_style line = *style;

    line.width = 2 * svg_mark_radius(s, style);
    fputs("<path stroke-linecap=\"round\" d=\"", s->f);
    for (size_t row = 0; row < plot_rows(s->p); row++)
        if (plot_draws(s->p, l, k, row)) {
            const struct corner at = corner_of(s, l, row, false);

            fprintf(s->f, "M%.1f %.1fh0", at.x, at.y);
        }
    fputc('"', s->f);
    line.dash = PLOT_WHOLE;
    svg_end_line_width(s, &line, line.width);
}

static void put_interval(const struct svg *s, struct corner a, struct corner b,
                         const struct plot_style *style)
{
    const double far = hypot(b.x - a.x, b.y - a.y);
    const double dx = far > 0 ? -3.5 * (b.y - a.y) / far : 0;
    const double dy = far > 0 ? 3.5 * (b.x - a.x) / far : 0;

    fprintf(s->f,
            "<path d=\"M%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1f\"",
            a.x, a.y, b.x, b.y, a.x - dx, a.y - dy, a.x + dx, a.y + dy, b.x - dx,
            b.y - dy, b.x + dx, b.y + dy);
    svg_end_line(s, style);
}

static void put_layer_text(const struct svg *s, const struct plot_layer *l, size_t row,
                           int color)
{
    const struct plot_panel *a = &s->p->panel[l->panel];
    const struct corner at = corner_of(s, l, row, false);
    struct svg_text text = {.x = at.x + l->dx,
                            .y = at.y,
                            .kind = TEXT_LABEL,
                            .anchor = l->anchor,
                            .color = color};

    if (a->has_lines && s->look->is_page) {
        text.x = a->box.left;
        text.y = plot_y(a, s->look, plot_value(s->p, row, l->y) - 0.5) - 11;
    }
    svg_text(s, &text, plot_cell_text(s->p, row, l->text));
}

static void put_row(const struct svg *s, const struct plot_layer *l, size_t row,
                    struct plot_style style)
{
    const struct plot_panel *a = &s->p->panel[l->panel];
    const struct corner at = corner_of(s, l, row, false);
    const struct corner to = l->form < PLOT_INTERVAL ? at : corner_of(s, l, row, true);

    if (!plot_is_within(&a->x, plot_value(s->p, row, l->x)) ||
        !plot_is_within(&a->y, plot_value(s->p, row, l->y))) {
        if (l->form == PLOT_MARKS || l->form == PLOT_TEXT)
            return;
    }
    if (l->form == PLOT_MARKS)
        svg_mark(s, at.x, at.y, &style);
    else if (l->form == PLOT_INTERVAL)
        put_interval(s, at, to, &style);
    else if (l->form == PLOT_SEGMENT)
        svg_line(s, at.x, at.y, to.x, to.y, &style);
    else if (l->form == PLOT_BOX)
        svg_box(s, at.x, at.y, to.x, to.y, &style);
    else
        put_layer_text(s, l, row, style.color);
}

static void begin_hint(const struct svg *s, const char *hint)
{
    if (!*hint)
        return;
    fputs("<g><title>", s->f);
    svg_put_escaped(s->f, hint);
    fputs("</title>", s->f);
}

static void end_hint(const struct svg *s, const char *hint)
{
    if (*hint)
        fputs("</g>\n", s->f);
}

/* Lines have the hint of their first row. */
static void put_whole(const struct svg *s, const struct plot_layer *l, int k,
                      const struct plot_style *style)
{
    const char *hint = "";
    size_t row = 0;

    while (!plot_draws(s->p, l, k, row))
        row++;
    hint = plot_cell_text(s->p, row, l->text);
    begin_hint(s, hint);
    if (l->form == PLOT_BAND)
        put_band(s, l, k, style);
    else if (l->form == PLOT_MARKS)
        put_dots(s, l, k, style);
    else
        put_path(s, l, k, style);
    end_hint(s, hint);
}

/* A layer that has rows of value k of its column `by`. */
static void put_layer(const struct svg *s, const struct plot_layer *l, int k)
{
    const struct plot_style style = plot_style_of(l, k);

    if (l->form == PLOT_LINE || l->form == PLOT_STEPS || l->form == PLOT_BAND ||
        (l->form == PLOT_MARKS && style.mark == PLOT_DOT && !l->text)) {
        put_whole(s, l, k, &style);
        return;
    }
    for (size_t row = 0; row < plot_rows(s->p); row++) {
        const char *hint =
            l->form == PLOT_TEXT ? "" : plot_cell_text(s->p, row, l->text);

        if (!plot_draws(s->p, l, k, row))
            continue;
        begin_hint(s, hint);
        put_row(s, l, row, style);
        end_hint(s, hint);
    }
}

static void put_panel(const struct svg *s, int panel)
{
    const struct plot_panel *a = &s->p->panel[panel];

    put_grid(s, a);
    put_guides(s, panel, true);
    for (size_t i = 0; i < s->p->n_layers; i++) {
        const struct plot_layer *l = &s->p->layer[i];

        for (int k = l->by ? 0 : -1; k < (l->by ? l->n_by : 0); k++)
            if (l->panel == panel && plot_has_rows(s->p, l, k))
                put_layer(s, l, k);
    }
    put_axes(s, a);
    put_guides(s, panel, false);
}

/* ---- around the panels ----------------------------------------------------------- */

static void put_sample(const struct svg *s, const struct plot_key *k, double x,
                       double y)
{
    if (k->style.opacity != 0)
        svg_box(s, x, y - 5, x + 26, y + 5, &k->style);
    if (k->style.width > 0)
        svg_line(s, x, y, x + 26, y, &k->style);
    if (k->style.mark)
        svg_mark(s, x + 13, y, &k->style);
}

static void put_page_keys(const struct svg *s)
{
    fputs("<ul class=\"legend\">\n", s->f);
    for (size_t i = 0; i < s->p->n_keys; i++) {
        fputs("<li><svg viewBox=\"0 0 26 14\" class=\"key\" aria-hidden=\"true\">",
              s->f);
        put_sample(s, &s->p->key[i], 0, 7);
        fputs("</svg>", s->f);
        svg_put_escaped(s->f, s->p->key[i].text);
        fputs("</li>\n", s->f);
    }
    fputs("</ul>\n", s->f);
}

static void put_file_keys(const struct svg *s)
{
    for (size_t i = 0; i < s->p->n_keys; i++) {
        struct svg_text text = {
            .kind = TEXT_TICK, .anchor = PLOT_LEFT, .color = PLOT_INK};

        plot_key_place(s->p, i, &text.x, &text.y);
        put_sample(s, &s->p->key[i], text.x, text.y);
        text.x += 36;
        svg_text(s, &text, s->p->key[i].text);
    }
}

static void put_head(const struct svg *s)
{
    const struct plot *p = s->p;
    struct svg_text text = {24, 38, TEXT_TITLE, PLOT_LEFT, 0, SVG_BLACK};

    svg_text(s, &text, p->title);
    text = (struct svg_text){24, 72, TEXT_SUB, PLOT_LEFT, 0, SVG_DIM};
    svg_text(s, &text, p->subtitle);
    for (size_t i = 0; i < p->n_notes; i++) {
        text.y = p->foot + 10 + 21 * (double)i;
        svg_text(s, &text, p->note[i]);
    }
    text.y = 98;
    text.color = PLOT_BAD;
    svg_text(s, &text, p->warning);
}

void svg_write(FILE *f, const struct plot *p, const struct plot_look *look)
{
    const struct svg s = {f, p, look};

    if (look->is_page)
        put_page_keys(&s);
    svg_begin(&s);
    if (!look->is_page) {
        put_head(&s);
        put_file_keys(&s);
    }
    for (int i = 0; i < p->n_panels; i++)
        put_panel(&s, i);
    fputs("</svg>\n", f);
}
