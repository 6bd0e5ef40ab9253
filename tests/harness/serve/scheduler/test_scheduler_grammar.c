/* SPDX-License-Identifier: MIT
 *
 * test_scheduler_grammar.c - texts that follow a grammar, beside others that do not
 */
#include "tests/harness/serve/scheduler/served_check.h"

#include <jansson.h>

#include "engine/grammar/machine.h"
#include "engine/text/chat.h"
#include "tests/support/tiny_model.h"

enum { N_USERS = 9, N_CTX = 700, CHAT_END = SERVED_VOCAB - 1 };

/* A token that plain_vocabulary() lacks. */
static int missing_id = -1;

static const char SCHEMA[] =
    "{\"type\":\"object\",\"additionalProperties\":false,"
    "\"required\":[\"name\",\"kind\",\"count\"],\"properties\":{"
    "\"name\":{\"const\":\"a long and certain name\"},"
    "\"kind\":{\"enum\":[\"first\",\"second\",\"third\"]},"
    "\"count\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":999}}}";

static struct grammar *schema(const char *text)
{
    struct grammar *g = NULL;
    struct err err = ERR_INIT;

    if (grammar_from_schema(&g, text, strlen(text), &err))
        fail_msg("%s", err.msg);
    return g;
}

/* Every text is valid, whoever runs beside it, and if it was dropped, too. */
static void check_texts(int n_pages, int n_ctx)
{
    struct served d;
    struct scheduler *s;
    struct grammar *g = schema(SCHEMA);
    struct completion *c[N_USERS];
    int32_t prompt[240];
    static struct served_text t;

    served_open(&d, &SERVED_PLAIN, 4, n_ctx, n_pages);
    s = served_scheduler(&d, N_USERS, true);
    served_prompt(prompt, 240, 2);
    for (int i = 0; i < N_USERS; i++) {
        struct completion_params p = served_params(prompt, 20 * i + 5, 400);

        p.sampling.temperature = (float)(i % 3);
        p.sampling.seed = (uint64_t)i;
        p.begins_text = true;
        p.n_logprobs = 2;
        if (i % 3 < 2)
            p.grammar = g;
        c[i] = served_submit(s, &p);
    }
    grammar_unref(g);
    served_run(s);
    for (int i = 0; i < N_USERS; i++) {
        json_error_t error;
        json_t *json;

        served_read(c[i], &t);
        completion_close(c[i]);
        if (i % 3 == 2) {
            assert_int_equal(t.usage.n_forced, 0);
            assert_int_equal(t.end, COMPLETION_LENGTH);
            continue;
        }
        assert_int_equal(t.end, COMPLETION_STOP);
        assert_true(t.usage.n_forced > 10 && t.usage.n_forced < t.n);
        json = json_loads(t.text, JSON_REJECT_DUPLICATES, &error);
        if (!json)
            fail_msg("%s: %s", t.text, error.text);
        assert_string_equal(json_string_value(json_object_get(json, "name")),
                            "a long and certain name");
        assert_in_range(json_integer_value(json_object_get(json, "count")), 0, 999);
        json_decref(json);
    }
    scheduler_close(s);
    served_check_idle(&d);
    served_close(&d);
}

static void valid_texts(void **state)
{
    (void)state;
    check_texts(0, N_CTX);
}

static void valid_texts_with_few_pages(void **state)
{
    (void)state;
    check_texts(3, N_CTX);
}

/* The last token is one that ends answers of a chat, and a text as any other here.
 * A vocabulary of single characters that puts no blank before a text, as those that
 * are not of SentencePiece: so the first token is certain, too. */
static struct tokenizer *plain_vocabulary(void)
{
    struct tokenizer *tok = NULL;
    struct gguf *g = NULL;
    struct err err = ERR_INIT;
    struct tiny t;
    char text[16];
    size_t bytes;
    void *image;

    tiny_new(&t, "llama");
    tiny_key_str(&t, "tokenizer.ggml.model", "llama");
    tiny_key_bool(&t, "tokenizer.ggml.add_space_prefix", false);
    tiny_key_u32(&t, "tokenizer.ggml.bos_token_id", 1);
    tiny_key_u32(&t, "tokenizer.ggml.eos_token_id", 2);
    tiny_key(&t, "tokenizer.ggml.tokens", 9);
    tiny_u32(t.keys, 8);
    tiny_u64(t.keys, SERVED_VOCAB);
    for (int i = 0; i < SERVED_VOCAB; i++) {
        snprintf(text, sizeof text,
                 i < 3     ? "<%d>"
                 : i < 259 ? "<0x%02X>"
                           : "w%d",
                 i < 3 || i >= 259 ? i : i - 3);
        if (i >= 259 && i < 259 + 94)
            snprintf(text, sizeof text, "%c", '!' + i - 259);
        if (i == CHAT_END)
            snprintf(text, sizeof text, "<|im_end|>");
        tiny_str(t.keys, i == 259 + 94 ? "\xe2\x96\x81" : text);
    }
    tiny_key(&t, "tokenizer.ggml.scores", 9);
    tiny_u32(t.keys, 6);
    tiny_u64(t.keys, SERVED_VOCAB);
    for (int i = 0; i < SERVED_VOCAB; i++)
        fwrite(&(float){(float)-i}, sizeof(float), 1, t.keys);
    tiny_key(&t, "tokenizer.ggml.token_type", 9);
    tiny_u32(t.keys, 5);
    tiny_u64(t.keys, SERVED_VOCAB);
    for (int i = 0; i < SERVED_VOCAB; i++)
        tiny_u32(t.keys, i == missing_id ? 5
                         : i == 0        ? 2
                         : i < 3         ? 3
                         : i < 259       ? 6
                                         : 1);
    image = tiny_image(&t, &bytes);
    if (gguf_parse(&g, image, bytes, "vocabulary", &err) ||
        tokenizer_open(&tok, g, &err))
        fail_msg("%s", err.msg);
    gguf_close(g);
    free(image);
    return tok;
}

/* A model whose vocabulary can write all of a grammar's texts. */
static void open_plain(struct served *d, int n_sequences)
{
    served_open(d, &SERVED_PLAIN, n_sequences, N_CTX, 0);
    tokenizer_close(d->tok);
    d->tok = plain_vocabulary();
}

/* A text that is certain from the first token on takes no draw, and one step. */
static void certain_from_the_beginning(void **state)
{
    struct served d;
    struct scheduler *s;
    struct scheduler_stats stats;
    struct grammar *g = schema("{\"const\":\"only this\"}");
    const int32_t prompt[] = {300, 301, 302};
    struct completion_params p = served_params(prompt, 3, 30);
    struct completion *whole, *cut, *stopped;
    const char *stop = "y t";
    struct completion_piece piece;
    static struct served_text t;
    int n = 0;

    (void)state;
    open_plain(&d, 3);
    s = served_scheduler(&d, 4, false);
    p.grammar = g;
    p.n_logprobs = 3;
    whole = served_submit(s, &p);
    p.max_tokens = 4;
    cut = served_submit(s, &p);
    p.max_tokens = 30;
    p.stops = &stop;
    p.n_stops = 1;
    stopped = served_submit(s, &p);
    grammar_unref(g);
    served_run(s);
    scheduler_read_stats(s, &stats);
    assert_int_equal(stats.n_steps, 1);
    served_read(cut, &t);
    assert_string_equal(t.text, "\"onl");
    assert_int_equal(t.n, 4);
    assert_int_equal(t.end, COMPLETION_LENGTH);
    served_read(stopped, &t);
    assert_string_equal(t.text, "\"onl");
    assert_int_equal(t.end, COMPLETION_STOP);
    for (; completion_read(whole, &piece); n++) {
        assert_int_equal(piece.n_top, 0);
        assert_float_equal(piece.logprob, 0, 0);
    }
    assert_int_equal(n, strlen("\"only this\""));
    assert_int_equal(completion_end(whole), COMPLETION_STOP);
    completion_close(whole);
    completion_close(cut);
    completion_close(stopped);
    scheduler_close(s);
    served_close(&d);
}

struct watched {
    struct served *d;
    struct scheduler *s;
};

static void watch(void *arg)
{
    const struct watched *w = arg;

    served_check_step(w->d, w->s);
}

/* 57 tokens are certain after the choice of a letter. */
static const char two_long_texts[] =
    "{\"type\":\"array\",\"minItems\":2,\"items\":false,\"prefixItems\":["
    "{\"enum\":[\"one of two very long texts that have no choice in them\","
    "\"two of two very long texts that have no choice in them\"]},{\"enum\":[1,2]}]}";

/* More tokens are forced than a step takes: they come in as few steps as they fill. */
static void many_are_certain(void **state)
{
    struct served d;
    struct watched w = {.d = &d};
    struct scheduler_stats stats;
    struct grammar *g = schema(two_long_texts);
    const int32_t prompt[] = {300, 301, 302};
    struct completion_params p = served_params(prompt, 3, 80);
    struct completion *c[3];
    static struct served_text t;

    (void)state;
    open_plain(&d, 3);
    w.s = served_scheduler(&d, 4, false);
    p.grammar = g;
    for (int i = 0; i < 3; i++)
        c[i] = served_submit(w.s, &p);
    grammar_unref(g);
    slm_set_eval_hook(d.m, watch, &w);
    served_run(w.s);
    scheduler_read_stats(w.s, &stats);
    /* a few tokens of each are not certain */
    assert_true(stats.n_step_tokens > 3 * 57 && stats.n_steps < 12);
    for (int i = 0; i < 3; i++) {
        served_read(c[i], &t);
        assert_int_equal(t.end, COMPLETION_STOP);
        assert_true(t.n > 55);
        completion_close(c[i]);
    }
    scheduler_close(w.s);
    served_close(&d);
}

/* Where others wait for their next tokens, at most 8 are computed beside one of each.
 */
static void watch_limit(void *arg)
{
    const struct watched *w = arg;
    int n_generating = 0, n_tokens = 0;

    watch(arg);
    for (int i = 0; i < w->s->n_parts; i++) {
        n_generating += w->s->part_of[i]->n_done >= w->s->part_of[i]->n_prefill;
        n_tokens += w->s->parts[i].n;
    }
    if (n_generating > 1)
        assert_in_range(n_tokens - n_generating, 0, 8);
}

/* Tokens that are certain hold up nobody for longer than prompts may; who is alone has
 * them at once. */
static void certain_tokens_keep_the_limit(void **state)
{
    struct served d;
    struct watched w = {.d = &d};
    struct scheduler_stats stats;
    struct grammar *g = schema(two_long_texts);
    const int32_t prompt[] = {300, 301, 302};
    struct completion_params p = served_params(prompt, 3, 80);
    struct completion *c[3];
    static struct served_text t;

    (void)state;
    open_plain(&d, 3);
    slm_set_eval_hook(d.m, watch_limit, &w);
    for (int n_users = 3; n_users > 0; n_users -= 2) {
        w.s = served_scheduler(&d, 4, false);
        w.s->params.max_itl_s = 1e-9; /* which no step keeps */
        for (int i = 0; i < n_users; i++) {
            p.grammar = i < 2 ? g : NULL;
            c[i] = served_submit(w.s, &p);
        }
        served_run(w.s);
        scheduler_read_stats(w.s, &stats);
        assert_true(n_users == 1 ? stats.n_steps < 12 : stats.n_steps >= 80);
        for (int i = 0; i < n_users; i++) {
            served_read(c[i], &t);
            assert_int_equal(t.end, i < 2 ? COMPLETION_STOP : COMPLETION_LENGTH);
            assert_true(t.n > 55);
            completion_close(c[i]);
        }
        scheduler_close(w.s);
    }
    grammar_unref(g);
    served_close(&d);
}

/* Tokens that are certain before anything was computed are found and shared as those of
 * the prompt are, but they are none of it. */
static void certain_tokens_are_no_prompt(void **state)
{
    enum { N = 4, N_PROMPT = 40 };
    struct served d;
    struct scheduler *s;
    struct scheduler_stats stats;
    struct grammar *g = schema(
        "{\"const\":\"a text that is longer than a step of sixty-four tokens, of "
        "which all is certain before it begins\"}");
    int32_t prompt[N_PROMPT];
    struct completion_params p = served_params(prompt, N_PROMPT, 150);
    struct completion *c[N];
    static struct served_text t;
    uint64_t n_forced = 0;

    (void)state;
    served_prompt(prompt, N_PROMPT, 4);
    open_plain(&d, 2);
    s = served_scheduler(&d, N, true);
    p.grammar = g;
    for (int i = 0; i < N; i++)
        c[i] = served_submit(s, &p);
    grammar_unref(g);
    served_run(s);
    /* the second one has it of the first, which runs, the others of those that ended */
    for (int i = 0; i < N; i++) {
        served_read(c[i], &t);
        assert_int_equal(t.end, COMPLETION_STOP);
        assert_int_equal(t.usage.n_prompt, N_PROMPT);
        assert_true(t.usage.n_forced >= t.n - 1 && t.n > 64);
        n_forced += (uint64_t)t.usage.n_forced;
        assert_int_equal(t.usage.n_cached, i ? N_PROMPT : 0);
        completion_close(c[i]);
    }
    scheduler_read_stats(s, &stats);
    assert_int_equal(stats.n_forced, n_forced);
    assert_int_equal(stats.n_cached, (N - 1) * N_PROMPT);
    /* and more than the prompt was not computed again */
    assert_true(stats.n_step_tokens < 2 * (uint64_t)(N_PROMPT + t.n));
    scheduler_close(s);
    served_close(&d);
}

/* A token that ends a chat's answer ends no text of a grammar before its end, also
 * where the vocabulary takes it for text and the model wants nothing else. */
static void ends_of_chats(void **state)
{
    static const struct {
        const char *schema, *text;
        int n; /* tokens; 0: any number */
    } cases[] = {
        {"{\"type\":\"string\",\"minLength\":12,\"maxLength\":12}", NULL, 0},
        {"{\"type\":\"integer\",\"minimum\":1,\"maximum\":999}", NULL, 2},
        {"{\"const\":\"a<|im_end|>b\"}", "\"a<|im_end|>b\"", 0},
    };
    const struct completion_bias bias = {CHAT_END, 100};
    const int32_t prompt[] = {300, 301, 302};
    struct completion_params p = served_params(prompt, 3, 60);
    struct scheduler_params params = {.n_queue = 4};
    struct chat_template *chat = NULL;
    struct served d;
    struct err err = ERR_INIT;
    static struct served_text t;

    (void)state;
    open_plain(&d, 3);
    assert_int_equal(chat_template_open(&chat, NULL, d.tok, "chatml", &err), ST_OK);
    params.chat = chat;
    params.m = d.m;
    params.tok = d.tok;
    p.ignore_end = false;
    p.biases = &bias;
    p.n_biases = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct grammar *g = schema(cases[i].schema);
        struct scheduler *s = NULL;
        struct completion *c;
        json_t *json;

        assert_int_equal(scheduler_open(&s, &params, &err), ST_OK);
        p.grammar = g;
        c = served_submit(s, &p);
        grammar_unref(g);
        served_run(s);
        served_read(c, &t);
        assert_int_equal(t.end, COMPLETION_STOP);
        json = json_loads(t.text, JSON_DECODE_ANY, NULL);
        if (!json)
            fail_msg("%s: %s", cases[i].schema, t.text);
        json_decref(json);
        if (cases[i].n)
            assert_int_equal(t.n, cases[i].n);
        if (cases[i].text)
            assert_string_equal(t.text, cases[i].text);
        completion_close(c);
        scheduler_close(s);
    }
    chat_template_close(chat);
    served_close(&d);
}

/* A text that can neither continue nor end is cut there, and reported as one that is:
 * the end token is no choice of the model's. */
static void check_cut(struct served *d, const struct completion_params *p, size_t room,
                      const char *text)
{
    struct scheduler *s = served_scheduler(d, 4, false);
    struct completion *c = served_submit(s, p);
    static struct served_text t;

    if (room)
        c->state->m->own.max_nodes = c->state->m->own.n_nodes + (uint32_t)room;
    served_run(s);
    served_read(c, &t);
    assert_int_equal(t.end, COMPLETION_LENGTH);
    assert_string_equal(t.text, text);
    completion_close(c);
    scheduler_close(s);
}

/* The vocabulary lacks a byte of the text. */
static void bytes_that_cannot_be_written(void **state)
{
    const int32_t prompt[] = {300, 301, 302};
    struct completion_params p = served_params(prompt, 3, 60);
    struct grammar *g = schema("{\"const\":\"caf\u00e9\"}");
    struct served d;

    (void)state;
    missing_id = 3 + 0xc3;
    open_plain(&d, 2);
    p.grammar = g;
    check_cut(&d, &p, 0, "\"caf");
    grammar_unref(g);
    served_close(&d);
    missing_id = -1;
}

/* There is no memory for a tool's arguments. */
static void arguments_without_room(void **state)
{
    static struct call_form form = {.begin = "<call>",
                                    .n_trigger = 6,
                                    .anywhere = true,
                                    .sep = ":",
                                    .end = "</call>"};
    static const struct grammar_tool tool = {"a_tool", SCHEMA, sizeof SCHEMA - 1};
    const struct grammar_calls calls = {
        .form = &form, .tools = &tool, .n_tools = 1, .choice = GRAMMAR_REQUIRED};
    const int32_t prompt[] = {300, 301, 302};
    struct completion_params p = served_params(prompt, 3, 60);
    struct grammar *g = NULL;
    struct err err = ERR_INIT;
    struct served d;

    (void)state;
    assert_int_equal(grammar_from_calls(&g, &calls, &err), ST_OK);
    open_plain(&d, 2);
    p.grammar = g;
    p.calls = &form;
    check_cut(&d, &p, 10, "");
    grammar_unref(g);
    served_close(&d);
}

/* Whatever ends it or cuts it, what was said is the beginning of an object. */
static void any_object(void **state)
{
    struct served d;
    struct scheduler *s;
    struct grammar *g = NULL;
    struct err err = ERR_INIT;
    const int32_t prompt[] = {300, 301, 302};
    struct completion_params p = served_params(prompt, 3, 60);
    struct completion *c[N_USERS];
    static struct served_text t;

    (void)state;
    assert_int_equal(grammar_json(&g, &err), ST_OK);
    served_open(&d, &SERVED_PLAIN, 3, N_CTX, 0);
    s = served_scheduler(&d, N_USERS, false);
    p.grammar = g;
    p.begins_text = true;
    for (int i = 0; i < N_USERS; i++) {
        p.sampling.temperature = 1;
        p.sampling.seed = (uint64_t)i;
        c[i] = served_submit(s, &p);
    }
    grammar_unref(g);
    served_run(s);
    for (int i = 0; i < N_USERS; i++) {
        served_read(c[i], &t);
        assert_true(t.end == COMPLETION_STOP || t.n == 60);
        assert_int_equal(t.text[strspn(t.text, " \n\t")], '{');
        if (t.end == COMPLETION_STOP) {
            json_t *json = json_loadb(t.text, t.len, JSON_ALLOW_NUL, NULL);

            assert_true(json_is_object(json));
            json_decref(json);
        }
        completion_close(c[i]);
    }
    scheduler_close(s);
    served_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_texts),
        cmocka_unit_test(valid_texts_with_few_pages),
        cmocka_unit_test(certain_from_the_beginning),
        cmocka_unit_test(many_are_certain),
        cmocka_unit_test(certain_tokens_keep_the_limit),
        cmocka_unit_test(certain_tokens_are_no_prompt),
        cmocka_unit_test(any_object),
        cmocka_unit_test(ends_of_chats),
        cmocka_unit_test(bytes_that_cannot_be_written),
        cmocka_unit_test(arguments_without_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
