/* SPDX-License-Identifier: MIT
 *
 * jinja_members.c - methods of lists, dicts and loops
 */
#include <string.h>

#include "engine/jinja/jinja_impl.h"

#define METHOD(name) \
    static struct jv name(struct run *r, const struct jv *s, const struct args *a)

/* ---- lists, dicts ---------------------------------------------------------------- */

METHOD(list_index)
{
    const struct jv *what = jinja_arg(a, 0, NULL);

    jinja_check_args(r, "index", a, 1, 1, "");
    for (size_t i = 0; i < s->list->n; i++)
        if (jv_equal(r, &s->list->v[i], what))
            return jv_int((int64_t)i);
    jinja_run_fail(r, "'index' does not find its value");
}

METHOD(list_count)
{
    const struct jv *what = jinja_arg(a, 0, NULL);
    int64_t n = 0;

    jinja_check_args(r, "count", a, 1, 1, "");
    for (size_t i = 0; i < s->list->n; i++)
        n += jv_equal(r, &s->list->v[i], what);
    return jv_int(n);
}

METHOD(list_copy)
{
    struct jv list = jv_list(&r->arena, s->list->n);

    jinja_check_args(r, "copy", a, 0, 0, "");
    jinja_run_work(r, s->list->n);
    for (size_t i = 0; i < s->list->n; i++)
        jv_append(&r->arena, list.list, s->list->v[i]);
    return list;
}

METHOD(dict_get)
{
    const struct jv *v;

    jinja_check_args(r, "get", a, 1, 2, "default");
    jv_need_key(r, &a->v[0]);
    v = jv_get(r, s->dict, &a->v[0]);
    if (!v)
        v = jinja_arg(a, 1, "default");
    return v ? *v : jv_none();
}

METHOD(dict_keys)
{
    const struct jv_list *l = jv_iterate(r, s);
    struct jv list = jv_list(&r->arena, 0);

    jinja_check_args(r, "keys", a, 0, 0, "");
    *list.list = *l;
    return list;
}

METHOD(dict_values)
{
    struct jv list = jv_list(&r->arena, s->dict->n);

    jinja_check_args(r, "values", a, 0, 0, "");
    jinja_run_work(r, s->dict->n);
    for (size_t i = 0; i < s->dict->n; i++)
        jv_append(&r->arena, list.list, s->dict->v[i].value);
    return list;
}

METHOD(dict_items)
{
    struct jv list = jv_list(&r->arena, s->dict->n);

    jinja_check_args(r, "items", a, 0, 0, "");
    jinja_run_work(r, s->dict->n);
    for (size_t i = 0; i < s->dict->n; i++) {
        struct jv pair = jv_list(&r->arena, 2);

        pair.is_tuple = true;
        jv_append(&r->arena, pair.list, s->dict->v[i].key);
        jv_append(&r->arena, pair.list, s->dict->v[i].value);
        jv_append(&r->arena, list.list, pair);
    }
    return list;
}

METHOD(dict_copy)
{
    struct jv dict = jv_dict(&r->arena, s->dict->n);

    jinja_check_args(r, "copy", a, 0, 0, "");
    for (size_t i = 0; i < s->dict->n; i++)
        jv_set(r, dict.dict, s->dict->v[i].key, s->dict->v[i].value);
    return dict;
}

/* ---- loops ----------------------------------------------------------------------- */

METHOD(loop_cycle)
{
    const struct jv *index = jv_get_name(s->dict, "index0", 6);

    if (!index || !a->n)
        jinja_run_fail(r, "'cycle' needs a loop and values");
    return a->v[(size_t)index->i % a->n];
}

METHOD(loop_changed)
{
    struct jv now = jv_list(&r->arena, a->n);
    const struct jv *before = jv_get_name(s->dict, " changed", 8);
    bool changed;

    for (size_t i = 0; i < a->n; i++)
        jv_append(&r->arena, now.list, a->v[i]);
    changed = !before || !jv_equal(r, before, &now);
    jv_set(r, s->dict, jv_cstr(" changed"), now);
    return jv_bool(changed);
}

static const struct {
    enum jv_kind kind;
    struct filter method;
} methods[] = {
    {JV_LIST, {"index", list_index}},      {JV_LIST, {"count", list_count}},
    {JV_LIST, {"copy", list_copy}},        {JV_DICT, {"get", dict_get}},
    {JV_DICT, {"keys", dict_keys}},        {JV_DICT, {"values", dict_values}},
    {JV_DICT, {"items", dict_items}},      {JV_DICT, {"copy", dict_copy}},
    {JV_NAMESPACE, {"cycle", loop_cycle}}, {JV_NAMESPACE, {"changed", loop_changed}},
};

static const struct filter *find(enum jv_kind kind, const char *name, size_t n)
{
    const struct filter *m = jinja_string_methods;

    if (kind == JV_STRING) {
        while (m->name && (strlen(m->name) != n || memcmp(m->name, name, n)))
            m++;
        return m->name ? m : NULL;
    }
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        m = &methods[i].method;
        if (methods[i].kind == kind && strlen(m->name) == n &&
            !memcmp(m->name, name, n))
            return m;
    }
    return NULL;
}

struct jv jinja_method_of(struct run *r, const struct jv *of, const char *name,
                          size_t n)
{
    const struct filter *m = find((enum jv_kind)of->kind, name, n);
    struct jv_function *f;

    if (!m)
        return jv_undefined(name, n);
    f = jinja_arena_alloc(&r->arena, sizeof *f);
    *f = (struct jv_function){FUNCTION_METHOD, m->name, m->call, .self = *of};
    return (struct jv){.kind = JV_FUNCTION, .function = f};
}
