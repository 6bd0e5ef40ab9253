/* SPDX-License-Identifier: MIT
 *
 * jinja_value.c - values: lists, dicts, truth, equality, order
 *
 * As in Python: True equals 1 and 1.0, other kinds are equal only to their own; an
 * undefined value is false, empty, and equal to any other undefined one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "engine/jinja/jinja_impl.h"

struct jv jv_cstr(const char *text)
{
    return jv_text(text, strlen(text), false);
}

struct jv jv_list(struct arena *a, size_t cap)
{
    struct jv_list *l = jinja_arena_alloc(a, sizeof *l);

    l->cap = cap;
    l->v = cap ? jinja_arena_alloc(a, cap * sizeof *l->v) : NULL;
    return (struct jv){.kind = JV_LIST, .list = l};
}

struct jv jv_dict(struct arena *a, size_t cap)
{
    struct jv_dict *d = jinja_arena_alloc(a, sizeof *d);

    d->cap = cap;
    d->v = cap ? jinja_arena_alloc(a, cap * sizeof *d->v) : NULL;
    return (struct jv){.kind = JV_DICT, .dict = d};
}

/* Make room for one more element of the given size. The arena frees the old array. */
static void *grown(struct arena *a, void *v, size_t n, size_t *cap, size_t bytes)
{
    void *more;

    if (n < *cap)
        return v;
    *cap = *cap ? 2 * *cap : 4;
    more = jinja_arena_alloc(a, *cap * bytes);
    if (n)
        memcpy(more, v, n * bytes);
    return more;
}

void jv_append(struct arena *a, struct jv_list *l, struct jv v)
{
    l->v = grown(a, l->v, l->n, &l->cap, sizeof *l->v);
    l->v[l->n++] = v;
}

const struct jv *jv_get(struct run *r, const struct jv_dict *d, const struct jv *key)
{
    jinja_run_work(r, d->n / 8);
    for (size_t i = 0; i < d->n; i++)
        if (jv_equal(r, &d->v[i].key, key))
            return &d->v[i].value;
    return NULL;
}

const struct jv *jv_get_name(const struct jv_dict *d, const char *name, size_t n)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct jv *key = &d->v[i].key;

        if (key->kind == JV_STRING && key->s.n == n && !memcmp(key->s.p, name, n))
            return &d->v[i].value;
    }
    return NULL;
}

void jv_set(struct run *r, struct jv_dict *d, struct jv key, struct jv value)
{
    struct jv *there;

    jv_need_key(r, &key);
    there = (struct jv *)jv_get(r, d, &key);
    if (there) {
        *there = value;
        return;
    }
    d->v = grown(&r->arena, d->v, d->n, &d->cap, sizeof *d->v);
    d->v[d->n++] = (struct jv_pair){key, value};
}

const char *jv_kind_name(const struct jv *v)
{
    static const char *const names[] = {
        [JV_UNDEFINED] = "undefined value",
        [JV_NONE] = "None",
        [JV_BOOL] = "bool",
        [JV_INT] = "int",
        [JV_FLOAT] = "float",
        [JV_STRING] = "string",
        [JV_LIST] = "list",
        [JV_DICT] = "dict",
        [JV_NAMESPACE] = "namespace",
        [JV_FUNCTION] = "function",
    };

    return v->kind == JV_LIST && v->is_tuple ? "tuple" : names[v->kind];
}

bool jv_is_number(const struct jv *v)
{
    return v->kind == JV_BOOL || v->kind == JV_INT || v->kind == JV_FLOAT;
}

double jv_number(const struct jv *v)
{
    return v->kind == JV_FLOAT ? v->f : v->kind == JV_INT ? (double)v->i : v->b;
}

bool jv_true(const struct jv *v)
{
    switch (v->kind) {
    case JV_UNDEFINED:
    case JV_NONE:
        return false;
    case JV_BOOL:
        return v->b;
    case JV_INT:
        return v->i != 0;
    case JV_FLOAT:
        return v->f != 0;
    case JV_STRING:
        return v->s.n > 0;
    case JV_LIST:
        return v->list->n > 0;
    case JV_DICT:
        return v->dict->n > 0;
    default:
        return true;
    }
}

static bool equal_lists(struct run *r, const struct jv *a, const struct jv *b)
{
    bool equal = a->list->n == b->list->n && a->is_tuple == b->is_tuple;

    for (size_t i = 0; equal && i < a->list->n; i++)
        equal = jv_equal(r, &a->list->v[i], &b->list->v[i]);
    return equal;
}

static bool equal_dicts(struct run *r, const struct jv_dict *a, const struct jv_dict *b)
{
    bool equal = a->n == b->n;

    for (size_t i = 0; equal && i < a->n; i++) {
        const struct jv *other = jv_get(r, b, &a->v[i].key);

        equal = other && jv_equal(r, &a->v[i].value, other);
    }
    return equal;
}

bool jv_equal(struct run *r, const struct jv *a, const struct jv *b)
{
    bool equal;

    jinja_run_work(r, 1);
    if (jv_is_number(a) && jv_is_number(b))
        return a->kind == JV_FLOAT || b->kind == JV_FLOAT
                   ? jv_number(a) == jv_number(b)
                   : (a->kind == JV_INT ? a->i : a->b) ==
                         (b->kind == JV_INT ? b->i : b->b);
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case JV_UNDEFINED:
    case JV_NONE:
        return true;
    case JV_STRING:
        jinja_run_work(r, a->s.n / 64);
        return a->s.n == b->s.n && !memcmp(a->s.p, b->s.p, a->s.n);
    case JV_LIST:
        jinja_run_enter(r);
        equal = equal_lists(r, a, b);
        r->depth--;
        return equal;
    case JV_DICT:
        jinja_run_enter(r);
        equal = equal_dicts(r, a->dict, b->dict);
        r->depth--;
        return equal;
    case JV_NAMESPACE:
        return a->dict == b->dict;
    default:
        return a->function == b->function;
    }
}

static int compare_lists(struct run *r, const struct jv_list *a,
                         const struct jv_list *b)
{
    int order = 0;

    jinja_run_enter(r);
    for (size_t i = 0; !order && i < a->n && i < b->n; i++)
        if (!jv_equal(r, &a->v[i], &b->v[i]))
            order = jv_compare(r, &a->v[i], &b->v[i]);
    r->depth--;
    return order ? order : (a->n > b->n) - (a->n < b->n);
}

int jv_compare(struct run *r, const struct jv *a, const struct jv *b)
{
    jinja_run_work(r, 1);
    if (jv_is_number(a) && jv_is_number(b)) {
        if (a->kind == JV_INT && b->kind == JV_INT)
            return (a->i > b->i) - (a->i < b->i);
        return (jv_number(a) > jv_number(b)) - (jv_number(a) < jv_number(b));
    }
    if (a->kind == JV_STRING && b->kind == JV_STRING) {
        const size_t n = a->s.n < b->s.n ? a->s.n : b->s.n;
        const int order = n ? memcmp(a->s.p, b->s.p, n) : 0;

        jinja_run_work(r, n / 64);
        return order ? order : (a->s.n > b->s.n) - (a->s.n < b->s.n);
    }
    if (a->kind == JV_LIST && b->kind == JV_LIST && a->is_tuple == b->is_tuple)
        return compare_lists(r, a->list, b->list);
    jinja_run_fail(r, "%s and %s have no order", jv_kind_name(a), jv_kind_name(b));
}

void jv_need_key(struct run *r, const struct jv *v)
{
    if (v->kind == JV_DICT || (v->kind == JV_LIST && !v->is_tuple))
        jinja_run_fail(r, "a %s is no key of a dict", jv_kind_name(v));
    for (size_t i = 0; v->kind == JV_LIST && i < v->list->n; i++)
        jv_need_key(r, &v->list->v[i]);
}

bool jv_contains(struct run *r, const struct jv *in, const struct jv *what)
{
    switch (in->kind) {
    case JV_UNDEFINED:
        return false;
    case JV_STRING:
        if (what->kind != JV_STRING)
            jinja_run_fail(r, "'in' a string needs a string, and there is a %s",
                           jv_kind_name(what));
        jinja_run_work(r, in->s.n / 16);
        return jinja_string_find(in, 0, what) != SIZE_MAX;
    case JV_LIST:
        for (size_t i = 0; i < in->list->n; i++)
            if (jv_equal(r, &in->list->v[i], what))
                return true;
        return false;
    case JV_DICT:
        jv_need_key(r, what);
        return jv_get(r, in->dict, what) != NULL;
    default:
        jinja_run_fail(r, "a %s cannot be searched with 'in'", jv_kind_name(in));
    }
}

static struct jv_list *characters(struct run *r, const struct jv *s)
{
    const size_t n = jinja_string_length(s);
    struct jv list = jv_list(&r->arena, n);
    size_t at = 0;

    jinja_run_work(r, n);
    while (at < s->s.n) {
        int len;

        jinja_char_code(s->s.p + at, s->s.n - at, &len);
        jv_append(&r->arena, list.list, jinja_string_slice(s, at, at + (size_t)len));
        at += (size_t)len;
    }
    return list.list;
}

struct jv_list *jv_iterate(struct run *r, const struct jv *v)
{
    struct jv list;

    switch (v->kind) {
    case JV_LIST:
        return v->list;
    case JV_STRING:
        return characters(r, v);
    case JV_UNDEFINED:
        return jv_list(&r->arena, 0).list;
    case JV_DICT:
        list = jv_list(&r->arena, v->dict->n);
        jinja_run_work(r, v->dict->n);
        for (size_t i = 0; i < v->dict->n; i++)
            jv_append(&r->arena, list.list, v->dict->v[i].key);
        return list.list;
    default:
        jinja_run_fail(r, "a %s cannot be iterated over", jv_kind_name(v));
    }
}

/* ---- from JSON ------------------------------------------------------------------- */

static struct jv from_array(struct run *r, const json_t *j, bool input)
{
    const size_t n = json_array_size(j);
    struct jv list = jv_list(&r->arena, n);

    for (size_t i = 0; i < n; i++)
        jv_append(&r->arena, list.list, jv_from_json(r, json_array_get(j, i), input));
    return list;
}

/* A role is a word of a few letters, which templates write into their markers: nobody
 * can spell a marker with it. */
static bool is_role(const char *key, const json_t *value)
{
    const char *text = json_string_value(value);
    const size_t n = json_string_length(value);

    return text && !strcmp(key, "role") && n <= 16 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz_") == n;
}

static struct jv from_object(struct run *r, const json_t *j, bool input)
{
    struct jv dict = jv_dict(&r->arena, json_object_size(j));
    struct jv_dict *d = dict.dict;
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)j, key, value)
    {
        /* keys are the caller's, and may be printed */
        d->v[d->n].key = jv_text(key, strlen(key), input);
        d->v[d->n++].value = jv_from_json(r, value, input && !is_role(key, value));
    }
    return dict;
}

struct jv jv_from_json(struct run *r, const json_t *j, bool input)
{
    struct jv v = jv_none();

    jinja_run_work(r, 1);
    switch (json_typeof(j)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        jinja_run_enter(r);
        v = json_is_object(j) ? from_object(r, j, input) : from_array(r, j, input);
        r->depth--;
        return v;
    case JSON_STRING:
        if (json_no_number(j)) /* beyond 64 bits */
            return jv_float(strtod(json_no_number(j), NULL));
        return jv_text(json_string_value(j), json_string_length(j), input);
    case JSON_INTEGER:
        return jv_int(json_integer_value(j));
    case JSON_REAL:
        return jv_float(json_real_value(j));
    case JSON_TRUE:
    case JSON_FALSE:
        return jv_bool(json_is_true(j));
    default:
        return v;
    }
}
