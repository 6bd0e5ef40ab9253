/* SPDX-License-Identifier: MIT
 *
 * test_calls_many.c - 200 tools with a megabyte of schemas: only what is called is
 * built, and what beginning and masks cost
 */
#include <time.h>

#include "tests/engine/grammar/call_check.h"

#define VOCABULARIES SLM_SOURCE_DIR "/../shared/golden/tokenizers/"

/* ---- many tools ------------------------------------------------------------------ */

enum { N_MANY = 200, MANY_BYTES = 5300 };
static char many_names[N_MANY][40], many_schemas[N_MANY][2 * MANY_BYTES];
static struct grammar_tool many[N_MANY];

static void make_many(void)
{
    for (int i = 0; i < N_MANY; i++) {
        char *s = many_schemas[i];
        size_t n = 0;

        snprintf(many_names[i], sizeof many_names[i], "service_%d_do_thing_%d", i % 7,
                 i);
        n += (size_t)sprintf(s + n, "{\"type\":\"object\",\"properties\":{");
        for (int k = 0; n < MANY_BYTES; k++)
            n += (size_t)sprintf(
                s + n,
                "%s\"parameter_%d_%d\":{\"description\":\"what it is for, in "
                "some words\",%s}",
                k ? "," : "", i, k,
                k % 4 == 0   ? "\"type\":\"string\""
                : k % 4 == 1 ? "\"enum\":[\"alpha\",\"beta\",\"gamma\"]"
                : k % 4 == 2 ? "\"type\":\"array\",\"items\":{\"type\":\"object\","
                               "\"properties\":{\"x\":{\"type\":\"integer\"},\"y\":{"
                               "\"type\":\"string\",\"format\":\"date\"}}}"
                             : "\"type\":[\"number\",\"null\"],\"minimum\":0");
        sprintf(s + n, "},\"required\":[\"parameter_%d_0\",\"parameter_%d_1\"]}", i, i);
        many[i] = (struct grammar_tool){many_names[i], s, strlen(s)};
    }
}

/* CPU time, which others on the machine do not change. */
static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Only tools that are called are built, and their answers are valid. */
static void many_tools(void **state)
{
    const struct grammar_calls c = {
        .form = &tags, .tools = many, .n_tools = N_MANY, .choice = GRAMMAR_REQUIRED};
    struct grammar_vocab *v = grammar_vocabulary(false);
    struct grammar *g;
    size_t bytes = 0;

    (void)state;
    make_many();
    for (int i = 0; i < N_MANY; i++)
        bytes += many[i].len;
    assert_true(bytes > 1 << 20);
    g = grammar_with(&c);
    assert_true(grammar_bytes(g) < 4 << 20);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        bool complete;

        write_answer(g, c.form, v, seed, 3000, &complete);
        check_answer(g, &tags, many, N_MANY, complete, NULL, 0);
    }
    assert_in_range(v->machines->own.n_nodes, 100, 150000);
    grammar_unref(g);
    grammar_vocab_close(v);
}

/* Where there is no room for a tool's arguments, no text follows its name; and the next
 * answer has a machine with room. */
static void no_room(void **state)
{
    static const char name[] = "<call>\n{\"name\": \"service_0_do_thing_0\", "
                               "\"arguments\": ";
    const struct grammar_calls c = {
        .form = &tags, .tools = many, .n_tools = N_MANY, .choice = GRAMMAR_REQUIRED};
    struct grammar_vocab *v = grammar_vocabulary(false);
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)];
    struct grammar *g = grammar_with(&c);
    struct grammar_state *full = NULL, *s = NULL;
    struct err err = ERR_INIT;
    int32_t bytes[256];

    (void)state;
    list_bytes(v, bytes);
    assert_int_equal(grammar_state_open(&full, g, v, &err), ST_OK);
    full->m->own.max_nodes = full->m->own.n_nodes + 10;
    n_answer = 0;
    assert_true(write_bytes(full, bytes, name));
    assert_false(write_bytes(full, bytes, "{"));
    assert_false(grammar_state_mask(full, mask));
    assert_false(grammar_state_complete(full));
    for (int32_t id = 0; id < GRAMMAR_VOCAB; id++)
        assert_int_equal(mask[id / 32] >> id % 32 & 1, id == GRAMMAR_END);
    assert_int_equal(grammar_state_open(&s, g, v, &err), ST_OK);
    assert_ptr_not_equal(s->m, full->m);
    assert_true(write_bytes(s, bytes, name));
    assert_true(write_bytes(s, bytes, "{"));
    grammar_state_close(full);
    grammar_state_close(s);
    grammar_unref(g);
    grammar_vocab_close(v);
}

/* An answer in a machine that had no room for another tool's arguments, for `room`
 * nodes of them, and has room now: it may write what it may in one that has built
 * nothing yet. True: there was room for all. */
static bool same_without_room(const struct grammar_calls *c, uint32_t room,
                              const char *first, const char *text)
{
    struct grammar_vocab *v = grammar_vocabulary(false), *w = grammar_vocabulary(false);
    uint32_t mask[GRAMMAR_MASK_WORDS(GRAMMAR_VOCAB)], other[sizeof mask / sizeof *mask];
    struct grammar *g = grammar_with(c);
    struct grammar_state *full = grammar_start(g, v), *s = grammar_start(g, v);
    struct grammar_state *fresh = grammar_start(g, w);
    int32_t bytes[256];
    bool fits;

    list_bytes(v, bytes);
    assert_ptr_equal(full->m, s->m);
    full->m->own.max_nodes = full->m->own.n_nodes + room;
    n_answer = 0;
    write_bytes(full, bytes, first);
    assert_in_range(n_answer, strlen(first) - 2, strlen(first));
    fits = n_answer == strlen(first);
    full->m->own.max_nodes = fresh->m->own.max_nodes;
    for (; *text; text++) {
        assert_true(grammar_state_accept(s, bytes[(uint8_t)*text]));
        assert_true(grammar_state_accept(fresh, bytes[(uint8_t)*text]));
        grammar_state_mask(s, mask);
        grammar_state_mask(fresh, other);
        assert_memory_equal(mask, other, sizeof mask);
    }
    grammar_state_close(full);
    grammar_state_close(s);
    grammar_state_close(fresh);
    grammar_unref(g);
    grammar_vocab_close(v);
    grammar_vocab_close(w);
    return fits;
}

/* What did not fit leaves nothing behind, at whatever place of the arguments that was:
 * rules that tools share are made again. */
static void no_room_leaves_nothing(void **state)
{
    static const struct grammar_tool two[] = {
        TOOL("f", "{\"properties\": {\"long\": {\"pattern\": \"^[a-z]{1,60}$\"}, "
                  "\"any\": {}, \"n\": {\"type\": \"number\"}, \"i\": {\"type\": "
                  "\"integer\"}, \"s\": {\"type\": \"string\"}}}"),
        TOOL("g", "{\"properties\": {\"s\": {\"type\": \"string\"}, \"i\": {\"type\": "
                  "\"integer\"}, \"n\": {\"type\": \"number\"}, \"any\": {}}}"),
    };
    static const struct {
        struct call_form *form;
        const char *first, *text;
    } cases[] = {
        {&tags, "<call>\n{\"name\": \"f\", \"arguments\": {",
         "<call>\n{\"name\": \"g\", \"arguments\": {\"s\": \"ab\", \"i\": 12, \"n\": "
         "1.5e+1, \"any\": [{\"x\": \"y\"}, -2]}}"},
        {&xml, "<call><function=f>",
         "<call><function=g>\n<parameter=s>\na b\n</parameter>\n<parameter=i>\n12"
         "\n</parameter>\n<parameter=n>\n1.5\n</parameter>\n<parameter=any>\n<a"},
    };

    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct grammar_calls c = {.form = cases[i].form,
                                        .tools = two,
                                        .n_tools = 2,
                                        .choice = GRAMMAR_REQUIRED};
        uint32_t room = 10;

        while (!same_without_room(&c, room, cases[i].first, cases[i].text))
            room += room / 8;
        assert_true(room > 200);
    }
}

/* ---- published vocabularies ------------------------------------------------------ */

/* What reading the clock takes. */
static double clock_s(void)
{
    const double begin = cpu_seconds();

    for (int i = 0; i < 999; i++)
        cpu_seconds();
    return (cpu_seconds() - begin) / 1000;
}

/* CPU time of tokens. */
enum { MAX_TIMES = 20000 };
static double times[MAX_TIMES];
static int n_times;

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_times(const char *what)
{
    const double clock = 2 * clock_s(); /* it is in each time twice */
    double sum = 0;

    for (int i = 0; i < n_times; i++)
        times[i] -= clock;
    qsort(times, (size_t)n_times, sizeof *times, compare_times);
    for (int i = 0; i < n_times; i++)
        sum += times[i];
    print_message("%s: %d tokens, median %.1f us, mean %.1f, p99 %.0f, worst %.0f\n",
                  what, n_times, times[n_times / 2] * 1e6, sum * 1e6 / n_times,
                  times[n_times * 99 / 100] * 1e6, times[n_times - 1] * 1e6);
    n_times = 0;
}

/* Whether a mask has tokens but ends, which it has no more. */
static bool without_ends(const struct grammar_vocab *v, uint32_t *mask)
{
    size_t i = 0;

    for (int k = 0; k < v->n_ends; k++)
        mask[v->end[k] / 32] &= ~(UINT32_C(1) << v->end[k] % 32);
    while (i < GRAMMAR_MASK_WORDS(v->n_vocab) && !mask[i])
        i++;
    return i < GRAMMAR_MASK_WORDS(v->n_vocab);
}

/* A mask, and one of its tokens that is no end, taken in; false: there is no other. */
static bool timed_token(struct grammar_state *s, uint32_t *mask, uint64_t *seed)
{
    const double begin = cpu_seconds();
    double masked;
    int32_t id;

    grammar_state_mask(s, mask);
    masked = cpu_seconds();
    if (!without_ends(s->v, mask))
        return false;
    id = choose(mask, s->v->n_vocab, seed);
    assert_true(n_times < MAX_TIMES);
    times[n_times] = masked - cpu_seconds();
    assert_true(grammar_state_accept(s, id));
    times[n_times++] += cpu_seconds() - begin;
    return true;
}

/* A text that may turn into a call at any token; the first mask is a walk through the
 * vocabulary. */
static void print_text_costs(struct grammar *g, struct grammar_vocab *v, uint32_t *mask)
{
    struct grammar_state *s = NULL;
    struct err err = ERR_INIT;
    uint64_t seed = 9;

    assert_int_equal(grammar_state_open(&s, g, v, &err), ST_OK);
    while (n_times < 5000 && timed_token(s, mask, &seed))
        ;
    print_times("text");
    grammar_state_close(s);
}

/* Behind the name of each tool, up to the end of its call or for 150 tokens; what
 * closes a value comes more often than chance has it. The arguments of a tool are built
 * with the first of its tokens. */
static void print_call_costs(struct grammar *g, struct grammar_vocab *v,
                             const struct call_form *form, uint32_t *mask)
{
    static const char *const closing[] = {"\"", "\n", "<", "]", "}"};
    struct err err = ERR_INIT;
    uint64_t seed = 9;
    int32_t bytes[256];

    list_bytes(v, bytes);
    for (int i = 0; i < N_MANY / 2; i++) {
        struct grammar_state *s = NULL;
        char begin[200];

        assert_int_equal(grammar_state_open(&s, g, v, &err), ST_OK);
        snprintf(begin, sizeof begin, "%s%s%s", form->begin, many_names[2 * i],
                 form->sep);
        n_answer = 0;
        assert_true(write_bytes(s, bytes, begin) && n_answer == strlen(begin));
        for (int k = 0; k < 150 && timed_token(s, mask, &seed); k++)
            if (test_random(&seed) % 4 == 0)
                write_bytes(s, bytes, closing[test_random(&seed) % 5]);
        grammar_state_close(s);
    }
    print_times("arguments");
}

static void print_costs(struct grammar *g, struct grammar_vocab *v,
                        const struct call_form *form)
{
    uint32_t *mask = calloc(GRAMMAR_MASK_WORDS(v->n_vocab), sizeof *mask);

    print_text_costs(g, v, mask);
    print_call_costs(g, v, form, mask);
    free(mask);
}

/* 1,000 answers of each vocabulary among 200 tools, half of JSON and half of XML; how
 * long the beginning and masks take. */
static void published_vocabularies(void **state)
{
    static const char *const names[] = {"ggml-vocab-qwen2.gguf",
                                        "ggml-vocab-llama-spm.gguf"};
    const uint64_t n_seeds = 1000;

    (void)state;
    if (!getenv("SLM_TEST_LONG"))
        skip();
    make_many();
    for (int i = 0; i < 2; i++) {
        struct gguf *file;
        struct tokenizer *tok;
        struct grammar_vocab *v;
        struct err err = ERR_INIT;
        char path[512];
        int n_complete = 0, n_calls = 0;

        snprintf(path, sizeof path, "%s%s", VOCABULARIES, names[i]);
        if (gguf_open(&file, path, &err)) {
            print_message("skipped: %s\n", err.msg);
            skip();
        }
        assert_int_equal(tokenizer_open(&tok, file, &err), ST_OK);
        assert_int_equal(grammar_vocab_open(&v, tok, &err), ST_OK);
        for (int f = 0; f < 2; f++) {
            struct grammar_calls c = {.form = f ? &xml : &tags,
                                      .tools = many,
                                      .n_tools = N_MANY,
                                      .choice = GRAMMAR_REQUIRED,
                                      .parallel = true};
            const double begin = cpu_seconds();
            struct grammar *g = grammar_with(&c);
            const double begin_s = cpu_seconds() - begin, answers = cpu_seconds();

            for (uint64_t seed = 1; seed <= n_seeds / 2; seed++) {
                bool complete;

                write_answer(g, c.form, v, seed, 3000, &complete);
                n_calls += check_answer(g, c.form, many, N_MANY, complete, NULL, 0);
                n_complete += complete;
            }
            print_message("%s, %s: grammar %.0f ms, answers %.1f s\n", names[i],
                          f ? "XML" : "JSON", begin_s * 1e3, cpu_seconds() - answers);
            grammar_unref(g);
            c.choice = GRAMMAR_AUTO;
            g = grammar_with(&c);
            print_costs(g, v, c.form);
            grammar_unref(g);
        }
        print_message("%s: %d of %d complete, %d calls, all valid\n", names[i],
                      n_complete, (int)n_seeds, n_calls);
        grammar_vocab_close(v);
        tokenizer_close(tok);
        gguf_close(file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_tools),
        cmocka_unit_test(no_room),
        cmocka_unit_test(no_room_leaves_nothing),
        cmocka_unit_test(published_vocabularies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
