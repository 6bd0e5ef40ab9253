/* SPDX-License-Identifier: MIT
 *
 * test_grammar_apart.c - alternatives of oneOf: which ones are known to have no value
 * in common, in either order
 */
#include "tests/support/grammar_group.h"

/* Schemas here are written with ' for ". */
static void to_json(char *schema)
{
    for (; *schema; schema++)
        if (*schema == '\'')
            *schema = '"';
}

#define TAGGED(value) \
    "{'type':'object','required':['t'],'properties':{'t':{'const':" value "}}}"

/* Two alternatives; apart: no value is valid under both, and that is noticed. */
static const struct {
    const char *x, *y;
    bool apart;
} pairs[] = {
    /* a member that both require, with other values */
    {TAGGED("1"), TAGGED("2"), true},
    {TAGGED("1"), TAGGED("1"), false},
    {TAGGED("1"), "{'type':'object','properties':{'t':{'const':2}}}", false},
    {TAGGED("1"), "{'type':'object','required':['u'],'properties':{'t':{'const':2}}}",
     false},
    {TAGGED("1"),
     "{'type':'object','required':['u','t'],'properties':{'u':{},'t':{'const':2}}}",
     true},
    {TAGGED("1"), "{'type':'object','required':['u'],'properties':{'u':{'const':2}}}",
     false},
    {"{'type':'object','required':['a','t'],'properties':{'a':{'type':'null'},'t':{"
     "'const':1}}}",
     "{'type':'object','required':['a','t'],'properties':{'a':{'type':'null'},'t':{"
     "'const':2}}}",
     true},
    /* a member that one requires, and the other forbids */
    {"{'type':'object','additionalProperties':false,'properties':{'a':{}}}",
     "{'type':'object','required':['k']}", true},
    {"{'type':'object','additionalProperties':false}",
     "{'type':'object','required':['a','k']}", true},
    {"{'type':'object','additionalProperties':false,'properties':{'k':{}}}",
     "{'type':'object','required':['k']}", false},
    {"{'type':'object','additionalProperties':false,'properties':{'k':{}}}",
     "{'type':'object','required':['k','l']}", true},
    {"{'type':'object','additionalProperties':{'type':'null'},'properties':{'a':{}}}",
     "{'type':'object','required':['k']}", false},
    {"{'type':'object','properties':{'a':{}}}", "{'type':'object','required':['k']}",
     false},
    /* objects, and nothing else that both may be */
    {"{'type':['object','null'],'required':['t'],'properties':{'t':{'const':1}}}",
     "{'type':['object','string'],'required':['t'],'properties':{'t':{'const':2}}}",
     true},
    {"{'type':['object','null'],'required':['t'],'properties':{'t':{'const':1}}}",
     "{'type':['object','null'],'required':['t'],'properties':{'t':{'const':2}}}",
     false},
    {"{'required':['t'],'properties':{'t':{'const':1}}}", TAGGED("2"), true},
    {"{'required':['t'],'properties':{'t':{'const':1}}}",
     "{'required':['t'],'properties':{'t':{'const':2}}}", false},
    /* types */
    {"{'type':'string'}", "{'type':'null'}", true},
    {"{'type':['string','boolean']}", "{'type':['null','boolean']}", false},
    {"{'type':'integer'}", "{'type':'number'}", false},
    {"{'type':'integer'}", "{'type':'string'}", true},
    {"{'type':'array'}", "{'type':'array'}", false},
    {"{}", "{'type':'string'}", false},
    {"true", "{'type':'string'}", false},
    {"false", "{}", true},
    {"false", "true", true},
    /* listed values */
    {"{'const':1}", "{'const':2}", true},
    {"{'enum':[1,2]}", "{'enum':[3,4]}", true},
    {"{'enum':[1,2]}", "{'enum':[3,1]}", false},
    {"{'enum':[1,2]}", "{'enum':[2,3]}", false},
    {"{'enum':[1,'a']}", "{'type':'boolean'}", true},
    {"{'enum':[1,'a']}", "{'type':'string'}", false},
    {"{'enum':['a',1]}", "{'type':'string'}", false},
    {"{'const':3}", "{'type':'number'}", false},
    {"{'const':1.5}", "{'type':'integer'}", true},
    {"{'const':1.5}", "{'type':'number'}", false},
    {"{'const':{}}", "{'type':'object'}", false},
    {"{'const':1,'type':'integer'}", "{'const':1,'type':'number'}", false},
    /* alternatives within: all of them must be apart */
    {"{'anyOf':[{'type':'string'},{'type':'null'}]}", "{'type':'boolean'}", true},
    {"{'anyOf':[{'type':'string'},{'type':'null'}]}", "{'type':'string'}", false},
    {"{'anyOf':[{'type':'string'},{'type':'null'}]}", "{'type':'null'}", false},
    {"{'oneOf':[{'type':'string'},{'type':'null'}]}", "{'type':'boolean'}", true},
    {"{'oneOf':[{'type':'string'},{'type':'null'}]}", "{'type':'null'}", false},
    {"{'anyOf':[{'type':'string'},{'type':'null'}]}",
     "{'oneOf':[{'type':'boolean'},{'type':'array'}]}", true},
    {"{'anyOf':[" TAGGED("1") "," TAGGED("2") "]}", TAGGED("3"), true},
    {"{'anyOf':[" TAGGED("1") "," TAGGED("2") "]}", TAGGED("2"), false},
    /* which need more than is looked at: refused, although no value is both */
    {"{'type':'string','allOf':[{}]}", "{'type':'null'}", false},
    {"{'type':'string','anyOf':[{'minLength':1},{'type':'string'}]}", "{'type':'null'}",
     false},
    {"{'type':'string','oneOf':[{'type':'integer'},{'type':'string'}]}",
     "{'enum':[null,1]}", false},
    {"{'allOf':[{'type':'string'}]}", "{'allOf':[{'type':'null'}]}", false},
};

/* Next to oneOf, which changes how the alternatives are built, and nothing else. */
static const char *const next_to[] = {
    "", ",'type':['null','boolean','object','array','string','number']"};

/* 'oneOf' of the two alternatives, in this order. */
static void check(const char *x, const char *y, bool apart)
{
    for (size_t i = 0; i < sizeof next_to / sizeof *next_to; i++) {
        char schema[1600];
        struct grammar *g = NULL;
        struct err err = ERR_INIT;
        enum status st;

        snprintf(schema, sizeof schema, "{'oneOf':[%s,%s]%s}", x, y, next_to[i]);
        to_json(schema);
        st = grammar_from_schema(&g, schema, strlen(schema), &err);
        grammar_unref(g);
        if (st != (apart ? ST_OK : ST_INPUT))
            fail_msg("%s: %s", schema, st ? err.msg : "accepted");
        if (st && !strstr(err.msg, "alternatives 0 and 1"))
            fail_msg("%s: %s", schema, err.msg);
    }
}

static void two(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        check(pairs[i].x, pairs[i].y, pairs[i].apart);
        check(pairs[i].y, pairs[i].x, pairs[i].apart);
    }
}

/* The pair that is not apart is named, whichever it is. */
static void several(void **state)
{
    static const struct {
        const char *list, *why;
    } cases[] = {
        {"{'type':'null'},{'type':'string'},{'type':'integer'}", NULL},
        {"{'type':'null'},{'type':'string'},{'type':['integer','null']}",
         "alternatives 0 and 2"},
        {"{'type':'null'},{'type':'string'},{'enum':['a']}", "alternatives 1 and 2"},
        {"{'type':'array'},{'type':'array'},{'type':'null'}", "alternatives 0 and 1"},
        {"{'type':'null'}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char schema[400];
        struct grammar *g = NULL;
        struct err err = ERR_INIT;
        enum status st;

        snprintf(schema, sizeof schema, "{'oneOf':[%s]}", cases[i].list);
        to_json(schema);
        st = grammar_from_schema(&g, schema, strlen(schema), &err);
        grammar_unref(g);
        assert_int_equal(st, cases[i].why ? ST_INPUT : ST_OK);
        if (cases[i].why && !strstr(err.msg, cases[i].why))
            fail_msg("%s: %s", schema, err.msg);
    }
}

/* What differs between two objects may be within members, up to four levels. */
static void within_members(void **state)
{
    (void)state;
    for (int depth = 1; depth <= 6; depth++) {
        char side[2][400] = {"{'const':1}", "{'const':2}"};

        for (int i = 0; i < depth; i++)
            for (int k = 0; k < 2; k++) {
                char inner[600];

                snprintf(inner, sizeof inner, "%.399s", side[k]);
                snprintf(side[k], sizeof side[k],
                         "{'type':'object','required':['m'],'properties':{'m':%.300s}}",
                         inner);
            }
        check(side[0], side[1], depth <= 4);
        check(side[1], side[0], depth <= 4);
    }
}

/* Alternatives within alternatives, up to four levels. */
static void within_alternatives(void **state)
{
    (void)state;
    for (int depth = 1; depth <= 6; depth++) {
        char x[200] = "{'type':'null'}";

        for (int i = 0; i < depth; i++) {
            char inner[200];

            snprintf(inner, sizeof inner, "%.199s", x);
            snprintf(x, sizeof x, "{'%s':[%.170s]}", i % 2 ? "oneOf" : "anyOf", inner);
        }
        check(x, "{'type':'string'}", depth <= 4);
        check("{'type':'string'}", x, depth <= 4);
    }
}

/* References are followed, up to 16 of them. */
static void by_reference(void **state)
{
    (void)state;
    for (int n = 1; n <= 18; n++) {
        char schema[2000];
        size_t len = (size_t)snprintf(
            schema, sizeof schema, "{'oneOf':[{'$ref':'#/$defs/0'},{'type':'string'}]");
        struct grammar *g = NULL;
        struct err err = ERR_INIT;

        for (int i = 0; i < n; i++)
            len += (size_t)snprintf(schema + len, sizeof schema - len,
                                    i < n - 1 ? "%s'%d':{'$ref':'#/$defs/%d'}"
                                              : "%s'%d':{'type':'null'}",
                                    i ? "," : ",'$defs':{", i, i + 1);
        snprintf(schema + len, sizeof schema - len, "}}");
        to_json(schema);
        assert_int_equal(grammar_from_schema(&g, schema, strlen(schema), &err),
                         n <= 16 ? ST_OK : ST_INPUT);
        grammar_unref(g);
    }
}

/* What is accepted takes the values of each alternative. */
static void both_are_taken(void **state)
{
    char schema[] = "{'oneOf':[{'type':'object','additionalProperties':false,"
                    "'properties':{'a':{'type':'integer'}}}," TAGGED("2") "]}";
    struct grammar *g;

    (void)state;
    to_json(schema);
    g = grammar_of(schema);
    assert_true(grammar_takes(g, group_vocab, "{\"a\":5}"));
    assert_true(grammar_takes(g, group_vocab, "{}"));
    assert_true(grammar_takes(g, group_vocab, "{\"t\":2}"));
    assert_false(grammar_takes(g, group_vocab, "{\"t\":1}"));
    assert_false(grammar_takes(g, group_vocab, "{\"b\":1}"));
    grammar_unref(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two),
                                       cmocka_unit_test(several),
                                       cmocka_unit_test(within_members),
                                       cmocka_unit_test(within_alternatives),
                                       cmocka_unit_test(by_reference),
                                       cmocka_unit_test(both_are_taken)};

    return cmocka_run_group_tests(tests, open_vocab, close_vocab);
}
