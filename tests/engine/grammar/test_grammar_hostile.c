/* SPDX-License-Identifier: MIT
 *
 * test_grammar_hostile.c - schemas made to cost much: they are refused with a sentence,
 * or their masks stay within limits of memory; states in several threads at once
 */
#include "tests/support/grammar_group.h"

#include <pthread.h>

static char schema[400 << 10];
static size_t n_text;

static void begin(void)
{
    n_text = 0;
}

__attribute__((format(printf, 1, 2))) static void add(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    n_text += (size_t)vsnprintf(schema + n_text, sizeof schema - n_text, fmt, args);
    va_end(args);
    assert_true(n_text < sizeof schema);
}

/* "before" + each(0), each(1), ... + "after"; each has one %d. */
#define REPEAT(before, n, each, after)     \
    do {                                   \
        begin();                           \
        add("%s", before);                 \
        for (int i_ = 0; i_ < (n); i_++) { \
            add("%s", i_ ? "," : "");      \
            add(each, i_);                 \
        }                                  \
        add("%s", after);                  \
    } while (0)

static void refused(const char *why)
{
    struct err err = ERR_INIT;
    struct grammar *g = NULL;

    if (grammar_from_schema(&g, schema, n_text, &err) != ST_INPUT)
        fail_msg("%.200s: %s", schema, g ? "accepted" : err.msg);
    if (!strstr(err.msg, why))
        fail_msg("%.200s: %s", schema, err.msg);
}

/* A text is begun with `first` and goes on at random; masks always have a token. */
static void bounded(const char *first)
{
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)];
    struct grammar *g = grammar_of(schema);
    struct grammar_state *s = grammar_start(g, group_vocab);
    uint64_t seed = 3;

    for (int i = 0; i < 40 && !grammar_state_ended(s); i++) {
        int id;

        grammar_state_mask(s, mask);
        if (*first) {
            id = 3 + (unsigned char)*first++;
        } else {
            id = (int)(test_random(&seed) % GRAMMAR_VOCAB);
            for (int k = 0; k < GRAMMAR_VOCAB && !grammar_bit(mask, id); k++)
                id = (id + 1) % GRAMMAR_VOCAB;
        }
        if (!grammar_state_accept(s, id))
            fail_msg("%.200s: token %d", schema, id);
        assert_true(grammar_state_bytes(s) < (size_t)64 << 20);
    }
    grammar_state_close(s);
    grammar_unref(g);
}

static void many_ways(void **state)
{
    (void)state;
    REPEAT("{\"anyOf\":[", 1000,
           "{\"type\":\"object\",\"properties\":{\"a\":{\"const\":%d}},\"required\":["
           "\"a\"],"
           "\"additionalProperties\":false}",
           "]}");
    bounded("{\"a");
    REPEAT("{\"anyOf\":[", 300, "{\"type\":\"string\",\"minLength\":%d}", "]}");
    bounded("\"aaa");
    REPEAT("{\"anyOf\":[", 20, "{\"type\":\"string\",\"pattern\":\"%d.{3}$\"}", "]}");
    bounded("\"12");
    REPEAT("{\"type\":\"object\",\"properties\":{", 3000,
           "\"p%d\":{\"type\":\"string\"}", "}}");
    bounded("{\"p1x");
    REPEAT("{\"enum\":[", 20000, "%d", "]}");
    bounded("1");
    REPEAT("{\"oneOf\":[", 300, "{\"const\":%d}", "]}");
    bounded("1");
    REPEAT("{\"oneOf\":[", 1500, "{\"const\":%d}", "]}");
    refused("too many to be compared");
}

static void references(void **state)
{
    (void)state;
    /* a long chain of nothing but references, and through it an array in itself */
    begin();
    add("{\"$ref\":\"#/$defs/a0\",\"$defs\":{\"a3000\":{\"type\":\"array\",\"items\":{"
        "\"$ref\":\"#/$defs/a0\"}}");
    for (int i = 0; i < 3000; i++)
        add(",\"a%d\":{\"$ref\":\"#/$defs/a%d\"}", i, i + 1);
    add("}}");
    bounded("[[[[[[[[");
    /* 2^n ways to read the same brackets */
    begin();
    add("{\"$ref\":\"#/$defs/a0\",\"$defs\":{\"a200\":{},\"a201\":{}");
    for (int i = 0; i < 200; i++)
        add(",\"a%d\":{\"anyOf\":[{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/"
            "a%d\"}},"
            "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/a%d\"}}]}",
            i, i + 1, i + 2);
    add("}}");
    bounded("[[[[[[[[[[[[[[[[[[[[[[[[");
    /* 2^n parts of one value */
    begin();
    add("{\"$ref\":\"#/$defs/a0\",\"$defs\":{\"a25\":{}");
    for (int i = 0; i < 25; i++)
        add(",\"a%d\":{\"allOf\":[{\"$ref\":\"#/$defs/a%d\"},{\"$ref\":\"#/$defs/"
            "a%d\"}]}",
            i, i + 1, i + 1);
    add("}}");
    refused("too many schemas for one value");
    REPEAT("{\"type\":\"string\",\"allOf\":[", 20,
           "{\"anyOf\":[{\"minLength\":%d},{\"maxLength\":9}]}", "]}");
    refused("too many schemas for one value");
    begin();
    add("{\"allOf\":[{\"$ref\":\"#\"}]}");
    refused("refers to itself");
}

static void patterns(void **state)
{
    static const char *const texts[] = {
        "a.{20}$",
        "(((a{100}){100}){100}){100}",
        "((((((a{0,4000}){0,4000}){0,4000}){0,4000}){0,4000}){0,4000}){0,4000}",
        "(.*a){30}.{30}b$",
        "[a-z]{4096}[0-9]{4096}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        begin();
        add("{\"pattern\":\"%s\"}", texts[i]);
        refused("too complex");
    }
    begin();
    add("{\"pattern\":\"((((((){4000}){4000}){4000}){4000}){4000}){4000}b\"}");
    bounded("\"a");
    begin();
    add("{\"pattern\":\"^(a|aa|aaa)+(b?)*c$\",\"maxLength\":30}");
    bounded("\"aaaa");
    begin();
    add("{\"pattern\":\"^([a-z]+ ?)+$\",\"maxLength\":40000}");
    refused("too complex together with minLength or maxLength");
    begin();
    add("{\"pattern\":\"");
    for (int i = 0; i < 70; i++)
        add("(");
    add("\"}");
    refused("too many groups");
    begin();
    add("{\"pattern\":\"");
    for (int i = 0; i < 2100; i++)
        add("a");
    add("\"}");
    refused("at most 2048 are");
    REPEAT("{\"type\":\"object\",\"properties\":{", 1000,
           "\"p%d\":{\"type\":\"string\",\"pattern\":\"^x[a-f]*$\"}",
           "},\"additionalProperties\":false}");
    bounded("{\"p7");
}

static void sizes(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 70; i++)
        add("{\"type\":\"array\",\"prefixItems\":[");
    add("{}");
    for (int i = 0; i < 70; i++)
        add("]}");
    refused("64 schemas are within each other");
    begin();
    for (int i = 0; i < 3000; i++)
        add("{\"items\":");
    add("{}");
    for (int i = 0; i < 3000; i++)
        add("}");
    refused("no JSON");
    begin();
    add("{\"title\":\"");
    for (int i = 0; i < 300 << 10; i++)
        schema[n_text++] = 'x';
    add("\"}");
    refused("at most");
    REPEAT("{\"enum\":[", 40000, "%d", "]}");
    refused("at most");
    begin();
    add("{\"type\":\"object\",\"properties\":{\"");
    for (int i = 0; i < 600; i++)
        add("x");
    add("\":{}}}");
    refused("a name is longer than 512 bytes");
    begin();
    add("{\"type\":\"array\",\"minItems\":65536}");
    bounded("[");
    begin(); /* each element is built once, not once for each place */
    for (int i = 0; i < 60; i++)
        add("{\"type\":\"array\",\"minItems\":3,\"maxItems\":50,\"items\":");
    add("{}");
    for (int i = 0; i < 60; i++)
        add("}");
    bounded("[[[[[[[[[[");
}

/* ---- threads --------------------------------------------------------------------- */

#define N_THREADS 4

static struct grammar *shared;
static uint64_t sums[N_THREADS];

static void *use(void *arg)
{
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)];
    uint64_t *sum = arg;

    for (int round = 0; round < 20; round++) {
        struct grammar_state *s = NULL;
        struct err err = ERR_INIT;
        uint64_t seed = (uint64_t)round;

        if (grammar_state_open(&s, shared, group_vocab, &err))
            return NULL;
        for (int i = 0; i < 30 && !grammar_state_ended(s); i++) {
            int id = (int)(test_random(&seed) % GRAMMAR_VOCAB);

            grammar_state_mask(s, mask);
            for (int k = 0; k < GRAMMAR_VOCAB && !grammar_bit(mask, id); k++)
                id = (id + 1) % GRAMMAR_VOCAB;
            if (!grammar_state_accept(s, id))
                return NULL;
            *sum = *sum * 31 + (uint64_t)id;
        }
        grammar_state_close(s);
    }
    return arg;
}

static void threads(void **state)
{
    pthread_t ids[N_THREADS];

    (void)state;
    shared = grammar_of("{}");
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, use, &sums[i]), 0);
    for (int i = 0; i < N_THREADS; i++) {
        void *done = NULL;

        pthread_join(ids[i], &done);
        assert_non_null(done);
        assert_true(sums[i] == sums[0]);
    }
    grammar_unref(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_ways), cmocka_unit_test(references),
        cmocka_unit_test(patterns),  cmocka_unit_test(sizes),
        cmocka_unit_test(threads),
    };

    return cmocka_run_group_tests(tests, open_vocab, close_vocab);
}
