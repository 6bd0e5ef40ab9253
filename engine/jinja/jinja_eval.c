/* SPDX-License-Identifier: MIT
 *
 * jinja_eval.c - values of expressions
 *
 * As in Python, with Jinja's undefined value for what is missing: it prints as nothing,
 * is false and has no elements; to use it otherwise is an error.
 */
#include <string.h>

#include "engine/jinja/jinja_impl.h"

/* ---- names, members, elements ---------------------------------------------------- */

static struct jv lookup(struct run *r, const char *name)
{
    for (const struct scope *s = r->scope; s; s = s->parent)
        for (const struct binding *b = s->first; b; b = b->next) {
            r->steps++;
            if (b->name == name)
                return b->value;
        }
    return jv_undefined(name, strlen(name));
}

struct jv jinja_get_attribute(struct run *r, const struct jv *of, const char *name,
                              size_t n)
{
    const struct jv *member = NULL;
    struct jv method;

    if (of->kind == JV_UNDEFINED)
        jinja_fail_undefined(r, of);
    if (of->kind == JV_NAMESPACE && (member = jv_get_name(of->dict, name, n)))
        return *member;
    method = jinja_method_of(r, of, name, n);
    if (method.kind != JV_UNDEFINED)
        return method;
    if (of->kind == JV_DICT && (member = jv_get_name(of->dict, name, n)))
        return *member;
    return jv_undefined(name, n);
}

/* An index as Python takes it, from the end if negative; SIZE_MAX: out of range. */
static size_t index_in(const struct jv *key, size_t n)
{
    const int64_t i = key->kind == JV_BOOL ? key->b : key->i;

    if (i < 0)
        return (uint64_t) - (i + 1) < n ? n - 1 - (size_t) - (i + 1) : SIZE_MAX;
    return (uint64_t)i < n ? (size_t)i : SIZE_MAX;
}

struct jv jinja_get_item(struct run *r, const struct jv *of, const struct jv *key)
{
    const bool is_index = key->kind == JV_INT || key->kind == JV_BOOL;
    const struct jv *member;
    size_t i;

    if (of->kind == JV_UNDEFINED)
        jinja_fail_undefined(r, of);
    if (of->kind == JV_DICT && (member = jv_get(r, of->dict, key)))
        return *member;
    if (of->kind == JV_LIST && is_index) {
        i = index_in(key, of->list->n);
        return i == SIZE_MAX ? jv_undefined("element", 7) : of->list->v[i];
    }
    if (of->kind == JV_STRING && is_index) {
        jinja_run_work(r, of->s.n / 64);
        i = index_in(key, jinja_string_length(of));
        return i == SIZE_MAX ? jv_undefined("character", 9)
                             : jinja_string_slice(of, jinja_string_offset(of, i),
                                                  jinja_string_offset(of, i + 1));
    }
    if (key->kind == JV_STRING)
        return jinja_get_attribute(r, of, key->s.p, key->s.n);
    return jv_undefined("element", 7);
}

/* ---- slices ---------------------------------------------------------------------- */

struct range {
    int64_t begin, end, step;
};

static int64_t clamp(int64_t v, int64_t least, int64_t most)
{
    return v < least ? least : v > most ? most : v;
}

static int64_t bound(struct run *r, const struct node *n, int64_t otherwise,
                     int64_t len, int64_t least, int64_t most)
{
    struct jv v;

    if (!n)
        return otherwise;
    v = jinja_eval(r, n);
    if (v.kind == JV_NONE)
        return otherwise;
    if (v.kind != JV_INT)
        jinja_run_fail(r, "a slice needs integers, and there is a %s",
                       jv_kind_name(&v));
    return clamp(v.i < 0 ? v.i + len : v.i, least, most);
}

static struct range range_of(struct run *r, const struct node *n, int64_t len)
{
    struct range g = {0, 0, 1};

    if (n->d) {
        const struct jv step = jinja_eval(r, n->d);

        if (step.kind == JV_INT && step.i != 0)
            g.step = clamp(step.i, -len - 1, len + 1);
        else if (step.kind != JV_NONE)
            jinja_run_fail(r, "the step of a slice is an integer other than 0");
    }
    if (g.step > 0) {
        g.begin = bound(r, n->b, 0, len, 0, len);
        g.end = bound(r, n->c, len, len, 0, len);
    } else {
        g.begin = bound(r, n->b, len - 1, len, -1, len - 1);
        g.end = bound(r, n->c, -1, len, -1, len - 1);
    }
    return g;
}

static struct jv slice_string(struct run *r, const struct jv *s, struct range g)
{
    struct builder b = {.r = r};

    jinja_run_work(r, s->s.n / 16);
    if (g.step == 1)
        return g.begin >= g.end
                   ? jinja_string_slice(s, 0, 0)
                   : jinja_string_slice(s, jinja_string_offset(s, (size_t)g.begin),
                                        jinja_string_offset(s, (size_t)g.end));
    for (int64_t i = g.begin; g.step > 0 ? i < g.end : i > g.end; i += g.step) {
        const size_t at = jinja_string_offset(s, (size_t)i);
        const struct jv one =
            jinja_string_slice(s, at, jinja_string_offset(s, (size_t)i + 1));

        jinja_run_work(r, 1 + at / 64);
        jinja_put_string(&b, &one);
    }
    return jinja_built(&b);
}

static struct jv eval_slice(struct run *r, const struct node *n)
{
    const struct jv of = jinja_eval(r, n->a);
    struct range g;
    struct jv list;

    if (of.kind == JV_UNDEFINED)
        jinja_fail_undefined(r, &of);
    if (of.kind == JV_STRING)
        return slice_string(r, &of, range_of(r, n, (int64_t)jinja_string_length(&of)));
    if (of.kind != JV_LIST)
        jinja_run_fail(r, "a %s has no slices", jv_kind_name(&of));
    g = range_of(r, n, (int64_t)of.list->n);
    list = jv_list(&r->arena, 0);
    list.is_tuple = of.is_tuple;
    for (int64_t i = g.begin; g.step > 0 ? i < g.end : i > g.end; i += g.step) {
        jinja_run_work(r, 1);
        jv_append(&r->arena, list.list, of.list->v[i]);
    }
    return list;
}

/* ---- operators: jinja_operators.c ------------------------------------------------ */

static struct jv eval_compare(struct run *r, const struct node *n)
{
    struct jv left = jinja_eval(r, n->a);

    for (const struct node *o = n->list; o; o = o->next) {
        const struct jv right = jinja_eval(r, o->a);

        if (!jinja_compare(r, o->op, &left, &right))
            return jv_bool(false);
        left = right;
    }
    return jv_bool(true);
}

static struct jv eval_unary(struct run *r, const struct node *n)
{
    const struct jv v = jinja_eval(r, n->a), zero = jv_int(0);

    if (!jv_is_number(&v)) {
        if (v.kind == JV_UNDEFINED)
            jinja_fail_undefined(r, &v);
        jinja_run_fail(r, "'%c' is not for a %s", n->op, jv_kind_name(&v));
    }
    if (v.kind == JV_FLOAT)
        return jv_float(n->op == '-' ? -v.f : v.f);
    return jinja_binary(r, n->op == '-' ? OP_SUBTRACT : OP_ADD, &zero, &v);
}

/* ---- calls ----------------------------------------------------------------------- */

struct arg_list {
    struct jv list;
    struct jv named;
    struct args args;
};

static void spread(struct run *r, struct arg_list *l, const struct jv *v, int stars)
{
    if (stars == 1) {
        const struct jv_list *more = jv_iterate(r, v);

        for (size_t i = 0; i < more->n; i++)
            jv_append(&r->arena, l->list.list, more->v[i]);
        return;
    }
    if (v->kind != JV_DICT)
        jinja_run_fail(r, "'**' needs a dict, and there is a %s", jv_kind_name(v));
    for (size_t i = 0; i < v->dict->n; i++) {
        const struct jv *key = &v->dict->v[i].key;

        if (key->kind != JV_STRING)
            jinja_run_fail(r, "a %s is no name of a value", jv_kind_name(key));
        jv_set(r, l->named.dict, *key, v->dict->v[i].value);
    }
}

static void eval_args(struct run *r, struct arg_list *l, const struct node *n)
{
    l->list = jv_list(&r->arena, 0);
    l->named = jv_dict(&r->arena, 0);
    for (; n; n = n->next) {
        const struct jv v = jinja_eval(r, n->a);

        if (n->op)
            spread(r, l, &v, n->op);
        else if (n->name)
            jv_set(r, l->named.dict, jv_cstr(n->name), v);
        else
            jv_append(&r->arena, l->list.list, v);
    }
    l->args = (struct args){l->list.list->v, l->list.list->n, l->named.dict->v,
                            l->named.dict->n};
}

struct jv jinja_call_value(struct run *r, const struct jv *f, const struct args *a)
{
    const struct jv *loop;

    if (f->kind == JV_UNDEFINED)
        jinja_fail_undefined(r, f);
    if (f->kind == JV_NAMESPACE && (loop = jv_get_name(f->dict, "", 0)))
        f = loop; /* loop() of a recursive loop */
    if (f->kind != JV_FUNCTION)
        jinja_run_fail(r, "a %s cannot be called", jv_kind_name(f));
    if (f->function->type == FUNCTION_MACRO)
        return jinja_call_macro(r, f->function, a);
    return f->function->call(r, &f->function->self, a);
}

static struct jv eval_call(struct run *r, const struct node *n)
{
    const struct jv f = jinja_eval(r, n->a);
    struct arg_list l;

    eval_args(r, &l, n->list);
    r->arena.line = n->line;
    return jinja_call_value(r, &f, &l.args);
}

static struct jv eval_filter(struct run *r, const struct node *n)
{
    const struct filter *filter = n->what;
    const struct jv v = jinja_eval(r, n->a);
    struct arg_list l;

    /* one that a template has for cases that never come is no error */
    if (!filter)
        jinja_run_fail(r, "there is no filter '%s'", n->name);
    eval_args(r, &l, n->list);
    r->arena.line = n->line;
    return filter->call(r, &v, &l.args);
}

static struct jv eval_test(struct run *r, const struct node *n)
{
    const struct test *test = n->what;
    const struct jv v = jinja_eval(r, n->a);
    struct arg_list l;

    if (!test)
        jinja_run_fail(r, "there is no test '%s'", n->name);
    eval_args(r, &l, n->list);
    return jv_bool(test->call(r, &v, &l.args));
}

/* ---- the rest -------------------------------------------------------------------- */

static struct jv eval_list(struct run *r, const struct node *n)
{
    struct jv list = jv_list(&r->arena, 0);

    list.is_tuple = n->op;
    for (const struct node *e = n->list; e; e = e->next)
        jv_append(&r->arena, list.list, jinja_eval(r, e));
    return list;
}

static struct jv eval_dict(struct run *r, const struct node *n)
{
    struct jv dict = jv_dict(&r->arena, 0);

    for (const struct node *e = n->list; e; e = e->next) {
        const struct jv key = jinja_eval(r, e->a);

        jv_set(r, dict.dict, key, jinja_eval(r, e->b));
    }
    return dict;
}

static struct jv eval_choice(struct run *r, const struct node *n)
{
    const struct jv condition = jinja_eval(r, n->b);

    if (jv_true(&condition))
        return jinja_eval(r, n->a);
    return n->c ? jinja_eval(r, n->c) : jv_undefined("the choice without an else", 26);
}

static struct jv eval_logic(struct run *r, const struct node *n)
{
    const struct jv a = jinja_eval(r, n->a);

    return jv_true(&a) == (n->kind == NODE_OR) ? a : jinja_eval(r, n->b);
}

static struct jv eval_node(struct run *r, const struct node *n)
{
    struct jv a, b;

    switch (n->kind) {
    case NODE_CONST:
        return n->value;
    case NODE_NAME:
        return lookup(r, n->name);
    case NODE_LIST:
        return eval_list(r, n);
    case NODE_DICT:
        return eval_dict(r, n);
    case NODE_UNARY:
        return eval_unary(r, n);
    case NODE_BINARY:
        a = jinja_eval(r, n->a);
        b = jinja_eval(r, n->b);
        return jinja_binary(r, n->op, &a, &b);
    case NODE_COMPARE:
        return eval_compare(r, n);
    case NODE_AND:
    case NODE_OR:
        return eval_logic(r, n);
    case NODE_NOT:
        a = jinja_eval(r, n->a);
        return jv_bool(!jv_true(&a));
    case NODE_CHOICE:
        return eval_choice(r, n);
    case NODE_ATTRIBUTE:
        a = jinja_eval(r, n->a);
        return jinja_get_attribute(r, &a, n->name, strlen(n->name));
    case NODE_ITEM:
        a = jinja_eval(r, n->a);
        b = jinja_eval(r, n->b);
        return jinja_get_item(r, &a, &b);
    case NODE_SLICE:
        return eval_slice(r, n);
    case NODE_CALL:
        return eval_call(r, n);
    case NODE_FILTER:
        return eval_filter(r, n);
    default:
        return eval_test(r, n);
    }
}

struct jv jinja_eval(struct run *r, const struct node *n)
{
    struct jv v;

    jinja_run_work(r, 1);
    jinja_run_enter(r);
    r->arena.line = n->line;
    v = eval_node(r, n);
    r->depth--;
    return v;
}
