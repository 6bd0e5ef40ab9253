/* SPDX-License-Identifier: MIT
 *
 * expression.c - reading words and evaluating expressions
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/state.h"

#define MAX_DEPTH     250 /* of calls and brackets, as gnuplot's */
#define MAX_ARGUMENTS 10

/* ---- reading --------------------------------------------------------------------- */

void draw_fail(struct draw *d, const char *what)
{
    int line = 1;

    for (const char *c = d->script; *c && (d->text != d->script || c < d->p); c++)
        line += *c == '\n' || *c == '\v';
    if (d->text != d->script)
        err_set(d->err, ST_INPUT,
                "a chart's script cannot be drawn: %.200s, in \"%.60s\"", what,
                d->text);
    else
        err_set(d->err, ST_INPUT,
                "a chart's script cannot be drawn: %.200s, in line %d", what, line);
}

void draw_step(struct draw *d, int n)
{
    d->n_steps += n;
    if (d->n_steps > d->max_steps)
        draw_fail(d, "it takes too long");
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static void skip_blanks(struct draw *d)
{
    while (*d->p == ' ' || *d->p == '\t' || *d->p == '\v' || *d->p == '\r')
        d->p++;
}

bool draw_take(struct draw *d, const char *word)
{
    const size_t len = strlen(word);

    skip_blanks(d);
    if (d->err->code || strncmp(d->p, word, len) ||
        (is_name(word[len - 1]) && is_name(d->p[len])))
        return false;
    d->p += len;
    return true;
}

void draw_expect(struct draw *d, const char *word)
{
    char what[100];

    if (draw_take(d, word))
        return;
    snprintf(what, sizeof what, "\"%s\" is expected at \"%.*s\"", word,
             (int)(strcspn(d->p, "\n") < 40 ? strcspn(d->p, "\n") : 40), d->p);
    draw_fail(d, what);
}

bool draw_take_name(struct draw *d, char name[DRAW_NAME])
{
    size_t len = 0;

    skip_blanks(d);
    if (d->err->code || !is_name(*d->p) || isdigit((unsigned char)*d->p))
        return false;
    while (is_name(d->p[len]))
        len++;
    if (len >= DRAW_NAME) {
        draw_fail(d, "a name is too long");
        return false;
    }
    memcpy(name, d->p, len);
    name[len] = '\0';
    d->p += len;
    return true;
}

bool draw_ends(struct draw *d)
{
    skip_blanks(d);
    return d->err->code || !*d->p || *d->p == '\n' || *d->p == ';' || *d->p == '}';
}

void draw_skip_statement(struct draw *d)
{
    d->p += strcspn(d->p, "\n;");
}

/* ---- data -------------------------------------------------------------------------
 */

/* The cell of a column by name or number, "" for one that is not there. */
static const char *cell_of(struct draw *d, struct value which)
{
    if (!d->row) {
        draw_fail(d, "the expression names a column, but there is no data");
        return "";
    }
    if (which.kind != VALUE_TEXT) {
        const double at = which.v;

        return at >= 1 && at <= d->n_columns ? d->row[(int)at - 1] : "";
    }
    for (int i = 0; i < d->n_columns; i++)
        if (!strcmp(d->column[i], which.text))
            return d->row[i];
    return "";
}

struct value draw_column(struct draw *d, struct value which)
{
    char *end;

    if (d->row && which.kind != VALUE_TEXT && which.v == 0)
        return value_integer((double)d->at_row);
    const char *cell = cell_of(d, which);
    const double v = strtod(cell, &end);

    return value_real(end == cell || end[strspn(end, " ")] ? NAN : v);
}

/* ---- calls ------------------------------------------------------------------------
 */

static struct value call_own(struct draw *d, const struct variable *fn,
                             const struct value *v, int n)
{
    const struct variable *const caller = d->function;
    const struct value *const arguments = d->arguments;
    const char *const p = d->p;

    if (n != fn->n_parameters || d->depth >= MAX_DEPTH) {
        draw_fail(d, "a function has other arguments, or calls itself too often");
        return value_real(NAN);
    }
    d->function = fn;
    d->arguments = v;
    d->p = fn->body;
    d->depth++;
    const struct value result = draw_value(d);

    d->depth--;
    d->function = caller;
    d->arguments = arguments;
    d->p = p;
    return result;
}

static bool call_number(const char *name, double v, struct value *to)
{
    if (!strcmp(name, "int"))
        *to = value_integer(isfinite(v) ? trunc(v) : 0);
    else if (!strcmp(name, "real"))
        *to = value_real(v);
    else if (!strcmp(name, "floor"))
        *to = value_integer(floor(v));
    else if (!strcmp(name, "log"))
        *to = value_real(log(v));
    else if (!strcmp(name, "log10"))
        *to = value_real(log10(v));
    else
        return false;
    return true;
}

static struct value call(struct draw *d, const char *name, const struct value *v, int n)
{
    struct value result = value_real(NAN);
    const struct variable *own = variable_find(&d->variables, name);
    char what[80];

    if (own && own->body)
        return call_own(d, own, v, n);
    if (n == 1 && call_number(name, value_number(v[0]), &result))
        return result;
    if (!strcmp(name, "sprintf") && n > 0)
        return value_text(draw_format_values(d, draw_to_text(d, v[0]), v + 1, n - 1));
    if (!strcmp(name, "atan2") && n == 2)
        return value_real(atan2(value_number(v[0]), value_number(v[1])));
    if (!strcmp(name, "strlen") && n == 1)
        return value_integer(draw_length(draw_to_text(d, v[0])));
    if (!strcmp(name, "strstrt") && n == 2)
        return draw_find(draw_to_text(d, v[0]), draw_to_text(d, v[1]));
    if (!strcmp(name, "substr") && n == 3)
        return draw_part(d, draw_to_text(d, v[0]), value_number(v[1]),
                         value_number(v[2]));
    if (!strcmp(name, "word") && n == 2)
        return draw_word(d, draw_to_text(d, v[0]), value_number(v[1]));
    if (!strcmp(name, "words") && n == 1)
        return value_integer(draw_count_words(draw_to_text(d, v[0])));
    if (!strcmp(name, "column") && n == 1)
        return draw_column(d, v[0]);
    if (!strcmp(name, "strcol") && n == 1)
        return value_text(cell_of(d, v[0]));
    if (!strcmp(name, "exists") && n == 1)
        return value_integer(variable_find(&d->variables, draw_to_text(d, v[0])) !=
                             NULL);
    if (!strcmp(name, "value") && n == 1 &&
        (own = variable_find(&d->variables, draw_to_text(d, v[0]))))
        return own->v;
    snprintf(what, sizeof what, "there is no function %s() of %d arguments", name, n);
    draw_fail(d, what);
    return result;
}

static struct value read_call(struct draw *d, const char *name)
{
    struct value v[MAX_ARGUMENTS];
    int n = 0;

    if (!draw_take(d, ")")) {
        do {
            if (n == MAX_ARGUMENTS)
                draw_fail(d, "a call has too many arguments");
            else
                v[n++] = draw_value(d);
        } while (draw_take(d, ","));
        draw_expect(d, ")");
    }
    if (d->err->code || d->skip)
        return value_integer(0);
    draw_step(d, 1);
    return d->err->code ? value_integer(0) : call(d, name, v, n);
}

/* ---- operands ---------------------------------------------------------------------
 */

static struct value read_element(struct draw *d, const char *name)
{
    const double at = draw_number(d);
    const struct variable *v = variable_find(&d->variables, name);

    draw_expect(d, "]");
    if (d->err->code || d->skip)
        return value_integer(0);
    if (!v || !v->array || !(at >= 1 && at <= v->n)) {
        draw_fail(d, "an array is not there, or has fewer elements");
        return value_integer(0);
    }
    return v->array[(int)at - 1];
}

static struct value read_name(struct draw *d)
{
    char name[DRAW_NAME], what[80];

    if (!draw_take_name(d, name))
        return value_integer(0);
    if (*d->p == '[') {
        d->p++;
        return read_element(d, name);
    }
    if (*d->p == '(') {
        d->p++;
        return read_call(d, name);
    }
    if (d->skip)
        return value_integer(0);
    for (int i = 0; d->function && i < d->function->n_parameters; i++)
        if (!strcmp(d->function->parameter[i], name))
            return d->arguments[i];
    const struct variable *v = variable_find(&d->variables, name);

    if (v && !v->body && !v->array)
        return v->v;
    if (!strcmp(name, "NaN"))
        return value_real(NAN);
    if (!strcmp(name, "pi"))
        return value_real(M_PI);
    snprintf(what, sizeof what, "there is no variable %s", name);
    draw_fail(d, what);
    return value_integer(0);
}

static struct value read_number(struct draw *d)
{
    char *end;
    const bool is_hex = d->p[0] == '0' && (d->p[1] == 'x' || d->p[1] == 'X');
    const double v = is_hex ? (double)strtoull(d->p, &end, 16) : strtod(d->p, &end);
    const size_t len = (size_t)(end - d->p);
    const bool is_whole = is_hex || strspn(d->p, "0123456789") >= len;

    d->p = end;
    return is_whole ? value_integer(v) : value_real(v);
}

static struct value operand(struct draw *d)
{
    skip_blanks(d);
    const char c = *d->p;

    if (d->err->code)
        return value_integer(0);
    if (c == '\'' || c == '"') {
        d->p++;
        return draw_read_text(d, c);
    }
    if (c == '(') {
        d->p++;
        const struct value v = draw_value(d);

        draw_expect(d, ")");
        return v;
    }
    if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)d->p[1])))
        return read_number(d);
    if (!is_name(c))
        draw_expect(d, "a value");
    return read_name(d);
}

/* ---- operators --------------------------------------------------------------------
 */

static struct value level(struct draw *d, int at);

static struct value power(struct value a, struct value b)
{
    const double v = pow(value_number(a), value_number(b));

    return a.kind == VALUE_INTEGER && b.kind == VALUE_INTEGER && b.v >= 0
               ? value_integer(v)
               : value_real(v);
}

static struct value unary(struct draw *d)
{
    skip_blanks(d);
    if (d->depth >= MAX_DEPTH) {
        draw_fail(d, "an expression is nested too deeply");
        return value_integer(0);
    }
    if (*d->p == '-' || *d->p == '+' || (*d->p == '!' && d->p[1] != '=')) {
        const char op = *d->p++;

        d->depth++;
        struct value v = unary(d);

        d->depth--;
        if (op == '!')
            return value_integer(value_number(v) == 0);
        if (v.kind == VALUE_TEXT)
            v = value_real(value_number(v));
        v.v = op == '-' ? -v.v : v.v;
        return v;
    }
    struct value v = operand(d);

    if (draw_take(d, "**"))
        v = power(v, unary(d));
    return v;
}

/* Operators by how loosely they bind; longer ones before those they begin with. */
static const char *const operators[][6] = {
    {"||"},          {"&&"},          {"==", "!=", "eq", "ne"}, {"<=", ">=", "<", ">"},
    {"+", "-", "."}, {"*", "/", "%"},
};

enum { N_LEVELS = sizeof operators / sizeof operators[0] };

static struct value arithmetic(struct draw *d, char op, struct value a, struct value b)
{
    const double x = value_number(a), y = value_number(b);
    const bool whole = a.kind == VALUE_INTEGER && b.kind == VALUE_INTEGER;
    double v = op == '+' ? x + y : op == '-' ? x - y : x * y;

    if (op == '.') {
        const char *left = draw_to_text(d, a), *right = draw_to_text(d, b);
        char *to = arena_take(&d->arena, strlen(left) + strlen(right) + 1);

        if (!to)
            err_set(d->err, ST_NO_MEMORY, "no memory for the texts of a chart");
        else
            strcat(strcpy(to, left), right);
        return value_text(to ? to : "");
    }
    if (op == '/')
        v = whole && y != 0 ? trunc(x / y) : x / y;
    if (op == '%')
        v = y != 0 ? fmod(x, y) : NAN;
    return whole && isfinite(v) ? value_integer(v) : value_real(v);
}

static struct value apply(struct draw *d, const char *op, struct value a,
                          struct value b)
{
    const double x = value_number(a), y = value_number(b);

    switch (*op) {
    case '|':
        return value_integer(x != 0 || y != 0);
    case '&':
        return value_integer(x != 0 && y != 0);
    case '=':
        return value_integer(x == y);
    case '!':
        return value_integer(x != y);
    case 'e':
        return value_integer(!strcmp(draw_to_text(d, a), draw_to_text(d, b)));
    case 'n':
        return value_integer(strcmp(draw_to_text(d, a), draw_to_text(d, b)) != 0);
    case '<':
        return value_integer(op[1] ? x <= y : x < y);
    case '>':
        return value_integer(op[1] ? x >= y : x > y);
    default:
        return arithmetic(d, *op, a, b);
    }
}

/* What is next at that level, taken; NULL: none. "=" alone and "**" are none. */
static const char *take_operator(struct draw *d, int at)
{
    for (int i = 0; i < 6 && operators[at][i]; i++)
        if (draw_take(d, operators[at][i]))
            return operators[at][i];
    return NULL;
}

static struct value level(struct draw *d, int at)
{
    struct value v = at == N_LEVELS ? unary(d) : level(d, at + 1);

    if (at == N_LEVELS)
        return v;
    for (const char *op; (op = take_operator(d, at));) {
        const bool known = !d->skip && ((*op == '|' && value_number(v) != 0) ||
                                        (*op == '&' && value_number(v) == 0));

        d->skip += known;
        const struct value right = level(d, at + 1);

        d->skip -= known;
        v = known ? value_integer(*op == '|') : d->skip ? v : apply(d, op, v, right);
    }
    return v;
}

struct value draw_value(struct draw *d)
{
    if (d->depth >= MAX_DEPTH) {
        draw_fail(d, "an expression is nested too deeply");
        return value_integer(0);
    }
    d->depth++;
    struct value v = level(d, 0);

    if (draw_take(d, "?")) {
        const double yes = value_number(v);
        const bool is_yes = yes != 0 && !isnan(yes);

        d->skip += !is_yes;
        const struct value first = draw_value(d);

        d->skip += is_yes - !is_yes;
        draw_expect(d, ":");
        const struct value second = draw_value(d);

        d->skip -= is_yes;
        v = is_yes ? first : second;
    }
    d->depth--;
    return v;
}

double draw_number(struct draw *d)
{
    return value_number(draw_value(d));
}

const char *draw_text(struct draw *d)
{
    return draw_to_text(d, draw_value(d));
}
