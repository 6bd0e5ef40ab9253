/* SPDX-License-Identifier: MIT
 *
 * test_translate.c - bodies of /v1/messages and /v1/responses as chats, with tools
 */
#include "tests/support/test.h"

#include <stdlib.h>

#include "engine/base/json_read.h"
#include "harness/serve/api/translate.h"

/* A body with ' for ". */
static json_t *read_body(const char *text)
{
    char *quoted = strdup(text);
    json_t *body;

    for (char *c = quoted; *c; c++)
        if (*c == '\'')
            *c = '"';
    body = json_loads(quoted, 0, NULL);
    free(quoted);
    assert_non_null(body);
    return body;
}

static json_t *translate(bool responses, const char *text, struct refusal *refusal)
{
    json_t *body = read_body(text), *chat;
    char *echo = NULL;

    *refusal = (struct refusal){0};
    chat = responses ? translate_responses(body, &echo, refusal)
                     : translate_messages(body, false, refusal);
    assert_true(!chat == (refusal->http != 0));
    free(echo);
    json_decref(body);
    return chat;
}

/* The chat's member is as wanted. */
static void becomes(bool responses, const char *text, const char *member,
                    const char *wanted)
{
    struct refusal refusal;
    json_t *chat = translate(responses, text, &refusal), *expected = read_body(wanted);
    char *got;

    if (!chat)
        fail_msg("%s: %s", text, refusal.message);
    got = json_dumps(json_object_get(chat, member), JSON_ENCODE_ANY);
    if (!json_equal(json_object_get(chat, member), expected))
        fail_msg("%s: %s is %s", text, member, got ? got : "missing");
    free(got);
    json_decref(expected);
    json_decref(chat);
}

static void refused(bool responses, const char *text, const char *word)
{
    struct refusal refusal;

    assert_null(translate(responses, text, &refusal));
    assert_int_equal(refusal.http, 400);
    if (!strstr(refusal.message, word))
        fail_msg("%s: %s", text, refusal.message);
}

#define MESSAGES(list) "{'max_tokens': 5, 'messages': [" list "]}"
#define CALLS                                                                    \
    "'tool_calls': [{'id': 'a1', 'type': 'function', 'function': {'name': 'f', " \
    "'arguments': '{\\'x\\':1}'}}]"

/* ' inside of a text of JSON, which read_body() leaves to the reader. */
#define ARGUMENTS "{\\'x\\':1}"

static void tools_of_messages(void **state)
{
    (void)state;
    becomes(
        false,
        MESSAGES("{'role': 'assistant', 'content': [{'type': 'tool_use', 'id': 'a1', "
                 "'name': 'f', 'input': {'x': 1}}]}"),
        "messages", "[{'role': 'assistant', 'content': null, " CALLS "}]");
    becomes(
        false,
        MESSAGES("{'role': 'assistant', 'content': [{'type': 'thinking', 'thinking': "
                 "'hm', 'signature': 's'}, {'type': 'text', 'text': 'b'}, {'type': "
                 "'tool_use', 'id': 'a1', 'name': 'f', 'input': {'x': 1}}]}"),
        "messages",
        "[{'role': 'assistant', 'reasoning_content': 'hm', 'content': [{'type': "
        "'text', 'text': 'b'}], " CALLS "}]");

    /* Results of tools come before the user's text. */
    becomes(
        false,
        MESSAGES("{'role': 'user', 'content': [{'type': 'text', 'text': 'b'}, "
                 "{'type': 'tool_result', 'tool_use_id': 'a1', 'content': 'r'}, "
                 "{'type': 'tool_result', 'tool_use_id': 'a2'}]}"),
        "messages",
        "[{'role': 'tool', 'content': 'r', 'tool_call_id': 'a1'}, {'role': 'tool', "
        "'content': '', 'tool_call_id': 'a2'}, {'role': 'user', 'content': [{'type': "
        "'text', 'text': 'b'}]}]");
    becomes(false,
            "{'max_tokens': 5, 'messages': [], 'tools': [{'name': 'f', 'description': "
            "'d', 'input_schema': {'type': 'object'}, 'cache_control': {}}]}",
            "tools",
            "[{'type': 'function', 'function': {'name': 'f', 'description': 'd', "
            "'parameters': {'type': 'object'}}}]");
    refused(false, MESSAGES("{'role': 'assistant', 'content': [{'type': 'tool_use'}]}"),
            "tool_use");
    refused(false, MESSAGES("{'role': 'tool', 'content': 'a'}"), "user or assistant");
    refused(false, "{'messages': []}", "max_tokens");
}

static void choices_of_messages(void **state)
{
    static const char *const choices[][2] = {
        {"{'type': 'auto'}", "'auto'"},
        {"{'type': 'any'}", "'required'"},
        {"{'type': 'none'}", "'none'"},
        {"{'type': 'tool', 'name': 'f'}",
         "{'type': 'function', 'function': {'name': 'f'}}"}};
    char body[200], wanted[100];

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct refusal refusal;
        json_t *chat, *expected;

        snprintf(body, sizeof body,
                 "{'max_tokens': 5, 'messages': [], 'tool_choice': %s}", choices[i][0]);
        snprintf(wanted, sizeof wanted, "[%s]", choices[i][1]);
        chat = translate(false, body, &refusal);
        expected = read_body(wanted);
        assert_true(json_equal(json_object_get(chat, "tool_choice"),
                               json_array_get(expected, 0)));
        assert_null(json_object_get(chat, "parallel_tool_calls"));
        json_decref(expected);
        json_decref(chat);
    }
    becomes(false,
            "{'max_tokens': 5, 'messages': [], 'output_config': {'format': {'type': "
            "'json_schema', 'schema': {}}}}",
            "response_format", "{'type': 'json_schema', 'schema': {}}");
    refused(false, "{'max_tokens': 5, 'messages': [], 'tool_choice': 'auto'}",
            "tool_choice");
    refused(false,
            "{'max_tokens': 5, 'messages': [], 'output_config': {'effort': 'a'}}",
            "effort");
    refused(false, "{'max_tokens': 5, 'messages': [], 'thinking': true}", "thinking");
}

static void tools_of_responses(void **state)
{
    (void)state;
    becomes(
        true,
        "{'input': [{'type': 'reasoning', 'summary': [], 'content': [{'type': "
        "'reasoning_text', 'text': 'hm'}]}, {'role': 'assistant', 'content': [{'type': "
        "'output_text', 'text': 'b'}]}, {'type': 'function_call', 'call_id': 'a1', "
        "'name': 'f', 'arguments': '" ARGUMENTS "'}, {'type': 'function_call_output', "
        "'call_id': 'a1', 'output': 'r'}]}",
        "messages",
        "[{'role': 'assistant', 'reasoning_content': 'hm', 'content': [{'type': "
        "'text', 'text': 'b'}], " CALLS "}, {'role': 'tool', 'content': 'r', "
        "'tool_call_id': 'a1'}]");
    /* Calls in a row are of one message. */
    becomes(
        true,
        "{'input': [{'type': 'function_call', 'call_id': '1', 'name': 'f', "
        "'arguments': 'x'}, {'type': 'function_call', 'call_id': '2', 'name': 'g', "
        "'arguments': 'y'}], 'instructions': 'i'}",
        "messages",
        "[{'role': 'system', 'content': 'i'}, {'role': 'assistant', 'content': null, "
        "'tool_calls': [{'id': '1', 'type': 'function', 'function': {'name': 'f', "
        "'arguments': 'x'}}, {'id': '2', 'type': 'function', 'function': {'name': "
        "'g', 'arguments': 'y'}}]}]");
    becomes(
        true,
        "{'input': 'a', 'tools': [{'type': 'function', 'name': 'f', 'strict': true, "
        "'parameters': {'type': 'object'}}]}",
        "tools",
        "[{'type': 'function', 'function': {'name': 'f', 'strict': true, "
        "'parameters': {'type': 'object'}}}]");
    becomes(true, "{'input': 'a', 'tool_choice': {'type': 'function', 'name': 'f'}}",
            "tool_choice", "{'type': 'function', 'function': {'name': 'f'}}");
    becomes(true,
            "{'input': 'a', 'tool_choice': {'type': 'allowed_tools', 'mode': 'auto', "
            "'tools': [{'type': 'function', 'name': 'f'}]}}",
            "tool_choice",
            "{'type': 'allowed_tools', 'allowed_tools': {'mode': 'auto', 'tools': "
            "[{'type': 'function', 'function': {'name': 'f'}}]}}");
    refused(true, "{'input': [{'type': 'function_call_output'}]}", "call_id");
    refused(true, "{'input': [{'type': 'item_reference', 'id': 'a'}]}",
            "item_reference");
    refused(true, "{'input': 'a', 'tools': [{'type': 'web_search'}]}", "web_search");
    refused(true, "{'input': 'a', 'tools': {}}", "array");
    refused(true, "{}", "input");
}

/* What a response repeats: members that are known, numbers as they came, and nothing
 * that would fill the memory of all who wait. */
static void what_is_repeated(void **state)
{
    const struct json_limit limit = {SIZE_MAX, SIZE_MAX};
    char *body = malloc(300000), *echo;
    struct refusal refusal = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        json_t *root, *chat;

        snprintf(body, 300000,
                 "{\"input\":\"x\",\"metadata\":{\"a\":1e400,\"b\":\"%0*d\"},\"c\":1}",
                 i ? 200000 : 9, 0);
        root = json_try(body, strlen(body), limit, 0);
        chat = translate_responses(root, &echo, &refusal);
        assert_non_null(chat);
        assert_non_null(
            strstr(echo, i ? "\"metadata\":{}"
                           : "\"metadata\":{\"a\":1e400,\"b\":\"000000000\"}"));
        assert_null(strstr(echo, "\"c\""));
        assert_in_range(strlen(echo), 100, 1000);
        free(echo);
        json_decref(chat);
        json_decref(root);
    }
    snprintf(
        body, 300000,
        "{\"max_tokens\":5,\"messages\":[{\"role\":\"assistant\",\"content\":[{"
        "\"type\":\"tool_use\",\"id\":\"i\",\"name\":\"f\",\"input\":{\"x\":1e999}}"
        "]}]}");
    json_t *root = json_try(body, strlen(body), limit, 0);
    json_t *chat = translate_messages(root, false, &refusal);
    char *text = json_dumps(chat, JSON_COMPACT);

    assert_non_null(strstr(text, "\"arguments\":\"{\\\"x\\\":1e999}\""));
    free(text);
    json_decref(chat);
    json_decref(root);
    free(body);
}

/* Whatever is not as the API has it is refused by its name, or left to the chat. */
static void other_forms(void **state)
{
    static const struct {
        bool responses;
        const char *body, *word;
    } cases[] = {
        {false, MESSAGES("{'content': 'a'}"), "user or assistant"},
        {false, "{'max_tokens': 5}", "an array of 1 to"},
        {false,
         MESSAGES("{'role': 'assistant', 'content': [{'type': 'tool_use', 'id': 'i', "
                  "'name': 'f', 'input': 'x'}]}"),
         "an input, which is an object"},
        {false,
         MESSAGES("{'role': 'assistant', 'content': [{'type': 'tool_use', 'id': 'i', "
                  "'input': {}}]}"),
         "an id and a name"},
        {false, MESSAGES("{'role': 'user', 'content': [{'type': 'tool_result'}]}"),
         "a tool_use_id"},
        {false, "{'max_tokens': 5, 'messages': [], 'tools': [{'type': 'bash'}]}",
         "a tool of type bash"},
        {false, "{'max_tokens': 5, 'messages': [], 'tool_choice': {'type': 'tool'}}",
         "tool with a name"},
        {false, "{'max_tokens': 5, 'messages': [], 'thinking': {'type': 'x'}}",
         "enabled, disabled or adaptive"},
        {true, "{'input': [{'type': 'message', 'content': 'a'}]}", "has no role"},
        {true, "{'input': [{'type': 'function_call', 'call_id': 'i'}]}",
         "has call_id, name and arguments"},
        {true,
         "{'input': [{'type': 'function_call', 'call_id': 'i', 'name': 'f', "
         "'arguments': {}}]}",
         "has call_id, name and arguments"},
        {true, "{'input': 7}", "a text, or an array"},
        {true, "{'input': 'a', 'tools': [{'name': 'f'}]}", "a tool of type (none)"},
        {true, "{'input': 'a', 'tool_choice': {'type': 'function'}}", "with a name"},
        {true, "{'input': 'a', 'tool_choice': {'type': 'x', 'name': 'f'}}",
         "object of type"},
        {true, "{'input': 'a', 'text': {'verbosity': 'low'}}", "text.verbosity low"},
        {true, "{'input': 'a', 'text': {'form': {}}}", "text.form is not"},
        {true, "{'input': 'a', 'text': 'plain'}", "text must be an object"},
        {true, "{'input': 'a', 'reasoning': 'high'}", "reasoning must be an object"},
        {true, "{'input': 'a', 'reasoning': {'budget': 5}}", "reasoning.budget is not"},
        {true, "{'input': 'a', 'reasoning': {'summary': 'detailed'}}",
         "reasoning.summary detailed is not"},
        {true, "{'input': 'a', 'reasoning': {'generate_summary': 'concise'}}",
         "reasoning.generate_summary concise"},
        {true, "{'input': 'a', 'truncation': 7}", "must be disabled"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(cases[i].responses, cases[i].body, cases[i].word);
    becomes(true,
            "{'input': 'a', 'reasoning': {'effort': null, 'summary': 'auto', "
            "'generate_summary': null}, 'text': {'verbosity': 'medium'}}",
            "messages", "[{'role': 'user', 'content': 'a'}]");
    becomes(false, MESSAGES("{'role': 'assistant'}, {'role': 'user', 'content': []}"),
            "messages",
            "[{'role': 'assistant', 'content': ''}, {'role': 'user', 'content': []}]");
    becomes(false,
            MESSAGES("{'role': 'user', 'content': [{'type': 'tool_result', "
                     "'tool_use_id': 'i', 'content': 'r'}]}"),
            "messages", "[{'role': 'tool', 'content': 'r', 'tool_call_id': 'i'}]");
    becomes(false, MESSAGES("{'role': 'assistant', 'content': [{'type': 'x'}]}"),
            "messages", "[{'role': 'assistant', 'content': [{'type': 'x'}]}]");
    becomes(false, MESSAGES("{'role': 'assistant', 'content': []}"), "messages",
            "[{'role': 'assistant', 'content': []}]");
    becomes(
        true,
        "{'input': [{'role': 'user'}, {'type': 'reasoning', 'summary': []}, {'role': "
        "'assistant', 'content': [{'type': 'refusal'}, {'type': 'input_text'}]}]}",
        "messages",
        "[{'role': 'user', 'content': ''}, {'role': 'assistant', 'content': "
        "[{'type': 'refusal'}, {'type': 'input_text'}]}]");
    becomes(true,
            "{'input': 'a', 'text': {'format': {'type': 'json_schema', 'schema': {}}}}",
            "response_format", "{'type': 'json_schema', 'schema': {}}");
}

/* A number of thoughts, or whatever the model takes. */
static void thoughts_of_messages(void **state)
{
    static const struct {
        const char *thinking;
        int budget; /* -1: none */
    } cases[] = {{"{'type': 'adaptive'}", -1},
                 {"{'type': 'disabled'}", 0},
                 {"{'type': 'enabled', 'budget_tokens': 99}", 99},
                 {"{'type': 'enabled'}", -1},
                 {"null", -1}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct refusal refusal;
        char body[320];
        json_t *chat, *budget;

        snprintf(body, sizeof body,
                 "{'max_tokens': 5, 'messages': [], 'system': 's', 'thinking': %s, "
                 "'output_config': {'format': null}, 'tool_choice': {'type': 'auto', "
                 "'disable_parallel_tool_use': true}}",
                 cases[i].thinking);
        chat = translate(false, body, &refusal);
        assert_non_null(chat);
        budget = json_object_get(chat, "thinking_budget");
        assert_int_equal(budget ? json_integer_value(budget) : -1, cases[i].budget);
        assert_true(json_is_false(json_object_get(chat, "parallel_tool_calls")));
        assert_null(json_object_get(chat, "response_format"));
        json_decref(chat);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tools_of_messages),    cmocka_unit_test(choices_of_messages),
        cmocka_unit_test(tools_of_responses),   cmocka_unit_test(other_forms),
        cmocka_unit_test(thoughts_of_messages), cmocka_unit_test(what_is_repeated)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
