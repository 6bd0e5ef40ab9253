/* SPDX-License-Identifier: MIT
 *
 * jinja_expr.c - expressions, from the loosest to the tightest
 *
 *   a if b else c    or    and    not    == != < <= > >= in    + -    ~    * / // %
 *   **    unary + -    . [] ()    | is
 */
#include <string.h>

#include "engine/jinja/jinja_impl.h"

static struct node *binary(struct parser *p, enum node_kind kind, int op,
                           struct node *a, struct node *b)
{
    struct node *n = jinja_parse_node(p, kind);

    n->op = (uint8_t)op;
    n->a = a;
    n->b = b;
    return n;
}

static struct node *parse_unary(struct parser *p, bool with_filters);

/* ---- what stands for itself ------------------------------------------------------ */

static struct node *constant(struct parser *p, struct jv value)
{
    struct node *n = jinja_parse_node(p, NODE_CONST);

    n->value = value;
    return n;
}

/* Strings next to each other are one. */
static struct node *parse_string(struct parser *p)
{
    const char *text = p->lex.token.p;
    size_t n = p->lex.token.n;

    jinja_lex_next(&p->lex);
    while (p->lex.token.kind == TOKEN_STRING) {
        char *both = jinja_arena_alloc(&p->j->arena, n + p->lex.token.n);

        memcpy(both, text, n);
        memcpy(both + n, p->lex.token.p, p->lex.token.n);
        text = both;
        n += p->lex.token.n;
        jinja_lex_next(&p->lex);
    }
    return constant(p, jv_text(text, n, false));
}

static struct node *parse_list(struct parser *p)
{
    struct node *list = jinja_parse_node(p, NODE_LIST), **last = &list->list;

    while (!jinja_token_take(p, TOKEN_OPERATOR, "]")) {
        *last = jinja_parse_expression(p, true);
        last = &(*last)->next;
        if (!jinja_token_is(p, TOKEN_OPERATOR, "]"))
            jinja_token_expect(p, TOKEN_OPERATOR, ",");
    }
    return list;
}

static struct node *parse_dict(struct parser *p)
{
    struct node *dict = jinja_parse_node(p, NODE_DICT), **last = &dict->list;

    while (!jinja_token_take(p, TOKEN_OPERATOR, "}")) {
        struct node *key = jinja_parse_expression(p, true);

        jinja_token_expect(p, TOKEN_OPERATOR, ":");
        *last = binary(p, NODE_PAIR, 0, key, jinja_parse_expression(p, true));
        last = &(*last)->next;
        if (!jinja_token_is(p, TOKEN_OPERATOR, "}"))
            jinja_token_expect(p, TOKEN_OPERATOR, ",");
    }
    return dict;
}

static struct node *parse_name(struct parser *p)
{
    static const struct {
        const char *name;
        struct jv value;
    } constants[] = {
        {"true", {.kind = JV_BOOL, .b = true}},
        {"True", {.kind = JV_BOOL, .b = true}},
        {"false", {.kind = JV_BOOL, .b = false}},
        {"False", {.kind = JV_BOOL, .b = false}},
        {"none", {.kind = JV_NONE}},
        {"None", {.kind = JV_NONE}},
    };
    struct node *n;

    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (jinja_token_take(p, TOKEN_NAME, constants[i].name))
            return constant(p, constants[i].value);
    n = jinja_parse_node(p, NODE_NAME);
    n->name = jinja_parse_intern(p, p->lex.token.p, p->lex.token.n);
    p->j->has_varargs |= n->name == p->j->varargs;
    p->j->has_kwargs |= n->name == p->j->kwargs;
    jinja_lex_next(&p->lex);
    return n;
}

struct node *jinja_parse_primary(struct parser *p)
{
    const struct token t = p->lex.token;
    struct node *n;

    switch (t.kind) {
    case TOKEN_STRING:
        return parse_string(p);
    case TOKEN_INT:
        jinja_lex_next(&p->lex);
        return constant(p, jv_int(t.i));
    case TOKEN_FLOAT:
        jinja_lex_next(&p->lex);
        return constant(p, jv_float(t.f));
    case TOKEN_NAME:
        return parse_name(p);
    default:
        break;
    }
    if (jinja_token_take(p, TOKEN_OPERATOR, "(")) {
        if (jinja_token_take(p, TOKEN_OPERATOR, ")")) {
            n = jinja_parse_node(p, NODE_LIST);
            n->op = 1;
            return n;
        }
        n = jinja_parse_tuple(p, true, false);
        jinja_token_expect(p, TOKEN_OPERATOR, ")");
        return n;
    }
    if (jinja_token_take(p, TOKEN_OPERATOR, "["))
        return parse_list(p);
    if (jinja_token_take(p, TOKEN_OPERATOR, "{"))
        return parse_dict(p);
    jinja_parse_fail(p, "an expression");
}

/* ---- behind a value -------------------------------------------------------------- */

struct node *jinja_parse_arguments(struct parser *p)
{
    struct node *first = NULL, **last = &first;

    while (!jinja_token_take(p, TOKEN_OPERATOR, ")")) {
        struct node *n = jinja_parse_node(p, NODE_ARGUMENT);

        if (jinja_token_take(p, TOKEN_OPERATOR, "*"))
            n->op = 1;
        else if (jinja_token_take(p, TOKEN_OPERATOR, "**"))
            n->op = 2;
        n->a = jinja_parse_expression(p, true);
        if (!n->op && n->a->kind == NODE_NAME &&
            jinja_token_take(p, TOKEN_OPERATOR, "=")) {
            n->name = n->a->name;
            n->a = jinja_parse_expression(p, true);
        }
        *last = n;
        last = &n->next;
        if (!jinja_token_is(p, TOKEN_OPERATOR, ")"))
            jinja_token_expect(p, TOKEN_OPERATOR, ",");
    }
    return first;
}

static bool ends_slice_part(const struct parser *p)
{
    return jinja_token_is(p, TOKEN_OPERATOR, ":") ||
           jinja_token_is(p, TOKEN_OPERATOR, "]");
}

/* Behind "[". */
static struct node *parse_subscript(struct parser *p, struct node *of)
{
    struct node *part[3] = {NULL, NULL, NULL}, *n;
    int n_colons = 0;

    for (int i = 0; i < 3; i++) {
        if (!ends_slice_part(p))
            part[i] = jinja_parse_tuple(p, true, false);
        if (i == 2 || !jinja_token_take(p, TOKEN_OPERATOR, ":"))
            break;
        n_colons++;
    }
    jinja_token_expect(p, TOKEN_OPERATOR, "]");
    if (!n_colons && !part[0])
        jinja_parse_fail(p, "an index");
    n = binary(p, n_colons ? NODE_SLICE : NODE_ITEM, 0, of, part[0]);
    n->c = part[1];
    n->d = part[2];
    return n;
}

static struct node *parse_dot(struct parser *p, struct node *of)
{
    struct node *n;

    if (p->lex.token.kind == TOKEN_INT) {
        n = binary(p, NODE_ITEM, 0, of, constant(p, jv_int(p->lex.token.i)));
    } else {
        if (p->lex.token.kind != TOKEN_NAME)
            jinja_parse_fail(p, "a name");
        n = binary(p, NODE_ATTRIBUTE, 0, of, NULL);
        n->name = jinja_parse_intern(p, p->lex.token.p, p->lex.token.n);
    }
    jinja_lex_next(&p->lex);
    return n;
}

struct node *jinja_parse_postfix(struct parser *p, struct node *of)
{
    for (int n = 0;; n++) {
        if (jinja_token_take(p, TOKEN_OPERATOR, ".")) {
            of = parse_dot(p, of);
        } else if (jinja_token_take(p, TOKEN_OPERATOR, "[")) {
            of = parse_subscript(p, of);
        } else if (jinja_token_take(p, TOKEN_OPERATOR, "(")) {
            of = binary(p, NODE_CALL, 0, of, NULL);
            of->list = jinja_parse_arguments(p);
        } else {
            p->depth -= n;
            return of;
        }
        jinja_parse_enter(p); /* a chain is as deep as it is long */
    }
}

static struct node *parse_filter(struct parser *p, struct node *of)
{
    struct node *n = binary(p, NODE_FILTER, 0, of, NULL);

    if (p->lex.token.kind != TOKEN_NAME)
        jinja_parse_fail(p, "the name of a filter");
    n->name = jinja_parse_intern(p, p->lex.token.p, p->lex.token.n);
    n->what = jinja_filter_find(p->lex.token.p, p->lex.token.n);
    jinja_lex_next(&p->lex);
    if (jinja_token_take(p, TOKEN_OPERATOR, "("))
        n->list = jinja_parse_arguments(p);
    return n;
}

static bool begins_argument(const struct parser *p)
{
    static const char *const words[] = {"else", "or", "and", "is", "if", "in", "not"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (jinja_token_is(p, TOKEN_NAME, words[i]))
            return false;
    return p->lex.token.kind == TOKEN_NAME || p->lex.token.kind == TOKEN_STRING ||
           p->lex.token.kind == TOKEN_INT || p->lex.token.kind == TOKEN_FLOAT ||
           jinja_token_is(p, TOKEN_OPERATOR, "[") ||
           jinja_token_is(p, TOKEN_OPERATOR, "{");
}

static struct node *parse_test(struct parser *p, struct node *of)
{
    const bool negated = jinja_token_take(p, TOKEN_NAME, "not");
    struct node *n = binary(p, NODE_TEST, 0, of, NULL), *not ;

    if (p->lex.token.kind != TOKEN_NAME)
        jinja_parse_fail(p, "the name of a test");
    n->name = jinja_parse_intern(p, p->lex.token.p, p->lex.token.n);
    n->what = jinja_test_find(p->lex.token.p, p->lex.token.n);
    jinja_lex_next(&p->lex);
    if (jinja_token_take(p, TOKEN_OPERATOR, "(")) {
        n->list = jinja_parse_arguments(p);
    } else if (begins_argument(p)) {
        n->list = jinja_parse_node(p, NODE_ARGUMENT);
        n->list->a = jinja_parse_postfix(p, jinja_parse_primary(p));
    }
    if (!negated)
        return n;
    not = jinja_parse_node(p, NODE_NOT);
    not ->a = n;
    return not ;
}

/* of NULL: what a filter block prints. */
struct node *jinja_parse_filters(struct parser *p, struct node *of)
{
    for (int n = 0;; n++) {
        if (jinja_token_take(p, TOKEN_OPERATOR, "|")) {
            of = parse_filter(p, of);
        } else if (of && jinja_token_take(p, TOKEN_NAME, "is")) {
            of = parse_test(p, of);
        } else if (of && jinja_token_take(p, TOKEN_OPERATOR, "(")) {
            of = binary(p, NODE_CALL, 0, of, NULL);
            of->list = jinja_parse_arguments(p);
        } else {
            p->depth -= n;
            return of;
        }
        jinja_parse_enter(p);
    }
}

/* ---- operators ------------------------------------------------------------------- */

static struct node *parse_unary(struct parser *p, bool with_filters)
{
    struct node *n;

    jinja_parse_enter(p);
    if (jinja_token_is(p, TOKEN_OPERATOR, "-") ||
        jinja_token_is(p, TOKEN_OPERATOR, "+")) {
        n = jinja_parse_node(p, NODE_UNARY);
        n->op = (uint8_t)*p->lex.token.p;
        jinja_lex_next(&p->lex);
        n->a = parse_unary(p, false);
    } else {
        n = jinja_parse_primary(p);
    }
    n = jinja_parse_postfix(p, n);
    if (with_filters)
        n = jinja_parse_filters(p, n);
    p->depth--;
    return n;
}

/* Operators of one strength, left to right; each level takes what binds tighter from
 * the next. */
static const struct level {
    const char *text[4];
    enum node_op op[4];
} levels[] = {
    {{"+", "-"}, {OP_ADD, OP_SUBTRACT}},
    {{"~"}, {OP_CONCAT}},
    {{"*", "/", "//", "%"}, {OP_MULTIPLY, OP_DIVIDE, OP_FLOOR, OP_MODULO}},
    {{"**"}, {OP_POWER}},
};

#define N_LEVELS (sizeof levels / sizeof levels[0])

static enum node_op take_operator(struct parser *p, const struct level *level)
{
    for (int i = 0; i < 4 && level->text[i]; i++)
        if (jinja_token_take(p, TOKEN_OPERATOR, level->text[i]))
            return level->op[i];
    return OP_NONE;
}

static struct node *parse_level(struct parser *p, size_t at)
{
    struct node *n = at == N_LEVELS ? parse_unary(p, true) : parse_level(p, at + 1);
    enum node_op op;
    int deep = 0;

    for (; at < N_LEVELS && (op = take_operator(p, &levels[at])) != OP_NONE; deep++) {
        n = binary(p, NODE_BINARY, op, n, parse_level(p, at + 1));
        jinja_parse_enter(p);
    }
    p->depth -= deep;
    return n;
}

static enum node_op take_comparison(struct parser *p)
{
    static const struct {
        const char *text;
        enum node_op op;
    } ops[] = {{"==", OP_EQUAL},         {"!=", OP_DIFFERENT}, {"<=", OP_LESS_EQUAL},
               {">=", OP_GREATER_EQUAL}, {"<", OP_LESS},       {">", OP_GREATER}};

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (jinja_token_take(p, TOKEN_OPERATOR, ops[i].text))
            return ops[i].op;
    if (jinja_token_take(p, TOKEN_NAME, "in"))
        return OP_IN;
    if (jinja_token_take(p, TOKEN_NAME, "not")) {
        jinja_token_expect(p, TOKEN_NAME, "in");
        return OP_NOT_IN;
    }
    return OP_NONE;
}

static struct node *parse_comparison(struct parser *p)
{
    struct node *first = parse_level(p, 0), *n = NULL, **last = NULL;
    enum node_op op;

    while ((op = take_comparison(p)) != OP_NONE) {
        if (!n) {
            n = binary(p, NODE_COMPARE, 0, first, NULL);
            last = &n->list;
        }
        *last = binary(p, NODE_OPERAND, op, parse_level(p, 0), NULL);
        last = &(*last)->next;
    }
    return n ? n : first;
}

static struct node *parse_not(struct parser *p)
{
    struct node *n;

    if (!jinja_token_take(p, TOKEN_NAME, "not"))
        return parse_comparison(p);
    jinja_parse_enter(p);
    n = jinja_parse_node(p, NODE_NOT);
    n->a = parse_not(p);
    p->depth--;
    return n;
}

static struct node *parse_logic(struct parser *p, bool is_or)
{
    struct node *n = is_or ? parse_logic(p, false) : parse_not(p);
    int deep = 0;

    for (; jinja_token_take(p, TOKEN_NAME, is_or ? "or" : "and"); deep++) {
        n = binary(p, is_or ? NODE_OR : NODE_AND, 0, n,
                   is_or ? parse_logic(p, false) : parse_not(p));
        jinja_parse_enter(p);
    }
    p->depth -= deep;
    return n;
}

struct node *jinja_parse_expression(struct parser *p, bool with_choice)
{
    struct node *n;
    int deep = 0;

    jinja_parse_enter(p);
    n = parse_logic(p, true);
    for (; with_choice && jinja_token_take(p, TOKEN_NAME, "if"); deep++) {
        struct node *choice = binary(p, NODE_CHOICE, 0, n, parse_logic(p, true));

        if (jinja_token_take(p, TOKEN_NAME, "else"))
            choice->c = jinja_parse_expression(p, true);
        n = choice;
        jinja_parse_enter(p);
    }
    p->depth -= deep + 1;
    return n;
}

static bool ends_tuple(const struct parser *p, bool until_in)
{
    return p->lex.token.kind == TOKEN_BLOCK_END ||
           p->lex.token.kind == TOKEN_VARIABLE_END ||
           jinja_token_is(p, TOKEN_OPERATOR, ")") ||
           jinja_token_is(p, TOKEN_OPERATOR, "=") ||
           (until_in && jinja_token_is(p, TOKEN_NAME, "in"));
}

/* a, b: a tuple; a alone is itself. until_in: targets, which are no comparisons. */
struct node *jinja_parse_tuple(struct parser *p, bool with_choice, bool until_in)
{
    struct node *first, *tuple, **last;

    first = until_in ? jinja_parse_postfix(p, jinja_parse_primary(p))
                     : jinja_parse_expression(p, with_choice);
    if (!jinja_token_is(p, TOKEN_OPERATOR, ","))
        return first;
    tuple = jinja_parse_node(p, NODE_LIST);
    tuple->op = 1;
    tuple->list = first;
    last = &first->next;
    while (jinja_token_take(p, TOKEN_OPERATOR, ",") && !ends_tuple(p, until_in)) {
        *last = until_in ? jinja_parse_postfix(p, jinja_parse_primary(p))
                         : jinja_parse_expression(p, with_choice);
        last = &(*last)->next;
    }
    return tuple;
}
