/* SPDX-License-Identifier: MIT
 *
 * jinja_args.c - arguments of calls, and global functions
 */
#include <stdio.h>
#include <string.h>

#include "engine/jinja/jinja_impl.h"

#define MAX_RANGE 100000

const struct jv *jinja_arg(const struct args *a, size_t i, const char *name)
{
    if (i < a->n)
        return &a->v[i];
    for (size_t k = 0; name && k < a->n_named; k++)
        if (jinja_string_is(&a->named[k].key, name))
            return &a->named[k].value;
    return NULL;
}

static bool is_in(const char *names, const struct jv *name)
{
    const char *at = names;

    while (*at) {
        const size_t n = strcspn(at, " ");

        if (n == name->s.n && !memcmp(at, name->s.p, n))
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

void jinja_check_args(struct run *r, const char *of, const struct args *a, size_t least,
                      size_t most, const char *names)
{
    if (a->n > most || a->n + a->n_named < least)
        jinja_run_fail(r, "'%s' takes %zu to %zu values, and there are %zu", of, least,
                       most, a->n + a->n_named);
    for (size_t i = 0; i < a->n_named; i++)
        if (!is_in(names, &a->named[i].key))
            jinja_run_fail(r, "'%s' has no parameter '%.*s'", of,
                           (int)a->named[i].key.s.n, a->named[i].key.s.p);
}

int64_t jinja_arg_int(struct run *r, const struct args *a, size_t i, const char *name,
                      int64_t otherwise)
{
    const struct jv *v = jinja_arg(a, i, name);

    if (!v || v->kind == JV_NONE)
        return otherwise;
    if (v->kind != JV_INT && v->kind != JV_BOOL)
        jinja_run_fail(r, "an integer belongs where there is a %s", jv_kind_name(v));
    return v->kind == JV_INT ? v->i : v->b;
}

bool jinja_arg_bool(const struct args *a, size_t i, const char *name, bool otherwise)
{
    const struct jv *v = jinja_arg(a, i, name);

    return v ? jv_true(v) : otherwise;
}

const struct jv *jinja_arg_string(struct run *r, const char *of, const struct args *a,
                                  size_t i, const char *name)
{
    const struct jv *v = jinja_arg(a, i, name);

    if (!v || v->kind == JV_NONE)
        return NULL;
    if (v->kind != JV_STRING)
        jinja_run_fail(r, "'%s' needs a string, and there is a %s", of,
                       jv_kind_name(v));
    return v;
}

const struct jv *jinja_need_string(struct run *r, const char *of, const struct args *a,
                                   size_t i)
{
    const struct jv *v = jinja_arg_string(r, of, a, i, NULL);

    if (!v)
        jinja_run_fail(r, "'%s' needs a string", of);
    return v;
}

/* ---- global functions ------------------------------------------------------------ */

#define GLOBAL(name) \
    static struct jv name(struct run *r, const struct jv *self, const struct args *a)

GLOBAL(global_range)
{
    int64_t begin = 0, end = jinja_arg_int(r, a, 0, NULL, 0),
            step = jinja_arg_int(r, a, 2, NULL, 1);
    struct jv list = jv_list(&r->arena, 0);
    __int128 count;

    (void)self;
    jinja_check_args(r, "range", a, 1, 3, "");
    if (a->n > 1) {
        begin = end;
        end = jinja_arg_int(r, a, 1, NULL, 0);
    }
    if (!step)
        jinja_run_fail(r, "'range' has a step of 0");
    count = ((__int128)end - begin + step + (step > 0 ? -1 : 1)) / step;
    if (count > MAX_RANGE)
        jinja_run_fail(r, "'range' has more than %d elements", MAX_RANGE);
    for (int64_t i = 0; i < (int64_t)count; i++) {
        jinja_run_work(r, 1);
        jv_append(&r->arena, list.list,
                  jv_int((int64_t)((__int128)begin + (__int128)i * step)));
    }
    return list;
}

static struct jv make_dict(struct run *r, const char *of, const struct args *a)
{
    struct jv dict = jv_dict(&r->arena, 0);

    if (a->n > 1)
        jinja_run_fail(r, "'%s' takes one value, and names", of);
    if (a->n && a->v[0].kind == JV_DICT)
        for (size_t i = 0; i < a->v[0].dict->n; i++)
            jv_set(r, dict.dict, a->v[0].dict->v[i].key, a->v[0].dict->v[i].value);
    else if (a->n) {
        const struct jv_list *l = jv_iterate(r, &a->v[0]);

        for (size_t i = 0; i < l->n; i++) {
            if (l->v[i].kind != JV_LIST || l->v[i].list->n != 2)
                jinja_run_fail(r, "'%s' needs pairs", of);
            jv_set(r, dict.dict, l->v[i].list->v[0], l->v[i].list->v[1]);
        }
    }
    for (size_t i = 0; i < a->n_named; i++)
        jv_set(r, dict.dict, a->named[i].key, a->named[i].value);
    return dict;
}

GLOBAL(global_dict)
{
    (void)self;
    return make_dict(r, "dict", a);
}

GLOBAL(global_namespace)
{
    struct jv v = make_dict(r, "namespace", a);

    (void)self;
    v.kind = JV_NAMESPACE;
    return v;
}

GLOBAL(global_raise)
{
    const struct jv *what = jinja_arg(a, 0, "message");
    struct jv text = what ? jv_str(r, what) : jv_cstr("an error without a message");

    (void)self;
    jinja_run_fail(r, "%.*s", text.s.n < 300 ? (int)text.s.n : 300, text.s.p);
}

GLOBAL(global_now)
{
    const struct jv *format = jinja_need_string(r, "strftime_now", a, 0);
    char pattern[128], text[256], *copy;
    struct tm tm;
    size_t n;

    (void)self;
    if (format->s.n >= sizeof pattern - 1 || memchr(format->s.p, 0, format->s.n))
        jinja_run_fail(r, "the format of 'strftime_now' is too long");
    /* a blank in front: a text of no characters is an error to strftime() */
    snprintf(pattern, sizeof pattern, " %.*s", (int)format->s.n, format->s.p);
    if (!localtime_r(&r->now, &tm) || !(n = strftime(text, sizeof text, pattern, &tm)))
        jinja_run_fail(r, "the time does not fit the format of 'strftime_now'");
    copy = jinja_arena_alloc(&r->arena, n);
    memcpy(copy, text + 1, n - 1);
    return jv_text(copy, n - 1, false);
}

const struct jv *jinja_global_find(const char *name)
{
    static struct jv_function functions[] = {
        {.name = "range", .call = global_range},
        {.name = "dict", .call = global_dict},
        {.name = "namespace", .call = global_namespace},
        {.name = "raise_exception", .call = global_raise},
        {.name = "strftime_now", .call = global_now},
    };
    static const struct jv values[] = {
        {.kind = JV_FUNCTION, .function = &functions[0]},
        {.kind = JV_FUNCTION, .function = &functions[1]},
        {.kind = JV_FUNCTION, .function = &functions[2]},
        {.kind = JV_FUNCTION, .function = &functions[3]},
        {.kind = JV_FUNCTION, .function = &functions[4]},
    };

    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (!strcmp(functions[i].name, name))
            return &values[i];
    return NULL;
}
