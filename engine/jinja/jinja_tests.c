/* SPDX-License-Identifier: MIT
 *
 * jinja_tests.c - what may stand behind `is`
 */
#include <string.h>

#include "engine/jinja/jinja_impl.h"

#define TEST(name) \
    static bool name(struct run *r, const struct jv *v, const struct args *a)

#define IS_KIND(name, condition) \
    TEST(name)                   \
    {                            \
        (void)r;                 \
        (void)v;                 \
        (void)a;                 \
        return condition;        \
    }

IS_KIND(is_defined, v->kind != JV_UNDEFINED)
IS_KIND(is_undefined, v->kind == JV_UNDEFINED)
IS_KIND(is_none, v->kind == JV_NONE)
IS_KIND(is_boolean, v->kind == JV_BOOL)
IS_KIND(is_true, v->kind == JV_BOOL && v->b)
IS_KIND(is_false, v->kind == JV_BOOL && !v->b)
IS_KIND(is_integer, v->kind == JV_INT)
IS_KIND(is_float, v->kind == JV_FLOAT)
IS_KIND(is_number, jv_is_number(v))
IS_KIND(is_string, v->kind == JV_STRING)
IS_KIND(is_mapping, v->kind == JV_DICT)
/* An undefined value has a __call__, which fails. */
IS_KIND(is_callable, v->kind == JV_FUNCTION || v->kind == JV_UNDEFINED)
IS_KIND(is_escaped, false)
/* Jinja asks for a length and elements by number; both have an undefined value, too. */
IS_KIND(is_sequence, v->kind == JV_LIST || v->kind == JV_STRING || v->kind == JV_DICT ||
                         v->kind == JV_UNDEFINED)
IS_KIND(is_iterable, v->kind == JV_LIST || v->kind == JV_STRING || v->kind == JV_DICT ||
                         v->kind == JV_UNDEFINED)

static const struct jv *other(struct run *r, const char *of, const struct args *a)
{
    if (a->n != 1)
        jinja_run_fail(r, "the test '%s' needs one value, and there are %zu", of, a->n);
    return &a->v[0];
}

TEST(is_equal)
{
    return jv_equal(r, v, other(r, "equalto", a));
}

TEST(is_different)
{
    return !jv_equal(r, v, other(r, "ne", a));
}

TEST(is_less)
{
    return jv_compare(r, v, other(r, "lt", a)) < 0;
}

TEST(is_at_most)
{
    return jv_compare(r, v, other(r, "le", a)) <= 0;
}

TEST(is_greater)
{
    return jv_compare(r, v, other(r, "gt", a)) > 0;
}

TEST(is_at_least)
{
    return jv_compare(r, v, other(r, "ge", a)) >= 0;
}

TEST(is_in)
{
    return jv_contains(r, other(r, "in", a), v);
}

TEST(is_same)
{
    const struct jv *b = other(r, "sameas", a);

    if (v->kind != b->kind)
        return false;
    if (v->kind == JV_LIST)
        return v->list == b->list;
    if (v->kind == JV_DICT)
        return v->dict == b->dict;
    return jv_equal(r, v, b);
}

static int64_t remainder_of(struct run *r, const struct jv *v, struct jv by)
{
    if (v->kind != JV_INT || by.kind != JV_INT)
        jinja_run_fail(r, "an integer belongs where there is a %s",
                       jv_kind_name(v->kind != JV_INT ? v : &by));
    if (by.i == 0)
        jinja_run_fail(r, "a division by zero");
    return by.i == -1 ? 0 : v->i % by.i;
}

TEST(is_odd)
{
    (void)a;
    return remainder_of(r, v, jv_int(2)) != 0;
}

TEST(is_even)
{
    (void)a;
    return remainder_of(r, v, jv_int(2)) == 0;
}

TEST(is_divisible)
{
    return remainder_of(r, v, *other(r, "divisibleby", a)) == 0;
}

static bool has_case(struct run *r, const struct jv *v, const char *method)
{
    const struct jv s = jv_str(r, v),
                    f = jinja_method_of(r, &s, method, strlen(method));

    return jinja_call_value(r, &f, &(struct args){.n = 0}).b;
}

TEST(is_lower)
{
    (void)a;
    return has_case(r, v, "islower");
}

TEST(is_upper)
{
    (void)a;
    return has_case(r, v, "isupper");
}

TEST(is_filter)
{
    (void)r;
    (void)a;
    return v->kind == JV_STRING && jinja_filter_find(v->s.p, v->s.n);
}

TEST(is_test)
{
    (void)r;
    (void)a;
    return v->kind == JV_STRING && jinja_test_find(v->s.p, v->s.n);
}

static const struct test tests[] = {
    {"defined", is_defined},
    {"undefined", is_undefined},
    {"none", is_none},
    {"string", is_string},
    {"mapping", is_mapping},
    {"iterable", is_iterable},
    {"sequence", is_sequence},
    {"boolean", is_boolean},
    {"true", is_true},
    {"false", is_false},
    {"integer", is_integer},
    {"float", is_float},
    {"number", is_number},
    {"callable", is_callable},
    {"escaped", is_escaped},
    {"equalto", is_equal},
    {"eq", is_equal},
    {"==", is_equal},
    {"ne", is_different},
    {"!=", is_different},
    {"lt", is_less},
    {"lessthan", is_less},
    {"<", is_less},
    {"le", is_at_most},
    {"<=", is_at_most},
    {"gt", is_greater},
    {"greaterthan", is_greater},
    {">", is_greater},
    {"ge", is_at_least},
    {">=", is_at_least},
    {"in", is_in},
    {"sameas", is_same},
    {"odd", is_odd},
    {"even", is_even},
    {"divisibleby", is_divisible},
    {"lower", is_lower},
    {"upper", is_upper},
    {"filter", is_filter},
    {"test", is_test},
};

const struct test *jinja_test_find(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (strlen(tests[i].name) == n && !memcmp(tests[i].name, name, n))
            return &tests[i];
    return NULL;
}
