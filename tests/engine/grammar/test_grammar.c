/* SPDX-License-Identifier: MIT
 *
 * test_grammar.c - JSON's own texts, valid and not; schemas, what they allow and
 * refuse; ends of texts, forced tokens, what is kept between states
 */
#include "tests/support/grammar_group.h"
#include "tests/support/schema_check.h"

static void takes(const char *schema, const char *text)
{
    struct grammar *g = grammar_of(schema);

    if (!schema_text_valid(schema, text, strlen(text)))
        fail_msg("the test itself: %s is not valid under %s", text, schema);
    if (!grammar_takes(g, group_vocab, text))
        fail_msg("%s refuses %s", schema, text);
    grammar_unref(g);
}

static void refuses(const char *schema, const char *text)
{
    struct grammar *g = grammar_of(schema);

    if (grammar_takes(g, group_vocab, text))
        fail_msg("%s takes %s", schema, text);
    grammar_unref(g);
}

static void json_texts(void **state)
{
    static const char *const valid[] = {
        "0",
        "-0",
        "12",
        "-1.5",
        "0.25",
        "1e5",
        "1E+5",
        "2.5e-07",
        "true",
        "false",
        "null",
        "\"\"",
        "\"a\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\\u00e9\\u20AC\"",
        "\"\\ud83d\\ude00\"",
        "\"\\uDBFF\\uDFFF\"",
        "\"\\ud7ff\\ue000\"",
        "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"",
        "[]",
        "[ ]",
        "[1]",
        "[1,2]",
        "[1, 2]",
        "[\n  1,\n  2\n]",
        "[\n\t1\n]",
        "{}",
        "{\"a\":1}",
        "{\"a\": 1}",
        "{ \"a\": [ {} ] }",
        "{\n  \"a\": {\n    \"b\": null\n  }\n}",
        "{\"\":0}",
        "[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]",
        "{\"a\":1,\"a\":2}", /* allowed by RFC 8259 */
    };
    static const char *const invalid[] = {
        "",
        "00",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "Infinity",
        "tru",
        "True",
        "nulll",
        "\"",
        "\"a",
        "a\"",
        "'a'",
        "\"\n\"",
        "\"\t\"",
        "\"\x01\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\ud800a\"",
        "\"\\ud800\\ud800\"",
        "\"\\udc00\"",
        "\"\\U0041\"",
        "\"\xc3\"",
        "\"\x80\"",
        "\"\xc0\x80\"",
        "\"\xe0\x80\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xf8\x88\x80\x80\x80\"",
        "[",
        "]",
        "[1",
        "[1,",
        "[,1]",
        "[1,]",
        "[1 2]",
        "[1}",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:2}",
        "{\"a\":1 \"b\":2}",
        "{\"a\"::1}",
        "[1]]",
        "{}{}",
        "1 2",
        "/**/1",
        "[\n\n1]",
        "\n1",
        "\"\\u0000\"", /* JSON, but left out */
    };

    (void)state;
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++)
        takes("{}", valid[i]);
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        refuses("{}", invalid[i]);
}

static void nested_deeply(void **state)
{
    struct grammar *g = grammar_of("{}");
    char text[1024];

    (void)state;
    for (int n = 1; n <= 500; n++) {
        memset(text, '[', (size_t)n);
        memset(text + n, ']', (size_t)n);
        text[2 * n] = '\0';
        if (grammar_takes(g, group_vocab, text) !=
            (n <= 257)) /* MAX_NEST calls and the first */
            fail_msg("%d brackets", n);
    }
    grammar_unref(g);
}

#define PERSON                                                                      \
    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{" \
    "\"type\":[\"integer\",\"null\"]},\"tags\":{\"type\":\"array\",\"items\":{"     \
    "\"enum\":[\"x\",\"xy\"]}}},\"required\":[\"name\",\"age\",\"tags\"],"          \
    "\"additionalProperties\":false}"

static void objects(void **state)
{
    static const char some[] = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
                               "\"integer\"},\"b\":{\"type\":"
                               "\"boolean\"}},\"required\":[\"b\"],"
                               "\"additionalProperties\":{\"type\":\"null\"}}";

    (void)state;
    takes(PERSON, "{\"name\":\"A\",\"age\":3,\"tags\":[]}");
    takes(PERSON, "{\"name\": \"\", \"age\": null, \"tags\": [\"x\", \"xy\"]}");
    refuses(PERSON, "{\"age\":3,\"name\":\"A\",\"tags\":[]}"); /* another order */
    refuses(PERSON, "{\"name\":\"A\",\"age\":3}");
    refuses(PERSON, "{\"name\":\"A\",\"age\":3.5,\"tags\":[]}");
    refuses(PERSON, "{\"name\":\"A\",\"age\":3,\"tags\":[\"y\"]}");
    refuses(PERSON, "{\"name\":\"A\",\"age\":3,\"tags\":[],\"b\":1}");
    takes(some, "{\"b\":true}");
    takes(some, "{\"a\":1,\"b\":true}");
    takes(some, "{\"a\":1,\"b\":true,\"c\":null,\"ab\":null,\"\":null}");
    takes(some, "{\"b\":true,\"\\n\":null,\"\xc3\xa9\":null}");
    refuses(some, "{}");
    refuses(some, "{\"a\":1}");
    refuses(some, "{\"b\":true,\"a\":null}");
    refuses(some, "{\"b\":true,\"\\u0061\":null}"); /* "a" in disguise */
    refuses(some, "{\"b\":true,\"c\":1}");
}

static void values(void **state)
{
    (void)state;
    takes("{\"type\":\"string\",\"maxLength\":2}",
          "\"\xf0\x9f\x98\x80\\ud83d\\ude00\"");
    refuses("{\"type\":\"string\",\"maxLength\":2}", "\"abc\"");
    refuses("{\"type\":\"string\",\"minLength\":2}", "\"\xf0\x9f\x98\x80\"");
    takes("{\"type\":\"array\",\"minItems\":2,\"maxItems\":2}", "[1,\"\"]");
    refuses("{\"type\":\"array\",\"minItems\":2,\"maxItems\":2}", "[1]");
    refuses("{\"type\":\"array\",\"minItems\":2,\"maxItems\":2}", "[1,2,3]");
    takes("{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":2}]}",
          "[1,2,{}]");
    takes("{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":2}]}", "[1]");
    refuses("{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":2}]}",
            "[2]");
    takes("{\"enum\":[{\"a\":\"\\u00e9\\n\"}]}", "{\"a\":\"\xc3\xa9\\n\"}");
    /* numbers as they are written, not as a double prints them */
    takes("{\"enum\":[0.1,-2.5e-7,100.0]}", "0.1");
    takes("{\"enum\":[0.1,-2.5e-7,100.0]}", "100");
    takes("{\"type\":\"string\",\"maxLength\":0,\"pattern\":\"^(a|bc)*$\"}", "\"\"");
    refuses("{\"type\":\"string\",\"maxLength\":0,\"pattern\":\"^(a|bc)*$\"}", "\"a\"");
    /* the type that stands beside oneOf tells its alternatives apart */
    takes("{\"oneOf\":[{\"required\":[\"a\"],\"properties\":{\"a\":{\"const\":1}}},{"
          "\"required\":[\"a\"],\"properties\":{\"a\":{\"const\":2}}}],\"type\":"
          "\"object\"}",
          "{\"a\":2}");
    refuses("{\"enum\":[0.1]}", "0.10000000000000001");
    takes("{\"const\":{\"a\":[0.3,0.30000000000000004]}}",
          "{\"a\":[0.3,0.30000000000000004]}");
    takes("{\"const\":0.3333333333333333}", "0.3333333333333333");
    takes("{\"minimum\":5}", "7"); /* a number, as its keyword is about them */
    refuses("{\"minimum\":5}", "4");
    takes("{\"type\":\"number\",\"exclusiveMinimum\":0}", "0.001");
    refuses("{\"type\":\"number\",\"exclusiveMinimum\":0}", "0.000");
    refuses("{\"type\":\"number\",\"exclusiveMinimum\":0}", "-1");
    takes("{\"type\":\"number\",\"minimum\":-1,\"maximum\":1}", "-0.5");
    refuses("{\"type\":\"number\",\"minimum\":-1,\"maximum\":1}", "1.01");
}

/* Every whole number near the limits. */
static void integer_limits(void **state)
{
    static const int limits[][2] = {{0, 0},   {-1, 1},    {7, 13},      {95, 105},
                                    {-12, 3}, {100, 999}, {-205, -198}, {19, 2300}};

    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        char schema[128], text[16];
        struct grammar *g;

        snprintf(schema, sizeof schema,
                 "{\"type\":\"integer\",\"minimum\":%d,\"exclusiveMaximum\":%d}",
                 limits[i][0], limits[i][1] + 1);
        g = grammar_of(schema);
        for (int n = limits[i][0] - 120; n <= limits[i][1] + 120; n++) {
            snprintf(text, sizeof text, "%d", n);
            if (grammar_takes(g, group_vocab, text) !=
                (n >= limits[i][0] && n <= limits[i][1]))
                fail_msg("%s: %s", schema, text);
        }
        grammar_unref(g);
    }
}

static void schemas_refused(void **state)
{
    static const struct {
        const char *schema, *why;
    } cases[] = {
        {"", "no JSON"},
        {"[]", "holds no JSON object"},
        {"{\"type\":\"text\"}", "the type 'text'"},
        {"{\"type\":3}", "the type '?'"},
        {"{\"multipleOf\":0}", "'multipleOf' is 0"},
        {"{\"multipleOf\":-3}", "'multipleOf' is -3"},
        {"{\"multipleOf\":1e400}", "'multipleOf' is 1e400"},
        {"{\"multipleOf\":1001}", "up to 3 digits"},
        {"{\"multipleOf\":997,\"minimum\":1e200}", "limits of that many digits"},
        {"{\"uniqueItems\":true}", "the keyword 'uniqueItems' is not supported"},
        {"{\"properties\":{\"a\":{\"items\":{\"not\":{}}}}}",
         "#/properties/a/items: the keyword 'not'"},
        {"{\"nullable\":true}", "write \"type\""},
        {"{\"type\":\"string\",\"format\":\"iris\"}", "the format 'iris'"},
        {"{\"type\":\"integer\",\"minimum\":1e308}", "'minimum' leaves only"},
        {"{\"type\":\"number\",\"minimum\":0.5,\"maximum\":0.4}", "no text is valid"},
        {"{\"type\":\"number\",\"minimum\":true}", "'minimum' is true"},
        {"{\"type\":\"string\",\"maxLength\":0,\"format\":\"date\"}",
         "no text is valid"},
        {"{\"type\":\"string\",\"minLength\":-1}",
         "'minLength' is -1, and not a whole"},
        {"{\"type\":\"string\",\"minLength\":1.5}",
         "'minLength' is 1.5, and not a whole"},
        {"{\"type\":\"string\",\"maxLength\":NaN}", "'maxLength' is NaN"},
        {"{\"type\":\"string\",\"maxLength\":1e400}", "'maxLength' is 1e400"},
        {"{\"type\":\"number\",\"maximum\":-Infinity}", "'maximum' is -Infinity"},
        {"{\"allOf\":[{\"minimum\":1e400},{\"minimum\":3}],\"type\":\"integer\"}",
         "'minimum' is 1e400"},
        {"{\"allOf\":[{\"minimum\":3},{\"minimum\":1e400}],\"type\":\"integer\"}",
         "'minimum' is 1e400"},
        {"{\"const\":NaN}", "the number NaN"},
        {"{\"enum\":[1,{\"a\":[1e400]}]}", "the number 1e400"},
        {"{\"type\":\"integer\\u0000x\"}", "the type '?'"},
        {"{\"type\":\"string\",\"pattern\":\"a\\u0000b\"}", "without U+0000"},
        {"{\"type\":\"string\",\"format\":\"date\\u0000b\"}", "without U+0000"},
        {"{\"type\":\"object\",\"required\":[\"a\\u0000b\"]}",
         "'required' is not a list"},
        {"{\"$ref\":\"#/$defs/a\\u0000b\",\"$defs\":{\"a\":{}}}", "is not a place"},
        {"{\"type\":\"string\",\"minLength\":70000}", "at most 65536 are"},
        {"{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", "no text is valid"},
        {"{\"enum\":[]}", "enum is not a list"},
        {"{\"enum\":[1],\"minimum\":3}", "'minimum' together with enum"},
        {"{\"$ref\":\"#\"}", "without anything in between"},
        {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/"
         "b\"},{"
         "\"const\":1}]},\"b\":{\"$ref\":\"#/$defs/a\"}}}",
         "without anything in between"},
        {"{\"$ref\":\"#/x\"}", "names nothing"},
        {"{\"prefixItems\":[{}],\"items\":{\"$ref\":\"#/prefixItems/x\"}}",
         "names nothing"},
        {"{\"prefixItems\":[{}],\"items\":{\"$ref\":\"#/prefixItems/1\"}}",
         "names nothing"},
        {"{\"$ref\":\"#/$defs/a%00b\",\"$defs\":{\"a\":{}}}", "names nothing"},
        {"{\"$ref\":\"http://a/b\"}", "is not a place in this schema"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":["
         "\"a\"]}",
         "no text is valid"},
        {"{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false}",
         "no text is valid"},
        {"{\"items\":[{}]}", "prefixItems"},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}",
         "alternatives 0 and 1"},
        {"{\"oneOf\":[{\"type\":\"integer\"},{\"const\":1.0}]}",
         "alternatives 0 and 1"},
        {"{\"oneOf\":[{\"const\":[1]},{\"const\":[1.0]}]}", "alternatives 0 and 1"},
        /* without type, a keyword says nothing of values of other types */
        {"{\"oneOf\":[{\"properties\":{\"a\":{}}},{\"type\":\"null\"}]}",
         "alternatives 0 and 1"},
        {"{\"oneOf\":[{\"type\":\"string\"},{\"items\":false}]}",
         "alternatives 0 and 1"},
        {"{\"oneOf\":[{\"const\":3},{\"maxLength\":6}]}", "alternatives 0 and 1"},
        {"{\"oneOf\":[{\"required\":[\"a\"],\"properties\":{\"a\":{\"const\":1}}},{"
         "\"required\":[\"a\"],\"properties\":{\"a\":{\"const\":2}}}]}",
         "alternatives 0 and 1"},
        {"{\"anyOf\":[]}", "not a list of schemas"},
        {"{\"anyOf\":[3]}", "#/anyOf/0: this is no schema"},
        {"{\"allOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"}]}",
         "differ in 'pattern'"},
        {"{\"pattern\":\"(?=a)b\"}", "looks around"},
        {"{\"pattern\":\"(a)\\\\1\"}", "an escape that is not supported"},
        {"{\"pattern\":\"a\\\\b\"}", "an escape that is not supported"},
        {"{\"pattern\":\"(a\"}", "a group without its end"},
        {"{\"pattern\":\"a)\"}", "without its fellow"},
        {"{\"pattern\":\"[a\"}", "without its closing bracket"},
        {"{\"pattern\":\"[b-a]\"}", "goes backwards"},
        {"{\"pattern\":\"a{3,2}\"}", "no repetition"},
        {"{\"pattern\":\"a{99999}\"}", "more than 4096"},
        {"{\"pattern\":\"*\"}", "a repetition of nothing"},
        {"{\"pattern\":\"a^b\"}", "in its middle"},
        {"{\"pattern\":\"\\\\\"}", "ends in a backslash"},
        {"{\"pattern\":\"^a$\",\"minLength\":2}", "no text is valid"},
        {"{\"pattern\":\"a\",\"format\":\"date\"}", "no text is valid"},
        {"{\"pattern\":\"^[]$\"}", "no text is valid"},
        {"{\"pattern\":\"a\",\"format\":\"dates\"}", "the format 'dates'"},
        {"{\"properties\":[]}", "'properties' is no object"},
        {"{\"required\":\"a\"}", "'required' is not a list"},
        {"{\"unevaluatedProperties\":false}", "not supported"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = ERR_INIT;
        struct grammar *g = NULL;
        const char *schema = cases[i].schema;

        if (grammar_from_schema(&g, schema, strlen(schema), &err) != ST_INPUT)
            fail_msg("%s: %s", schema, g ? "accepted" : err.msg);
        if (!strstr(err.msg, cases[i].why))
            fail_msg("%s: %s", schema, err.msg);
        assert_null(g);
    }
}

static void truncated(void **state)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"string\",\"null\"],"
        "\"pattern\":\"^a[b-d]{1,3}(x|yz)$\"},\"b\":{\"anyOf\":[{\"$ref\":\"#\"},{"
        "\"enum\":["
        "1,\"x\"]}]}},\"required\":[\"a\"],\"additionalProperties\":false}";

    (void)state;
    for (size_t n = 0; n < sizeof schema - 1; n++) {
        struct err err = ERR_INIT;
        struct grammar *g = NULL;

        assert_int_equal(grammar_from_schema(&g, schema, n, &err), ST_INPUT);
    }
    grammar_unref(grammar_of(schema));
}

/* ---- states ---------------------------------------------------------------------- */

static int id_of(const char *piece)
{
    for (int i = 0; i < GRAMMAR_VOCAB - GRAMMAR_FIRST; i++) {
        if (!strcmp(grammar_pieces[i], piece))
            return GRAMMAR_FIRST + i;
    }
    fail_msg("no token %s", piece);
    return -1;
}

static void ends(void **state)
{
    struct grammar *g = grammar_of("{\"type\":\"integer\"}");
    struct grammar_state *s = grammar_start(g, group_vocab);
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)];

    (void)state;
    assert_false(grammar_state_accept(s, GRAMMAR_END));
    assert_false(grammar_state_accept(s, 0)); /* unknown */
    assert_false(grammar_state_accept(s, 1)); /* control */
    assert_false(grammar_state_accept(s, -1));
    assert_false(grammar_state_accept(s, GRAMMAR_VOCAB));
    assert_true(grammar_state_accept(s, id_of("12")));
    assert_true(grammar_may_end(s));
    assert_false(grammar_state_ended(s)); /* another digit may follow */
    assert_true(grammar_state_accept(s, id_of("000")));
    assert_true(grammar_state_accept(s, GRAMMAR_END));
    assert_true(grammar_state_ended(s));
    assert_false(grammar_state_accept(s, id_of("12")));
    grammar_state_mask(s, mask);
    for (int id = 0; id < GRAMMAR_VOCAB; id++)
        assert_int_equal(grammar_bit(mask, id), id == GRAMMAR_END);
    grammar_state_close(s);
    grammar_unref(g);

    g = grammar_of("{\"type\":\"object\",\"additionalProperties\":false}");
    s = grammar_start(g, group_vocab);
    assert_true(grammar_state_accept(s, id_of("{}")));
    assert_true(grammar_state_ended(s));
    grammar_state_close(s);
    grammar_unref(g);
}

/* A SentencePiece vocabulary begins its texts with a blank, others do not. */
static void first_blank(void **state)
{
    struct grammar_vocab *spaced = grammar_vocabulary(true);
    struct grammar *g = grammar_of("{\"const\":1}");

    (void)state;
    assert_true(grammar_takes(g, spaced, " 1"));
    assert_true(grammar_takes(g, spaced, "1"));
    assert_false(grammar_takes(g, spaced, "  1"));
    assert_false(grammar_takes(g, group_vocab, " 1"));
    grammar_unref(g);
    grammar_vocab_close(spaced);
}

/* A vocabulary that lacks a byte of the text: it ends there. */
static void missing_bytes(void **state)
{
    struct grammar *g = grammar_of("{\"const\":\"a\\u4e2d\"}");
    struct grammar_vocab *poor;
    struct grammar_state *s;

    (void)state;
    grammar_has_bytes = false;
    poor = grammar_vocabulary(false);
    grammar_has_bytes = true;
    s = grammar_start(g, poor);
    assert_true(grammar_state_accept(s, GRAMMAR_ASCII + '"' - 0x20));
    assert_false(grammar_may_end(s));
    assert_false(grammar_state_accept(s, GRAMMAR_END));
    assert_true(grammar_state_accept(s, GRAMMAR_ASCII + 'a' - 0x20));
    assert_true(grammar_may_end(s));
    assert_true(grammar_state_accept(s, GRAMMAR_END));
    assert_true(grammar_state_ended(s));
    grammar_state_close(s);
    grammar_vocab_close(poor);
    grammar_unref(g);
}

/* Forced tokens spell what alone can follow, and go as far as that is certain. */
static void forced(void **state)
{
    struct grammar *g = grammar_of(
        "{\"type\":\"object\",\"properties\":{\"name\":{\"const\":\"hello\"},\"next\":{"
        "\"type\":\"null\"}},\"required\":[\"name\",\"next\"],"
        "\"additionalProperties\":false}");
    struct grammar_state *s = grammar_start(g, group_vocab);
    int32_t ids[16];

    (void)state;
    /* '{' may be followed by white space, and "{\"" is a token */
    assert_int_equal(grammar_state_forced(s, ids, 16), 0);
    assert_true(grammar_state_accept(s, id_of("{\"")));
    assert_int_equal(grammar_state_forced(s, ids, 16), 1);
    assert_int_equal(ids[0], id_of("name")); /* '":' may go on as '": ' */
    assert_true(grammar_state_accept(s, ids[0]));
    assert_int_equal(grammar_state_forced(s, ids, 16), 0);
    assert_true(grammar_state_accept(s, id_of("\": \"")));
    assert_int_equal(grammar_state_forced(s, ids, 16), 1);
    assert_int_equal(ids[0], id_of("hello"));
    assert_int_equal(grammar_state_forced(s, ids, 0), 0);
    grammar_state_close(s);
    grammar_unref(g);

    g = grammar_of("{\"const\":\"hello world\"}");
    s = grammar_start(g, group_vocab);
    assert_int_equal(grammar_state_forced(s, ids, 16), 5);
    assert_int_equal(ids[0], GRAMMAR_ASCII + '"' - 0x20);
    assert_int_equal(ids[1], id_of("hello"));
    assert_int_equal(ids[2], GRAMMAR_ASCII);
    assert_int_equal(ids[3], id_of("world"));
    assert_int_equal(ids[4], GRAMMAR_ASCII + '"' - 0x20);
    for (int i = 0; i < 5; i++)
        assert_true(grammar_state_accept(s, ids[i]));
    assert_true(grammar_state_ended(s));
    grammar_state_close(s);
    grammar_unref(g);
}

/* States of equal schemas share what is computed; grammars and vocabularies may be
 * released before their states. */
static void lifetimes(void **state)
{
    struct grammar_vocab *own = grammar_vocabulary(false);
    struct grammar *g = grammar_of(PERSON), *h = grammar_of(PERSON);
    struct grammar_state *s = grammar_start(g, own), *t, *copy = NULL;
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)];
    struct err err = ERR_INIT;

    (void)state;
    grammar_state_mask(s, mask);
    const size_t bytes = grammar_state_bytes(s);

    t = grammar_start(h, own);
    assert_int_equal(grammar_state_bytes(t), bytes);
    grammar_state_mask(t, mask);
    assert_int_equal(grammar_state_bytes(t), bytes);
    grammar_unref(g);
    grammar_unref(h);
    grammar_state_close(s);
    grammar_vocab_close(own);
    assert_true(grammar_state_accept(t, id_of("{\"name")));
    assert_int_equal(grammar_state_copy(&copy, t, &err), ST_OK);
    assert_true(grammar_state_accept(t, id_of("\": \"")));
    assert_false(grammar_state_accept(copy, id_of("hello")));
    assert_true(grammar_state_accept(copy, id_of("\":")));
    grammar_state_close(t);
    grammar_state_close(copy);

    /* More schemas than are kept. */
    for (int i = 0; i < 40; i++) {
        char schema[64];

        snprintf(schema, sizeof schema, "{\"const\":%d}", i);
        g = grammar_of(schema);
        s = grammar_start(g, group_vocab);
        grammar_state_mask(s, mask);
        grammar_state_close(s);
        grammar_unref(g);
    }
    assert_null(grammar_ref(NULL));
    grammar_unref(NULL);
    grammar_state_close(NULL);
    grammar_vocab_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_texts),     cmocka_unit_test(nested_deeply),
        cmocka_unit_test(objects),        cmocka_unit_test(values),
        cmocka_unit_test(integer_limits), cmocka_unit_test(schemas_refused),
        cmocka_unit_test(truncated),      cmocka_unit_test(ends),
        cmocka_unit_test(first_blank),    cmocka_unit_test(forced),
        cmocka_unit_test(lifetimes),      cmocka_unit_test(missing_bytes),
    };

    return cmocka_run_group_tests(tests, open_vocab, close_vocab);
}
