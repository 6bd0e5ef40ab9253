/* SPDX-License-Identifier: MIT
 *
 * script.c - statements of a script, its loops, and its data
 */
#include "harness/chart/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/state.h"

/* Time is in proportion to what is read: rows have some 40 bytes, and are evaluated for
 * each of up to 66 series. */
#define MIN_STEPS      2000000L
#define STEPS_PER_BYTE 100
#define MAX_ROWS       ((size_t)1 << 20)
#define MAX_NESTING    16

static void run(struct draw *d, const char *end);

/* ---- the text ----------------------------------------------------------------------
 */

/* Lines that go on are one, comments are blanks; the number of line ends stays: within
 * a line they are \v. */
static void join_lines(char *text)
{
    char quote = 0;

    for (char *c = text; *c; c++) {
        if (c[0] == '\\' && c[1] == '\n') {
            c[0] = ' ';
            c[1] = '\v';
        } else if (quote) {
            if (c[0] == '\\' && quote == '"' && c[1])
                c++;
            else if (c[0] == quote || c[0] == '\n')
                quote = 0;
        } else if (c[0] == '"' || c[0] == '\'') {
            quote = c[0];
        } else if (c[0] == '#') {
            for (; c[1] && c[1] != '\n'; c++)
                *c = ' ';
            *c = ' ';
        }
    }
}

/* Where the block that is open at p is closed; NULL: nowhere. */
static const char *find_close(const char *p)
{
    char quote = 0;

    for (int open = 1; *p; p++) {
        if (quote) {
            if (*p == '\\' && quote == '"' && p[1])
                p++;
            else if (*p == quote)
                quote = 0;
        } else if (*p == '"' || *p == '\'') {
            quote = *p;
        } else {
            open += (*p == '{') - (*p == '}');
            if (!open)
                return p;
        }
    }
    return NULL;
}

static const char *take_block(struct draw *d)
{
    draw_expect(d, "{");
    const char *end = d->err->code ? NULL : find_close(d->p);

    if (!end)
        draw_fail(d, "a block has no end");
    return end;
}

/* ---- statements
 * ---------------------------------------------------------------------- */

void draw_assign(struct draw *d, const char *name, struct value v)
{
    struct variable *to = variable_make(&d->variables, name);

    if (!to) {
        draw_fail(d, "there are too many variables");
        return;
    }
    to->v = v;
    to->body = NULL;
    to->array = NULL;
}

void draw_take_loop(struct draw *d, struct draw_loop *l)
{
    *l = (struct draw_loop){.step = 1};
    draw_expect(d, "[");
    draw_take_name(d, l->name);
    if (draw_take(d, "in")) {
        l->words = draw_text(d);
    } else {
        draw_expect(d, "=");
        l->next = draw_number(d);
        draw_expect(d, ":");
        l->last = draw_number(d);
        l->step = draw_take(d, ":") ? draw_number(d) : 1;
        if (!d->skip && !d->err->code && !(l->step > 0))
            draw_fail(d, "a loop has no step above 0");
    }
    draw_expect(d, "]");
}

bool draw_loop_next(struct draw *d, struct draw_loop *l)
{
    draw_step(d, STATEMENT_STEPS);
    if (d->err->code)
        return false;
    if (l->words) {
        const char *word = l->words + strspn(l->words, " ");
        const size_t len = strcspn(word, " ");

        l->words = word + len;
        if (len)
            draw_assign(d, l->name, value_text(draw_copy(d, word, len)));
        return len > 0;
    }
    if (!(l->next <= l->last))
        return false;
    draw_assign(d, l->name, value_integer(l->next));
    l->next += l->step;
    return true;
}

static void loop(struct draw *d)
{
    struct draw_loop l;
    const char *begin, *end;

    draw_expect(d, "for");
    draw_take_loop(d, &l);
    end = take_block(d);
    begin = d->p;
    while (!d->err->code && draw_loop_next(d, &l)) {
        d->p = begin;
        run(d, end);
    }
    if (!d->err->code)
        d->p = end + 1;
}

static void branch(struct draw *d)
{
    draw_expect(d, "(");
    const bool yes = draw_number(d) != 0;

    draw_expect(d, ")");
    for (int part = 0; part < 2; part++) {
        const char *end = take_block(d);

        if (!end)
            return;
        if (yes == !part)
            run(d, end);
        if (d->err->code)
            return;
        d->p = end + 1;
        if (part || !draw_take(d, "else"))
            return;
    }
}

static void evaluate(struct draw *d)
{
    const char *text = draw_text(d), *p = d->p, *from = d->text;

    if (d->err->code)
        return;
    d->p = d->text = text;
    run(d, text + strlen(text));
    if (d->err->code)
        return;
    d->p = p;
    d->text = from;
}

static void make_array(struct draw *d)
{
    char name[DRAW_NAME] = "";

    draw_take_name(d, name);
    draw_expect(d, "[");
    const double n = draw_number(d);

    draw_expect(d, "]");
    if (!d->err->code && !(n >= 0 && n <= 100000))
        draw_fail(d, "an array has no size from 0 to 100000");
    draw_assign(d, name, value_integer(0));
    struct value *v =
        d->err->code ? NULL : arena_take(&d->arena, ((size_t)n + 1) * sizeof *v);

    if (!v) {
        err_set(d->err, ST_NO_MEMORY, "no memory for the arrays of a chart");
        return;
    }
    for (int i = 0; i < (int)n; i++)
        v[i] = value_integer(0);
    variable_find(&d->variables, name)->array = v;
    variable_find(&d->variables, name)->n = (int)n;
    if (!draw_take(d, "="))
        return;
    draw_expect(d, "[");
    for (int i = 0; i < (int)n && (!i || draw_take(d, ",")); i++)
        v[i] = draw_value(d);
    draw_expect(d, "]");
}

static void set_element(struct draw *d, const char *name)
{
    struct variable *v = variable_find(&d->variables, name);
    const double at = draw_number(d);

    draw_expect(d, "]");
    draw_expect(d, "=");
    const struct value to = draw_value(d);

    if (d->err->code)
        return;
    if (!v || !v->array || !(at >= 1 && at <= v->n))
        draw_fail(d, "an array is not there, or has fewer elements");
    else
        v->array[(int)at - 1] = to;
}

static void define(struct draw *d, const char *name)
{
    struct variable *v;

    draw_assign(d, name, value_integer(0));
    if (d->err->code)
        return;
    v = variable_find(&d->variables, name);
    v->n_parameters = 0;
    while (v->n_parameters < DRAW_MAX_PARAMETERS &&
           draw_take_name(d, v->parameter[v->n_parameters])) {
        v->n_parameters++;
        if (!draw_take(d, ","))
            break;
    }
    draw_expect(d, ")");
    draw_expect(d, "=");
    v->body = d->p;
    d->skip++;
    draw_value(d);
    d->skip--;
}

static void set_variable(struct draw *d)
{
    char name[DRAW_NAME];
    const char *p = d->p;

    if (!draw_take_name(d, name))
        return;
    if (draw_take(d, "["))
        set_element(d, name);
    else if (draw_take(d, "("))
        define(d, name);
    else if (draw_take(d, "="))
        draw_assign(d, name, draw_value(d));
    else
        d->p = p; /* no statement */
}

static void statement(struct draw *d)
{
    if (draw_take(d, "do"))
        loop(d);
    else if (draw_take(d, "if"))
        branch(d);
    else if (draw_take(d, "eval"))
        evaluate(d);
    else if (draw_take(d, "set"))
        draw_set(d);
    else if (draw_take(d, "unset"))
        draw_unset(d);
    else if (draw_take(d, "plot"))
        draw_plot(d);
    else if (draw_take(d, "array"))
        make_array(d);
    else
        set_variable(d);
}

static void run(struct draw *d, const char *end)
{
    static const char blanks[] = " \t\n\v\r;";
    char what[80];

    if (++d->depth > MAX_NESTING)
        draw_fail(d, "blocks are nested too deeply");
    draw_step(d, STATEMENT_STEPS);
    while (!d->err->code) {
        d->p += strspn(d->p, blanks);
        if (d->p >= end)
            break;
        const char *from = d->p;

        draw_step(d, STATEMENT_STEPS);
        statement(d);
        if (d->err->code || (d->p > from && draw_ends(d)))
            continue;
        snprintf(what, sizeof what, "\"%.*s\" is not known there",
                 (int)(strcspn(d->p, "\n") < 40 ? strcspn(d->p, "\n") : 40), d->p);
        draw_fail(d, what);
    }
    d->depth--;
}

/* ---- data -------------------------------------------------------------------------
 */

/* Cuts a line at its commas into n cells, "" where it has fewer, and returns the next
 * line; *n < 0: as many as it has. */
static char *cut_line(char *line, const char **cell, int *n)
{
    const size_t len = strcspn(line, "\n");
    char *next = line[len] ? line + len + 1 : line + len, *end = line + len;
    const int most = *n < 0 ? DRAW_MAX_COLUMNS : *n;
    int at = 0;

    *end = '\0';
    while (at < most) {
        const size_t cut = strcspn(line, ",");

        cell[at++] = line;
        if (line + cut == end)
            break;
        line[cut] = '\0';
        line += cut + 1;
    }
    *n = *n < 0 ? at : *n;
    for (; at < *n; at++)
        cell[at] = end;
    return next;
}

static enum status read_data(struct draw *d, char *data)
{
    size_t n_lines = 1;

    for (const char *c = data; *c; c++)
        n_lines += *c == '\n';
    if (n_lines > MAX_ROWS)
        return err_set(d->err, ST_INPUT, "a chart has more than %zu rows", MAX_ROWS);
    d->n_columns = -1;
    data = cut_line(data, d->column, &d->n_columns);
    d->cells = malloc(n_lines * (size_t)d->n_columns * sizeof *d->cells);
    if (!d->cells)
        return err_set(d->err, ST_NO_MEMORY, "no memory for the rows of a chart");
    while (*data) {
        const char **row = d->cells + d->n_rows * (size_t)d->n_columns;

        data = cut_line(data, row, &d->n_columns);
        d->n_rows++;
    }
    return ST_OK;
}

enum status draw_svg(const char *script, const char *data, FILE *f, struct err *err)
{
    struct draw *d = calloc(1, sizeof *d);
    char *text = strdup(script), *cells = strdup(data);
    enum status st = ST_OK;

    if (!d || !text || !cells) {
        st = err_set(err, ST_NO_MEMORY, "no memory to draw a chart");
    } else {
        join_lines(text);
        d->script = d->text = d->p = text;
        d->err = err;
        d->f = f;
        d->max_steps =
            MIN_STEPS + STEPS_PER_BYTE * (long)(strlen(script) + strlen(data));
        draw_defaults(d);
        if (!read_data(d, cells))
            run(d, text + strlen(text));
        if (!err->code && !d->has_svg)
            err_set(err, ST_INPUT, "a chart's script draws no SVG");
        st = err->code;
    }
    if (d) {
        free(d->cells);
        arena_free(&d->arena);
    }
    free(d);
    free(text);
    free(cells);
    return st;
}
