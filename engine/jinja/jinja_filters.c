/* SPDX-License-Identifier: MIT
 *
 * jinja_filters.c - filters of texts and single values; those of lists: jinja_lists.c
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "engine/jinja/jinja_impl.h"

#define FILTER(name) \
    static struct jv name(struct run *r, const struct jv *v, const struct args *a)

FILTER(as_is)
{
    (void)r;
    (void)a;
    return *v;
}

FILTER(filter_string)
{
    (void)a;
    return jv_str(r, v);
}

FILTER(filter_trim)
{
    const struct jv s = jv_str(r, v);

    return jinja_string_strip(r, &s, jinja_arg_string(r, "trim", a, 0, "chars"), true,
                              true);
}

FILTER(filter_upper)
{
    const struct jv s = jv_str(r, v);

    (void)a;
    return jinja_string_case(r, &s, CASE_UPPER);
}

FILTER(filter_lower)
{
    const struct jv s = jv_str(r, v);

    (void)a;
    return jinja_string_case(r, &s, CASE_LOWER);
}

FILTER(filter_title)
{
    const struct jv s = jv_str(r, v);

    (void)a;
    return jinja_string_case(r, &s, CASE_WORDS);
}

FILTER(filter_capitalize)
{
    const struct jv s = jv_str(r, v);

    (void)a;
    return jinja_string_case(r, &s, CASE_CAPITALIZE);
}

FILTER(filter_replace)
{
    const struct jv s = jv_str(r, v);
    const struct jv *from = jinja_arg(a, 0, "old"), *to = jinja_arg(a, 1, "new");
    struct jv x, y;

    jinja_check_args(r, "replace", a, 2, 3, "old new count");
    if (!from || !to)
        jinja_run_fail(r, "'replace' needs two texts");
    x = jv_str(r, from);
    y = jv_str(r, to);
    return jinja_string_replace(r, &s, &x, &y, jinja_arg_int(r, a, 2, "count", -1));
}

FILTER(filter_center)
{
    const struct jv s = jv_str(r, v), method = jinja_method_of(r, &s, "center", 6);
    const struct jv width = jv_int(jinja_arg_int(r, a, 0, "width", 80));

    return jinja_call_value(r, &method, &(struct args){.v = &width, .n = 1});
}

static const struct {
    char c;
    const char *text;
} escapes[] = {
    {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"},
};

FILTER(filter_escape)
{
    const struct jv s = jv_str(r, v);
    struct builder b = {.r = r};

    (void)a;
    for (size_t i = 0; i < s.s.n; i++) {
        const char *text = NULL;

        for (size_t k = 0; k < sizeof escapes / sizeof escapes[0]; k++)
            if (escapes[k].c == s.s.p[i])
                text = escapes[k].text;
        if (text)
            jinja_put_cstr(&b, text, jinja_string_mark(&s, i));
        else
            jinja_put_bytes(&b, s.s.p + i, 1, jinja_string_mark(&s, i));
    }
    return jinja_built(&b);
}

/* Lines but the first, and with blank=true also empty ones, get that many blanks. */
FILTER(filter_indent)
{
    const struct jv *width = jinja_arg(a, 0, "width");
    const bool first = jinja_arg_bool(a, 1, "first", false);
    const bool blank = jinja_arg_bool(a, 2, "blank", false);
    const struct jv one = jv_cstr(" ");
    struct builder b = {.r = r};
    struct jv by, method, lines;

    jinja_check_args(r, "indent", a, 0, 3, "width first blank");
    if (v->kind != JV_STRING)
        jinja_run_fail(r, "'indent' needs a text, and there is a %s", jv_kind_name(v));
    by = width && width->kind == JV_STRING
             ? *width
             : jinja_string_repeat(r, &one, jinja_arg_int(r, a, 0, "width", 4));
    method = jinja_method_of(r, v, "splitlines", 10);
    lines = jinja_call_value(r, &method, &(struct args){.n = 0});
    /* A line that ends the text is followed by an empty one. */
    if (!v->s.n || v->s.p[v->s.n - 1] == '\n')
        jv_append(&r->arena, lines.list, jinja_string_slice(v, v->s.n, v->s.n));
    for (size_t i = 0, end = 0; i < lines.list->n; i++) {
        if (i)
            jinja_put_bytes(&b, "\n", 1, jinja_string_mark(v, end));
        end = (size_t)(lines.list->v[i].s.p - v->s.p) + lines.list->v[i].s.n;
        if (i ? blank || lines.list->v[i].s.n : first)
            jinja_put_string(&b, &by);
        jinja_put_string(&b, &lines.list->v[i]);
    }
    return jinja_built(&b);
}

FILTER(filter_truncate)
{
    const struct jv s = jv_str(r, v), dots = jv_cstr("...");
    const int64_t length = jinja_arg_int(r, a, 0, "length", 255);
    const bool kills = jinja_arg_bool(a, 1, "killwords", false);
    const struct jv *end = jinja_arg_string(r, "truncate", a, 2, "end");
    const int64_t leeway = jinja_arg_int(r, a, 3, "leeway", 5);
    struct builder b = {.r = r};
    struct jv part, blank = jv_cstr(" ");
    size_t at;

    end = end ? end : &dots;
    if (length < (int64_t)jinja_string_length(end))
        jinja_run_fail(r, "'truncate' to less than its end");
    if ((int64_t)jinja_string_length(&s) - length <= leeway)
        return s;
    at = jinja_string_offset(&s, (size_t)(length - (int64_t)jinja_string_length(end)));
    part = jinja_string_slice(&s, 0, at);
    if (!kills) {
        size_t last = SIZE_MAX, from = 0, found;

        for (; (found = jinja_string_find(&part, from, &blank)) != SIZE_MAX;
             from = found + 1)
            last = found;
        if (last != SIZE_MAX)
            part = jinja_string_slice(&s, 0, last);
    }
    jinja_put_string(&b, &part);
    jinja_put_string(&b, end);
    return jinja_built(&b);
}

FILTER(filter_wordcount)
{
    const struct jv s = jv_str(r, v), method = jinja_method_of(r, &s, "split", 5);
    const struct jv words = jinja_call_value(r, &method, &(struct args){.n = 0});

    (void)a;
    return jv_int((int64_t)words.list->n);
}

FILTER(filter_format)
{
    const struct jv s = jv_str(r, v);
    struct jv values = jv_list(&r->arena, a->n);

    values.is_tuple = true;
    for (size_t i = 0; i < a->n; i++)
        jv_append(&r->arena, values.list, a->v[i]);
    return jinja_string_percent(r, &s, &values);
}

FILTER(filter_urlencode)
{
    static const char hex[] = "0123456789ABCDEF";
    const struct jv s = jv_str(r, v);
    struct builder b = {.r = r};

    (void)a;
    for (size_t i = 0; i < s.s.n; i++) {
        const unsigned char c = (unsigned char)s.s.p[i];
        const char text[4] = {'%', hex[c >> 4], hex[c & 15], 0};

        if ((c | 32u) - 'a' < 26u || c - (unsigned)'0' < 10u ||
            (c && strchr("/-_.~", c)))
            jinja_put_bytes(&b, s.s.p + i, 1, jinja_string_mark(&s, i));
        else
            jinja_put_cstr(&b, text, jinja_string_mark(&s, i));
    }
    return jinja_built(&b);
}

/* ---- numbers --------------------------------------------------------------------- */

/* The number that a whole text is, in C's and Python's common form; text: without
 * underscores, "" for what is a number already. */
static bool read_number(const struct jv *v, char text[64], double *f)
{
    char *end;
    size_t n = 0;

    text[0] = '\0';

    if (jv_is_number(v)) {
        *f = jv_number(v);
        return true;
    }
    if (v->kind != JV_STRING || v->s.n >= 64)
        return false;
    for (size_t i = 0; i < v->s.n; i++)
        if (v->s.p[i] != '_')
            text[n++] = v->s.p[i];
    text[n] = '\0';
    *f = strtod(text, &end);
    if (end == text)
        return false;
    while (isspace((unsigned char)*end))
        end++;
    return !*end && !strpbrk(text, "xX");
}

FILTER(filter_int)
{
    char text[64];
    double f;

    if (v->kind == JV_INT)
        return *v;
    if (v->kind == JV_UNDEFINED)
        jinja_fail_undefined(r, v);
    if (!read_number(v, text, &f) || isnan(f)) {
        const struct jv *otherwise = jinja_arg(a, 0, "default");

        return otherwise ? *otherwise : jv_int(0);
    }
    if (*text && fabs(f) < 1e19 && !strpbrk(text, ".eE")) {
        errno = 0;
        const long long i = strtoll(text, NULL, 10);

        if (!errno)
            return jv_int(i);
    }
    if (!(fabs(f) < 9e18))
        jinja_run_fail(r, "an integer is too large for 64 bits");
    return jv_int((int64_t)f);
}

FILTER(filter_float)
{
    char text[64];
    double f;

    if (v->kind == JV_UNDEFINED)
        jinja_fail_undefined(r, v);
    if (read_number(v, text, &f))
        return jv_float(f);
    const struct jv *otherwise = jinja_arg(a, 0, "default");
    return otherwise ? *otherwise : jv_float(0);
}

FILTER(filter_abs)
{
    const struct jv zero = jv_int(0);

    (void)a;
    if (!jv_is_number(v))
        jinja_run_fail(r, "'abs' needs a number, and there is a %s", jv_kind_name(v));
    if (v->kind == JV_FLOAT)
        return jv_float(fabs(v->f));
    return jinja_binary(r, jv_number(v) < 0 ? OP_SUBTRACT : OP_ADD, &zero, v);
}

#define MAX_PLACES 323 /* further ones are zeros */

/* Halves of what the number is exactly go to the even neighbour, as in Python. */
static double rounded(double f, int64_t places)
{
    const double scale = pow(10, (double)-places);
    char text[MAX_PLACES + 400];

    if (places < 0)
        return nearbyint(f / scale) * scale;
    snprintf(text, sizeof text, "%.*f",
             (int)(places < MAX_PLACES ? places : MAX_PLACES), f);
    return strtod(text, NULL);
}

FILTER(filter_round)
{
    const int64_t places = jinja_arg_int(r, a, 0, "precision", 0);
    const struct jv *method = jinja_arg_string(r, "round", a, 1, "method"),
                    zero = jv_int(0);
    const double scale = pow(10, (double)places);

    if (!jv_is_number(v))
        jinja_run_fail(r, "'round' needs a number, and there is a %s", jv_kind_name(v));
    if (method && jinja_string_is(method, "ceil"))
        return jv_float(ceil(jv_number(v) * scale) / scale);
    if (method && jinja_string_is(method, "floor"))
        return jv_float(floor(jv_number(v) * scale) / scale);
    if (method && !jinja_string_is(method, "common"))
        jinja_run_fail(r, "'round' has the methods common, ceil and floor");
    if (v->kind == JV_FLOAT)
        return jv_float(rounded(v->f, places));
    return places < 0 ? jv_int((int64_t)rounded(jv_number(v), places))
                      : jinja_binary(r, OP_ADD, &zero, v);
}

/* ---- others ---------------------------------------------------------------------- */

FILTER(filter_default)
{
    const struct jv *otherwise = jinja_arg(a, 0, "default_value");
    const bool for_false = jinja_arg_bool(a, 1, "boolean", false);

    jinja_check_args(r, "default", a, 0, 2, "default_value boolean");
    if (v->kind != JV_UNDEFINED && !(for_false && !jv_true(v)))
        return *v;
    return otherwise ? *otherwise : jv_cstr("");
}

static struct jv length_of(struct run *r, const struct jv *v)
{
    switch (v->kind) {
    case JV_UNDEFINED:
        return jv_int(0);
    case JV_STRING:
        jinja_run_work(r, v->s.n / 64);
        return jv_int((int64_t)jinja_string_length(v));
    case JV_LIST:
        return jv_int((int64_t)v->list->n);
    case JV_DICT:
        return jv_int((int64_t)v->dict->n);
    default:
        jinja_run_fail(r, "a %s has no length", jv_kind_name(v));
    }
}

FILTER(filter_length)
{
    (void)a;
    return length_of(r, v);
}

FILTER(filter_attr)
{
    const struct jv *name = jinja_arg_string(r, "attr", a, 0, "name");

    if (!name)
        jinja_run_fail(r, "'attr' needs a name");
    return v->kind == JV_DICT ? jinja_method_of(r, v, name->s.p, name->s.n)
                              : jinja_get_attribute(r, v, name->s.p, name->s.n);
}

FILTER(filter_tojson)
{
    const struct jv *separators = jinja_arg(a, SIZE_MAX, "separators");
    const struct jv *item = NULL, *key = NULL, *indent = jinja_arg(a, 0, "indent");

    jinja_check_args(r, "tojson", a, 0, 1, "indent separators sort_keys ensure_ascii");
    if (separators && separators->kind == JV_LIST && separators->list->n == 2) {
        item = &separators->list->v[0];
        key = &separators->list->v[1];
        if (item->kind != JV_STRING || key->kind != JV_STRING)
            jinja_run_fail(r, "the separators of 'tojson' are strings");
    }
    const int64_t spaces =
        !indent || indent->kind == JV_NONE ? -1 : jinja_arg_int(r, a, 0, "indent", 0);
    return jinja_json_dump(r, v,
                           spaces < 0    ? -1
                           : spaces > 64 ? 64
                                         : (int)spaces,
                           item, key, jinja_arg_bool(a, SIZE_MAX, "sort_keys", false),
                           jinja_arg_bool(a, SIZE_MAX, "ensure_ascii", false));
}

/* Not Jinja's own; some templates have it for arguments of tools. */
FILTER(filter_from_json)
{
    json_t *j;

    (void)a;
    if (v->kind != JV_STRING)
        jinja_run_fail(r, "'from_json' needs a string, and there is a %s",
                       jv_kind_name(v));
    jinja_run_work(r, v->s.n);
    j = json_try(v->s.p, v->s.n, (struct json_limit){SIZE_MAX, v->s.n + 1}, 0);
    if (!j || json_array_append_new(r->documents, j))
        jinja_run_fail(r, "'from_json' has no JSON");
    return jv_from_json(r, j, true);
}

static const struct filter filters[] = {
    {"trim", filter_trim},           {"tojson", filter_tojson},
    {"length", filter_length},       {"count", filter_length},
    {"default", filter_default},     {"d", filter_default},
    {"lower", filter_lower},         {"upper", filter_upper},
    {"title", filter_title},         {"capitalize", filter_capitalize},
    {"string", filter_string},       {"safe", as_is},
    {"replace", filter_replace},     {"int", filter_int},
    {"float", filter_float},         {"abs", filter_abs},
    {"round", filter_round},         {"indent", filter_indent},
    {"center", filter_center},       {"truncate", filter_truncate},
    {"wordcount", filter_wordcount}, {"format", filter_format},
    {"escape", filter_escape},       {"e", filter_escape},
    {"forceescape", filter_escape},  {"urlencode", filter_urlencode},
    {"attr", filter_attr},           {"from_json", filter_from_json},
};

const struct filter *jinja_filter_find(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        if (strlen(filters[i].name) == n && !memcmp(filters[i].name, name, n))
            return &filters[i];
    return jinja_list_filter_find(name, n);
}
