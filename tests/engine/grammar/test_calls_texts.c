/* SPDX-License-Identifier: MIT
 *
 * test_calls_texts.c - strings of parameters that are written as they are: which bytes
 * may come, which values a schema leaves, how deeply they are nested; and what a reader
 * makes of control tokens and of bytes that a form does not have
 */
#include "tests/engine/grammar/call_check.h"

#include "engine/base/utf8.h"

/* ---- one parameter --------------------------------------------------------------- */

/* An answer that calls f, whose only parameter is a, up to the value of a. */
static const struct {
    struct call_form *form;
    const char *begin, *close, *end;
} ways[] = {
    {&xml, "<call><function=f>\n<parameter=a>\n", "\n</parameter",
     ">\n</function></call>"},
    {&typed, "<call><name>f</name><arg key=a string>", "</arg>", "</call>"},
    {&python, "<py>[f(a='", "'", ")]</py>"},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

static struct grammar_vocab *vocab;
static int32_t byte_ids[256];

static int open_group(void **state)
{
    (void)state;
    vocab = grammar_vocabulary(false);
    list_bytes(vocab, byte_ids);
    return 0;
}

static int close_group(void **state)
{
    (void)state;
    grammar_vocab_close(vocab);
    return 0;
}

/* Where a tool f must be called whose parameter a follows the schema. */
static struct grammar_state *begin_call_of(const struct call_form *form,
                                           const char *schema_of_a)
{
    char schema[400];
    const struct grammar_tool tool = {
        "f", schema,
        (size_t)snprintf(schema, sizeof schema,
                         "{\"properties\": {\"a\": %s}, \"required\": [\"a\"], "
                         "\"$defs\": {\"x\": {\"type\": \"string\", \"minLength\": "
                         "1}}}",
                         schema_of_a)};
    const struct grammar_calls c = {
        .form = form, .tools = &tool, .n_tools = 1, .choice = GRAMMAR_REQUIRED};
    struct grammar *g = grammar_with(&c);
    struct grammar_state *s = grammar_start(g, vocab);

    grammar_unref(g);
    return s;
}

static bool all_taken(struct grammar_state *s, const char *text)
{
    n_answer = 0;
    return !*text || (write_bytes(s, byte_ids, text) && n_answer == strlen(text));
}

/* Whether the whole call may have the value. */
static bool value_taken(int way, const char *schema_of_a, const char *value)
{
    struct grammar_state *s = begin_call_of(ways[way].form, schema_of_a);
    bool taken;

    assert_true(all_taken(s, ways[way].begin));
    taken = all_taken(s, value) && all_taken(s, ways[way].close) &&
            all_taken(s, ways[way].end) && grammar_may_end(s);
    grammar_state_close(s);
    return taken;
}

/* ---- characters ------------------------------------------------------------------ */

enum { DEAD = -1, PARTIAL = -2 };

/* How many characters s[n] has, all allowed but `without`; PARTIAL: the last one is not
 * whole, DEAD: no text begins so. */
static int count_chars(const char *s, int n, int without)
{
    int count = 0;

    for (int at = 0, len; at < n; at += len, count++) {
        const unsigned char first = (unsigned char)s[at];

        len = utf8_char_len(s + at, (size_t)(n - at));
        if (len < 0)
            return PARTIAL;
        if (len == 0 || first == without ||
            (first < 0x20 && first != '\t' && first != '\n'))
            return DEAD;
    }
    return count;
}

struct checked {
    struct grammar_state *s;
    const char *close;
    int without, max_chars; /* -1: none, no limit */
    char text[4];
    int n_whole;
};

/* Whether the text may be closed, and be continued by each byte, is what UTF-8 and the
 * limit leave. */
static void check_bytes(struct checked *x, uint32_t position, int n)
{
    static const uint8_t later[] = {0,    '\n', '<',  0x7f, 0x80, 0x8f,
                                    0x90, 0x9f, 0xa0, 0xbf, 0xc2, 0xff};
    const int n_chars = count_chars(x->text, n, x->without);
    uint32_t after = position;

    for (const char *c = x->close; *c && after != POSITION_DEAD; c++)
        after = machine_after(x->s->m, after, (uint8_t)*c);
    if ((after != POSITION_DEAD) != (n_chars >= 0))
        fail_msg("%02x %02x %02x %02x, %d bytes: %s", (uint8_t)x->text[0],
                 (uint8_t)x->text[1], (uint8_t)x->text[2], (uint8_t)x->text[3], n,
                 n_chars < 0 ? "closes" : "does not close");
    x->n_whole += n_chars >= 0;
    for (int i = 0; n < 4 && i < (n ? (int)sizeof later : 256); i++) {
        const uint8_t byte = n ? later[i] : (uint8_t)i;
        const uint32_t next = machine_after(x->s->m, position, byte);
        int count;

        x->text[n] = (char)byte;
        count = count_chars(x->text, n + 1, x->without);
        if (count == PARTIAL && n_chars >= 0 && n_chars == x->max_chars)
            count = DEAD;
        if (byte == (uint8_t)*x->close && n_chars >= 0 &&
            (x->without >= 0 || !x->close[1]))
            continue; /* it begins to close, or has closed */
        if (x->max_chars >= 0 && count > x->max_chars)
            count = DEAD;
        if ((next != POSITION_DEAD) != (count != DEAD))
            fail_msg("%02x after %d bytes: %s", byte, n,
                     count == DEAD ? "taken" : "refused");
        if (next != POSITION_DEAD)
            check_bytes(x, next, n + 1);
    }
}

/* A free text may have every character. One with limits has none that its closing
 * marker begins with, as docs/schemas.md has it. */
static void characters(void **state)
{
    static const struct {
        const char *schema;
        int max_chars;
    } cases[] = {{"{\"type\": \"string\"}", -1},
                 {"{\"type\": \"string\", \"maxLength\": 4}", 4},
                 {"{\"type\": \"string\", \"maxLength\": 2}", 2}};

    (void)state;
    for (int w = 0; w < N_WAYS; w++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct checked x = {
                .s = begin_call_of(ways[w].form, cases[i].schema),
                .close = ways[w].close,
                .without = cases[i].max_chars < 0 ? -1 : (uint8_t)*ways[w].close,
                .max_chars = cases[i].max_chars};

            assert_true(all_taken(x.s, ways[w].begin));
            check_bytes(&x, x.s->position, 0);
            assert_true(x.n_whole > 300);
            grammar_state_close(x.s);
        }
}

/* ---- values ---------------------------------------------------------------------- */

/* What is listed, or left by a reference and by what stands next to it; in XML null
 * looks like a text. */
static void values(void **state)
{
    static const struct {
        const char *schema;
        const char *taken[4], *refused[4];
    } cases[] = {
        {"{\"enum\": [\"one\", \"two\", \"three\"]}",
         {"one", "two", "three"},
         {"", "on", "ones", "four"}},
        {"{\"const\": \"one\"}", {"one"}, {"two"}},
        {"{\"$ref\": \"#/$defs/x\"}", {"a", "abcd"}, {""}},
        {"{\"$ref\": \"#/$defs/x\", \"maxLength\": 2}", {"a", "ab"}, {"", "abc"}},
        {"{\"description\": \"any\"}", {"", "a", "abcd"}, {"\x02"}},
        {"{\"oneOf\": [{\"const\": \"a\"}, {\"enum\": [\"b\", \"c\"]}]}",
         {"a", "b", "c"},
         {"d"}},
    };

    (void)state;
    for (int w = 0; w < N_WAYS; w++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (int k = 0; k < 4; k++) {
                if (cases[i].taken[k] &&
                    !value_taken(w, cases[i].schema, cases[i].taken[k]))
                    fail_msg("%s: not %s", cases[i].schema, cases[i].taken[k]);
                if (cases[i].refused[k] &&
                    value_taken(w, cases[i].schema, cases[i].refused[k]))
                    fail_msg("%s: %s", cases[i].schema, cases[i].refused[k]);
            }
}

/* Python's words stand for JSON's, and these are none. */
static void words_of_python(void **state)
{
    static const struct {
        const char *schema, *value;
        bool taken;
    } cases[] = {
        {"{\"type\": \"boolean\"}", "True", true},
        {"{\"type\": \"boolean\"}", "true", false},
        {"{\"type\": [\"null\", \"array\"]}", "None", true},
        {"{\"type\": [\"null\", \"array\"]}", "null", false},
        {"{\"type\": [\"null\", \"array\"]}", "[False, None]", true},
        {"{\"type\": [\"null\", \"array\"]}", "[false]", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grammar_state *s = begin_call_of(&python, cases[i].schema);

        assert_true(all_taken(s, "<py>[f(a="));
        if (all_taken(s, cases[i].value) != cases[i].taken)
            fail_msg("%s: %s", cases[i].schema, cases[i].value);
        grammar_state_close(s);
    }
}

/* The object that a call's parameters become is as deep as one written as JSON may be:
 * brackets that a parameter may open do not depend on the form. */
static void nested_deeply(void **state)
{
    static const struct {
        struct call_form *form;
        const char *begin;
    } forms_of[] = {
        {&tags, "<call>\n{\"name\": \"f\", \"arguments\": {\"a\": "},
        {&xml, "<call><function=f>\n<parameter=a>\n"},
        {&typed, "<call><name>f</name><arg key=a json>"},
        {&python, "<py>[f(a="},
        {&quotes, "<py>f(a="},
    };
    size_t depth[sizeof forms_of / sizeof *forms_of];
    char text[600];

    (void)state;
    memset(text, '[', sizeof text);
    text[sizeof text - 1] = '\0';
    for (size_t i = 0; i < sizeof depth / sizeof *depth; i++) {
        struct grammar_state *s =
            begin_call_of(forms_of[i].form, "{\"type\": \"array\"}");

        assert_true(all_taken(s, forms_of[i].begin));
        assert_false(all_taken(s, text));
        depth[i] = n_answer;
        assert_int_equal(depth[i], depth[0]);
        grammar_state_close(s);
    }
    assert_in_range(depth[0], 250, 260);
}

/* ---- reading --------------------------------------------------------------------- */

struct reading {
    char text[200], calls[200];
    bool whole;
};

static struct reading read_as(const struct call_form *form, const char *bytes)
{
    struct reading out = {.whole = false};
    struct call_reader r;
    struct err err = ERR_INIT;

    call_reader_open(&r, form, NULL, NULL);
    assert_int_equal(call_reader_add(&r, bytes, strlen(bytes), &err), ST_OK);
    assert_true(r.text.n < sizeof out.text && r.calls.n < sizeof out.calls);
    snprintf(out.text, sizeof out.text, "%.*s", (int)r.text.n,
             r.text.n ? r.text.s : "");
    snprintf(out.calls, sizeof out.calls, "%.*s", (int)r.calls.n,
             r.calls.n ? r.calls.s : "");
    out.whole = call_reader_is_whole(&r);
    call_reader_close(&r);
    return out;
}

/* Control tokens of a text are left out, whether they begin like a marker or not. */
static void control_tokens_in_texts(void **state)
{
    static const char *const texts[] = {"a\xff<x>\xff b", "a\xff<sx>\xff b",
                                        "a\xff</s>\xff\xff<x>\xff b"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(read_as(&marked, texts[i]).text, "a b");
    assert_string_equal(read_as(&marked, "a\xff<s>\xff"
                                         "f:{}")
                            .calls,
                        "\x01"
                        "f\x02{}");
}

/* A hole is an id or a number of one character at least. */
static void holes_are_filled(void **state)
{
    static const struct {
        const char *bytes;
        bool whole;
    } cases[] = {
        {"[{\"name\": \"f\", \"arguments\": {}, \"id\": \"a1\"}]", true},
        {"[{\"name\": \"f\", \"arguments\": {}, \"id\": \"\"}]", false},
        {"[{\"name\": \"f\", \"arguments\": {}, \"id\": \"a\"}, {\"n\": 7, \"name\": "
         "\"g\", \"arguments\": {}, \"id\": \"b\"}]",
         true},
        {"[{\"name\": \"f\", \"arguments\": {}, \"id\": \"a\"}, {\"n\": , \"name\": "
         "\"g\", \"arguments\": {}, \"id\": \"b\"}]",
         false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (read_as(&bare, cases[i].bytes).whole != cases[i].whole)
            fail_msg("%s", cases[i].bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters),
        cmocka_unit_test(values),
        cmocka_unit_test(words_of_python),
        cmocka_unit_test(nested_deeply),
        cmocka_unit_test(control_tokens_in_texts),
        cmocka_unit_test(holes_are_filled),
    };

    return cmocka_run_group_tests(tests, open_group, close_group);
}
