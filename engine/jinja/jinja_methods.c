/* SPDX-License-Identifier: MIT
 *
 * jinja_methods.c - methods of strings, as Python has them
 *
 * None changes a value: templates run on immutable ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/unicode.h"
#include "engine/jinja/jinja_impl.h"

#define METHOD(name) \
    static struct jv name(struct run *r, const struct jv *s, const struct args *a)

METHOD(str_strip)
{
    jinja_check_args(r, "strip", a, 0, 1, "");
    return jinja_string_strip(r, s, jinja_arg_string(r, "strip", a, 0, NULL), true,
                              true);
}

METHOD(str_lstrip)
{
    jinja_check_args(r, "lstrip", a, 0, 1, "");
    return jinja_string_strip(r, s, jinja_arg_string(r, "lstrip", a, 0, NULL), true,
                              false);
}

METHOD(str_rstrip)
{
    jinja_check_args(r, "rstrip", a, 0, 1, "");
    return jinja_string_strip(r, s, jinja_arg_string(r, "rstrip", a, 0, NULL), false,
                              true);
}

METHOD(str_upper)
{
    jinja_check_args(r, "upper", a, 0, 0, "");
    return jinja_string_case(r, s, CASE_UPPER);
}

METHOD(str_lower)
{
    jinja_check_args(r, "lower", a, 0, 0, "");
    return jinja_string_case(r, s, CASE_LOWER);
}

METHOD(str_title)
{
    jinja_check_args(r, "title", a, 0, 0, "");
    return jinja_string_case(r, s, CASE_TITLE);
}

METHOD(str_capitalize)
{
    jinja_check_args(r, "capitalize", a, 0, 0, "");
    return jinja_string_case(r, s, CASE_CAPITALIZE);
}

METHOD(str_swapcase)
{
    jinja_check_args(r, "swapcase", a, 0, 0, "");
    return jinja_string_case(r, s, CASE_SWAP);
}

static bool has_at(const struct jv *s, const struct jv *part, bool at_end)
{
    return part->s.n <= s->s.n &&
           !memcmp(s->s.p + (at_end ? s->s.n - part->s.n : 0), part->s.p, part->s.n);
}

/* A string, or a tuple of strings of which one is enough. */
static struct jv has_affix(struct run *r, const struct jv *s, const struct args *a,
                           const char *of, bool at_end)
{
    const struct jv *v = jinja_arg(a, 0, NULL);

    jinja_check_args(r, of, a, 1, 1, "");
    if (v->kind != JV_LIST || !v->is_tuple)
        return jv_bool(has_at(s, jinja_need_string(r, of, a, 0), at_end));
    for (size_t i = 0; i < v->list->n; i++) {
        const struct jv *one = &v->list->v[i];

        jinja_run_work(r, 1);
        if (one->kind == JV_STRING && has_at(s, one, at_end))
            return jv_bool(true);
    }
    return jv_bool(false);
}

METHOD(str_startswith)
{
    return has_affix(r, s, a, "startswith", false);
}

METHOD(str_endswith)
{
    return has_affix(r, s, a, "endswith", true);
}

METHOD(str_removeprefix)
{
    const struct jv *part = jinja_need_string(r, "removeprefix", a, 0);

    return has_at(s, part, false) ? jinja_string_slice(s, part->s.n, s->s.n) : *s;
}

METHOD(str_removesuffix)
{
    const struct jv *part = jinja_need_string(r, "removesuffix", a, 0);

    return has_at(s, part, true) ? jinja_string_slice(s, 0, s->s.n - part->s.n) : *s;
}

METHOD(str_replace)
{
    jinja_check_args(r, "replace", a, 2, 3, "count");
    return jinja_string_replace(r, s, jinja_need_string(r, "replace", a, 0),
                                jinja_need_string(r, "replace", a, 1),
                                jinja_arg_int(r, a, 2, "count", -1));
}

static size_t skip_space(const struct jv *s, size_t at)
{
    int len;

    while (at < s->s.n &&
           jinja_code_is_space(jinja_char_code(s->s.p + at, s->s.n - at, &len)))
        at += (size_t)len;
    return at;
}

/* Without a separator: words. */
static struct jv split_words(struct run *r, const struct jv *s, int64_t most)
{
    struct jv list = jv_list(&r->arena, 0);
    size_t at = skip_space(s, 0);

    jinja_run_work(r, s->s.n / 8);
    while (at < s->s.n) {
        size_t end = at;
        int len;

        if (most-- == 0) {
            jv_append(&r->arena, list.list, jinja_string_slice(s, at, s->s.n));
            break;
        }
        while (end < s->s.n &&
               !jinja_code_is_space(jinja_char_code(s->s.p + end, s->s.n - end, &len)))
            end += (size_t)len;
        jv_append(&r->arena, list.list, jinja_string_slice(s, at, end));
        at = skip_space(s, end);
    }
    return list;
}

static struct jv split_by(struct run *r, const struct jv *s, const struct jv *by,
                          int64_t most)
{
    struct jv list = jv_list(&r->arena, 0);
    size_t at = 0, found;

    if (!by->s.n)
        jinja_run_fail(r, "'split' has an empty separator");
    jinja_run_work(r, s->s.n / 16);
    for (; most && (found = jinja_string_find(s, at, by)) != SIZE_MAX; most--) {
        jinja_run_work(r, 1);
        jv_append(&r->arena, list.list, jinja_string_slice(s, at, found));
        at = found + by->s.n;
    }
    jv_append(&r->arena, list.list, jinja_string_slice(s, at, s->s.n));
    return list;
}

METHOD(str_split)
{
    const struct jv *by = jinja_arg_string(r, "split", a, 0, "sep");
    const int64_t most = jinja_arg_int(r, a, 1, "maxsplit", -1);

    jinja_check_args(r, "split", a, 0, 2, "sep maxsplit");
    return by ? split_by(r, s, by, most) : split_words(r, s, most);
}

/* The last place of what before end. */
static size_t find_last(const struct jv *s, size_t end, const struct jv *what)
{
    for (size_t at = end >= what->s.n ? end - what->s.n + 1 : 0; at-- > 0;)
        if (!memcmp(s->s.p + at, what->s.p, what->s.n))
            return at;
    return SIZE_MAX;
}

METHOD(str_rsplit)
{
    const struct jv *by = jinja_arg_string(r, "rsplit", a, 0, "sep");
    int64_t most = jinja_arg_int(r, a, 1, "maxsplit", -1);
    struct jv parts = jv_list(&r->arena, 0), list;
    size_t end = s->s.n, found;

    jinja_check_args(r, "rsplit", a, 0, 2, "sep maxsplit");
    if (!by)
        jinja_run_fail(r, "'rsplit' needs a separator");
    if (!by->s.n)
        jinja_run_fail(r, "'rsplit' has an empty separator");
    jinja_run_work(r, s->s.n / 8);
    for (; most && (found = find_last(s, end, by)) != SIZE_MAX; most--) {
        jinja_run_work(r, 1);
        jv_append(&r->arena, parts.list, jinja_string_slice(s, found + by->s.n, end));
        end = found;
    }
    jv_append(&r->arena, parts.list, jinja_string_slice(s, 0, end));
    list = jv_list(&r->arena, parts.list->n);
    for (size_t i = parts.list->n; i-- > 0;)
        jv_append(&r->arena, list.list, parts.list->v[i]);
    return list;
}

METHOD(str_splitlines)
{
    const bool keeps = jinja_arg_bool(a, 0, "keepends", false);
    struct jv list = jv_list(&r->arena, 0);

    jinja_run_work(r, s->s.n / 8);
    for (size_t at = 0; at < s->s.n;) {
        size_t end = at, next;

        while (end < s->s.n && s->s.p[end] != '\n' && s->s.p[end] != '\r')
            end++;
        next = end + (end < s->s.n);
        next += next < s->s.n && s->s.p[end] == '\r' && s->s.p[next] == '\n';
        jinja_run_work(r, 1);
        jv_append(&r->arena, list.list, jinja_string_slice(s, at, keeps ? next : end));
        at = next;
    }
    return list;
}

static struct jv partition(struct run *r, const struct jv *s, const struct args *a,
                           bool last)
{
    const struct jv *by = jinja_need_string(r, "partition", a, 0);
    const size_t at = last ? find_last(s, s->s.n, by) : jinja_string_find(s, 0, by);
    struct jv list = jv_list(&r->arena, 3);

    jinja_run_work(r, s->s.n / 8);
    list.is_tuple = true;
    if (at == SIZE_MAX) {
        const struct jv none = jinja_string_slice(s, 0, 0);

        jv_append(&r->arena, list.list, last ? none : *s);
        jv_append(&r->arena, list.list, none);
        jv_append(&r->arena, list.list, last ? *s : none);
        return list;
    }
    jv_append(&r->arena, list.list, jinja_string_slice(s, 0, at));
    jv_append(&r->arena, list.list, *by);
    jv_append(&r->arena, list.list, jinja_string_slice(s, at + by->s.n, s->s.n));
    return list;
}

METHOD(str_partition)
{
    return partition(r, s, a, false);
}

METHOD(str_rpartition)
{
    return partition(r, s, a, true);
}

static int64_t find(struct run *r, const struct jv *s, const struct args *a, bool last)
{
    const struct jv *what = jinja_need_string(r, "find", a, 0);
    const size_t at = last ? find_last(s, s->s.n, what) : jinja_string_find(s, 0, what);
    struct jv before;

    jinja_run_work(r, s->s.n / 8);
    if (at == SIZE_MAX)
        return -1;
    before = jinja_string_slice(s, 0, at);
    return (int64_t)jinja_string_length(&before);
}

METHOD(str_find)
{
    return jv_int(find(r, s, a, false));
}

METHOD(str_rfind)
{
    return jv_int(find(r, s, a, true));
}

METHOD(str_index)
{
    const int64_t at = find(r, s, a, false);

    if (at < 0)
        jinja_run_fail(r, "'index' does not find its text");
    return jv_int(at);
}

METHOD(str_count)
{
    const struct jv *what = jinja_need_string(r, "count", a, 0);
    size_t at = 0, found;
    int64_t n = 0;

    jinja_run_work(r, s->s.n / 8);
    if (!what->s.n)
        return jv_int((int64_t)jinja_string_length(s) + 1);
    for (; (found = jinja_string_find(s, at, what)) != SIZE_MAX; at = found + what->s.n)
        n++;
    return jv_int(n);
}

METHOD(str_join)
{
    const struct jv *of = jinja_arg(a, 0, NULL);
    const struct jv_list *l;
    struct builder b = {.r = r};

    jinja_check_args(r, "join", a, 1, 1, "");
    l = jv_iterate(r, of);
    for (size_t i = 0; i < l->n; i++) {
        if (l->v[i].kind != JV_STRING)
            jinja_run_fail(r, "'join' needs strings, and there is a %s",
                           jv_kind_name(&l->v[i]));
        jinja_run_work(r, 1);
        if (i)
            jinja_put_string(&b, s);
        jinja_put_string(&b, &l->v[i]);
    }
    return jinja_built(&b);
}

/* Are all characters of a kind, and is there one? */
static struct jv all_of(struct run *r, const struct jv *s, bool (*is)(unsigned code))
{
    jinja_run_work(r, s->s.n / 8);
    for (size_t i = 0; i < s->s.n;) {
        int len;

        if (!is(jinja_char_code(s->s.p + i, s->s.n - i, &len)))
            return jv_bool(false);
        i += (size_t)len;
    }
    return jv_bool(s->s.n > 0);
}

static bool is_digit(unsigned c)
{
    return unicode_category(c) == UNICODE_Nd;
}

static bool is_alpha(unsigned c)
{
    const enum unicode_category is = unicode_category(c);

    return is >= UNICODE_Ll && is <= UNICODE_Lu;
}

static bool is_alnum(unsigned c)
{
    return is_digit(c) || is_alpha(c);
}

METHOD(str_isdigit)
{
    jinja_check_args(r, "isdigit", a, 0, 0, "");
    return all_of(r, s, is_digit);
}

METHOD(str_isalpha)
{
    jinja_check_args(r, "isalpha", a, 0, 0, "");
    return all_of(r, s, is_alpha);
}

METHOD(str_isalnum)
{
    jinja_check_args(r, "isalnum", a, 0, 0, "");
    return all_of(r, s, is_alnum);
}

METHOD(str_isspace)
{
    jinja_check_args(r, "isspace", a, 0, 0, "");
    return all_of(r, s, jinja_code_is_space);
}

/* Has it letters of this case, and none of the other? */
static struct jv has_case(struct run *r, const struct jv *s, enum unicode_category want,
                          enum unicode_category other)
{
    bool any = false;

    jinja_run_work(r, s->s.n / 8);
    for (size_t i = 0; i < s->s.n;) {
        int len;
        const enum unicode_category is =
            unicode_category(jinja_char_code(s->s.p + i, s->s.n - i, &len));

        if (is == other || is == UNICODE_Lt)
            return jv_bool(false);
        any |= is == want;
        i += (size_t)len;
    }
    return jv_bool(any);
}

METHOD(str_isupper)
{
    jinja_check_args(r, "isupper", a, 0, 0, "");
    return has_case(r, s, UNICODE_Lu, UNICODE_Ll);
}

METHOD(str_islower)
{
    jinja_check_args(r, "islower", a, 0, 0, "");
    return has_case(r, s, UNICODE_Ll, UNICODE_Lu);
}

enum side { RIGHT, BOTH, LEFT };

/* Filled with blanks, or another character, up to a length. */
static struct jv filled(struct run *r, const struct jv *s, const struct args *a,
                        const char *of, enum side side)
{
    const int64_t asked = jinja_arg_int(r, a, 0, "width", 0);
    const int64_t width = asked > 0 ? asked : 0;
    const struct jv *with = jinja_arg_string(r, of, a, 1, NULL), blank = jv_cstr(" ");
    const int64_t missing = width - (int64_t)jinja_string_length(s);
    /* of an odd number, the one more is left where the width is odd, as in Python */
    const int64_t half = missing / 2 + (missing & width & 1);
    const int64_t left = side == LEFT ? missing : side == BOTH ? half : 0;
    struct builder b = {.r = r};

    for (int64_t i = 0; i < missing; i++) {
        jinja_run_work(r, 1);
        if (i == left)
            jinja_put_string(&b, s);
        jinja_put_string(&b, with ? with : &blank);
    }
    if (missing <= 0)
        return *s;
    if (left == missing)
        jinja_put_string(&b, s);
    return jinja_built(&b);
}

METHOD(str_ljust)
{
    return filled(r, s, a, "ljust", RIGHT);
}

METHOD(str_rjust)
{
    return filled(r, s, a, "rjust", LEFT);
}

METHOD(str_center)
{
    return filled(r, s, a, "center", BOTH);
}

METHOD(str_zfill)
{
    const int64_t width = jinja_arg_int(r, a, 0, "width", 0);
    const bool has_sign = s->s.n && strchr("+-", s->s.p[0]);
    struct jv digits = jinja_string_slice(s, has_sign, s->s.n), sign;
    struct jv rest[2] = {jv_int(width > 0 ? width - has_sign : 0), jv_cstr("0")};
    struct builder b = {.r = r};

    sign = jinja_string_slice(s, 0, has_sign);
    digits = filled(r, &digits, &(struct args){.v = rest, .n = 2}, "zfill", LEFT);
    jinja_put_string(&b, &sign);
    jinja_put_string(&b, &digits);
    return jinja_built(&b);
}

/* {}, {0}, {name}; no specifications behind a colon. */
METHOD(str_format)
{
    struct builder b = {.r = r};
    size_t next = 0;

    for (size_t i = 0; i < s->s.n;) {
        const char c = s->s.p[i], after = i + 1 < s->s.n ? s->s.p[i + 1] : 0;
        const struct jv *v = NULL;
        const char *close;
        char name[64];
        struct jv text;

        if (c != '{' && c != '}') {
            jinja_put_bytes(&b, &c, 1, jinja_string_mark(s, i++));
            continue;
        }
        if (c == after) {
            jinja_put_bytes(&b, &c, 1, jinja_string_mark(s, i));
            i += 2;
            continue;
        }
        close = memchr(s->s.p + i, '}', s->s.n - i);
        if (c == '}' || !close)
            jinja_run_fail(r, "'format' has a '%c' without its pair", c);
        snprintf(name, sizeof name, "%.*s", (int)(close - s->s.p - (int64_t)i - 1),
                 s->s.p + i + 1);
        if (!*name)
            v = jinja_arg(a, next++, NULL);
        else if (strspn(name, "0123456789") == strlen(name) && strlen(name) < 4)
            v = jinja_arg(a, strtoul(name, NULL, 10), NULL);
        else
            v = jinja_arg(a, SIZE_MAX, name);
        if (!v)
            jinja_run_fail(r, "'format' has no value for '{%.60s}'", name);
        text = jv_str(r, v);
        jinja_put_string(&b, &text);
        i = (size_t)(close - s->s.p) + 1;
    }
    return jinja_built(&b);
}

const struct filter jinja_string_methods[] = {
    {"strip", str_strip},
    {"split", str_split},
    {"lstrip", str_lstrip},
    {"rstrip", str_rstrip},
    {"startswith", str_startswith},
    {"endswith", str_endswith},
    {"replace", str_replace},
    {"upper", str_upper},
    {"lower", str_lower},
    {"casefold", str_lower},
    {"title", str_title},
    {"capitalize", str_capitalize},
    {"swapcase", str_swapcase},
    {"join", str_join},
    {"format", str_format},
    {"find", str_find},
    {"rfind", str_rfind},
    {"index", str_index},
    {"count", str_count},
    {"rsplit", str_rsplit},
    {"splitlines", str_splitlines},
    {"partition", str_partition},
    {"rpartition", str_rpartition},
    {"removeprefix", str_removeprefix},
    {"removesuffix", str_removesuffix},
    {"isdigit", str_isdigit},
    {"isdecimal", str_isdigit},
    {"isnumeric", str_isdigit},
    {"isalpha", str_isalpha},
    {"isalnum", str_isalnum},
    {"isspace", str_isspace},
    {"isupper", str_isupper},
    {"islower", str_islower},
    {"ljust", str_ljust},
    {"rjust", str_rjust},
    {"center", str_center},
    {"zfill", str_zfill},
    {NULL, NULL},
};
