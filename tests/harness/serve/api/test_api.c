/* SPDX-License-Identifier: MIT
 *
 * test_api.c - bodies of requests: what is read of them, what is refused and how, at
 * every cut and with bytes changed
 */
#include "tests/support/test.h"

#include "engine/base/random.h"
#include "harness/serve/api/api_request.h"

#define N_VOCAB 500

static bool reads(struct api_request *r, enum api_kind kind, const char *body,
                  struct refusal *refusal)
{
    *refusal = (struct refusal){0};
    return api_request_read(r, kind, body, strlen(body), N_VOCAB, refusal);
}

/* It is refused with 400, and the message and the field are said. */
static void refused(enum api_kind kind, const char *body, const char *param)
{
    struct api_request r;
    struct refusal refusal;

    if (reads(&r, kind, body, &refusal))
        print_error("read: %s\n", body);
    else if (refusal.http != 400 || strcmp(refusal.param, param))
        print_error("%s: %d %s %s\n", body, refusal.http, refusal.param,
                    refusal.message);
    assert_int_equal(refusal.http, 400);
    assert_string_equal(refusal.param, param);
    assert_true(strlen(refusal.message) > 10);
}

/* Names that nobody knows are compared with all others: a few are left alone. */
static void many_unknown_fields(void **state)
{
    char body[4000];
    struct api_request r;
    struct refusal refusal;

    (void)state;
    for (int n = 64; n <= 65; n++) {
        int at = snprintf(body, sizeof body, "{\"prompt\": \"a\"");

        for (int i = 0; i < n; i++)
            at += snprintf(body + at, sizeof body - (size_t)at, ", \"zzqqxx%d\": 1", i);
        snprintf(body + at, sizeof body - (size_t)at, "}");
        if (n == 64) {
            assert_true(reads(&r, API_COMPLETION, body, &refusal));
            api_request_free(&r);
        } else {
            refused(API_COMPLETION, body, "zzqqxx64");
        }
    }
}

/* Each result of a tool is looked for among the calls before it. */
static void calls_are_bounded(void **state)
{
    char *body = malloc(200000), *at = body;
    struct refusal refusal;
    struct api_request r;

    (void)state;
    at += sprintf(at, "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [");
    for (int i = 0; i <= API_MAX_CALLS; i++)
        at += sprintf(at,
                      "%s{\"id\": \"%d\", \"type\": \"function\", \"function\": "
                      "{\"name\": \"f\", \"arguments\": \"{}\"}}",
                      i ? "," : "", i);
    strcpy(at, "]}, {\"role\": \"user\", \"content\": \"q\"}]}");
    assert_false(reads(&r, API_CHAT, body, &refusal));
    assert_non_null(strstr(refusal.message, "at most 1024 calls"));
    free(body);
}

/* As many values in all as a body has, however many calls they are in. */
static void arguments_are_bounded_together(void **state)
{
    enum { CALLS = 4, VALUES = 70000 };
    char *body = malloc((size_t)CALLS * (VALUES * 2 + 100) + 200);
    char *at = body;

    (void)state;
    at += sprintf(at, "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [");
    for (int i = 0; i < CALLS; i++) {
        at += sprintf(at, "%s{\"function\": {\"arguments\": \"{\\\"a\\\": [",
                      i ? "," : "");
        for (int k = 0; k < VALUES; k++)
            at += sprintf(at, "1%s", k + 1 < VALUES ? "," : "");
        at += sprintf(at, "]}\"}}");
    }
    sprintf(at, "]}, {\"role\": \"user\", \"content\": \"b\"}]}");
    refused(API_TEMPLATE, body, "messages");
    free(body);
}

/* A schema beside the type: so llama.cpp's server has it. */
static void schemas_beside_the_type(void)
{
    static const char *const formats[] = {
        "{\"type\": \"json_object\", \"schema\": {\"z\": 1}}",
        "{\"type\": \"json_schema\", \"schema\": {\"z\": 1}}",
        "{\"type\": \"json_object\", \"schema\": null}"};
    struct api_request r;
    struct refusal refusal;
    char body[200];

    for (int i = 0; i < 3; i++) {
        snprintf(body, sizeof body, "{\"prompt\": \"a\", \"response_format\": %s}",
                 formats[i]);
        assert_true(reads(&r, API_COMPLETION, body, &refusal));
        assert_int_equal(r.format, i < 2 ? API_SCHEMA : API_JSON);
        if (i < 2)
            assert_string_equal(r.schema, "{\"z\":1}");
        api_request_free(&r);
    }
}

static void completion_fields(void **state)
{
    struct api_request r;
    struct refusal refusal;

    (void)state;
    assert_true(reads(&r, API_COMPLETION, "{\"prompt\": \"a\\u0000b\"}", &refusal));
    assert_int_equal(r.n_prompts, 1);
    assert_int_equal(r.prompts[0].len, 3);
    assert_int_equal(r.max_tokens, 16);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.n_logprobs, -1);
    assert_true(r.sampling.temperature == 1.0f && r.sampling.top_p == 1.0f);
    assert_false(r.has_seed || r.stream || r.ignore_end);
    api_request_free(&r);
    assert_true(reads(
        &r, API_COMPLETION,
        "{\"prompt\": [[1, 2], [499]], \"n\": 3, \"max_tokens\": 7, "
        "\"temperature\": 0.5, \"top_p\": 0.9, \"top_k\": -1, \"min_p\": "
        "0.1, \"seed\": -5, \"logprobs\": 0, \"stop\": [\"x\", \"yy\"], "
        "\"logit_bias\": {\"7\": -100, \"499\": 2.5}, \"stream\": true, "
        "\"stream_options\": {\"include_usage\": true}, \"ignore_eos\": "
        "true, \"presence_penalty\": -2, \"frequency_penalty\": 2, "
        "\"user\": {}, \"suffix\": \"\", \"echo\": false, \"best_of\": 1, "
        "\"mirostat\": 0, \"typical_p\": 1.0, \"top_n_sigma\": -1, "
        "\"cache_prompt\": false, \"dry_base\": 1.75, \"store\": false, "
        "\"metadata\": {\"a\": \"b\"}, \"unknown\": null, \"trace\": {}, \"x\": 1e30}",
        &refusal));
    assert_int_equal(r.n_prompts, 2);
    assert_int_equal(r.prompts[0].n_ids, 2);
    assert_int_equal(r.prompts[1].ids[0], 499);
    assert_int_equal(r.n, 3);
    assert_false(r.uses_prefixes);
    assert_int_equal(r.n_biases, 2);
    assert_int_equal(r.biases[1].id, 499);
    assert_true(r.biases[1].bias == 2.5f);
    assert_int_equal(r.n_stops, 2);
    assert_string_equal(r.stops[1], "yy");
    assert_int_equal(r.n_logprobs, 0);
    assert_int_equal(r.sampling.top_k, 0);
    assert_true(r.sampling.seed == (uint64_t)-5 && r.has_seed);
    assert_true(r.stream && r.include_usage && r.ignore_end);
    schemas_beside_the_type();
    api_request_free(&r);
    /* as many as there is room for, and not the 16 of who says nothing */
    assert_true(
        reads(&r, API_COMPLETION, "{\"prompt\": \"a\", \"max_tokens\": -1}", &refusal));
    assert_int_equal(r.max_tokens, 0);
    api_request_free(&r);
    /* the best two of two are all of them */
    assert_true(reads(&r, API_COMPLETION,
                      "{\"prompt\": \"a\", \"n\": 2, \"best_of\": 2}", &refusal));
    assert_int_equal(r.n, 2);
    api_request_free(&r);
}

/* A member of a message, or of the conversation itself (i < 0). */
static const char *part(const struct api_request *r, int i, const char *name)
{
    const json_t *of =
        i < 0 ? r->conversation
              : json_array_get(json_object_get(r->conversation, "messages"), (size_t)i);

    return json_string_value(json_object_get(of, name));
}

/* Many are as many: what several system messages mean is the template's to decide. */
static void many_system_messages(void)
{
    enum { N = API_MAX_MESSAGES - 1 };
    static char body[N * 48 + 100];
    struct api_request r;
    struct refusal refusal;
    size_t n = (size_t)snprintf(body, sizeof body, "{\"messages\": [");

    for (int i = 0; i < N; i++)
        n += (size_t)snprintf(body + n, sizeof body - n,
                              "{\"role\": \"system\", \"content\": \"%05d\"}, ", i);
    snprintf(body + n, sizeof body - n, "{\"role\": \"user\", \"content\": \"a\"}]}");
    assert_true(reads(&r, API_CHAT, body, &refusal));
    assert_int_equal(json_array_size(json_object_get(r.conversation, "messages")),
                     N + 1);
    assert_string_equal(part(&r, N - 1, "content"), "04094");
    assert_string_equal(part(&r, N, "content"), "a");
    assert_int_equal(r.content_bytes, 5 * N + 1);
    api_request_free(&r);
}

/* /apply-template takes messages that a chat refuses: a call without an id. */
static void template_fields(void **state)
{
    static const char body[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": "
        "\"assistant\", \"content\": null, \"tool_calls\": [{\"function\": {\"name\": "
        "\"f\", \"arguments\": \"{\\\"x\\\": [1]}\"}}]}, {\"role\": \"tool\", "
        "\"content\": \"3\"}], \"tools\": [{}], \"enable_thinking\": false, "
        "\"chat_template\": \"rag\", \"chat_template_kwargs\": {\"messages\": 5, "
        "\"chat_template\": \"x\", \"own\": \"v\"}}";
    const json_t *call;
    struct api_request r;
    struct refusal refusal;

    (void)state;
    assert_false(reads(&r, API_CHAT, body, &refusal));
    assert_true(reads(&r, API_TEMPLATE, body, &refusal));
    call = json_array_get(
        json_object_get(json_array_get(json_object_get(r.conversation, "messages"), 1),
                        "tool_calls"),
        0);
    assert_true(json_is_string(
        json_object_get(json_object_get(call, "function"), "arguments")));
    assert_true(json_is_false(json_object_get(r.conversation, "enable_thinking")));
    assert_true(json_is_true(json_object_get(r.conversation, "add_generation_prompt")));
    assert_int_equal(json_array_size(json_object_get(r.conversation, "tools")), 1);
    assert_string_equal(part(&r, -1, "own"), "v");
    assert_string_equal(part(&r, -1, "chat_template"), "rag");
    assert_string_equal(part(&r, 2, "content"), "3");
    api_request_free(&r);
}

#define TOOLS                                                                    \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}, "    \
    "{\"type\": \"function\", \"function\": {\"name\": \"g\", \"parameters\": {" \
    "\"type\": \"object\"}}}]"
#define NAMED(name) "{\"type\": \"function\", \"function\": {\"name\": \"" name "\"}}"
#define ALLOWED(mode, tools)                                                          \
    ", \"tool_choice\": {\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": " \
    "\"" mode "\", \"tools\": [" tools "]}}}"
#define ASK "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], "

static void tool_fields(void **state)
{
    static const struct {
        const char *body;
        enum grammar_choice choice;
        const char *allowed; /* a letter each */
        bool parallel;
    } reads_as[] = {
        {ASK "\"tools\": []}", GRAMMAR_NONE, "", true},
        {ASK TOOLS "}", GRAMMAR_AUTO, "fg", true},
        {ASK TOOLS ", \"tool_choice\": \"auto\", \"parallel_tool_calls\": false}",
         GRAMMAR_AUTO, "fg", false},
        {ASK TOOLS ", \"tool_choice\": \"none\"}", GRAMMAR_NONE, "fg", true},
        {ASK TOOLS ", \"tool_choice\": \"required\"}", GRAMMAR_REQUIRED, "fg", true},
        {ASK TOOLS ", \"tool_choice\": " NAMED("g") "}", GRAMMAR_REQUIRED, "g", false},
        {ASK TOOLS ALLOWED("auto", NAMED("g")), GRAMMAR_AUTO, "g", true},
        {ASK TOOLS ALLOWED("required", NAMED("g") "," NAMED("f") "," NAMED("g")),
         GRAMMAR_REQUIRED, "gf", true},
    };
    struct api_request r;
    struct refusal refusal;

    (void)state;
    for (size_t i = 0; i < sizeof reads_as / sizeof *reads_as; i++) {
        assert_true(reads(&r, API_CHAT, reads_as[i].body, &refusal));
        assert_int_equal(r.tools.n, *reads_as[i].allowed ? 2 : 0);
        assert_int_equal(r.tools.n_allowed, strlen(reads_as[i].allowed));
        assert_int_equal(r.tools.choice, reads_as[i].choice);
        assert_int_equal(r.tools.parallel, reads_as[i].parallel);
        for (size_t k = 0; k < r.tools.n_allowed; k++) {
            const char *name = r.tools.v[k].name;

            assert_int_equal(name[0], reads_as[i].allowed[k]);
            assert_string_equal(r.tools.v[k].schema,
                                *name == 'f' ? "" : "{\"type\":\"object\"}");
        }
        api_request_free(&r);
    }
    /* a result has the name of its call's tool */
    assert_true(reads(&r, API_CHAT,
                      "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": "
                      "[{\"id\": \"i\", \"function\": {\"name\": \"f\", "
                      "\"arguments\": \"{}\"}}]}, {\"role\": \"tool\", "
                      "\"tool_call_id\": \"i\", \"content\": \"3\"}]}",
                      &refusal));
    assert_string_equal(part(&r, 1, "name"), "f");
    api_request_free(&r);
}

static void chat_fields(void **state)
{
    struct api_request r;
    struct refusal refusal;

    (void)state;
    assert_true(reads(
        &r, API_CHAT,
        "{\"messages\": [{\"role\": \"system\", \"content\": \"a\"}, {\"role\": "
        "\"developer\", \"content\": [{\"type\": \"text\", \"text\": \"b\"}, "
        "{\"type\": \"text\", \"text\": \"c\"}]}, {\"role\": \"user\", \"content\": "
        "\"\"}, {\"role\": \"assistant\", \"content\": \"d\", \"tool_calls\": []}, "
        "{\"role\": \"user\", \"content\": \"e\", \"name\": \"f\"}], \"logprobs\": "
        "true, "
        "\"max_tokens\": 3, \"max_completion_tokens\": 4, \"tools\": [], "
        "\"tool_choice\": \"none\", \"modalities\": [\"text\"], \"response_format\": "
        "{\"type\": \"json_schema\", \"json_schema\": {\"schema\": {\"z\": 1, \"a\": "
        "2}}}}",
        &refusal));
    assert_int_equal(json_array_size(json_object_get(r.conversation, "messages")), 5);
    assert_string_equal(part(&r, 0, "content"), "a");
    assert_string_equal(part(&r, 1, "content"), "bc");
    assert_string_equal(part(&r, 1, "role"), "developer");
    assert_string_equal(part(&r, 2, "content"), "");
    assert_string_equal(part(&r, 3, "role"), "assistant");
    assert_null(json_object_get(r.conversation, "tools")); /* an empty list is none */
    assert_int_equal(r.max_tokens, 4);
    assert_int_equal(r.n_logprobs, 0);
    assert_int_equal(r.format, API_SCHEMA);
    assert_string_equal(r.schema, "{\"z\":1,\"a\":2}"); /* in its own order */
    api_request_free(&r);
    assert_true(reads(&r, API_CHAT,
                      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], "
                      "\"top_logprobs\": 0}",
                      &refusal));
    assert_int_equal(r.max_tokens, 0);
    assert_int_equal(r.n_logprobs, -1);
    api_request_free(&r);
    /* null of an assistant is an empty text for the template */
    assert_true(reads(&r, API_CHAT,
                      "{\"messages\": [{\"role\": \"assistant\", \"content\": "
                      "null}, {\"role\": \"user\", \"content\": \"a\"}]}",
                      &refusal));
    assert_string_equal(part(&r, 0, "content"), "");
    api_request_free(&r);
    many_system_messages();
}

static void refusals(void **state)
{
    static const char *const fields[][2] = {
        {"\"temperature\": 2.1", "temperature"},
        {"\"temperature\": true", "temperature"},
        {"\"top_p\": 0", "top_p"},
        {"\"top_k\": 1.5", "top_k"},
        {"\"min_p\": 2", "min_p"},
        {"\"seed\": 1.5", "seed"},
        {"\"n\": 129", "n"},
        {"\"max_tokens\": 0", "max_tokens"},
        {"\"max_tokens\": -2", "max_tokens"},
        {"\"max_tokens\": 99999999999999", "max_tokens"},
        {"\"stop\": 1", "stop"},
        {"\"stop\": [\"\"]", "stop"},
        {"\"stop\": [\"a\\u0000\"]", "stop"},
        {"\"logprobs\": 21", "logprobs"},
        {"\"logit_bias\": []", "logit_bias"},
        {"\"logit_bias\": {\"500\": 1}", "logit_bias"},
        {"\"logit_bias\": {\"+1\": 1}", "logit_bias"},
        {"\"logit_bias\": {\"05\": 1, \"5\": -1}", "logit_bias"},
        {"\"logit_bias\": {\"99999999999999999999\": 1}", "logit_bias"},
        {"\"logit_bias\": {\"1\": 101}", "logit_bias"},
        {"\"stream\": \"yes\"", "stream"},
        {"\"stream_options\": {}", "stream_options"},
        {"\"model\": 1", "model"},
        {"\"response_format\": {\"type\": \"json_schema\"}", "response_format"},
        {"\"response_format\": 1", "response_format"},
        {"\"response_format\": {\"type\": \"json_object\", \"schema\": 1}",
         "response_format"},
        {"\"suffix\": \"x\"", "suffix"},
        {"\"echo\": true", "echo"},
        {"\"best_of\": 2", "best_of"},
        {"\"n\": 2, \"best_of\": 3", "best_of"},
        {"\"tools\": [1]", "tools"},
        {"\"structured_outputs\": {\"regex\": \"a\"}", "structured_outputs"},
        {"\"stop_token_ids\": [1]", "stop_token_ids"},
        {"\"allowed_token_ids\": [1]", "allowed_token_ids"},
        {"\"bad_words\": [\"a\"]", "bad_words"},
        {"\"add_generation_prompt\": false", "add_generation_prompt"},
        {"\"continue_final_message\": true", "continue_final_message"},
        {"\"repetition_penalty\": 1.1", "repetition_penalty"},
        {"\"modalities\": [\"audio\"]", "modalities"},
        {"\"modalities\": [\"text\\u0000\"]", "modalities"},
        {"\"temperature\": NaN", "temperature"},
        {"\"temperature\": 1e400", "temperature"},
        {"\"seed\": 18446744073709551616", "seed"},
        {"\"n\": Infinity", "n"},
        {"\"best_of\": 1e400", "best_of"},
        {"\"max_tokens\": 1000000000000000000000", "max_tokens"},
        {"\"model\": NaN", "model"},
        {"\"grammar\": \"\\u0000root ::= x\"", "grammar"},
        {"\"temprature\": 0", "temprature"},
        {"\"max_token\": 3", "max_token"},
        {"\"messages\": []", "messages"},
        {"\"max_completion_tokens\": 3", "max_completion_tokens"},
        {"\"n_predict\": 3", "n_predict"},
        {"\"typical_p\": 0.9", "typical_p"},
        {"\"mirostat\": 2", "mirostat"},
        {"\"xtc_probability\": 0.5", "xtc_probability"},
        {"\"dry_multiplier\": 0.8", "dry_multiplier"},
        {"\"top_n_sigma\": 1", "top_n_sigma"},
        {"\"id_slot\": 0", "id_slot"},
        {"\"cache_prompt\": 0", "cache_prompt"},
        {"\"skip_special_tokens\": false", "skip_special_tokens"},
        {"\"store\": true", "store"},
        {"\"prefix\": \"a\"", "prefix"},
        {"\"enable_thinking\": false", "enable_thinking"},
        {"\"stream\": true, \"stream_options\": {\"continuous_usage_stats\": true}",
         "stream_options"},
        {"\"response_format\": {\"type\": \"text\\u0000\"}", "response_format"},
    };
    static const char *const prompts[] = {
        "{}",
        "{\"prompt\": null}",
        "{\"prompt\": []}",
        "{\"prompt\": [\"a\", 1]}",
        "{\"prompt\": [1, \"a\"]}",
        "{\"prompt\": [[]]}",
        "{\"prompt\": [500]}",
        "{\"prompt\": [-1]}",
        "{\"prompt\": [1.0]}",
        "{\"prompt\": NaN}",
        "{\"prompt\": [1e400]}",
    };
    char body[200];

    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        snprintf(body, sizeof body, "{\"prompt\": \"a\", %s}", fields[i][0]);
        refused(API_COMPLETION, body, fields[i][1]);
    }
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++)
        refused(API_COMPLETION, prompts[i], "prompt");
    refused(API_COMPLETION, "{\"prompt\": [\"a\", \"b\"], \"n\": 65}", "n");
    refused(API_COMPLETION, "[1]", "");
    refused(API_COMPLETION, "{\"prompt\": \"a\", \"prompt\": \"b\"}", "");
    refused(API_EMBEDDING, "{\"input\": \"a\", \"input_type\": \"query\"}",
            "input_type");
    refused(API_EMBEDDING, "{\"input\": \"a\", \"model\": 1}", "model");
    refused(API_TEMPLATE, "{\"messages\": [], \"promt\": 1}", "promt");
    refused(API_CHAT, "{\"messages\": [], \"prompt\": \"a\"}", "prompt");
    refused(API_CHAT,
            "{\"messages\": [{\"role\": \"user\", \"content\": \"a\", "
            "\"prefix\": true}]}",
            "prefix");
    refused(API_CHAT, "{}", "messages");
    refused(API_CHAT, "{\"messages\": [1]}", "messages");
    refused(API_CHAT, "{\"messages\": [{\"role\": \"user\"}]}", "messages");
    refused(API_CHAT, "{\"messages\": [{\"role\": \"x\", \"content\": \"a\"}]}",
            "messages");
    refused(API_CHAT,
            "{\"messages\": [{\"role\": \"user\\u0000\", \"content\": \"a\"}]}",
            "messages");
    refused(API_CHAT, "{\"messages\": [{\"role\": \"user\", \"content\": NaN}]}",
            "messages");
}

/* Values that nobody reads refuse nothing; numbers that are read are named. */
static void json_as_it_comes(void **state)
{
    static const char body[] =
        "\xef\xbb\xbf{\"user\": 18446744073709551616, \"metadata\": [NaN, 1e400], "
        "\"prediction\": \"\\ud83d\", \"max_tokens\": 8.0, \"prompt\": \"a\\u0000b\"}";
    struct api_request r;
    struct refusal refusal;

    (void)state;
    assert_true(reads(&r, API_COMPLETION, body, &refusal));
    assert_int_equal(r.max_tokens, 8);
    assert_int_equal(r.prompts[0].len, 3);
    assert_memory_equal(r.prompts[0].text, "a\0b", 3);
    api_request_free(&r);
    assert_false(
        reads(&r, API_COMPLETION, "{\"prompt\": \"a\", \"top_k\": 1e400}", &refusal));
    assert_non_null(strstr(refusal.message, "1e400"));
    assert_false(reads(&r, API_COMPLETION,
                       "{\"prompt\": \"a\", \"model\": \"stories\\u0000x\"}",
                       &refusal));
    assert_int_equal(refusal.http, 404);
}

/* Cut anywhere, and with bytes changed: read or refused, and nothing is lost. */
static void damaged(void **state)
{
    static const char whole[] =
        "{\"messages\": [{\"role\": \"system\", \"content\": \"a\"}, {\"role\": "
        "\"user\", \"content\": [{\"type\": \"text\", \"text\": \"b\"}]}], \"stop\": "
        "[\"x\"], \"logit_bias\": {\"1\": 2}, \"response_format\": {\"type\": "
        "\"json_schema\", \"json_schema\": {\"schema\": {}}}, \"n\": 2}";
    uint64_t rng = 1;
    struct api_request r;
    struct refusal refusal;
    char body[sizeof whole];

    (void)state;
    for (size_t len = 0; len < sizeof whole - 1; len++) {
        refusal = (struct refusal){0};
        assert_false(api_request_read(&r, API_CHAT, whole, len, N_VOCAB, &refusal));
        assert_int_equal(refusal.http, 400);
    }
    for (int i = 0; i < 20000; i++) {
        memcpy(body, whole, sizeof whole);
        for (int k = 0; k < 1 + i % 3; k++)
            body[random_below(&rng, sizeof whole - 1)] = (char)random_bits(&rng);
        refusal = (struct refusal){0};
        if (api_request_read(&r, API_CHAT, body, sizeof whole - 1, N_VOCAB, &refusal))
            api_request_free(&r);
        else
            assert_int_equal(refusal.http, 400);
    }
}

static void json_of_texts(void **state)
{
    struct textbuf b = {.text = NULL};
    char out[8];

    (void)state;
    textbuf_put_json(&b, "a\"\\\n\x01\x7f\xc3\xa4\xff\xe2\x82", 11);
    assert_string_equal(b.text, "\"a\\\"\\\\\\n\\u0001\x7f\xc3\xa4\xef\xbf\xbd"
                                "\xef\xbf\xbd\xef\xbf\xbd\"");
    assert_int_equal(textbuf_take(&b, out, 3), 3);
    assert_memory_equal(out, "\"a\\", 3);
    textbuf_puts(&b, "end");
    assert_int_equal(textbuf_left(&b), b.len - b.taken);
    textbuf_clear(&b);
    textbuf_put_number(&b, -1.0 / 0.0);
    assert_string_equal(b.text, "-9999");
    textbuf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_unknown_fields),
        cmocka_unit_test(arguments_are_bounded_together),
        cmocka_unit_test(calls_are_bounded),
        cmocka_unit_test(completion_fields),
        cmocka_unit_test(tool_fields),
        cmocka_unit_test(chat_fields),
        cmocka_unit_test(template_fields),
        cmocka_unit_test(refusals),
        cmocka_unit_test(json_as_it_comes),
        cmocka_unit_test(damaged),
        cmocka_unit_test(json_of_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
