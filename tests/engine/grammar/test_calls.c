/* SPDX-License-Identifier: MIT
 *
 * test_calls.c - answers that may call tools: what the masks allow is read as calls of
 * those tools, with arguments that are valid under their schemas
 */
#include "tests/engine/grammar/call_check.h"

/* Random answers of every form that must call; most are complete. */
static void calls_are_valid(void **state)
{
    struct grammar_vocab *v = grammar_vocabulary(false);
    int n_complete = 0, n_several = 0;

    (void)state;
    for (int f = 0; f < N_FORMS; f++) {
        for (int parallel = 0; parallel < 2; parallel++) {
            const struct grammar_calls c = {.form = forms[f],
                                            .tools = tools,
                                            .n_tools = N_TOOLS,
                                            .choice = GRAMMAR_REQUIRED,
                                            .parallel = parallel};
            struct grammar *g = grammar_with(&c);

            for (uint64_t seed = 1; seed <= 12; seed++) {
                bool complete;
                char text[64];
                int n;

                write_answer(g, forms[f], v, seed * 77, 700, &complete);
                n = check_answer(g, forms[f], tools, N_TOOLS, complete, text,
                                 sizeof text);
                assert_string_equal(text, "");
                assert_true(n >= complete);
                assert_true(n <= 1 || (parallel && forms[f]->mid));
                n_complete += complete;
                n_several += n > 1;
            }
            grammar_unref(g);
        }
    }
    print_message("%d of %d complete, %d with several calls\n", n_complete,
                  N_FORMS * 24, n_several);
    assert_true(n_complete > N_FORMS * 21);
    assert_true(n_several > 10);
    grammar_vocab_close(v);
}

/* ---- texts ----------------------------------------------------------------------- */

/* The text byte by byte; false where it is refused. */
static bool takes(struct grammar_state *s, const char *text)
{
    n_answer = 0;
    for (; *text; text++) {
        const int32_t id = *text == '\n' ? 3 + '\n' : GRAMMAR_ASCII + *text - 0x20;

        if (!accept(s, id))
            return false;
    }
    return true;
}

static bool ends(struct grammar_state *s)
{
    return grammar_state_accept(s, GRAMMAR_END);
}

enum { REFUSED, TAKEN, COMPLETE };
static int taken(const struct grammar_calls *c, struct grammar_vocab *v,
                 const char *text)
{
    struct grammar *g = grammar_with(c);
    struct grammar_state *s = NULL;
    struct err err = ERR_INIT;
    int result;

    assert_int_equal(grammar_state_open(&s, g, v, &err), ST_OK);
    result = !takes(s, text) ? REFUSED : ends(s) ? COMPLETE : TAKEN;
    grammar_state_close(s);
    grammar_unref(g);
    return result;
}

/* What may be written with which choice. */
static void choices(void **state)
{
    static const char call[] =
        "<call>\n{\"name\": \"now\", \"arguments\": {}}\n</call>";
    static const char two[] =
        "<call>\n{\"name\": \"now\", \"arguments\": {}}\n</call>\n"
        "<call>\n{\"name\": \"now\", \"arguments\": {}}\n</call>";
    struct grammar_vocab *v = grammar_vocabulary(false);
    struct grammar_calls c = {
        .form = &tags, .tools = tools, .n_tools = N_TOOLS, .parallel = true};
    char text[300];

    (void)state;
    c.choice = GRAMMAR_AUTO;
    assert_int_equal(taken(&c, v, ""), COMPLETE);
    assert_int_equal(taken(&c, v, "Hello <call"), COMPLETE);
    assert_int_equal(taken(&c, v, "Hello <call>"), TAKEN);
    assert_int_equal(taken(&c, v, "Hello <call> "), REFUSED);
    assert_int_equal(taken(&c, v, "<<call>\n{\"name\": \"got"), REFUSED);
    snprintf(text, sizeof text, "<ca<call %s", call);
    assert_int_equal(taken(&c, v, text), COMPLETE);
    assert_int_equal(taken(&c, v, two), COMPLETE);
    snprintf(text, sizeof text, "%s Hello", call);
    assert_int_equal(taken(&c, v, text), REFUSED);
    c.parallel = false;
    assert_int_equal(taken(&c, v, call), COMPLETE);
    assert_int_equal(taken(&c, v, two), REFUSED);
    c.choice = GRAMMAR_REQUIRED;
    c.parallel = true;
    assert_int_equal(taken(&c, v, ""), TAKEN);
    assert_int_equal(taken(&c, v, "H"), REFUSED);
    snprintf(text, sizeof text, "\n\n%s", two);
    assert_int_equal(taken(&c, v, text), COMPLETE);
    c.choice = GRAMMAR_NONE;
    assert_int_equal(taken(&c, v, "Hello <call, <ca"), COMPLETE);
    assert_int_equal(taken(&c, v, "Hello <call>"), REFUSED);

    /* without a marker only the beginning of an answer is a call's */
    c.form = &bare;
    assert_int_equal(taken(&c, v, " ["), REFUSED);
    assert_int_equal(taken(&c, v, "a ["), COMPLETE);
    c.choice = GRAMMAR_AUTO;
    assert_int_equal(taken(&c, v, "a [ x"), COMPLETE);
    assert_int_equal(taken(&c, v, " [ x"), REFUSED);
    assert_int_equal(taken(&c, v,
                           "[{\"name\": \"now\", \"arguments\": {}, \"id\": "
                           "\"abcdefgh\"}]"),
                     REFUSED);
    assert_int_equal(taken(&c, v,
                           "[{\"name\": \"now\", \"arguments\": {}, \"id\": "
                           "\"abcdefgh1\"}]"),
                     COMPLETE);
    grammar_vocab_close(v);
}

static void thoughts(void **state)
{
    static const char call[] =
        "<call>\n{\"name\": \"now\", \"arguments\": {}}\n</call>";
    struct grammar_vocab *v = grammar_vocabulary(false);
    struct grammar_calls c = {.form = &tags,
                              .tools = tools,
                              .n_tools = N_TOOLS,
                              .choice = GRAMMAR_REQUIRED,
                              .think_begin = "<cog>",
                              .think_end = "</cog>"};
    char text[300];

    (void)state;
    snprintf(text, sizeof text, "<cog>a <call> b</cog>\n\n%s", call);
    assert_int_equal(taken(&c, v, text), COMPLETE);
    assert_int_equal(taken(&c, v, call), COMPLETE);
    assert_int_equal(taken(&c, v, "<cog>a"), TAKEN);
    assert_int_equal(taken(&c, v, "<cog>a</cog>b"), REFUSED);
    c.choice = GRAMMAR_AUTO;
    snprintf(text, sizeof text, "\n<cog>a <call> b</cog>text %s", call);
    assert_int_equal(taken(&c, v, text), COMPLETE);
    assert_int_equal(taken(&c, v, "<cog>a <call> b</cog><call>b"), REFUSED);
    assert_int_equal(taken(&c, v, "<co<call>b"), REFUSED);
    assert_int_equal(taken(&c, v, "a<cog>a <call>b"), REFUSED);
    c.thinks = true;
    assert_int_equal(taken(&c, v, "a <call> b</co</cog>text"), COMPLETE);
    assert_int_equal(taken(&c, v, "a <call> b</cog><call>b"), REFUSED);
    grammar_vocab_close(v);
}

/* A call, or a text that follows a schema, in which no call begins. */
static void texts_follow_a_schema(void **state)
{
    static const char call[] =
        "<call>\n{\"name\": \"now\", \"arguments\": {}}\n</call>";
    static const char schema[] = "{\"enum\": [\"a <call>\", 7]}";
    struct grammar_vocab *v = grammar_vocabulary(false);
    struct grammar_calls c = {.form = &tags,
                              .tools = tools,
                              .n_tools = N_TOOLS,
                              .choice = GRAMMAR_AUTO,
                              .schema = schema,
                              .n_schema = sizeof schema - 1};
    struct grammar *g = NULL;
    struct err err = ERR_INIT;
    char text[300];

    (void)state;
    assert_int_equal(taken(&c, v, ""), TAKEN);
    assert_int_equal(taken(&c, v, "7"), COMPLETE);
    assert_int_equal(taken(&c, v, "\"a <call>\""), COMPLETE);
    assert_int_equal(taken(&c, v, "8"), REFUSED);
    assert_int_equal(taken(&c, v, call), COMPLETE);
    assert_int_equal(taken(&c, v, "<call>7"), REFUSED);
    snprintf(text, sizeof text, "7%s", call);
    assert_int_equal(taken(&c, v, text), REFUSED);
    c.think_begin = "<cog>";
    c.think_end = "</cog>";
    c.thinks = true;
    assert_int_equal(taken(&c, v, "a <call> 7 </cog>\n\n7"), COMPLETE);
    snprintf(text, sizeof text, "8</cog>\n\n%s", call);
    assert_int_equal(taken(&c, v, text), COMPLETE);
    assert_int_equal(taken(&c, v, "a</cog>8"), REFUSED);
    c.schema = ""; /* any object */
    c.n_schema = 0;
    assert_int_equal(taken(&c, v, "a</cog>{\"a\": [7]}"), COMPLETE);
    assert_int_equal(taken(&c, v, "a</cog>7"), REFUSED);
    c.schema = "{\"not\": {}}";
    c.n_schema = strlen(c.schema);
    assert_int_equal(grammar_from_calls(&g, &c, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "not"));
    grammar_vocab_close(v);
}

/* An answer begins with the header of thoughts, a call or a text. */
static void headers_of_messages(void **state)
{
    struct grammar_vocab *v = grammar_vocabulary(false);
    struct grammar_calls c = {
        .form = &headers, .tools = tools, .n_tools = N_TOOLS, .choice = GRAMMAR_AUTO};

    (void)state;
    assert_int_equal(taken(&c, v, ""), TAKEN);
    assert_int_equal(taken(&c, v, "H"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>fin<m>"), COMPLETE);
    assert_int_equal(taken(&c, v, "<c>fin<m>Hi to=f.x"), COMPLETE);
    assert_int_equal(taken(&c, v, "<c>fin<m>Hi <c>com to=f.x"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>fin<m>Hi <c>com to=f.now <t>json<m>{}<e>"),
                     COMPLETE);
    assert_int_equal(taken(&c, v, " to=f.now<c>com json<m>{}<e>"), COMPLETE);
    assert_int_equal(taken(&c, v, "to=f.now<c>com <t>json<m>{}"), TAKEN);
    assert_int_equal(taken(&c, v, "to=f.now<m>"), REFUSED);
    assert_int_equal(taken(&c, v, "to=g"), REFUSED);
    assert_int_equal(taken(&c, v, "to=f.now<c>com json<m>{}<e><c>com"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>com to=f.now<m>{}<e>"), COMPLETE);
    assert_int_equal(taken(&c, v, "<c>com to=f.now json<m>"), REFUSED);
    c.think_begin = "<c>ana<m>";
    c.think_end = "<e><s>a";
    assert_int_equal(taken(&c, v, "<c>ana<m>to=f.x<c>com <e><s>a<c>fin<m>x"), COMPLETE);
    assert_int_equal(taken(&c, v, "<c>ana<m>b<e><s>a to=f.now<c>com json<m>{}<e>"),
                     COMPLETE);
    assert_int_equal(taken(&c, v, "<c>ana<m>b<e><s>ab"), REFUSED);
    c.choice = GRAMMAR_REQUIRED;
    assert_int_equal(taken(&c, v, "<c>ana<m>b<e><s>a<c>com to=f.now<m>{}<e>"),
                     COMPLETE);
    assert_int_equal(taken(&c, v, "<c>fin"), REFUSED);
    c.choice = GRAMMAR_NONE;
    assert_int_equal(taken(&c, v, "to"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>fin<m>x <c>com to"), COMPLETE);
    assert_int_equal(taken(&c, v, "<c>fin<m>x <c>com to=f."), REFUSED);
    c.choice = GRAMMAR_AUTO;
    c.schema = "{\"const\": 7}";
    c.n_schema = strlen(c.schema);
    assert_int_equal(taken(&c, v, "7"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>fin<m>7"), COMPLETE);
    assert_int_equal(taken(&c, v, "<c>fin<m>8"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>com to=f.now<m>{}<e>"), COMPLETE);
    grammar_vocab_close(v);
}

/* Behind a text and what ends it the answer begins again: another text or a call, under
 * the grammar from its first byte on, and nothing behind a call. */
static void texts_announce_calls(void **state)
{
    struct grammar_vocab *v = grammar_vocabulary(false);
    struct grammar_calls c = {.form = &headers,
                              .tools = tools,
                              .n_tools = N_TOOLS,
                              .choice = GRAMMAR_AUTO,
                              .think_begin = "<c>ana<m>",
                              .think_end = "<e><s>a"};

    (void)state;
    assert_int_equal(taken(&c, v, "<c>com<m>Hi"), COMPLETE);
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<e>"), TAKEN);
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<e>x"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<e><s>a"), COMPLETE);
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<e><s>a x"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<<e><s>a to=f.now<c>com json<m>{}<e>"),
                     COMPLETE);
    assert_int_equal(
        taken(&c, v, "<c>ana<m>b<e><s>a<c>com<m>Hi<e><s>a<c>com to=f.now<m>{}<e>"),
        COMPLETE);
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<e><s>a to=f.now<m>"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<e><s>a to=f.x"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<c>com to=f.x"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>com<m>a<e><s>a<c>com<m>b<e><s>a<c>fin<m>c"),
                     COMPLETE);
    assert_int_equal(taken(&c, v, "<c>fin<m>Hi<e><s>a to=f.now<c>com json<m>{}<e>"),
                     COMPLETE);
    assert_int_equal(taken(&c, v, "<c>com to=f.now<m>{}<e><s>"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<e><s>a<c>com to=f.now<m>{}<e><s>"),
                     REFUSED);
    c.choice = GRAMMAR_REQUIRED;
    assert_int_equal(taken(&c, v, "<c>com<m>"), REFUSED);
    c.choice = GRAMMAR_NONE;
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<e><s>a<c>fin<m>a"), COMPLETE);
    assert_int_equal(taken(&c, v, "<c>com<m>Hi<e><s>a to"), REFUSED);
    c.choice = GRAMMAR_AUTO;
    c.schema = "{\"const\": 7}";
    c.n_schema = strlen(c.schema);
    assert_int_equal(taken(&c, v, "<c>com<m>"), REFUSED);
    assert_int_equal(taken(&c, v, "<c>fin<m>7<e>"), REFUSED);
    grammar_vocab_close(v);
}

/* Arguments are an object, also where a reference leads to what allows more. */
static void arguments_are_objects(void **state)
{
    static const struct {
        const char *a, *value;
        int result;
    } cases[] = {
        {"true", "{\"b\": 1}", COMPLETE},
        {"true", "5", REFUSED},
        {"true", "\"x\"", REFUSED},
        {"{\"type\": [\"object\", \"null\"]}", "{}", COMPLETE},
        {"{\"type\": [\"object\", \"null\"]}", "null", REFUSED},
        {"{\"properties\": {\"b\": {\"$ref\": \"#\"}}}", "{\"b\": {\"b\": {}}}",
         COMPLETE},
        {"{\"properties\": {\"b\": {\"$ref\": \"#\"}}}", "{\"b\": {\"b\": 1}}",
         REFUSED},
    };
    struct grammar_vocab *v = grammar_vocabulary(false);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char schema[200], text[200];
        const struct grammar_tool tool = {
            "f", schema,
            (size_t)snprintf(schema, sizeof schema,
                             "{\"$ref\": \"#/$defs/a\", \"$defs\": "
                             "{\"a\": %s}}",
                             cases[i].a)};
        const struct grammar_calls c = {
            .form = &tags, .tools = &tool, .n_tools = 1, .choice = GRAMMAR_REQUIRED};

        snprintf(text, sizeof text,
                 "<call>\n{\"name\": \"f\", \"arguments\": %s}\n</call>",
                 cases[i].value);
        if (taken(&c, v, text) != cases[i].result)
            fail_msg("%s: %s", schema, text);
    }
    grammar_vocab_close(v);
}

/* A control token is a marker, and its spelling is none. */
static void control_tokens(void **state)
{
    struct grammar_vocab *v = grammar_vocabulary(false);
    const struct grammar_calls c = {
        .form = &marked, .tools = tools, .n_tools = N_TOOLS, .choice = GRAMMAR_AUTO};
    struct grammar *g = grammar_with(&c);
    struct grammar_state *s = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(taken(&c, v, "<s>a"), COMPLETE);
    assert_int_equal(grammar_state_open(&s, g, v, &err), ST_OK);
    assert_true(takes(s, "a"));
    assert_true(accept(s, 1));
    assert_false(accept(s, GRAMMAR_ASCII + 'a' - 0x20));
    assert_false(accept(s, 3 + 0xff)); /* the byte that marks is no token's */
    assert_true(takes(s, "now:{}"));
    assert_true(ends(s));
    grammar_state_close(s);
    grammar_unref(g);
    grammar_vocab_close(v);
}

/* ---- refusals -------------------------------------------------------------------- */

static void refuses(const struct call_form *form, const char *name, const char *schema,
                    const char *words)
{
    const struct grammar_tool tool = {name, schema, strlen(schema)};
    const struct grammar_calls c = {
        .form = form, .tools = &tool, .n_tools = 1, .choice = GRAMMAR_AUTO};
    struct grammar *g = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(grammar_from_calls(&g, &c, &err), ST_INPUT);
    if (!strstr(err.msg, words))
        fail_msg("%s", err.msg);
}

static void refusals(void **state)
{
    const struct grammar_tool twins[] = {{"a", "", 0}, {"b", "", 0}, {"a", "", 0}};
    const struct grammar_calls c = {
        .form = &tags, .tools = twins, .n_tools = 3, .choice = GRAMMAR_AUTO};
    struct grammar *g = NULL;
    struct err err = ERR_INIT;

    (void)state;
    refuses(&tags, "a b", "{}", "letters");
    refuses(&tags, "", "{}", "letters");
    refuses(&tags, "f", "[]", "");
    refuses(&tags, "f", "{\"type\": \"array\"}", "tool f");
    refuses(&tags, "f", "{\"properties\": {\"a\": {\"not\": {}}}}", "tool f");
    refuses(&xml, "f", "{\"properties\": {\"a<b\": {}}}", "tool f");
    refuses(&xml, "f", "{\"properties\": {}, \"required\": [\"a\"]}", "required");
    refuses(&xml, "f", "{\"anyOf\": [{\"type\": \"object\"}, {\"type\": \"object\"}]}",
            "tool f");
    assert_int_equal(grammar_from_calls(&g, &c, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "two tools"));
}

/* All schemas together have a limit, which the message states. */
static void schemas_are_bounded(void **state)
{
    enum { N = 20, LEN = 250 << 10 };
    static char names[N][8], schema[LEN];
    struct grammar_tool list[N];
    const struct grammar_calls c = {
        .form = &tags, .tools = list, .n_tools = N, .choice = GRAMMAR_AUTO};
    struct grammar *g = NULL;
    struct err err = ERR_INIT;

    (void)state;
    memset(schema, ' ', LEN);
    memcpy(schema, "{}", 2);
    for (int i = 0; i < N; i++) {
        sprintf(names[i], "f%d", i);
        list[i] = (struct grammar_tool){names[i], schema, LEN};
    }
    assert_int_equal(grammar_from_calls(&g, &c, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "more than 4 MiB"));
}

/* Small schemas of large automata: as many as one request may have are too many. */
static void work_is_bounded(void **state)
{
    static const char schema[] =
        "{\"properties\": {\"a\": {\"type\": \"string\", \"pattern\": "
        "\"^[ab]*c$\", \"maxLength\": 9000}}}";
    static char names[GRAMMAR_MAX_TOOLS][16];
    static struct grammar_tool list[GRAMMAR_MAX_TOOLS];
    struct grammar_calls c = {.form = &tags,
                              .tools = list,
                              .n_tools = GRAMMAR_MAX_TOOLS,
                              .choice = GRAMMAR_AUTO};
    struct grammar *g = NULL;
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < GRAMMAR_MAX_TOOLS; i++) {
        sprintf(names[i], "tool_%d", i);
        list[i] = (struct grammar_tool){names[i], schema, sizeof schema - 1};
    }
    assert_int_equal(grammar_from_calls(&g, &c, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "together"));
    c.n_tools = 10;
    grammar_unref(grammar_with(&c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_valid),
        cmocka_unit_test(choices),
        cmocka_unit_test(thoughts),
        cmocka_unit_test(headers_of_messages),
        cmocka_unit_test(texts_announce_calls),
        cmocka_unit_test(arguments_are_objects),
        cmocka_unit_test(control_tokens),
        cmocka_unit_test(texts_follow_a_schema),
        cmocka_unit_test(refusals),
        cmocka_unit_test(schemas_are_bounded),
        cmocka_unit_test(work_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
