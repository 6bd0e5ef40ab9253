/* SPDX-License-Identifier: MIT
 *
 * jinja_operators.c - arithmetic and comparisons, as Python has them
 */
#include <math.h>
#include <string.h>

#include "engine/jinja/jinja_impl.h"

void jinja_fail_undefined(struct run *r, const struct jv *v)
{
    jinja_run_fail(r, "'%.*s' is undefined", v->s.n < 80 ? (int)v->s.n : 80, v->s.p);
}

static void fail_operands(struct run *r, int op, const struct jv *a, const struct jv *b)
    __attribute__((noreturn));

static void fail_operands(struct run *r, int op, const struct jv *a, const struct jv *b)
{
    const char *name = op == OP_FLOOR ? "//" : op == OP_POWER ? "**" : NULL;
    const char one[2] = {(char)op, 0};

    if (a->kind == JV_UNDEFINED || b->kind == JV_UNDEFINED)
        jinja_fail_undefined(r, a->kind == JV_UNDEFINED ? a : b);
    jinja_run_fail(r, "'%s' is not for %s and %s", name ? name : one, jv_kind_name(a),
                   jv_kind_name(b));
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    const int64_t q = a / b;

    return q - (a % b != 0 && (a < 0) != (b < 0));
}

/* With the sign of b. */
static int64_t floor_remainder(int64_t a, int64_t b)
{
    const int64_t rest = a % b;

    return rest != 0 && (a < 0) != (b < 0) ? rest + b : rest;
}

static bool power(int64_t base, int64_t exponent, int64_t *out)
{
    int64_t v = 1;

    for (; exponent; exponent--) {
        if (__builtin_mul_overflow(v, base, &v))
            return false;
        if (v == 0 || v == 1) /* the base is 0 or 1 */
            break;
        if (base == -1) {
            v = exponent % 2 ? -1 : 1;
            break;
        }
    }
    *out = v;
    return true;
}

static struct jv integers(struct run *r, int op, int64_t a, int64_t b)
{
    int64_t v = 0;
    bool fits = true;

    if ((op == OP_DIVIDE || op == OP_FLOOR || op == OP_MODULO) && b == 0)
        jinja_run_fail(r, "a division by zero");
    switch (op) {
    case OP_ADD:
        fits = !__builtin_add_overflow(a, b, &v);
        break;
    case OP_SUBTRACT:
        fits = !__builtin_sub_overflow(a, b, &v);
        break;
    case OP_MULTIPLY:
        fits = !__builtin_mul_overflow(a, b, &v);
        break;
    case OP_DIVIDE:
        return jv_float((double)a / (double)b);
    case OP_FLOOR:
    case OP_MODULO:
        if (b == -1) {
            fits = a != INT64_MIN;
            v = op == OP_MODULO || !fits ? 0 : -a;
        } else {
            v = op == OP_FLOOR ? floor_divide(a, b) : floor_remainder(a, b);
        }
        break;
    default:
        if (b < 0)
            return jv_float(pow((double)a, (double)b));
        fits = power(a, b, &v);
    }
    if (!fits)
        jinja_run_fail(r, "an integer is too large for 64 bits");
    return jv_int(v);
}

static struct jv floats(struct run *r, int op, double a, double b)
{
    if ((op == OP_DIVIDE || op == OP_FLOOR || op == OP_MODULO) && b == 0)
        jinja_run_fail(r, "a division by zero");
    switch (op) {
    case OP_ADD:
        return jv_float(a + b);
    case OP_SUBTRACT:
        return jv_float(a - b);
    case OP_MULTIPLY:
        return jv_float(a * b);
    case OP_DIVIDE:
        return jv_float(a / b);
    case OP_FLOOR:
        return jv_float(floor(a / b));
    case OP_MODULO:
        return jv_float(a - floor(a / b) * b);
    default:
        return jv_float(pow(a, b));
    }
}

static struct jv join_lists(struct run *r, const struct jv *a, const struct jv *b)
{
    struct jv list = jv_list(&r->arena, a->list->n + b->list->n);

    jinja_run_work(r, list.list->cap);
    list.is_tuple = a->is_tuple;
    for (size_t i = 0; i < a->list->n; i++)
        jv_append(&r->arena, list.list, a->list->v[i]);
    for (size_t i = 0; i < b->list->n; i++)
        jv_append(&r->arena, list.list, b->list->v[i]);
    return list;
}

static struct jv concat(struct run *r, const struct jv *a, const struct jv *b)
{
    const struct jv x = jv_str(r, a), y = jv_str(r, b);
    struct builder s = {.r = r};

    jinja_put_string(&s, &x);
    jinja_put_string(&s, &y);
    return jinja_built(&s);
}

static struct jv repeat(struct run *r, const struct jv *a, int64_t n)
{
    struct jv list;

    if (a->kind == JV_STRING)
        return jinja_string_repeat(r, a, n);
    list = jv_list(&r->arena, 0);
    list.is_tuple = a->is_tuple;
    for (; n > 0 && a->list->n; n--)
        for (size_t i = 0; i < a->list->n; i++) {
            jinja_run_work(r, 1);
            jv_append(&r->arena, list.list, a->list->v[i]);
        }
    return list;
}

static int64_t whole(const struct jv *v)
{
    return v->kind == JV_BOOL ? v->b : v->i;
}

static bool repeats(const struct jv *v)
{
    return v->kind == JV_STRING || v->kind == JV_LIST;
}

struct jv jinja_binary(struct run *r, int op, const struct jv *a, const struct jv *b)
{
    if (op == OP_CONCAT)
        return concat(r, a, b);
    if (jv_is_number(a) && jv_is_number(b))
        return a->kind == JV_FLOAT || b->kind == JV_FLOAT
                   ? floats(r, op, jv_number(a), jv_number(b))
                   : integers(r, op, whole(a), whole(b));
    if (op == OP_MODULO && a->kind == JV_STRING)
        return jinja_string_percent(r, a, b);
    if (op == OP_ADD && a->kind == JV_STRING && b->kind == JV_STRING)
        return concat(r, a, b);
    if (op == OP_ADD && a->kind == JV_LIST && b->kind == JV_LIST &&
        a->is_tuple == b->is_tuple)
        return join_lists(r, a, b);
    if (op == OP_MULTIPLY && repeats(a) && b->kind == JV_INT)
        return repeat(r, a, b->i);
    if (op == OP_MULTIPLY && a->kind == JV_INT && repeats(b))
        return repeat(r, b, a->i);
    fail_operands(r, op, a, b);
}

bool jinja_compare(struct run *r, int op, const struct jv *a, const struct jv *b)
{
    switch (op) {
    case OP_EQUAL:
        return jv_equal(r, a, b);
    case OP_DIFFERENT:
        return !jv_equal(r, a, b);
    case OP_IN:
        return jv_contains(r, b, a);
    case OP_NOT_IN:
        return !jv_contains(r, b, a);
    default:
        break;
    }
    if (a->kind == JV_UNDEFINED || b->kind == JV_UNDEFINED)
        jinja_fail_undefined(r, a->kind == JV_UNDEFINED ? a : b);
    /* no order with NaN is true */
    if (jv_is_number(a) && jv_is_number(b) &&
        (isnan(jv_number(a)) || isnan(jv_number(b))))
        return false;
    const int order = jv_compare(r, a, b);
    return op == OP_LESS         ? order < 0
           : op == OP_LESS_EQUAL ? order <= 0
           : op == OP_GREATER    ? order > 0
                                 : order >= 0;
}
