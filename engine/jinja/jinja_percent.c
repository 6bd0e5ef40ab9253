/* SPDX-License-Identifier: MIT
 *
 * jinja_percent.c - '%s of %5.1f' % values, as Python's
 *
 * Conversions are %s, %r, %d, %i, %u, %o, %x, %X, %e, %f, %g and their capitals, with
 * the flags "-+ 0", a width and a precision of at most two digits. Source: Python
 * documentation, "printf-style String Formatting".
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/jinja/jinja_impl.h"

struct spec {
    bool left, plus, blank, zeros;
    int width, precision; /* precision -1: none */
    char conversion;
};

static int read_digits(struct run *r, const char **p, const char *end)
{
    int n = 0, v = 0;

    for (; *p < end && isdigit((unsigned char)**p); ++*p, n++)
        if (n < 2)
            v = 10 * v + (**p - '0');
    if (n > 2)
        jinja_run_fail(r, "a format has a width of more than two digits");
    return v;
}

/* Behind '%'; *p is behind the conversion afterwards. */
static struct spec read_spec(struct run *r, const char **p, const char *end)
{
    struct spec s = {.precision = -1};

    for (; *p < end && **p && strchr("-+ 0", **p); ++*p) {
        s.left |= **p == '-';
        s.plus |= **p == '+';
        s.blank |= **p == ' ';
        s.zeros |= **p == '0';
    }
    s.width = read_digits(r, p, end);
    if (*p < end && **p == '.') {
        ++*p;
        s.precision = read_digits(r, p, end);
    }
    if (*p == end)
        jinja_run_fail(r, "a format ends in the middle of %%");
    s.conversion = *(*p)++;
    return s;
}

static void put_times(struct builder *b, char c, int64_t n)
{
    for (; n > 0; n--)
        jinja_put_bytes(b, &c, 1, false);
}

static void put_text(struct builder *b, const struct spec *s, struct jv text)
{
    int64_t n;

    jinja_run_work(b->r, text.s.n / 16);
    n = (int64_t)jinja_string_length(&text);
    if (s->precision >= 0 && s->precision < n) {
        n = s->precision;
        text = jinja_string_slice(&text, 0, jinja_string_offset(&text, (size_t)n));
    }
    if (!s->left)
        put_times(b, ' ', s->width - n);
    jinja_put_string(b, &text);
    if (s->left)
        put_times(b, ' ', s->width - n);
}

/* Digits of |v|, with the sign that the flags ask for before them. */
static void put_digits(struct builder *b, const struct spec *s, bool negative,
                       const char *digits)
{
    const char *sign = negative ? "-" : s->plus ? "+" : s->blank ? " " : "";
    const int64_t missing = s->width - (int64_t)(strlen(sign) + strlen(digits));

    if (!s->left && !s->zeros)
        put_times(b, ' ', missing);
    jinja_put_cstr(b, sign, false);
    if (!s->left && s->zeros)
        put_times(b, '0', missing);
    jinja_put_cstr(b, digits, false);
    if (s->left)
        put_times(b, ' ', missing);
}

/* %d takes a float, without its fraction; %x and %o do not. */
static int64_t whole_number(struct run *r, const struct spec *s, const struct jv *v)
{
    if (v->kind != JV_FLOAT)
        return v->kind == JV_BOOL ? v->b : v->i;
    if (strchr("xXo", s->conversion))
        jinja_run_fail(r, "%%%c needs an int, and there is a float", s->conversion);
    if (!(fabs(v->f) < 0x1p63))
        jinja_run_fail(r, "%%%c has no form of %s", s->conversion,
                       isnan(v->f)   ? "nan"
                       : isinf(v->f) ? "inf"
                                     : "a number beyond 64 bits");
    return (int64_t)v->f;
}

static void put_number(struct builder *b, const struct spec *s, const struct jv *v)
{
    char format[8], text[448]; /* 1e308 with 99 decimals has 409 characters */

    if (!jv_is_number(v))
        jinja_run_fail(b->r, "%%%c needs a number, and there is a %s", s->conversion,
                       jv_kind_name(v));
    if (strchr("diuoxX", s->conversion)) {
        const int64_t i = whole_number(b->r, s, v);
        const unsigned long long size =
            i < 0 ? -(unsigned long long)i : (unsigned long long)i;

        snprintf(format, sizeof format, "%%.*ll%c",
                 strchr("di", s->conversion) ? 'u' : s->conversion);
        snprintf(text, sizeof text, format, s->precision < 0 ? 1 : s->precision, size);
        put_digits(b, s, i < 0, !size && !s->precision ? "0" : text);
    } else {
        const double f = jv_number(v);

        snprintf(format, sizeof format, "%%.*%c", s->conversion);
        snprintf(text, sizeof text, format, s->precision < 0 ? 6 : s->precision,
                 fabs(f));
        put_digits(b, s, signbit(f) && !isnan(f), text);
    }
}

static void put_value(struct builder *b, const struct spec *s, const struct jv *v)
{
    struct builder repr = {.r = b->r};

    if (s->conversion == 's') {
        put_text(b, s, jv_str(b->r, v));
    } else if (s->conversion == 'r') {
        jinja_put_repr(&repr, v);
        put_text(b, s, jinja_built(&repr));
    } else if (s->conversion && strchr("diuoxXfFgGeE", s->conversion)) {
        put_number(b, s, v);
    } else {
        jinja_run_fail(b->r, "a format has %%%c, which is not supported",
                       isprint((unsigned char)s->conversion) ? s->conversion : '?');
    }
}

struct jv jinja_string_percent(struct run *r, const struct jv *format,
                               const struct jv *values)
{
    struct builder b = {.r = r};
    const char *p = format->s.p, *end = p + format->s.n;
    const bool tuple = values->kind == JV_LIST && values->is_tuple;
    /* Python takes whatever else has elements for names of values. */
    const bool may_be_unused =
        !tuple && (values->kind == JV_LIST || values->kind == JV_DICT ||
                   values->kind == JV_UNDEFINED);
    const size_t n_values = tuple ? values->list->n : 1;
    size_t used = 0;

    while (p < end) {
        const char *percent = memchr(p, '%', (size_t)(end - p));
        const char *stop = percent ? percent : end;
        const struct jv part = jinja_string_slice(format, (size_t)(p - format->s.p),
                                                  (size_t)(stop - format->s.p));
        struct spec s;

        jinja_put_string(&b, &part);
        if (!percent)
            break;
        p = percent + 1;
        s = read_spec(r, &p, end);
        if (s.conversion == '%') {
            jinja_put_cstr(&b, "%", false);
            continue;
        }
        if (used == n_values)
            jinja_run_fail(r, "a format needs more values than there are");
        put_value(&b, &s, tuple ? &values->list->v[used] : values);
        used++;
    }
    if (!may_be_unused && used < n_values)
        jinja_run_fail(r, "a format needs fewer values than there are");
    return jinja_built(&b);
}
