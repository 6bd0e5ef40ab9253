/* SPDX-License-Identifier: MIT
 *
 * jinja_lists.c - filters of lists and dicts
 */
#include <stdlib.h>
#include <string.h>

#include "engine/jinja/jinja_impl.h"

#define FILTER(name) \
    static struct jv name(struct run *r, const struct jv *v, const struct args *a)

/* ---- what a filter looks at: the element, or a member "a.b" of it ---------------- */

static struct jv member(struct run *r, const struct jv *of, const struct jv *path)
{
    struct jv at = *of;

    if (!path || path->kind != JV_STRING)
        return path && path->kind == JV_INT ? jinja_get_item(r, of, path) : at;
    for (size_t begin = 0; begin <= path->s.n;) {
        const char *dot = memchr(path->s.p + begin, '.', path->s.n - begin);
        const size_t end = dot ? (size_t)(dot - path->s.p) : path->s.n;
        const struct jv name = jinja_string_slice(path, begin, end);

        at = jinja_get_item(r, &at, &name);
        begin = end + 1;
    }
    return at;
}

/* Letters without their case, unless the filter's case_sensitive says otherwise. */
static struct jv folded(struct run *r, struct jv v, bool case_sensitive)
{
    return v.kind == JV_STRING && !case_sensitive ? jinja_string_case(r, &v, CASE_LOWER)
                                                  : v;
}

/* ---- order ----------------------------------------------------------------------- */

struct keyed {
    struct jv key, value;
};

/* Merges, so that equal elements keep their order; a comparison may leave by longjmp().
 */
static void merge_sort(struct run *r, struct keyed *v, struct keyed *spare, size_t n,
                       bool reverse)
{
    const size_t half = n / 2;
    size_t i = 0, k = half;

    if (n < 2)
        return;
    merge_sort(r, v, spare, half, reverse);
    merge_sort(r, v + half, spare, n - half, reverse);
    memcpy(spare, v, n * sizeof *v);
    for (size_t out = 0; out < n; out++) {
        const bool left =
            k == n ||
            (i < half && (reverse ? jv_compare(r, &spare[i].key, &spare[k].key) >= 0
                                  : jv_compare(r, &spare[i].key, &spare[k].key) <= 0));

        v[out] = left ? spare[i++] : spare[k++];
    }
}

static struct jv sorted(struct run *r, const struct jv_list *l, const struct jv *path,
                        bool case_sensitive, bool reverse)
{
    struct keyed *v = jinja_arena_alloc(&r->arena, (l->n + 1) * sizeof *v);
    struct keyed *spare = jinja_arena_alloc(&r->arena, (l->n + 1) * sizeof *spare);
    struct jv list = jv_list(&r->arena, l->n);

    for (size_t i = 0; i < l->n; i++) {
        v[i].key = folded(r, member(r, &l->v[i], path), case_sensitive);
        v[i].value = l->v[i];
    }
    merge_sort(r, v, spare, l->n, reverse);
    for (size_t i = 0; i < l->n; i++)
        jv_append(&r->arena, list.list, v[i].value);
    return list;
}

FILTER(filter_sort)
{
    jinja_check_args(r, "sort", a, 0, 3, "reverse case_sensitive attribute");
    return sorted(r, jv_iterate(r, v), jinja_arg(a, 2, "attribute"),
                  jinja_arg_bool(a, 1, "case_sensitive", false),
                  jinja_arg_bool(a, 0, "reverse", false));
}

FILTER(filter_items)
{
    struct jv method;

    (void)a;
    if (v->kind == JV_UNDEFINED)
        return jv_list(&r->arena, 0);
    if (v->kind != JV_DICT)
        jinja_run_fail(r, "'items' needs a dict, and there is a %s", jv_kind_name(v));
    method = jinja_method_of(r, v, "items", 5);
    return jinja_call_value(r, &method, &(struct args){.n = 0});
}

FILTER(filter_dictsort)
{
    const struct jv *by = jinja_arg_string(r, "dictsort", a, 1, "by");
    const struct jv index = jv_int(by && jinja_string_is(by, "value"));
    struct jv items;

    jinja_check_args(r, "dictsort", a, 0, 3, "case_sensitive by reverse");
    if (v->kind != JV_DICT)
        jinja_run_fail(r, "'dictsort' needs a dict, and there is a %s",
                       jv_kind_name(v));
    items = filter_items(r, v, &(struct args){.n = 0});
    return sorted(r, items.list, &index, jinja_arg_bool(a, 0, "case_sensitive", false),
                  jinja_arg_bool(a, 2, "reverse", false));
}

static struct jv extreme(struct run *r, const struct jv *v, const struct args *a,
                         const char *of, bool largest)
{
    const struct jv_list *l = jv_iterate(r, v);
    const bool case_sensitive = jinja_arg_bool(a, 0, "case_sensitive", false);
    struct jv best = jv_undefined(of, 3), best_key = jv_none();

    for (size_t i = 0; i < l->n; i++) {
        const struct jv key = folded(
            r, member(r, &l->v[i], jinja_arg(a, 1, "attribute")), case_sensitive);

        if (i == 0 || (largest ? jv_compare(r, &key, &best_key) > 0
                               : jv_compare(r, &key, &best_key) < 0)) {
            best = l->v[i];
            best_key = key;
        }
    }
    return best;
}

FILTER(filter_min)
{
    return extreme(r, v, a, "min", false);
}

FILTER(filter_max)
{
    return extreme(r, v, a, "max", true);
}

FILTER(filter_reverse)
{
    const struct jv_list *l = jv_iterate(r, v);
    struct jv list = jv_list(&r->arena, l->n);
    struct builder b = {.r = r};

    (void)a;
    jinja_run_work(r, l->n);
    if (v->kind == JV_STRING) {
        for (size_t i = l->n; i-- > 0;)
            jinja_put_string(&b, &l->v[i]);
        return jinja_built(&b);
    }
    for (size_t i = l->n; i-- > 0;)
        jv_append(&r->arena, list.list, l->v[i]);
    return list;
}

FILTER(filter_unique)
{
    const struct jv_list *l = jv_iterate(r, v);
    const bool case_sensitive = jinja_arg_bool(a, 0, "case_sensitive", false);
    struct jv list = jv_list(&r->arena, 0), keys = jv_list(&r->arena, 0);

    for (size_t i = 0; i < l->n; i++) {
        const struct jv key = folded(
            r, member(r, &l->v[i], jinja_arg(a, 1, "attribute")), case_sensitive);

        jv_need_key(r, &key);
        if (jv_contains(r, &keys, &key))
            continue;
        jv_append(&r->arena, keys.list, key);
        jv_append(&r->arena, list.list, l->v[i]);
    }
    return list;
}

/* ---- parts ----------------------------------------------------------------------- */

FILTER(filter_list)
{
    const struct jv_list *l = jv_iterate(r, v);
    struct jv list = jv_list(&r->arena, l->n);

    (void)a;
    jinja_run_work(r, l->n);
    for (size_t i = 0; i < l->n; i++)
        jv_append(&r->arena, list.list, l->v[i]);
    return list;
}

FILTER(filter_first)
{
    const struct jv_list *l = jv_iterate(r, v);

    (void)a;
    return l->n ? l->v[0] : jv_undefined("first", 5);
}

FILTER(filter_last)
{
    const struct jv_list *l = jv_iterate(r, v);

    (void)a;
    return l->n ? l->v[l->n - 1] : jv_undefined("last", 4);
}

/* Lists of n elements; the last one filled up, if there is something to fill it with.
 */
FILTER(filter_batch)
{
    const struct jv_list *l = jv_iterate(r, v);
    const int64_t n = jinja_arg_int(r, a, 0, "linecount", 1);
    const struct jv *fill = jinja_arg(a, 1, "fill_with");
    struct jv list = jv_list(&r->arena, 0), part = {.kind = JV_NONE};

    jinja_check_args(r, "batch", a, 1, 2, "linecount fill_with");
    if (n < 1)
        jinja_run_fail(r, "'batch' needs a number of 1 or more");
    for (size_t i = 0; i < l->n; i++) {
        jinja_run_work(r, 1);
        if (i % (size_t)n == 0) {
            part = jv_list(&r->arena, 0);
            jv_append(&r->arena, list.list, part);
        }
        jv_append(&r->arena, part.list, l->v[i]);
    }
    while (fill && fill->kind != JV_NONE && l->n && (int64_t)part.list->n < n) {
        jinja_run_work(r, 1);
        jv_append(&r->arena, part.list, *fill);
    }
    return list;
}

/* n lists, the first ones longer by one where they cannot be equal; the others get
 * fill_with, even where they can. */
FILTER(filter_slice)
{
    const struct jv_list *l = jv_iterate(r, v);
    const int64_t n = jinja_arg_int(r, a, 0, "slices", 1);
    const struct jv *fill = jinja_arg(a, 1, "fill_with");
    struct jv list = jv_list(&r->arena, 0);
    size_t at = 0;

    jinja_check_args(r, "slice", a, 1, 2, "slices fill_with");
    if (n < 1)
        jinja_run_fail(r, "'slice' needs a number of 1 or more");
    for (int64_t i = 0; i < n; i++) {
        const size_t each = l->n / (size_t)n + ((size_t)i < l->n % (size_t)n);
        struct jv part = jv_list(&r->arena, each);

        jinja_run_work(r, each + 1);
        for (size_t k = 0; k < each; k++)
            jv_append(&r->arena, part.list, l->v[at++]);
        if (fill && fill->kind != JV_NONE && (size_t)i >= l->n % (size_t)n)
            jv_append(&r->arena, part.list, *fill);
        jv_append(&r->arena, list.list, part);
    }
    return list;
}

/* ---- one value of many ----------------------------------------------------------- */

FILTER(filter_join)
{
    const struct jv_list *l = jv_iterate(r, v);
    const struct jv *by = jinja_arg(a, 0, "d"), *path = jinja_arg(a, 1, "attribute");
    const struct jv between = by ? jv_str(r, by) : jv_cstr("");
    struct builder b = {.r = r};

    jinja_check_args(r, "join", a, 0, 2, "d attribute");
    for (size_t i = 0; i < l->n; i++) {
        const struct jv one = member(r, &l->v[i], path), text = jv_str(r, &one);

        jinja_run_work(r, 1);
        if (i)
            jinja_put_string(&b, &between);
        jinja_put_string(&b, &text);
    }
    return jinja_built(&b);
}

FILTER(filter_sum)
{
    const struct jv_list *l = jv_iterate(r, v);
    const struct jv *start = jinja_arg(a, 1, "start");
    struct jv sum = start ? *start : jv_int(0);

    for (size_t k = 0; k < l->n; k++) {
        const struct jv one = member(r, &l->v[k], jinja_arg(a, 0, "attribute"));

        jinja_run_work(r, 1);
        if (!jv_is_number(&one))
            jinja_run_fail(r, "'sum' needs numbers, and there is a %s",
                           jv_kind_name(&one));
        sum = jinja_binary(r, OP_ADD, &sum, &one);
    }
    return sum;
}

/* ---- map, select, reject --------------------------------------------------------- */

static struct args behind(const struct args *a, size_t n)
{
    struct args rest = *a;

    rest.v = a->n > n ? a->v + n : NULL;
    rest.n = a->n > n ? a->n - n : 0;
    return rest;
}

FILTER(filter_map)
{
    const struct jv_list *l = jv_iterate(r, v);
    const struct jv *path = jinja_arg(a, SIZE_MAX, "attribute");
    const struct jv *name = path ? NULL : jinja_arg_string(r, "map", a, 0, NULL);
    const struct jv *otherwise = jinja_arg(a, SIZE_MAX, "default");
    const struct filter *filter = name ? jinja_filter_find(name->s.p, name->s.n) : NULL;
    const struct args rest = behind(a, 1);
    struct jv list = jv_list(&r->arena, l->n);

    if (!path && !filter)
        jinja_run_fail(r, "'map' needs an attribute or the name of a filter");
    jinja_run_enter(r);
    for (size_t i = 0; i < l->n; i++) {
        struct jv one;

        jinja_run_work(r, 1);
        one = path ? member(r, &l->v[i], path) : filter->call(r, &l->v[i], &rest);
        if (one.kind == JV_UNDEFINED && otherwise)
            one = *otherwise;
        jv_append(&r->arena, list.list, one);
    }
    r->depth--;
    return list;
}

/* Elements for which a test holds (or is not held, where wanted is false); without a
 * test: what is true. */
static struct jv choose(struct run *r, const struct jv *v, const struct args *a,
                        bool by_attribute, bool wanted)
{
    const struct jv_list *l = jv_iterate(r, v);
    const struct jv *path = by_attribute ? jinja_arg(a, 0, "attribute") : NULL;
    const struct jv *name = jinja_arg_string(r, "select", a, by_attribute, NULL);
    const struct test *test = name ? jinja_test_find(name->s.p, name->s.n) : NULL;
    const struct args rest = behind(a, (size_t)by_attribute + 1);
    struct jv list = jv_list(&r->arena, 0);

    if (name && !test)
        jinja_run_fail(r, "there is no test '%.*s'",
                       name->s.n < 80 ? (int)name->s.n : 80, name->s.p);
    for (size_t i = 0; i < l->n; i++) {
        const struct jv one = member(r, &l->v[i], path);

        jinja_run_work(r, 1);
        if ((test ? test->call(r, &one, &rest) : jv_true(&one)) == wanted)
            jv_append(&r->arena, list.list, l->v[i]);
    }
    return list;
}

FILTER(filter_select)
{
    return choose(r, v, a, false, true);
}

FILTER(filter_reject)
{
    return choose(r, v, a, false, false);
}

FILTER(filter_selectattr)
{
    return choose(r, v, a, true, true);
}

FILTER(filter_rejectattr)
{
    return choose(r, v, a, true, false);
}

/* Tuples (value, elements with that value of an attribute), in the values' order. */
FILTER(filter_groupby)
{
    const struct jv *path = jinja_arg(a, 0, "attribute");
    const bool case_sensitive = jinja_arg_bool(a, 2, "case_sensitive", false);
    struct jv all, list = jv_list(&r->arena, 0), last = {.kind = JV_NONE};
    struct jv_list *group = NULL;

    jinja_check_args(r, "groupby", a, 1, 3, "attribute default case_sensitive");
    all = sorted(r, jv_iterate(r, v), path, case_sensitive, false);
    for (size_t i = 0; i < all.list->n; i++) {
        const struct jv value = member(r, &all.list->v[i], path);
        const struct jv key = folded(r, value, case_sensitive);

        if (!group || !jv_equal(r, &key, &last)) {
            struct jv pair = jv_list(&r->arena, 2), elements = jv_list(&r->arena, 0);

            pair.is_tuple = true;
            jv_append(&r->arena, pair.list, value);
            jv_append(&r->arena, pair.list, elements);
            jv_append(&r->arena, list.list, pair);
            group = elements.list;
            last = key;
        }
        jv_append(&r->arena, group, all.list->v[i]);
    }
    return list;
}

static const struct filter filters[] = {
    {"join", filter_join},
    {"items", filter_items},
    {"dictsort", filter_dictsort},
    {"list", filter_list},
    {"map", filter_map},
    {"select", filter_select},
    {"reject", filter_reject},
    {"selectattr", filter_selectattr},
    {"rejectattr", filter_rejectattr},
    {"first", filter_first},
    {"last", filter_last},
    {"sort", filter_sort},
    {"reverse", filter_reverse},
    {"unique", filter_unique},
    {"min", filter_min},
    {"max", filter_max},
    {"sum", filter_sum},
    {"batch", filter_batch},
    {"slice", filter_slice},
    {"groupby", filter_groupby},
};

const struct filter *jinja_list_filter_find(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++)
        if (strlen(filters[i].name) == n && !memcmp(filters[i].name, name, n))
            return &filters[i];
    return NULL;
}
