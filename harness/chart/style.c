/* SPDX-License-Identifier: MIT
 *
 * style.c - colours, lines, fonts, fills and places as scripts write them
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/state.h"

struct style draw_style(const struct draw *d)
{
    return (struct style){.line_width = 1,
                          .point_type = -1,
                          .point_size = 1,
                          .fill_opacity = d->fill_opacity,
                          .is_filled = true};
}

/* ---- colours ----------------------------------------------------------------------
 */

uint32_t draw_color(struct draw *d, struct value v)
{
    char *end;

    if (v.kind != VALUE_TEXT)
        return v.v >= 0 && v.v <= UINT32_MAX ? (uint32_t)v.v : 0;
    if (*v.text != '#') {
        draw_fail(d, "a colour is not #RRGGBB");
        return 0;
    }
    return (uint32_t)strtoul(v.text + 1, &end, 16);
}

uint32_t draw_palette(const struct draw *d, double v)
{
    const struct palette_stop *s = d->stop;
    const double share = (v - d->color_min) / (d->color_max - d->color_min);
    uint32_t color = 0;
    int i = 1;

    if (d->n_stops < 2 || !isfinite(share))
        return 0x777777;
    const double first = s[0].at, last = s[d->n_stops - 1].at;
    const double at = first + fmin(fmax(share, 0), 1) * (last - first);

    while (i < d->n_stops - 1 && s[i].at < at)
        i++;
    const double part = (at - s[i - 1].at) / (s[i].at - s[i - 1].at);

    for (int shift = 0; shift <= 16; shift += 8) {
        const double a = s[i - 1].color >> shift & 255, b = s[i].color >> shift & 255;

        color |= (uint32_t)(a + part * (b - a) + 0.5) << shift;
    }
    return color;
}

/* "rgb TEXT", "rgb variable" or "palette". */
static void take_color(struct draw *d, uint32_t *color, enum draw_from *from)
{
    *from = FROM_GIVEN;
    if (draw_take(d, "palette")) {
        *from = FROM_PALETTE;
        return;
    }
    draw_expect(d, "rgb");
    if (draw_take(d, "variable")) {
        *from = FROM_VARIABLE;
        return;
    }
    const struct value v = draw_value(d);

    if (!d->skip && !d->err->code)
        *color = draw_color(d, v);
}

/* ---- attributes --------------------------------------------------------------------
 */

/* A number of a dash type, or (drawn, left out) in half line widths. */
static void take_dash(struct draw *d, double dash[2])
{
    if (draw_take(d, "(")) {
        dash[0] = draw_number(d);
        dash[1] = draw_take(d, ",") ? draw_number(d) : 0;
        draw_expect(d, ")");
        return;
    }
    const int type = (int)draw_number(d);

    dash[0] = type < 2 ? 0 : type == 2 ? d->user_dash[0] : type == 3 ? 2 : 10;
    dash[1] = type < 2 ? 0 : type == 2 ? d->user_dash[1] : type == 3 ? 4 : 5;
}

/* "solid 0.85 noborder", "empty border rgb TEXT". */
static void take_fill(struct draw *d, struct style *s)
{
    draw_take(d, "transparent");
    s->is_filled = draw_take(d, "solid");
    s->has_border = true;
    s->border = s->color;
    s->fill_opacity = 1;
    if (!s->is_filled)
        draw_expect(d, "empty");
    if (s->is_filled && !draw_ends(d) && strchr("0123456789.", *d->p))
        s->fill_opacity = draw_number(d);
    if (draw_take(d, "noborder")) {
        s->has_border = false;
    } else if (draw_take(d, "border")) {
        enum draw_from from;

        take_color(d, &s->border, &from);
    }
}

/* ",12" and "Name,12"; quietly nothing without a comma. */
static double font_size(const char *font)
{
    const char *comma = strrchr(font, ',');
    const double size = comma ? atof(comma + 1) : 0;

    return size > 0 && size < 200 ? size : 0;
}

static bool take_text_style(struct draw *d, struct style *s)
{
    if (draw_take(d, "font")) {
        s->font_size = font_size(draw_text(d));
    } else if (draw_take(d, "textcolor") || draw_take(d, "tc")) {
        take_color(d, &s->text_color, &s->from);
    } else if (draw_take(d, "offset")) {
        s->offset[0] = draw_number(d);
        s->offset[1] = draw_take(d, ",") ? draw_number(d) : 0;
        s->has_offset = true;
    } else if (draw_take(d, "rotate")) {
        draw_expect(d, "by");
        s->rotate = draw_number(d);
    } else if (draw_take(d, "left")) {
        s->anchor = ANCHOR_LEFT;
    } else if (draw_take(d, "center")) {
        s->anchor = ANCHOR_CENTER;
    } else if (draw_take(d, "right")) {
        s->anchor = ANCHOR_RIGHT;
    } else {
        return false;
    }
    return true;
}

static bool take_line_style(struct draw *d, struct style *s)
{
    if (draw_take(d, "lw")) {
        s->line_width = draw_number(d);
    } else if (draw_take(d, "dt")) {
        take_dash(d, s->dash);
    } else if (draw_take(d, "lc") || draw_take(d, "fc")) {
        take_color(d, &s->color, &s->from);
    } else if (draw_take(d, "lt")) {
        draw_number(d);
    } else if (draw_take(d, "pt")) {
        s->point_type = (int)draw_number(d);
    } else if (draw_take(d, "ps")) {
        s->point_size = draw_number(d);
    } else if (draw_take(d, "fs")) {
        take_fill(d, s);
    } else {
        return false;
    }
    return true;
}

bool draw_take_style(struct draw *d, struct style *s)
{
    static const char *const passed[] = {"noenhanced", "nohead", "noborder", "nomirror",
                                         "notitle",    "out",    "behind",   "back"};
    struct place size;

    if (take_text_style(d, s) || take_line_style(d, s))
        return true;
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        if (draw_take(d, passed[i]))
            return true;
    if (draw_take(d, "front"))
        s->layer = LAYER_FRONT;
    else if (draw_take(d, "point"))
        s->has_point = true;
    else if (draw_take(d, "heads"))
        s->has_heads = true;
    else if (draw_take(d, "size"))
        draw_take_place(d, &size);
    else if (draw_take(d, "title"))
        s->title = draw_text(d);
    else
        return false;
    return true;
}

/* ---- places ------------------------------------------------------------------------
 */

void draw_take_place(struct draw *d, struct place *to)
{
    enum draw_system system = SYSTEM_FIRST;

    for (int i = 0; i < 2; i++) {
        system = draw_take(d, "first")    ? SYSTEM_FIRST
                 : draw_take(d, "graph")  ? SYSTEM_GRAPH
                 : draw_take(d, "screen") ? SYSTEM_SCREEN
                                          : system;
        to->system[i] = system;
        to->v[i] = draw_number(d);
        if (i == 0)
            draw_expect(d, ",");
    }
}
