/* SPDX-License-Identifier: MIT
 *
 * gnuplot.c - a plot as a gnuplot script
 *
 * Everything but the figures has been computed: ticks, margins and the legend are
 * written as numbers. Texts of others are in one array before anything else, in quotes
 * in which nothing is special.
 */
#include "harness/chart/chart_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/layout.h"

#define CHARACTER 9.8 /* gnuplot's unit of a text's offset, in pixels of the SVG */
#define LINE      21.0

struct script {
    const struct plot *p;
    FILE *f;     /* what is drawn */
    FILE *texts; /* lines "string[1] = '...'" */
    int n_texts;
};

/* ---- the table ------------------------------------------------------------------- */

static void put_cell(FILE *f, const struct plot_cell *c)
{
    if (!c->text && !isfinite(c->v))
        fputs("NaN", f);
    else if (!c->text)
        fprintf(f, fabs(c->v) >= 1e6 && c->v == rint(c->v) ? "%.0f" : "%.6g", c->v);
    else
        fputs(c->text, f);
}

void gnuplot_write_table(FILE *f, const struct plot *p)
{
    const char *comma = "";

    for (size_t i = 0; i < p->n_columns; i++)
        if (*p->column[i] != '.') {
            fprintf(f, "%s%s", comma, p->column[i]);
            comma = ",";
        }
    fputc('\n', f);
    for (size_t row = 0; row < plot_rows(p); row++) {
        comma = "";
        for (size_t i = 0; i < p->n_columns; i++)
            if (*p->column[i] != '.') {
                fputs(comma, f);
                put_cell(f, &p->cell[row * p->n_columns + i]);
                comma = ",";
            }
        fputc('\n', f);
    }
}

/* ---- texts, colours, styles ------------------------------------------------------ */

/* In single quotes nothing but the quote itself is special. It becomes U+2019: gnuplot
 * takes a doubled one for the end of the text where that comes first, or behind
 * another. A blank comes into "]]>", which no text of XML may have and gnuplot does not
 * escape. is_format: "%" is written twice for one. */
static void put_quoted(FILE *f, const char *s, bool is_format)
{
    fputc('\'', f);
    for (int n_closing = 0; *s; n_closing = *s++ == ']' ? n_closing + 1 : 0) {
        if (*s == '>' && n_closing > 1)
            fputc(' ', f);
        if (*s == '\'')
            fputs("\xe2\x80\x99", f);
        else
            fputc((unsigned char)*s < ' ' || *s == 127 ? ' ' : *s, f);
        if (*s == '%' && is_format)
            fputc('%', f);
    }
    fputc('\'', f);
}

/* Its element of the array. */
static int text_number(struct script *s, const char *text, bool is_format)
{
    fprintf(s->texts, "string[%d] = ", ++s->n_texts);
    put_quoted(s->texts, text, is_format);
    fputc('\n', s->texts);
    return s->n_texts;
}

static void put_color(FILE *f, int color)
{
    static const char *const names[] = {"ink", "grey", "faint", "paper", "bad", "warn"};

    if (color >= PLOT_STEP)
        fprintf(f, "step(%d)", color - PLOT_STEP);
    else if (color >= 0)
        fprintf(f, "color(%d)", color);
    else
        fputs(names[(-1 - color) % 6], f);
}

static void put_line_style(FILE *f, const struct plot_style *s)
{
    static const char *const dashes[] = {"", " dt (9,6)", " dt (2,5)", " dt (6,4)"};

    fprintf(f, " lw %.3g%s lc rgb ", s->width, dashes[s->dash]);
    put_color(f, s->color);
}

static void put_mark_style(FILE *f, const struct plot_style *s)
{
    static const int types[] = {
        [PLOT_DOT] = 7,      [PLOT_RING] = 6,      [PLOT_SQUARE] = 5,
        [PLOT_DIAMOND] = 13, [PLOT_TRIANGLE] = 10, [PLOT_CROSS] = 2};
    const int shape = s->color >= 0 ? s->color : 0;

    if (s->mark == PLOT_SHAPE || s->mark == PLOT_HOLLOW)
        fprintf(f, " pt %s(%d)", s->mark == PLOT_SHAPE ? "solid" : "hollow", shape);
    else
        fprintf(f, " pt %d", types[s->mark]);
    fprintf(f, " ps %.3g*point lw 1.5 lc rgb ", s->size);
    put_color(f, s->color);
}

static void put_area_style(FILE *f, const struct plot_style *s, const char *color)
{
    if (s->opacity < 0)
        fputs(" fs empty border rgb ", f);
    else
        fprintf(f, " fs transparent solid %.3g noborder %s rgb ", s->opacity, color);
    put_color(f, s->color);
    if (s->opacity < 0 && !strcmp(color, "lc")) {
        fputs(" lc rgb ", f);
        put_color(f, s->color);
        fputs(" lw 2", f);
    }
}

static const char *anchor_name(enum plot_anchor a)
{
    return a == PLOT_LEFT ? "left" : a == PLOT_RIGHT ? "right" : "center";
}

/* ---- places ---------------------------------------------------------------------- */

static double screen_x(const struct script *s, double x)
{
    return x / s->p->width;
}

static double screen_y(const struct script *s, double y)
{
    return 1 - y / s->p->height;
}

static void put_screen(struct script *s, double x, double y)
{
    fprintf(s->f, "screen %.5f, screen %.5f", screen_x(s, x), screen_y(s, y));
}

static void put_at(FILE *f, struct plot_at x, struct plot_at y)
{
    fprintf(f, "%s %.8g, %s %.8g", x.is_share ? "graph" : "first", x.v,
            y.is_share ? "graph" : "first", y.v);
}

/* ---- axes ------------------------------------------------------------------------ */

static void put_ticks(struct script *s, const struct plot_panel *a, bool is_x)
{
    const struct plot_axis *axis = is_x ? &a->x : &a->y;
    char buf[40];

    fprintf(s->f, "    set %ctics scale %s noenhanced %s font \",%g\" (",
            is_x ? 'x' : 'y', axis->has_names ? "0" : "0.6", is_x ? "norotate" : "",
            plot_look_file.size[axis->has_names ? TEXT_ROW : TEXT_TICK]);
    for (int i = 0; i < axis->n; i++) {
        fputs(i ? ", " : "", s->f);
        if (axis->no_figures)
            fputs("''", s->f);
        else if (axis->v[i].text)
            fprintf(s->f, "string[%d]", text_number(s, axis->v[i].text, true));
        else
            put_quoted(s->f, plot_tick_text(axis, &axis->v[i], buf), true);
        fprintf(s->f, " %.8g", axis->v[i].at);
    }
    fputs(")\n", s->f);
}

static void put_axes(struct script *s, const struct plot_panel *a)
{
    const struct plot_box *b = &a->box;

    fprintf(s->f,
            "    set lmargin at screen %.5f; set rmargin at screen %.5f\n"
            "    set tmargin at screen %.5f; set bmargin at screen %.5f\n",
            screen_x(s, b->left), screen_x(s, b->left + b->width), screen_y(s, b->top),
            screen_y(s, b->top + b->height));
    fprintf(s->f, "    unset logscale\n");
    if (a->x.is_log || a->y.is_log)
        fprintf(s->f, "    set logscale %s%s\n", a->x.is_log ? "x" : "",
                a->y.is_log ? "y" : "");
    fprintf(s->f, "    set xrange [%.8g:%.8g]; set yrange [%.8g:%.8g]\n", a->x.min,
            a->x.max, a->y.min, a->y.max);
    put_ticks(s, a, true);
    put_ticks(s, a, false);
    fprintf(s->f, "    set border 3; set grid %sxtics %sytics\n",
            a->x.no_grid ? "no" : "", a->y.has_names || a->y.no_grid ? "no" : "");
    fprintf(s->f, "    set xlabel ");
    if (a->x.title)
        fprintf(s->f, "string[%d]\n", text_number(s, a->x.title, false));
    else
        fputs("''\n", s->f);
    if (a->y.title) {
        fprintf(s->f, "    set label string[%d] at ",
                text_number(s, a->y.title, false));
        put_screen(s, b->left, b->top - a->top_room - 15);
        fprintf(s->f, " left font \",%g\" textcolor rgb ink noenhanced\n",
                plot_look_file.size[TEXT_NAME]);
    }
}

/* ---- guides ---------------------------------------------------------------------- */

static void put_guide(struct script *s, const struct plot_guide *g)
{
    if (g->form == PLOT_TEXT) {
        fprintf(s->f, "    set label string[%d] at ", text_number(s, g->text, false));
        put_at(s->f, g->x, g->y);
        fprintf(s->f, " %s offset %.3f,%.3f rotate by %.2f font \",%g\" textcolor rgb ",
                anchor_name(g->anchor), g->dx / CHARACTER, -g->dy / LINE, g->rotate,
                plot_look_file.size[TEXT_LABEL]);
        put_color(s->f, g->style.color);
        fputs(" noenhanced front\n", s->f);
        return;
    }
    fprintf(s->f, "    set %s from ",
            g->form == PLOT_BOX ? "object rectangle" : "arrow");
    put_at(s->f, g->x, g->y);
    fputs(" to ", s->f);
    put_at(s->f, g->x2, g->y2);
    if (g->form == PLOT_BOX) {
        put_area_style(s->f, &g->style, "fc");
    } else {
        fputs(" nohead", s->f);
        put_line_style(s->f, &g->style);
    }
    fprintf(s->f, " %s\n",
            g->is_behind && g->form == PLOT_BOX ? "behind"
            : g->is_behind                      ? "back"
                                                : "front");
}

/* ---- layers ---------------------------------------------------------------------- */

/* The column's figure as an expression. */
static void put_figure(FILE *f, struct plot_place at)
{
    if (!at.column)
        fprintf(f, "%.8g", at.plus);
    else if (at.plus != 0)
        fprintf(f, "column(\"%s\") %c %.8g", at.column, at.plus < 0 ? '-' : '+',
                fabs(at.plus));
    else
        fprintf(f, "column(\"%s\")", at.column);
}

/* The condition under which a row is drawn; false: it is for all. */
static bool put_condition(FILE *f, const struct plot_layer *l, int k)
{
    const char *lead = "";

    if (l->by) {
        fprintf(f, "column(\"%s\") == %d", l->by, k);
        lead = " && ";
    }
    for (int i = 0; i < 3 && l->only[i].column; i++) {
        const struct plot_only *o = &l->only[i];

        if (o->low == o->high) {
            fprintf(f, "%scolumn(\"%s\") == %.8g", lead, o->column, o->low);
        } else {
            if (isfinite(o->low))
                fprintf(f, "%scolumn(\"%s\") >= %.8g", lead, o->column, o->low);
            if (isfinite(o->low) && isfinite(o->high))
                fputs(" &&", f);
            if (isfinite(o->high))
                fprintf(f, "%scolumn(\"%s\") <= %.8g", isfinite(o->low) ? " " : lead,
                        o->column, o->high);
        }
        lead = " && ";
    }
    return *lead != '\0';
}

static bool has_condition(const struct plot_layer *l)
{
    return l->by || l->only[0].column;
}

static void put_using(FILE *f, const struct plot_layer *l, int k)
{
    fputs("data using (", f);
    if (has_condition(l) && l->form != PLOT_TEXT) {
        put_condition(f, l, k);
        fputs(" ? ", f);
        put_figure(f, l->x);
        fputs(" : NaN", f);
    } else {
        put_figure(f, l->x);
    }
    fputs("):(", f);
    put_figure(f, l->y);
    fputc(')', f);
}

static void put_vector(FILE *f, const struct plot_layer *l)
{
    fputs(":(", f);
    put_figure(f, l->x2);
    fputs(" - (", f);
    put_figure(f, l->x);
    fputs(")):(", f);
    put_figure(f, l->y2);
    fputs(" - (", f);
    put_figure(f, l->y);
    fprintf(f, ")) with vectors %s",
            l->form == PLOT_SEGMENT ? "nohead" : "heads size screen 0.003,90");
}

static void put_box(FILE *f, const struct plot_layer *l, const struct plot_style *style)
{
    const struct plot_place at[] = {l->x, l->x2, l->y, l->y2};

    for (int i = 0; i < 4; i++) {
        fputs(":(", f);
        put_figure(f, at[i]);
        fputc(')', f);
    }
    fputs(" with boxxyerror", f);
    put_area_style(f, style, "lc");
}

static void put_text(FILE *f, const struct plot_layer *l, int k,
                     const struct plot_style *style)
{
    fputs(":(", f);
    if (has_condition(l)) {
        put_condition(f, l, k);
        fprintf(f, " ? strcol(\"%s\") : \"\")", l->text);
    } else {
        fprintf(f, "strcol(\"%s\"))", l->text);
    }
    fprintf(f, " with labels noenhanced %s offset %.3f,0 font \",%g\" textcolor rgb ",
            anchor_name(l->anchor), l->dx / CHARACTER, plot_look_file.size[TEXT_LABEL]);
    put_color(f, style->color);
}

/* What lies below a hollow mark does not show through it: its shape in the colour of
 * paper comes first. */
static void put_marks(FILE *f, const struct plot_layer *l, int k,
                      const struct plot_style *style)
{
    fputs(" with points", f);
    if (style->mark == PLOT_HOLLOW) {
        fprintf(f, " pt solid(%d) ps %.3g*point lc rgb paper notitle, \\\n         ",
                style->color >= 0 ? style->color : 0, style->size);
        put_using(f, l, k);
        fputs(" with points", f);
    }
    put_mark_style(f, style);
}

static void put_layer(FILE *f, const struct plot_layer *l, int k)
{
    const struct plot_style style = plot_style_of(l, k);

    put_using(f, l, k);
    switch (l->form) {
    case PLOT_LINE:
    case PLOT_STEPS:
        fputs(l->form == PLOT_LINE ? " with lines" : " with steps", f);
        put_line_style(f, &style);
        break;
    case PLOT_MARKS:
        put_marks(f, l, k, &style);
        break;
    case PLOT_INTERVAL:
    case PLOT_SEGMENT:
        put_vector(f, l);
        put_line_style(f, &style);
        break;
    case PLOT_BOX:
        put_box(f, l, &style);
        break;
    case PLOT_BAND:
        fputs(":(", f);
        put_figure(f, l->y2);
        fputs(") with filledcurves", f);
        put_area_style(f, &style, "lc");
        break;
    case PLOT_TEXT:
        put_text(f, l, k, &style);
        break;
    }
    fputs(" notitle", f);
}

static void put_layers(struct script *s, int panel)
{
    const char *lead = "    plot";

    for (size_t i = 0; i < s->p->n_layers; i++) {
        const struct plot_layer *l = &s->p->layer[i];

        for (int k = l->by ? 0 : -1; k < (l->by ? l->n_by : 0); k++) {
            if (l->panel != panel || !plot_has_rows(s->p, l, k))
                continue;
            fprintf(s->f, "%s ", lead);
            put_layer(s->f, l, k);
            lead = ", \\\n        ";
        }
    }
    if (lead[4] == 'p')
        fputs("    plot -1e9 with dots notitle", s->f);
    fputc('\n', s->f);
}

/* ---- around the panels ----------------------------------------------------------- */

static void put_key(struct script *s, size_t i)
{
    const struct plot_key *k = &s->p->key[i];
    double x, y;

    plot_key_place(s->p, i, &x, &y);
    if (k->style.opacity != 0) {
        fputs("    set object rectangle from ", s->f);
        put_screen(s, x, y + 5);
        fputs(" to ", s->f);
        put_screen(s, x + 26, y - 5);
        put_area_style(s->f, &k->style, "fc");
        fputc('\n', s->f);
    }
    if (k->style.width > 0) {
        fputs("    set arrow from ", s->f);
        put_screen(s, x, y);
        fputs(" to ", s->f);
        put_screen(s, x + 26, y);
        fputs(" nohead", s->f);
        put_line_style(s->f, &k->style);
        fputc('\n', s->f);
    }
    if (k->style.mark) {
        fputs("    set label '' at ", s->f);
        put_screen(s, x + 13, y);
        fputs(" point", s->f);
        put_mark_style(s->f, &k->style);
        fputc('\n', s->f);
    }
    fprintf(s->f, "    set label string[%d] at ", text_number(s, k->text, false));
    put_screen(s, x + 36, y);
    fprintf(s->f, " left font \",%g\" textcolor rgb ink noenhanced\n",
            plot_look_file.size[TEXT_TICK]);
}

static void put_line_of_text(struct script *s, const char *variable, double y,
                             enum plot_kind kind, const char *color)
{
    fprintf(s->f, "    set label %s at ", variable);
    put_screen(s, 24, y);
    fprintf(s->f, " left font \",%g\" textcolor rgb %s noenhanced\n",
            plot_look_file.size[kind], color);
}

static void put_around(struct script *s)
{
    const struct plot *p = s->p;
    char variable[32];

    put_line_of_text(s, "title_text", 38, TEXT_TITLE, "'#000000'");
    put_line_of_text(s, "subtitle_text", 72, TEXT_SUB, "'#555555'");
    if (*p->warning)
        put_line_of_text(s, "warning_text", 98, TEXT_SUB, "bad");
    for (size_t i = 0; i < p->n_keys; i++)
        put_key(s, i);
    for (size_t i = 0; i < p->n_notes; i++) {
        snprintf(variable, sizeof variable, "string[%d]",
                 text_number(s, p->note[i], false));
        put_line_of_text(s, variable, p->foot + 10 + 21 * (double)i, TEXT_SUB,
                         "'#555555'");
    }
}

static void put_body(struct script *s)
{
    fputs("do for [out in \"output_png output_svg\"] {\n    eval value(out)\n"
          "    set multiplot\n",
          s->f);
    for (int i = 0; i < s->p->n_panels; i++) {
        fputs("    unset label; unset arrow; unset object\n", s->f);
        if (i == 0)
            put_around(s);
        put_axes(s, &s->p->panel[i]);
        for (size_t k = 0; k < s->p->n_guides; k++)
            if (s->p->guide[k].panel == i)
                put_guide(s, &s->p->guide[k]);
        put_layers(s, i);
    }
    fputs("    unset multiplot\n    set output\n}\n", s->f);
}

static void put_head(FILE *f, const struct plot *p)
{
    fprintf(f,
            "# %s.gp - written by bench; draw it again with: gnuplot %s.gp\n"
            "name = '%s'\ndata = '%s.csv'\ntitle_text = ",
            p->name, p->name, p->name, p->name);
    put_quoted(f, p->title, false);
    fputs("\nsubtitle_text = ", f);
    put_quoted(f, p->subtitle, false);
    fputs("\nwarning_text = ", f);
    put_quoted(f, p->warning, false);
    fprintf(f, "\nheight = %.0f\n", p->height);
}

enum status gnuplot_write(FILE *f, const struct plot *p, const char *style,
                          struct err *err)
{
    char *body = NULL, *texts = NULL;
    size_t n_body, n_texts;
    struct script s = {.p = p};
    bool ok;

    s.f = open_memstream(&body, &n_body);
    s.texts = open_memstream(&texts, &n_texts);
    ok = s.f && s.texts;
    if (ok)
        put_body(&s);
    ok = s.f && !fclose(s.f) && ok;
    ok = s.texts && !fclose(s.texts) && ok;
    if (ok) {
        put_head(f, p);
        fprintf(f, "array string[%d]\n%s\n%s\n%s", s.n_texts + 1, texts, style, body);
    }
    free(body);
    free(texts);
    return ok ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a chart's script");
}
