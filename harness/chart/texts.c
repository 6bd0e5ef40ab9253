/* SPDX-License-Identifier: MIT
 *
 * texts.c - how wide texts are, and texts cut to their room
 *
 * Nobody knows the font of whoever looks at a picture; the widths are those of DejaVu
 * Sans, which is wider than most, and a little more.
 */
#include "harness/chart/layout.h"

#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"

#define SPARE 1.04 /* for fonts that are wider, and for rounding to pixels */

/* In hundredths of a font's size, from ' ' to '~'. */
static const unsigned char widths[] = {
    32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37,  32, 34, 64, 64, 64,
    64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 78, 64,
    58, 78, 76, 30, 30, 66, 56, 87, 75, 79, 61, 79, 70, 64,  62, 74, 69, 99, 69,
    62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36,  64, 64, 28, 28, 58,
    28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60,  53, 64, 34, 64, 84,
};

#define LETTER     66  /* other alphabets */
#define IDEOGRAPH  104 /* U+2E80 and above */
#define ELLIPSIS   "\xe2\x80\xa6"
#define N_ELLIPSIS 3
#define FIT_MAX    4096 /* bytes of a text */
#define BARS_MIN   0.2  /* of a panel's width, in front of the texts behind bars */
#define NAME_EDGE  24.0 /* from a name on y to the edge and its panel, together */

/* The width of n bytes, in font sizes. */
static double width_of(const char *text, size_t n)
{
    long sum = 0;

    for (size_t i = 0, step; i < n; i += step) {
        const int len = utf8_char_len(text + i, n - i);
        const unsigned char c = (unsigned char)text[i];

        step = len > 0 ? (size_t)len : 1;
        if (step == 1)
            sum += c >= ' ' && c <= '~' ? widths[c - ' '] : LETTER;
        else if (!strncmp(text + i, ELLIPSIS, N_ELLIPSIS) || c >= 0xe3 ||
                 (c == 0xe2 && (unsigned char)text[i + 1] >= 0xba))
            sum += IDEOGRAPH;
        else
            sum += LETTER;
    }
    return SPARE * (double)sum / 100;
}

double plot_text_width(const char *text, double size)
{
    return size * width_of(text, strlen(text));
}

/* Where the character before `end` begins, and where the one at `at` ends. */
static size_t back(const char *text, size_t end)
{
    while (end > 0 && ((unsigned char)text[--end] & 0xc0) == 0x80)
        ;
    return end;
}

static size_t forth(const char *text, size_t at)
{
    if (text[at])
        at++;
    while (((unsigned char)text[at] & 0xc0) == 0x80)
        at++;
    return at;
}

const char *plot_fit(struct plot *p, const char *text, double room, double size)
{
    const char *cut = strstr(text, ELLIPSIS);
    const size_t n = strlen(text);
    size_t left = cut ? (size_t)(cut - text) : n / 2, right = left;
    char buf[FIT_MAX];

    if (plot_text_width(text, size) <= room || n >= sizeof buf - N_ELLIPSIS)
        return text;
    if (cut)
        right += N_ELLIPSIS;
    else
        left = right = back(text, left + 1);
    while (left > 1 || n - right > 1) {
        const double a = width_of(text, left);
        const double b = width_of(text + right, n - right);

        if (size * (a + b + SPARE * IDEOGRAPH / 100) <= room)
            break;
        if (a >= b)
            left = back(text, left);
        else
            right = forth(text, right);
    }
    memcpy(buf, text, left);
    memcpy(buf + left, ELLIPSIS, N_ELLIPSIS);
    memcpy(buf + left + N_ELLIPSIS, text + right, n - right + 1);
    return plot_keep(p, buf, FIT_MAX);
}

/* ---- around the panels ----------------------------------------------------------- */

void plot_fit_around(struct plot *p, const struct plot_look *look, double room,
                     double key_room)
{
    const double sub = look->size[TEXT_SUB];

    p->title = plot_fit(p, p->title, room, look->size[TEXT_TITLE]);
    p->subtitle = plot_fit(p, p->subtitle, room, sub);
    p->warning = plot_fit(p, p->warning, room, sub);
    for (size_t i = 0; i < p->n_notes; i++)
        p->note[i] = plot_fit(p, p->note[i], room, sub);
    for (size_t i = 0; i < p->n_keys; i++)
        p->key[i].text =
            plot_fit(p, p->key[i].text, room - key_room, look->size[TEXT_TICK]);
}

/* ---- texts of rows --------------------------------------------------------------- */

/* Whether the panel's axis makes room for texts of that layer, which are behind bars.
 */
static bool is_behind_bars(const struct plot *p, const struct plot_layer *l, int panel,
                           const struct plot_look *look)
{
    const struct plot_panel *a = &p->panel[panel];

    return l->panel == panel && l->form == PLOT_TEXT && a->x.has_room &&
           !(look->is_page && a->has_lines);
}

static double room_behind(const struct plot *p, const struct plot_layer *l, size_t row,
                          const struct plot_look *look)
{
    return l->dx + 6 +
           plot_text_width(plot_cell_text(p, row, l->text), look->size[TEXT_LABEL]);
}

double plot_room_for_bars(const struct plot *p, const struct plot_look *look)
{
    double longest = 0;

    for (size_t i = 0; i < p->n_layers; i++)
        for (size_t row = 0; row < plot_rows(p); row++)
            if (is_behind_bars(p, &p->layer[i], p->layer[i].panel, look) &&
                plot_draws(p, &p->layer[i], -1, row))
                longest = fmax(longest, room_behind(p, &p->layer[i], row, look));
    return longest / (1 - BARS_MIN);
}

/* Texts of rows that are wider than their room are cut. */
static void fit_cells(struct plot *p, const struct plot_layer *l, double room,
                      const struct plot_look *look)
{
    const int column = l->text ? plot_column(p, l->text) : -1;

    for (size_t row = 0; column >= 0 && row < plot_rows(p); row++) {
        struct plot_cell *c = &p->cell[row * p->n_columns + (size_t)column];

        if (c->text)
            c->text = plot_fit(p, c->text, room, look->size[TEXT_LABEL]);
    }
}

void plot_make_room(struct plot *p, const struct plot_look *look, int panel)
{
    struct plot_panel *a = &p->panel[panel];
    const double width = a->box.width;

    for (size_t i = 0; i < p->n_layers; i++) {
        const struct plot_layer *l = &p->layer[i];

        if (l->panel == panel && l->form == PLOT_TEXT && look->is_page && a->has_lines)
            fit_cells(p, l, width, look);
        if (!is_behind_bars(p, l, panel, look))
            continue;
        fit_cells(p, l, (1 - BARS_MIN) * width - l->dx - 6, look);
        for (size_t row = 0; row < plot_rows(p); row++)
            if (plot_draws(p, l, -1, row))
                a->x.max = fmax(a->x.max, plot_value(p, row, l->x) * width /
                                              (width - room_behind(p, l, row, look)));
    }
}

void plot_fit_names(struct plot *p, const struct plot_look *look, int panel)
{
    struct plot_panel *a = &p->panel[panel];
    const double room = look->is_page ? a->box.width : a->box.left - NAME_EDGE;

    for (int i = 0; i < a->y.n && a->y.has_names; i++)
        if (a->y.v[i].text)
            a->y.v[i].text = plot_fit(p, a->y.v[i].text, room, look->size[TEXT_ROW]);
    if (a->y.title)
        a->y.title = plot_fit(p, a->y.title, look->width - a->box.left - 8,
                              look->size[TEXT_NAME]);
}
