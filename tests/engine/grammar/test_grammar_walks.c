/* SPDX-License-Identifier: MIT
 *
 * test_grammar_walks.c - random texts of many schemas: what the masks allow is what is
 * accepted, ends, and is valid
 */
#include "engine/grammar/machine.h"
#include "tests/support/grammar_check.h"
#include "tests/support/schema_check.h"

#define OBJECT(properties, required)                                               \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required \
    "],\"additionalProperties\":false}"

static const char *const schemas[] = {
    NULL,
    "{}",
    "{\"type\":\"string\"}",
    "{\"type\":\"string\",\"minLength\":2,\"maxLength\":4}",
    "{\"type\":\"string\",\"maxLength\":0}",
    "{\"type\":\"integer\"}",
    "{\"type\":\"integer\",\"minimum\":-12,\"maximum\":1234}",
    "{\"type\":\"integer\",\"exclusiveMinimum\":99}",
    "{\"type\":\"integer\",\"maximum\":-7}",
    "{\"type\":\"number\"}",
    "{\"type\":\"boolean\"}",
    "{\"type\":[\"integer\",\"null\",\"string\"]}",
    "{\"enum\":[\"red\",\"green\",\"re\",12,1.5,null,{\"a\":[1,\"\\n\"]},\"a\\\"b\"]}",
    "{\"const\":{\"a\":[true,false]}}",
    "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}",
    "{\"type\":\"array\",\"items\":{\"enum\":[1,12,123]},\"minItems\":2,\"maxItems\":"
    "3}",
    "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"boolean\"}]"
    ","
    "\"items\":{\"type\":\"null\"},\"minItems\":1,\"maxItems\":4}",
    "{\"type\":\"array\",\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":"
    "false}",
    "{\"type\":\"array\"}",
    OBJECT("\"name\":{\"type\":\"string\"},\"id\":{\"type\":\"integer\"}",
           "\"name\",\"id\""),
    OBJECT("\"name\":{\"type\":\"string\"},\"id\":{\"type\":\"integer\"},\"a\":{}",
           "\"id\""),
    OBJECT("\"a\":{\"type\":\"null\"},\"ab\":{\"const\":1},\"abc\":{\"const\":2}", ""),
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"\\u00e9\":"
    "{\"const\":1},\"a\\\"b\":{\"const\":2}},\"required\":[\"a\"],"
    "\"additionalProperties\":{\"type\":\"string\"}}",
    "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"}}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1}},\"required\":[\"b\"]}",
    "{\"anyOf\":[{\"type\":\"string\",\"maxLength\":2},{\"type\":\"integer\"},"
    "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]}",
    "{\"anyOf\":[" OBJECT(
        "\"kind\":{\"const\":\"a\"},\"value\":{\"type\":\"string\"}",
        "\"kind\",\"value\"") "," OBJECT("\"kind\":{\"const\":\"ab\"},\"value\":{"
                                         "\"type\":\"integer\"}",
                                         "\"kind\",\"value\"") "]}",
    "{\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":" OBJECT(
        "\"value\":{\"type\":\"integer\"},\"next\":{\"anyOf\":[{\"$ref\":"
        "\"#/$defs/node\"},{\"type\":\"null\"}]}",
        "\"value\",\"next\"") "}}",
    OBJECT("\"children\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}},\"name\":{"
           "\"type\":\"string\"}",
           "\"children\",\"name\""),
    "{\"anyOf\":[" OBJECT(
        "\"children\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}},"
        "\"kind\":{\"const\":\"a\"}",
        "\"children\",\"kind\"") "," OBJECT("\"children\":{\"type\":\"array\","
                                            "\"items\":{\"$ref\":\"#\"}},"
                                            "\"kind\":{\"const\":\"ab\"}",
                                            "\"children\",\"kind\"") "]}",
    /* numbers between limits */
    "{\"type\":\"number\",\"minimum\":0}",
    "{\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":12}",
    "{\"type\":\"number\",\"minimum\":-3,\"exclusiveMaximum\":2}",
    "{\"type\":\"number\",\"maximum\":-1}",
    "{\"type\":\"integer\",\"minimum\":1000000000000000000,\"maximum\":"
    "1200000000000000000}",
    "{\"type\":\"integer\",\"minimum\":0.5,\"maximum\":10.5}",
    "{\"type\":\"number\",\"minimum\":0.5,\"exclusiveMaximum\":1.5}",
    "{\"type\":\"number\",\"exclusiveMinimum\":-123.456,\"maximum\":0.001}",
    "{\"type\":\"integer\",\"minimum\":0,\"multipleOf\":15}",
    /* patterns */
    "{\"type\":\"string\",\"pattern\":\"^[a-c]{2,4}$\"}",
    "{\"type\":\"string\",\"pattern\":\"^(red|re|green)+$\"}",
    "{\"type\":\"string\",\"pattern\":\"ab\"}",
    "{\"type\":\"string\",\"pattern\":\"^\\\\d+(\\\\.\\\\d{1,2})?$|^none$\"}",
    "{\"type\":\"string\",\"pattern\":\"^[^a-z\\\"]*$\",\"maxLength\":6}",
    "{\"type\":\"string\",\"pattern\":\"^(a|aa)*$\",\"minLength\":3,\"maxLength\":5}",
    "{\"type\":\"string\",\"pattern\":\"^.[\\u00e9\\u20ac]\\\\\\\\.$\"}",
    "{\"type\":\"string\",\"pattern\":\"\\\\n\",\"minLength\":4}",
    "{\"type\":\"string\",\"pattern\":\"^\\\\w+@\\\\w+$\",\"minLength\":4,"
    "\"maxLength\":12}",
    "{\"type\":\"string\",\"format\":\"time\",\"pattern\":\"^1.:.*Z$\"}",
    "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^[A-Z]?x$\"},"
    "\"maxItems\":3}",
    /* several schemas for one value */
    "{\"allOf\":[{\"type\":\"integer\",\"minimum\":3},{\"type\":\"number\",\"maximum\":"
    "9}]}",
    "{\"allOf\":[" OBJECT(
        "\"a\":{\"type\":\"integer\"},\"ab\":{}",
        "\"a\"") ",{"
                 "\"properties\":{\"a\":{\"minimum\":5},\"abc\":{\"const\":1}}}]}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1},\"ab\":{\"const\":2}},"
    "\"additionalProperties\":false,\"anyOf\":[{\"required\":[\"a\"]},{\"required\":["
    "\"ab\"]}]}",
    "{\"$ref\":\"#/$defs/x\",\"maxLength\":3,\"$defs\":{\"x\":{\"type\":\"string\","
    "\"minLength\":2}}}",
    "{\"enum\":[1,2,3,\"a\"],\"allOf\":[{\"enum\":[2,3,\"a\"]},{\"type\":\"integer\"}]"
    "}",
    "{\"oneOf\":[{\"type\":\"string\",\"maxLength\":3},{\"type\":\"null\"},{\"enum\":["
    "1,2]}]}",
    "{\"oneOf\":[" OBJECT("\"kind\":{\"const\":\"a\"}", "\"kind\"") "," OBJECT(
        "\"kind\":{\"enum\":[\"ab\",\"abc\"]},\"a\":{}", "\"kind\"") "]}",
    "{\"oneOf\":[" OBJECT("\"a\":{\"type\":\"null\"}", "\"a\"") "," OBJECT(
        "\"ab\":{\"type\":\"null\"}", "\"ab\"") "]}",
    "{\"anyOf\":[{\"type\":\"string\",\"maxLength\":1},{\"allOf\":[{\"type\":\"array\","
    "\"items\":{\"type\":\"integer\"}},{\"items\":{\"maximum\":3},\"maxItems\":2}]}]}",
    "{\"enum\":[1,\"a\",1,\"a\",12,1]}",
    "{\"type\":\"string\",\"pattern\":\"^((((){9}){9}|x){9}a?){0,3}$\"}",
    /* limits nearer than the longest token, and farther */
    "{\"type\":\"string\",\"maxLength\":25}",
    "{\"type\":\"string\",\"minLength\":18,\"maxLength\":22}",
    "{\"type\":\"array\",\"items\":{\"enum\":[1,12]},\"minItems\":8,\"maxItems\":20}",
    /* what cannot be is left out */
    "{\"anyOf\":[{\"type\":\"string\",\"minLength\":3,\"maxLength\":2},{\"const\":1}]}",
    "{\"type\":\"object\",\"properties\":{\"a\":false,\"ab\":{\"const\":1}},"
    "\"required\":[\"ab\"],\"additionalProperties\":false}",
    /* integers beyond 64 bits */
    "{\"minimum\":1e19}",
    "{\"type\":\"integer\",\"minimum\":-2e19,\"exclusiveMaximum\":-1e19}",
    "{\"enum\":[18446744073709551616,{\"a\":[-9223372036854775809]},1]}",
};
#define N_SCHEMAS (sizeof schemas / sizeof *schemas)

/* Every bit of the mask is what accepting a copy says. */
static void check_mask(struct grammar_state *s, const uint32_t *mask,
                       const char *schema, const char *text)
{
    struct grammar_state *copy = NULL;
    struct err err = ERR_INIT;

    for (int id = 0; id < GRAMMAR_VOCAB; id++) {
        if (!copy && grammar_state_copy(&copy, s, &err))
            fail_msg("%s", err.msg);
        const bool takes = grammar_state_accept(copy, id);

        if (takes != grammar_bit(mask, id))
            fail_msg("%s\nafter %s\nthe mask %s token %d", schema, text,
                     takes ? "lacks" : "has", id);
        if (takes) {
            grammar_state_close(copy);
            copy = NULL;
        }
    }
    grammar_state_close(copy);
}

/* A token of the mask; once the text is long, one that brings its end nearer. */
static int choose(const uint32_t *mask, size_t len, uint64_t *seed)
{
    static const char closing[] = "\"}]01el:a";
    int ids[GRAMMAR_VOCAB], n = 0;

    if (grammar_bit(mask, GRAMMAR_END) && (len > 60 || test_random(seed) % 3 == 0))
        return GRAMMAR_END;
    for (const char *c = closing; *c && len > 60 && test_random(seed) % 4; c++) {
        if (grammar_bit(mask, GRAMMAR_ASCII + *c - 0x20))
            return GRAMMAR_ASCII + *c - 0x20;
    }
    for (int id = 0; id < GRAMMAR_VOCAB; id++) {
        if (grammar_bit(mask, id))
            ids[n++] = id;
    }
    assert_true(n > 0);
    return ids[test_random(seed) % (uint64_t)n];
}

static const struct tokenizer *tok;

/* One text to its end; false: it was given up because it grew too long. */
static bool walk(struct grammar *g, struct grammar_vocab *v, const char *schema,
                 uint64_t *seed, bool brute)
{
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)];
    struct grammar_state *s = grammar_start(g, v);
    char text[2048];
    size_t len = 0;
    int id = 0;

    while (len < sizeof text - 64) {
        text[len] = '\0';
        grammar_state_mask(s, mask);
        if (brute && len < 200)
            check_mask(s, mask, schema, text);
        id = choose(mask, len, seed);
        assert_true(grammar_state_accept(s, id));
        if (id == GRAMMAR_END)
            break;
        len += tokenizer_piece(tok, id, text + len, 32);
        if (grammar_state_ended(s))
            break;
    }
    text[len] = '\0';
    const bool complete = id == GRAMMAR_END || grammar_state_ended(s);

    if (complete && !schema_text_valid(schema, text, len))
        fail_msg("%s\nallows %s", schema, text);
    grammar_state_close(s);
    return complete;
}

static void texts_are_valid(void **state)
{
    struct grammar_vocab *v = grammar_vocabulary(false);
    struct tokenizer *t = grammar_tokenizer(false);
    const unsigned thin = test_thin();
    uint64_t seed = 1;

    (void)state;
    tok = t;
    for (size_t i = 0; i < N_SCHEMAS; i++) {
        struct grammar *g = grammar_of(schemas[i]);
        int n_complete = 0;
        const int n = (int)(60 / thin) + 4;

        for (int k = 0; k < n; k++)
            n_complete += walk(g, v, schemas[i], &seed, k < 2);
        if (n_complete * 4 < n * 3)
            fail_msg("%s: %d of %d texts came to an end", schemas[i], n_complete, n);
        grammar_unref(g);
    }
    tokenizer_close(t);
    grammar_vocab_close(v);
}

/* A text is accepted however it is cut into tokens, also where all that is not in use
 * is forgotten with each. */
static void cut_anyhow(const char *schema, const char *text, struct grammar_vocab *v,
                       uint64_t *seed)
{
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)];
    struct grammar *g = grammar_of(schema);

    assert_true(schema_text_valid(schema, text, strlen(text)));
    for (int round = 0; round < 20; round++) {
        struct grammar_state *s = grammar_start(g, v);

        if (round == 10)
            s->m->max_step_bytes = 0;
        for (const char *at = text; *at;) {
            int fits[GRAMMAR_VOCAB], n = 0;
            char piece[32];

            for (int id = 3; id < GRAMMAR_VOCAB; id++) {
                const size_t len = tokenizer_piece(tok, id, piece, sizeof piece);

                if (!strncmp(piece, at, len) && (size_t)strlen(at) >= len)
                    fits[n++] = id;
            }
            const int id = fits[test_random(seed) % (uint64_t)n];

            grammar_state_mask(s, mask);
            if (!grammar_bit(mask, id) || !grammar_state_accept(s, id))
                fail_msg("%s\nrefuses token %d before %s\nof %s", schema, id, at, text);
            at += tokenizer_piece(tok, id, piece, sizeof piece);
        }
        assert_true(grammar_may_end(s));
        grammar_state_close(s);
    }
    grammar_unref(g);
}

static void cuts(void **state)
{
    struct grammar_vocab *v = grammar_vocabulary(false);
    struct tokenizer *t = grammar_tokenizer(false);
    uint64_t seed = 7;

    (void)state;
    tok = t;
    cut_anyhow(
        "{}",
        "{\"name\": [12, -0.5, 1.5e+10, \"a\\u00e9\\ud83d\\ude00\xc3\xa9\xf0\x9f\x98"
        "\x80\xe2\x82\xac\\\"\\n\"],\n  \"x\": [{}, [[]], true, false, null]}",
        v, &seed);
    cut_anyhow(schemas[19], "{\"name\":\"hello the world\",\"id\":12000}", v, &seed);
    cut_anyhow(schemas[27],
               "{\"value\": 123, \"next\": {\"value\": 10, \"next\": {\"value\": 99, "
               "\"next\": null}}}",
               v, &seed);
    cut_anyhow(
        schemas[28],
        "{\"children\":[{\"children\":[],\"name\":\"red\"},{\"children\":[{"
        "\"children\":[],\"name\":\"\"}],\"name\":\"green\"}],\"name\":\"blue\"}",
        v, &seed);
    cut_anyhow(
        schemas[29],
        "{\"children\":[{\"children\":[],\"kind\":\"ab\"},{\"children\":[],\"kind\":"
        "\"a\"}],\"kind\":\"ab\"}",
        v, &seed);
    cut_anyhow(schemas[29],
               "{\"children\":[{\"children\":[],\"kind\":\"a\"}],\"kind\":\"a\"}", v,
               &seed);
    cut_anyhow(schemas[22],
               "{\"a\":12,\"\xc3\xa9\":1,\"a\\\"b\":2,\"ab\":\"\",\"\":\"1\"}", v,
               &seed);
    cut_anyhow("{\"type\":\"string\",\"pattern\":\"^(aaaa|ab?)+\\\\d{2}$\"}",
               "\"aaaaabaaaaaa99\"", v, &seed);
    cut_anyhow("{\"type\":\"string\",\"format\":\"date-time\"}",
               "\"2024-12-10T12:10:00.123Z\"", v, &seed);
    tokenizer_close(t);
    grammar_vocab_close(v);
}

/* With hardly any memory to remember things, masks are the same. */
static void forgets(void **state)
{
    struct grammar_vocab *v = grammar_vocabulary(false), *w = grammar_vocabulary(false);
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)], other[sizeof mask / sizeof *mask];
    uint64_t seed = 11;

    (void)state;
    for (size_t i = 0; i < N_SCHEMAS; i++) {
        struct grammar *g = grammar_of(schemas[i]);
        struct grammar_state *s = grammar_start(g, v), *t = grammar_start(g, w);
        struct grammar_state *early = grammar_start(g, v);

        s->m->max_mask_bytes = 1000;
        s->m->max_step_bytes = 1000;
        for (int k = 0; k < 40; k++) {
            grammar_state_mask(s, mask);
            grammar_state_mask(t, other);
            assert_memory_equal(mask, other, sizeof mask);
            const int id = choose(mask, (size_t)k, &seed);

            assert_true(grammar_state_accept(s, id) && grammar_state_accept(t, id));
            assert_int_equal(grammar_state_ended(s), grammar_state_ended(t));
            if (id == GRAMMAR_END)
                break;
        }
        grammar_state_close(t);
        t = grammar_start(g, w);
        grammar_state_mask(early, mask);
        grammar_state_mask(t, other);
        assert_memory_equal(mask, other, sizeof mask);
        grammar_state_close(early);
        grammar_state_close(s);
        grammar_state_close(t);
        grammar_unref(g);
    }
    grammar_vocab_close(v);
    grammar_vocab_close(w);
}

/* Nor does memory grow while tokens are only accepted. */
static void accepting_forgets(void **state)
{
    struct grammar_vocab *v = grammar_vocabulary(false);
    struct grammar *g = grammar_of("{\"type\":\"string\",\"maxLength\":1000}");
    struct grammar_state *s = grammar_start(g, v);
    size_t bytes = 0;

    (void)state;
    s->m->max_step_bytes = 0;
    assert_true(grammar_state_accept(s, GRAMMAR_ASCII + '"' - 0x20));
    for (int i = 0; i < 1000; i++) {
        assert_true(grammar_state_accept(s, GRAMMAR_ASCII + 'a' - 0x20));
        bytes = bytes ? bytes : grammar_state_bytes(s);
        assert_true(grammar_state_bytes(s) <= bytes);
    }
    assert_false(grammar_state_accept(s, GRAMMAR_ASCII + 'a' - 0x20));
    grammar_state_close(s);
    grammar_unref(g);
    grammar_vocab_close(v);
}

/* Near the deepest nesting masks know what tokens of several brackets open. */
static void deep_masks(void **state)
{
    struct grammar_vocab *v = grammar_vocabulary(false);
    struct grammar *g = grammar_of("{}");
    struct grammar_state *s = grammar_start(g, v);
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)];
    int depth = 0;

    (void)state;
    while (grammar_state_accept(s, GRAMMAR_ASCII + '[' - 0x20))
        if (++depth > 250) {
            grammar_state_mask(s, mask);
            check_mask(s, mask, "{}", "many brackets");
        }
    assert_int_equal(depth, 257);
    grammar_state_close(s);
    grammar_unref(g);
    grammar_vocab_close(v);
}

/* Where the work of masks is limited they have fewer tokens, and texts are valid all
 * the same: whatever byte may come is still there, where there is one way to go on. */
static void little_work(void **state)
{
    struct grammar_vocab *v = grammar_vocabulary(false), *w = grammar_vocabulary(false);
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)], all[sizeof mask / sizeof *mask];
    struct tokenizer *t = grammar_tokenizer(false);
    int n_fewer = 0, n_complete = 0;
    uint64_t seed = 12;

    (void)state;
    tok = t;
    for (size_t i = 0; i < N_SCHEMAS; i++) {
        struct grammar *g = grammar_of(schemas[i]);
        struct grammar_state *s = grammar_start(g, v), *free = grammar_start(g, w);

        s->m->max_work = 20;
        for (int k = 0; k < 60 && !grammar_state_ended(s); k++) {
            const struct position *p;
            int id;

            grammar_state_mask(s, mask);
            grammar_state_mask(free, all);
            p = &s->m->positions[machine_view(s->m, s->position)];
            /* what is begun is ended: the bytes of two walks, and of what returns */
            assert_true(p->mask->work <= 2 * 20 + 4 * 256);
            for (id = 0; id < GRAMMAR_VOCAB; id++) {
                if (grammar_bit(mask, id)) {
                    assert_true(grammar_bit(all, id));
                } else if (grammar_bit(all, id)) {
                    n_fewer++;
                    assert_true(p->n_configs > 1 || v->at[id + 1] - v->at[id] > 1);
                }
            }
            id = choose(mask, (size_t)k, &seed);
            assert_true(grammar_state_accept(s, id) && grammar_state_accept(free, id));
            if (id == GRAMMAR_END)
                break;
        }
        grammar_state_close(s);
        grammar_state_close(free);
        for (int k = 0; k < 20; k++)
            n_complete += walk(g, v, schemas[i], &seed, false);
        grammar_unref(g);
    }
    assert_true(n_fewer > 10000 && n_complete > 500);
    grammar_vocab_close(v);
    grammar_vocab_close(w);
    tokenizer_close(t);
}

/* The oracle itself refuses what it should. */
static void oracle(void **state)
{
    (void)state;
    assert_false(schema_text_valid(schemas[3], "\"a\"", 3));
    assert_true(schema_text_valid(schemas[3], "\"ab\"", 4));
    assert_false(schema_text_valid(schemas[6], "1235", 4));
    assert_false(schema_text_valid(schemas[19], "{\"name\":\"x\"}", 12));
    assert_false(schema_text_valid(schemas[14], "[1,\"a\"]", 7));
    assert_false(schema_text_valid(NULL, "[]", 2));
    assert_true(schema_text_valid("{\"minimum\":1e19}", "10000000000000000000", 20));
    assert_false(schema_text_valid("{\"minimum\":1e19}", "9999999999999990000", 19));
    assert_true(schema_text_valid(schemas[5], "-9223372036854775809", 20));
    assert_false(schema_text_valid(schemas[5], "1.5", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(oracle),
                                       cmocka_unit_test(texts_are_valid),
                                       cmocka_unit_test(cuts),
                                       cmocka_unit_test(forgets),
                                       cmocka_unit_test(accepting_forgets),
                                       cmocka_unit_test(deep_masks),
                                       cmocka_unit_test(little_work)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
