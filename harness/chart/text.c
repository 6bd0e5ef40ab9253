/* SPDX-License-Identifier: MIT
 *
 * text.c - texts of a script: read, made of values, and cut into words
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/state.h"

const char *draw_copy(struct draw *d, const char *text, size_t len)
{
    char *to = arena_take(&d->arena, len + 1);

    if (!to) {
        err_set(d->err, ST_NO_MEMORY, "no memory for the texts of a chart");
        return "";
    }
    memcpy(to, text, len);
    to[len] = '\0';
    return to;
}

int draw_length(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

/* d->p is behind the opening quote. */
struct value draw_read_text(struct draw *d, char quote)
{
    const char *from = d->p;
    char *to = arena_take(&d->arena, strcspn(from, "\n") + 1);
    size_t n = 0;

    if (!to) {
        err_set(d->err, ST_NO_MEMORY, "no memory for the texts of a chart");
        return value_text("");
    }
    for (; *d->p && *d->p != '\n'; d->p++) {
        char c = *d->p;

        if (c == quote && !(quote == '\'' && d->p[1] == quote)) {
            d->p++;
            to[n] = '\0';
            return value_text(to);
        }
        if (c == quote) /* two single ones are one */
            d->p++;
        if (c == '\\' && quote == '"' && d->p[1]) {
            c = *++d->p;
            c = c == 'n' ? ' ' : c;
        }
        to[n++] = c == '\v' ? ' ' : c;
    }
    draw_fail(d, "a text has no end");
    return value_text("");
}

const char *draw_to_text(struct draw *d, struct value v)
{
    char text[40];
    const int n =
        v.kind == VALUE_TEXT
            ? 0
            : snprintf(text, sizeof text, v.kind == VALUE_INTEGER ? "%.0f" : "%g", v.v);

    return v.kind == VALUE_TEXT ? v.text : draw_copy(d, text, (size_t)n);
}

/* "%", flags, a width and a precision of two digits at most, and one letter. */
static bool is_conversion(const char *spec, size_t len)
{
    const char *c = spec + 1;
    size_t n;

    c += strspn(c, "+- #0");
    c += n = strspn(c, "0123456789");
    if (n > 2)
        return false;
    if (*c == '.') {
        c++;
        c += n = strspn(c, "0123456789");
    }
    return n <= 2 && c == spec + len - 1 && len < 16;
}

/* One conversion, whose letter is its last, to f. */
static void put_one(FILE *f, const char *spec, size_t len, struct value v,
                    const char *text)
{
    char own[24];
    const char kind = spec[len - 1];

    if (!is_conversion(spec, len))
        return;
    memcpy(own, spec, len - 1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (strchr("dixX", kind)) {
        memcpy(own + len - 1, (char[]){'l', 'l', kind, 0}, 4);
        fprintf(f, own, (long long)fmax(-9e18, fmin(9e18, value_number(v))));
    } else if (kind == 's') {
        memcpy(own + len - 1, "s", 2);
        fprintf(f, own, text);
    } else {
        memcpy(own + len - 1, (char[]){kind, 0}, 2);
        fprintf(f, own, value_number(v));
    }
#pragma GCC diagnostic pop
}

const char *draw_format_values(struct draw *d, const char *format,
                               const struct value *v, int n)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    int at = 0;

    if (!f) {
        err_set(d->err, ST_NO_MEMORY, "no memory for the texts of a chart");
        return "";
    }
    for (; *format; format++) {
        const size_t spec = 1 + strcspn(format + 1, "dixXfFgGeEs%") + 1;

        if (*format != '%') {
            fputc(*format, f);
        } else if (format[1] == '%' || !format[1]) {
            fputc('%', f);
            format += format[1] == '%';
        } else if (spec <= strlen(format)) {
            const struct value one = at < n ? v[at] : value_integer(0);

            at++;
            put_one(f, format, spec, one, draw_to_text(d, one));
            format += spec - 1;
        }
    }
    fclose(f);
    const char *own = draw_copy(d, text ? text : "", len);
    free(text);
    return own;
}

const char *draw_format(struct draw *d, const char *format, double v)
{
    return draw_format_values(d, format, &(struct value){.kind = VALUE_REAL, .v = v},
                              1);
}

struct value draw_word(struct draw *d, const char *text, double wanted)
{
    for (int at = 1;; at++) {
        text += strspn(text, " ");
        const size_t len = strcspn(text, " ");

        if (!len)
            return value_text("");
        if (at == (int)wanted)
            return value_text(draw_copy(d, text, len));
        text += len;
    }
}

struct value draw_find(const char *text, const char *wanted)
{
    const char *found = strstr(text, wanted);
    int n = 0;

    for (; found && text < found; text++)
        n += (*text & 0xc0) != 0x80;
    return value_integer(found ? n + 1 : 0);
}

struct value draw_part(struct draw *d, const char *text, double first, double last)
{
    const char *from = text;
    int at = 0;

    for (; *text; text++) {
        at += (*text & 0xc0) != 0x80;
        if (at < first)
            from = text + 1;
        if (at > last)
            break;
    }
    return value_text(draw_copy(d, from, text > from ? (size_t)(text - from) : 0));
}

int draw_count_words(const char *text)
{
    int n = 0;

    for (size_t len; text += strspn(text, " "), (len = strcspn(text, " ")) > 0;
         text += len)
        n++;
    return n;
}
