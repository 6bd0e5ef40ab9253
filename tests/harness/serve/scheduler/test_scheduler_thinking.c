/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_thinking.c - a budget of thoughts, text that is held back until a
 * completion ends, and calls that control tokens mark
 */
#include "engine/text/chat.h"
#include "tests/harness/serve/scheduler/served_model.h"

enum { N_PROMPT = 12, N_TOKENS = 24, BUDGET = 5 };

static char begin[] = "<think>", end[] = "</think>", closing[] = "</think>\n";
static const struct chat_thinking markers = {begin, end, closing, NULL};

/* The same greedy text with these stop strings and markers, by a scheduler of its own.
 */
static void generate(struct served *d, const struct completion_params *p,
                     struct served_text *t)
{
    struct scheduler *s = served_scheduler(d, 1, false);
    struct completion *c = served_submit(s, p);

    served_run(s);
    served_read(c, t);
    completion_close(c);
    scheduler_close(s);
}

/* After BUDGET tokens of thoughts come those that close the block, and then the answer.
 * Each budget costs its tokens, whatever the answer is. */
static void thoughts_have_a_budget(void **state)
{
    static struct served_text any, bound;
    struct served d;
    struct completion_params p;
    struct err err = ERR_INIT;
    int32_t prompt[N_PROMPT], *ids = NULL;
    size_t n_ids = 0;

    (void)state;
    served_open(&d, &SERVED_PLAIN, 1, 200, 0);
    served_prompt(prompt, N_PROMPT, 3);
    p = served_params(prompt, N_PROMPT, N_TOKENS);
    p.thinking = &markers;
    p.thinks = true;
    p.max_thought = -1;
    generate(&d, &p, &any);
    assert_int_equal(any.n, N_TOKENS);
    assert_int_equal(any.usage.n_thought, N_TOKENS);
    assert_int_equal(any.usage.n_forced, 0);
    assert_int_equal(any.len, 0); /* thoughts alone */

    assert_int_equal(tokenizer_encode(d.tok, closing, strlen(closing), false, true,
                                      &ids, &n_ids, &err),
                     ST_OK);
    assert_in_range(n_ids, 1, N_TOKENS - BUDGET - 1);
    p.max_thought = BUDGET;
    generate(&d, &p, &bound);
    assert_int_equal(bound.n, N_TOKENS);
    assert_memory_equal(bound.tokens, any.tokens, BUDGET * sizeof *ids);
    assert_memory_equal(bound.tokens + BUDGET, ids, n_ids * sizeof *ids);
    assert_int_equal(bound.usage.n_forced, n_ids);
    /* the token that ends the marker is no thought any more */
    assert_in_range(bound.usage.n_thought, BUDGET, BUDGET + (int)n_ids - 1);
    assert_true(bound.len > 0);
    free(ids);
    served_close(&d);
}

/* What may begin a stop string is kept back, and given out where the completion ends
 * without one. */
static void what_was_held_back_is_text(void **state)
{
    static struct served_text plain, held;
    char stop[16];
    const char *stops[] = {stop};
    struct served d;
    struct completion_params p;
    int32_t prompt[N_PROMPT];

    (void)state;
    served_open(&d, &SERVED_PLAIN, 1, 200, 0);
    served_prompt(prompt, N_PROMPT, 3);
    /* one that ends with a character of ASCII */
    for (int n = N_TOKENS;
         n == N_TOKENS || !plain.len || plain.text[plain.len - 1] < ' '; n--) {
        assert_true(n > 0);
        p = served_params(prompt, N_PROMPT, n);
        generate(&d, &p, &plain);
    }
    snprintf(stop, sizeof stop, "%c and no more", plain.text[plain.len - 1]);
    assert_null(strstr(plain.text, stop));
    p.stops = stops;
    p.n_stops = 1;
    generate(&d, &p, &held);
    assert_int_equal(held.end, COMPLETION_LENGTH);
    assert_string_equal(held.text, plain.text);
    served_close(&d);
}

/* A control token marks a call; text precedes it, and the grammar forces all of it. */
static void control_tokens_mark_calls(void **state)
{
    static struct call_form form = {.begin = "<call>\xff<s>\xff",
                                    .n_trigger = 9,
                                    .anywhere = true,
                                    .sep = "",
                                    .end = "<end>",
                                    .parameters = true,
                                    .open = "(",
                                    .join = "",
                                    .value = {"=", "="},
                                    .close = {")", ")"}};
    static const char schema[] = "{\"properties\": {\"a\": {\"const\": \"b\"}}, "
                                 "\"required\": [\"a\"]}";
    static const struct grammar_tool tool = {"f", schema, sizeof schema - 1};
    static const char call[] = "\x01"
                               "f\x02{\"a\": \"b\"}";
    const struct grammar_calls calls = {
        .form = &form, .tools = &tool, .n_tools = 1, .choice = GRAMMAR_REQUIRED};
    struct completion_piece piece;
    struct completion_params p;
    char read[200] = "";
    struct grammar *g = NULL;
    struct err err = ERR_INIT;
    int32_t prompt[N_PROMPT];
    struct scheduler *s;
    struct completion *c;
    struct served d;
    size_t n = 0;

    (void)state;
    assert_int_equal(grammar_from_calls(&g, &calls, &err), ST_OK);
    served_open(&d, &SERVED_PLAIN, 1, 200, 0);
    served_prompt(prompt, N_PROMPT, 3);
    p = served_params(prompt, N_PROMPT, 80);
    p.grammar = g;
    p.calls = &form;
    s = served_scheduler(&d, 1, false);
    c = served_submit(s, &p);
    served_run(s);
    while (completion_read(c, &piece)) {
        assert_true(n + piece.n_call < sizeof read);
        assert_int_equal(piece.len, 0);
        memcpy(read + n, piece.call, piece.n_call);
        n += piece.n_call;
        read[n] = '\0';
    }
    assert_string_equal(read, call);
    completion_close(c);
    scheduler_close(s);
    grammar_unref(g);
    served_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(thoughts_have_a_budget),
                                       cmocka_unit_test(what_was_held_back_is_text),
                                       cmocka_unit_test(control_tokens_mark_calls)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
