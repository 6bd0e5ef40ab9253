/* SPDX-License-Identifier: MIT
 *
 * test_api_kinds.c - what bodies of each kind are refused for, and values that change
 * nothing; ' stands for "
 */
#include "tests/support/test.h"

#include "harness/serve/api/api_request.h"

#define N_VOCAB 500

static bool reads(struct api_request *r, enum api_kind kind, const char *text,
                  struct refusal *refusal)
{
    char *body = strdup(text);

    assert_non_null(body);
    for (char *c = body; *c; c++)
        if (*c == '\'')
            *c = '"';
    *refusal = (struct refusal){0};
    const bool is_read =
        api_request_read(r, kind, body, strlen(body), N_VOCAB, refusal);

    free(body);
    return is_read;
}

static void takes(enum api_kind kind, const char *body)
{
    struct api_request r;
    struct refusal refusal;

    if (!reads(&r, kind, body, &refusal))
        fail_msg("%s: %s", body, refusal.message);
    api_request_free(&r);
}

struct refused {
    enum api_kind kind;
    const char *body, *param, *words;
};

static void refuses(const struct refused *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct api_request r;
        struct refusal refusal;

        if (reads(&r, cases[i].kind, cases[i].body, &refusal))
            fail_msg("read: %s", cases[i].body);
        if (refusal.http != 400 || strcmp(refusal.param, cases[i].param) ||
            !strstr(refusal.message, cases[i].words))
            fail_msg("%s: %d, %s: %s", cases[i].body, refusal.http, refusal.param,
                     refusal.message);
    }
}

static void embeddings(void **state)
{
    static const struct refused cases[] = {
        {API_EMBEDDING, "{}", "input", "input is missing"},
        {API_EMBEDDING, "{'input': 1}", "input", "input must be a text"},
        {API_EMBEDDING, "{'input': [[500]]}", "input", "element 0 is no token"},
        {API_EMBEDDING, "{'input': 'a', 'encoding_format': 7}", "encoding_format",
         "must be \"float\" or \"base64\""},
        {API_EMBEDDING, "{'input': 'a', 'encoding_format': 'hex'}", "encoding_format",
         "must be \"float\" or \"base64\""},
        {API_EMBEDDING, "{'input': 'a', 'dimensions': 0}", "dimensions",
         "from 1 to 16777216, and is 0"},
        {API_EMBEDDING, "{'input': 'a', 'dimensions': 16777217}", "dimensions",
         "and is 16777217"},
        {API_EMBEDDING, "{'input': 'a', 'n': 2}", "n", "has no field n"},
    };
    struct api_request r;
    struct refusal refusal;

    (void)state;
    refuses(cases, sizeof cases / sizeof *cases);
    assert_true(reads(&r, API_EMBEDDING,
                      "{'input': ['a', [1, 2]], 'encoding_format': 'base64', "
                      "'dimensions': 8}",
                      &refusal));
    assert_true(r.base64 && r.dimensions == 8 && r.n_prompts == 2);
    assert_int_equal(r.prompts[1].n_ids, 2);
    api_request_free(&r);
    assert_true(reads(&r, API_EMBEDDING,
                      "{'input': 'a', 'encoding_format': 'float', 'n': 1}", &refusal));
    assert_false(r.base64);
    api_request_free(&r);
    takes(API_EMBEDDING, "{'input': 'a', 'encoding_format': null}");
}

static void tokens(void **state)
{
    static const struct refused cases[] = {
        {API_TOKENIZE, "{}", "content", "content is missing"},
        {API_TOKENIZE, "{'content': [1, 2]}", "content", "content must be a text"},
        {API_TOKENIZE, "{'content': ['a', 'b']}", "content", "content must be a text"},
        {API_TOKENIZE, "{'content': 'a', 'add_special': 1}", "add_special",
         "must be true or false"},
        {API_TOKENIZE, "{'content': 'a', 'parse_special': 'x'}", "parse_special",
         "must be true or false"},
        {API_TOKENIZE, "{'content': 'a', 'with_pieces': []}", "with_pieces",
         "must be true or false"},
        {API_DETOKENIZE, "{'tokens': 'a'}", "tokens", "must be an array of tokens"},
        {API_DETOKENIZE, "{'tokens': [[1], [2]]}", "tokens",
         "must be an array of tokens"},
        {API_DETOKENIZE, "{'tokens': [-1]}", "tokens", "they are 0 to 499"},
        {API_DETOKENIZE, "{'tokens': []}", "tokens", "tokens must be a text, an array"},
    };
    struct api_request r;
    struct refusal refusal;

    (void)state;
    refuses(cases, sizeof cases / sizeof *cases);
    assert_true(reads(&r, API_TOKENIZE,
                      "{'content': 'a', 'add_special': true, 'parse_special': false, "
                      "'with_pieces': true}",
                      &refusal));
    assert_true(r.add_special && !r.parse_special && r.with_pieces);
    assert_string_equal(r.prompts[0].text, "a");
    api_request_free(&r);
    assert_true(reads(&r, API_DETOKENIZE, "{'tokens': [1, 499]}", &refusal));
    assert_int_equal(r.prompts[0].ids[1], 499);
    api_request_free(&r);
}

#define P(field) "{'prompt': 'a', " field "}"

static void completions(void **state)
{
    static const struct refused cases[] = {
        {API_COMPLETION, P("'top_p': 2"), "top_p", "from 0 to 1, and is 2"},
        {API_COMPLETION, P("'top_p': -0.5"), "top_p", "and is -0.5"},
        {API_COMPLETION, P("'presence_penalty': 3"), "presence_penalty", "and is 3"},
        {API_COMPLETION, P("'frequency_penalty': 'x'"), "frequency_penalty",
         "and is \"x\""},
        {API_COMPLETION, P("'ignore_eos': 1"), "ignore_eos", "must be true or false"},
        {API_COMPLETION, P("'logit_bias': {'': 1}"), "logit_bias", "\"\" is no token"},
        {API_COMPLETION, P("'logit_bias': {':': 1}"), "logit_bias", "is no token"},
        {API_COMPLETION, P("'logit_bias': {'1': -101}"), "logit_bias", "-100 to 100"},
        {API_COMPLETION, P("'logit_bias': {'1': '5'}"), "logit_bias", "-100 to 100"},
        {API_COMPLETION, P("'logit_bias': {'1x': 5}"), "logit_bias", "is no token"},
        {API_COMPLETION, P("'stream_options': 1"), "stream_options", "an object"},
        {API_COMPLETION, P("'stream': true, 'stream_options': {'include_usage': 1}"),
         "include_usage", "must be true or false"},
        {API_COMPLETION, P("'stream': true, 'stream_options': {'include_all': 1}"),
         "stream_options", "include_all is not supported"},
        {API_COMPLETION, P("'response_format': {}"), "response_format", "type must be"},
        {API_COMPLETION, P("'response_format': {'type': 'xml'}"), "response_format",
         "type must be"},
        {API_COMPLETION, P("'top_logprobs': 1"), "top_logprobs", ", use logprobs"},
        {API_COMPLETION, P("'n': 0"), "n", "from 1 to 128, and is 0"},
        {API_COMPLETION, P("'best_of': 1.5"), "best_of", "use n"},
        {API_COMPLETION, P("'guided_json': {'a': 1}"), "guided_json",
         "use response_format"},
        {API_COMPLETION, P("'lora': [1]"), "lora", "is not supported"},
        {API_COMPLETION, P("'grammar': 'root'"), "grammar", "use response_format"},
        {API_COMPLETION, P("'repeat_penalty': 0.9"), "repeat_penalty",
         "use frequency_penalty"},
        {API_COMPLETION, P("'t_max_predict_ms': -2"), "t_max_predict_ms",
         "is not supported"},
        {API_COMPLETION, P("'id_slot': 'x'"), "id_slot", "is not supported"},
    };
    static const char *const neutral[] = {
        "'grammar': ''",
        "'grammar': 'none'",
        "'grammar': 'auto'",
        "'mirostat': 0",
        "'echo': false",
        "'lora': []",
        "'guided_json': {}",
        "'repeat_penalty': 1.0",
        "'repeat_penalty': 0",
        "'typical_p': 1",
        "'top_n_sigma': -1",
        "'top_n_sigma': false",
        "'id_slot': -1",
        "'skip_special_tokens': true",
        "'dry_base': 7",
        "'best_of': null",
        "'tools': []",
        "'tool_choice': 'none'",
        "'modalities': ['text']",
        "'enable_thinking': null",
        "'response_format': {'type': 'text'}",
        "'stream': true, 'stream_options': {'include_obfuscation': true, 'x': false}",
        "'stream': true, 'stream_options': {'include_usage': null, 'x': null}",
        "'abc': 1", /* too short to be a misspelling */
    };

    (void)state;
    refuses(cases, sizeof cases / sizeof *cases);
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++) {
        char body[200];

        snprintf(body, sizeof body, "{'prompt': 'a', %s}", neutral[i]);
        takes(API_COMPLETION, body);
    }
}

/* n items; each '#' becomes the item's number. */
static char *many(const char *before, const char *item, const char *between, size_t n,
                  const char *after)
{
    char *text = malloc(strlen(before) + n * (strlen(item) + 16) + strlen(after) + 1);
    size_t at;

    assert_non_null(text);
    at = (size_t)sprintf(text, "%s", before);
    for (size_t i = 0; i < n; i++) {
        if (i)
            at += (size_t)sprintf(text + at, "%s", between);
        for (const char *c = item; *c; c++)
            at += *c == '#' ? (size_t)sprintf(text + at, "%zu", i)
                            : (size_t)sprintf(text + at, "%c", *c);
    }
    sprintf(text + at, "%s", after);
    return text;
}

/* The largest number of things there may be is taken, one more is refused. */
static void numbers_of_things_are_limited(void **state)
{
    static const struct {
        enum api_kind kind;
        const char *before, *item, *after;
        size_t max;
        const char *param, *words;
    } cases[] = {
        {API_COMPLETION, "{'prompt': [", "'a'", "]}", API_MAX_CHOICES, "prompt",
         "129 prompts: at most 128"},
        {API_EMBEDDING, "{'input': [", "'a'", "]}", API_MAX_INPUTS, "input",
         "2049 inputs: at most 2048"},
        {API_COMPLETION, "{'prompt': 'a', 'stop': [", "'s'", "]}", COMPLETION_MAX_STOPS,
         "stop", "at most 16 stop strings"},
        {API_TEMPLATE, "{'messages': [", "{'role': 'user', 'content': 'a'}", "]}",
         API_MAX_MESSAGES, "messages", "an array of 1 to 4096 messages"},
        {API_CHAT, "{'messages': [{'role': 'user', 'content': 'a'}], 'tools': [",
         "{'type': 'function', 'function': {'name': 'f#'}}", "]}", GRAMMAR_MAX_TOOLS,
         "tools", "an array of at most"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *body =
            many(cases[i].before, cases[i].item, ", ", cases[i].max, cases[i].after);

        takes(cases[i].kind, body);
        free(body);
        body = many(cases[i].before, cases[i].item, ", ", cases[i].max + 1,
                    cases[i].after);
        const struct refused one = {cases[i].kind, body, cases[i].param,
                                    cases[i].words};

        refuses(&one, 1);
        free(body);
    }
    char *biases = many("{'prompt': 'a', 'logit_bias': {", "'#': 1", ", ",
                        API_MAX_BIASES + 1, "}}");
    const struct refused bias = {API_COMPLETION, biases, "logit_bias",
                                 "an object of at most 1024 tokens"};

    refuses(&bias, 1);
    free(biases);
    char *stop = many("{'prompt': 'a', 'stop': '", "s", "", API_MAX_STOP + 1, "'}");
    const struct refused longer = {API_COMPLETION, stop, "stop", "1 to 256 bytes"};

    refuses(&longer, 1);
    free(stop);
}

#define ASK          "{'messages': [{'role': 'user', 'content': 'a'}], "
#define SAY(message) "{'messages': [" message ", {'role': 'user', 'content': 'a'}]}"
#define TOOL         "'tools': [{'type': 'function', 'function': {'name': 'f'}}]"

static void chats(void **state)
{
    static const struct refused cases[] = {
        {API_CHAT, ASK "'logprobs': 1}", "logprobs", "must be true or false"},
        {API_CHAT, ASK "'logprobs': true, 'top_logprobs': 21}", "top_logprobs",
         "from 0 to 20"},
        {API_CHAT, ASK "'top_logprobs': 2}", "top_logprobs", "needs logprobs: true"},
        {API_CHAT, ASK "'thinking_budget': -2}", "thinking_budget", "and is -2"},
        {API_CHAT, ASK "'reasoning_budget': 'x'}", "reasoning_budget", "and is \"x\""},
        {API_CHAT, ASK "'max_completion_tokens': 0}", "max_completion_tokens",
         "and is 0"},
        {API_CHAT, ASK "'chat_template': '{{ x }}'}", "chat_template",
         "templates of requests are not run"},
        {API_CHAT, ASK "'chat_template': 7}", "chat_template", "the name of one of"},
        {API_CHAT, ASK "'chat_template_kwargs': [1]}", "chat_template_kwargs",
         "must be an object"},
        {API_CHAT, "{'messages': {}}", "messages", "an array of 1 to 4096"},
        {API_CHAT, "{'messages': []}", "messages", "an array of 1 to 4096"},
        {API_CHAT, "{'messages': [{'role': 'assistant', 'content': 'a'}]}", "messages",
         "the last message must be a user's or a tool's"},
        {API_CHAT, SAY("{'role': 'user', 'content': [{'type': 'image_url'}]}"),
         "messages", "content of type image_url is not supported"},
        {API_CHAT, SAY("{'role': 'user', 'content': [{'text': 'a'}]}"), "messages",
         "content of type (none) is not supported"},
        {API_CHAT, SAY("{'role': 'user', 'content': [{'type': 'text'}]}"), "messages",
         "a text without zeros"},
        {API_CHAT, SAY("{'role': 'user', 'content': 'a\\u0000'}"), "messages",
         "a text without zeros"},
        {API_CHAT, SAY("{'role': 7, 'content': 'a'}"), "messages", "role must be"},
        {API_CHAT, SAY("{'role': 'assistant', 'tool_calls': 1}"), "messages",
         "tool_calls must be an array"},
        {API_CHAT, SAY("{'role': 'assistant', 'tool_calls': [{'id': 'i'}]}"),
         "messages", "a tool call must have an id"},
        {API_CHAT,
         SAY("{'role': 'assistant', 'tool_calls': [{'id': 'i', 'function': {'name': "
             "'f'}}]}"),
         "messages", "a tool call must have an id"},
        {API_CHAT,
         SAY("{'role': 'assistant', 'tool_calls': [{'id': 'i', 'function': {'name': "
             "'f', 'arguments': {}}}]}"),
         "messages", "tool call i has no message of the role tool"},
        {API_CHAT, SAY("{'role': 'tool', 'tool_call_id': 'i', 'content': 'a'}"),
         "messages", "the tool_call_id of a call"},
        {API_CHAT, SAY("{'role': 'tool', 'content': 'a'}"), "messages",
         "the tool_call_id of a call"},
        {API_CHAT, ASK "'tools': {}}", "tools", "an array of at most"},
        {API_CHAT, ASK "'tools': [{'type': 'code'}]}", "tools",
         "code is not supported"},
        {API_CHAT, ASK "'tools': [{}]}", "tools", "none is not supported"},
        {API_CHAT, ASK "'tools': [{'type': 'function'}]}", "tools",
         "must have a function with a name"},
        {API_CHAT,
         ASK "'tools': [{'type': 'function', 'function': {'name': 'f', 'parameters': "
             "[]}}]}",
         "tools", "the parameters of tool f must be a JSON schema"},
        {API_CHAT, ASK "'parallel_tool_calls': 1}", "parallel_tool_calls",
         "must be true or false"},
        {API_CHAT, ASK "'tool_choice': 'required'}", "tool_choice",
         "there are no tools"},
        {API_CHAT, ASK TOOL ", 'tool_choice': 'some'}", "tool_choice",
         "must be \"auto\""},
        {API_CHAT, ASK TOOL ", 'tool_choice': {'type': 'function'}}", "tool_choice",
         "must be \"auto\""},
        {API_CHAT,
         ASK TOOL ", 'tool_choice': {'type': 'x', 'function': {'name': 'f'}}}",
         "tool_choice", "must be \"auto\""},
        {API_CHAT,
         ASK TOOL ", 'tool_choice': {'type': 'function', 'function': {'name': 'g'}}}",
         "tool_choice", "there is no tool g"},
        {API_TEMPLATE, "{'messages': [{'role': 'robot', 'content': 'a'}]}", "messages",
         "role must be"},
        {API_TEMPLATE, ASK "'add_generation_prompt': false, 'chat_template': '}'}",
         "chat_template", "templates of requests are not run"},
    };
    static const char *const taken[] = {
        ASK "'logprobs': true, 'top_logprobs': 5, 'thinking_budget': -1}",
        ASK "'reasoning_budget': 0, 'max_completion_tokens': -1}",
        ASK TOOL ", 'response_format': {'type': 'json_object'}}",
        ASK TOOL ", 'tool_choice': 'none', 'response_format': {'type': 'json_object'}}",
        ASK "'documents': [], 'tools': [], 'chat_template_kwargs': {}}",
        "{'messages': [{'role': 'assistant', 'tool_calls': [{'id': 'i', 'function': "
        "{'name': 'f', 'arguments': {}}}]}, {'role': 'tool', 'tool_call_id': 'i', "
        "'name': 'own', 'content': 'a'}]}",
    };

    (void)state;
    refuses(cases, sizeof cases / sizeof *cases);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        takes(API_CHAT, taken[i]);
    takes(API_TEMPLATE, ASK "'add_generation_prompt': false, 'documents': [1]}");
}

/* Bodies of other APIs are refused by their own fields. */
static void other_apis(void **state)
{
    static const struct refused cases[] = {
        {API_MESSAGES, "{'messages': []}", "max_tokens", "this API requires it"},
        {API_MESSAGES, "{'max_tokens': 5, 'messages': {}}", "messages", "an array"},
        {API_MESSAGES, "{'max_tokens': 5, 'messages': [{'role': 'user'}, 7]}",
         "messages", "role must be user or assistant"},
        {API_MESSAGES, "{'max_tokens': 5, 'messages': [], 'stop': 'a'}", "stop",
         "has no field stop"},
        {API_MESSAGES, "{'max_tokens': 5, 'messages': [], 'input': 'a'}", "input",
         "has no field input"},
        {API_COUNT, "{'messages': 1}", "messages", "an array"},
        {API_RESPONSES, "{'input': 'a', 'max_tokens': 5}", "max_tokens",
         "has no field max_tokens"},
        {API_RESPONSES, "{'input': 'a', 'truncation': 'auto'}", "truncation",
         "must be disabled"},
        {API_RESPONSES, "{'input': 'a', 'previous_response_id': 'r'}",
         "previous_response_id", "use input with the whole conversation"},
    };

    (void)state;
    refuses(cases, sizeof cases / sizeof *cases);
    takes(API_COUNT, "{'messages': [{'role': 'user', 'content': 'a'}]}");
    takes(API_MESSAGES, "{'max_tokens': 5, 'messages': [{'role': 'user', 'content': "
                        "'a'}], 'system': 's', 'thinking': {'type': 'adaptive'}}");
    takes(API_RESPONSES,
          "{'input': 'a', 'truncation': 'disabled', 'instructions': 'i'}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embeddings),  cmocka_unit_test(tokens),
        cmocka_unit_test(completions), cmocka_unit_test(numbers_of_things_are_limited),
        cmocka_unit_test(chats),       cmocka_unit_test(other_apis),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
