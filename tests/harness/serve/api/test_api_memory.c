/* SPDX-License-Identifier: MIT
 *
 * test_api_memory.c - bodies that are read while one allocation of jansson's after the
 * other fails: 503, or all of the request, never a part of it
 */
#include "tests/support/test.h"

#include "engine/base/json_read.h"
#include "harness/serve/api/api_request.h"
#include "harness/serve/api/translate.h"

#define N_VOCAB 500

static size_t n_allocations, which_fails; /* 0: none */

static void *allocate(size_t n)
{
    return ++n_allocations == which_fails ? NULL : malloc(n);
}

/* A body with ' for ". */
static char *quoted(const char *text)
{
    char *body = strdup(text);

    assert_non_null(body);
    for (char *c = body; *c; c++)
        if (*c == '\'')
            *c = '"';
    return body;
}

/* ---- other APIs' bodies as chats ------------------------------------------------- */

static json_t *translate(bool responses, json_t *body, struct refusal *refusal)
{
    char *echo = NULL;
    json_t *chat;

    *refusal = (struct refusal){0};
    chat = responses ? translate_responses(body, &echo, refusal)
                     : translate_messages(body, false, refusal);
    assert_true(!responses || !chat == !echo);
    free(echo);
    return chat;
}

/* How often an allocation failed. */
static size_t translate_without_memory(bool responses, const char *text)
{
    const struct json_limit limit = {SIZE_MAX, 10000};
    char *all = quoted(text);
    struct refusal refusal;
    json_t *body = json_try(all, strlen(all), limit, 0);
    json_t *whole = translate(responses, body, &refusal);
    size_t n = 0;

    if (!whole)
        fail_msg("%s: %s", all, refusal.message);
    for (;; n++) {
        json_t *own = json_deep_copy(body), *chat;
        bool has_failed;

        n_allocations = 0;
        which_fails = n + 1;
        chat = translate(responses, own, &refusal);
        has_failed = n_allocations >= which_fails;
        which_fails = 0;
        if (!chat && refusal.http != 503)
            fail_msg("%s: allocation %zu: %d", all, n, refusal.http);
        if (chat && !json_equal(chat, whole))
            fail_msg("%s: allocation %zu: a part of it", all, n);
        json_decref(chat);
        json_decref(own);
        if (!has_failed)
            break;
    }
    json_decref(whole);
    json_decref(body);
    free(all);
    return n;
}

static void translations_are_whole(void **state)
{
    static const char messages[] =
        "{'model': 'm', 'max_tokens': 5, 'temperature': 1, 'stop_sequences': ['s'], "
        "'system': 'be brief', 'messages': [{'role': 'user', 'content': 'a'}, {'role': "
        "'assistant', 'content': [{'type': 'thinking', 'thinking': 't'}, {'type': "
        "'text', 'text': 'b'}, {'type': 'tool_use', 'id': 'i', 'name': 'f', 'input': "
        "{'x': 1}}]}, {'role': 'user', 'content': [{'type': 'tool_result', "
        "'tool_use_id': 'i', 'content': 'r'}, {'type': 'text', 'text': 'c'}]}, "
        "{'role': "
        "'assistant', 'content': 'd'}, {'role': 'user'}], 'tools': [{'name': 'f', "
        "'description': 'd', 'input_schema': {'type': 'object'}}], 'tool_choice': "
        "{'type': 'tool', 'name': 'f', 'disable_parallel_tool_use': true}, 'thinking': "
        "{'type': 'enabled', 'budget_tokens': 9}, 'output_config': {'format': {'type': "
        "'json_schema', 'schema': {}}}}";
    static const char off[] = "{'max_tokens': 5, 'messages': [], 'thinking': {'type': "
                              "'disabled'}, 'tool_choice': {'type': 'any'}}";
    static const char responses[] =
        "{'model': 'm', 'max_output_tokens': 5, 'instructions': 'i', 'reasoning': "
        "{'effort': 'low'}, 'input': [{'role': 'user', 'content': [{'type': "
        "'input_text', 'text': 'a'}, {'type': 'x'}]}, {'type': 'reasoning', 'summary': "
        "[], 'content': [{'type': 'reasoning_text', 'text': 't'}]}, {'role': "
        "'assistant', 'content': 'b'}, {'type': 'function_call', 'call_id': 'i', "
        "'name': 'f', 'arguments': '{}'}, {'type': 'function_call_output', 'call_id': "
        "'i', 'output': 'r'}, {'type': 'function_call', 'call_id': 'k', 'name': 'f', "
        "'arguments': '{}'}, {'role': 'user'}], 'tools': [{'type': 'function', 'name': "
        "'f', 'strict': true, 'parameters': {}}], 'tool_choice': {'type': 'function', "
        "'name': 'f'}, 'text': {'format': {'type': 'json_schema', 'schema': {}}}}";

    (void)state;
    assert_true(translate_without_memory(false, messages) > 50);
    assert_true(translate_without_memory(false, off) > 5);
    assert_true(translate_without_memory(true, responses) > 50);
    assert_true(
        translate_without_memory(true, "{'input': 'a', 'tool_choice': 'none'}") > 5);
}

/* ---- requests -------------------------------------------------------------------- */

static bool reads(struct api_request *r, enum api_kind kind, const char *body,
                  struct refusal *refusal)
{
    *refusal = (struct refusal){0};
    return api_request_read(r, kind, body, strlen(body), N_VOCAB, refusal);
}

/* jansson's parser has assertions where memory is lacking: it gets what it needs. */
static size_t allocations_of_parsing(const char *body)
{
    const struct json_limit limit = {SIZE_MAX, API_MAX_VALUES};

    n_allocations = 0;
    json_decref(json_try(body, strlen(body), limit, JSON_UNIQUE));
    return n_allocations;
}

static size_t read_without_memory(enum api_kind kind, const char *text)
{
    char *body = quoted(text);
    const size_t n_parsing = allocations_of_parsing(body);
    struct api_request whole, r;
    struct refusal refusal;
    size_t n = 0;

    if (!reads(&whole, kind, body, &refusal))
        fail_msg("%s: %s", body, refusal.message);
    for (bool has_failed = true; has_failed; n++) {
        n_allocations = 0;
        which_fails = n_parsing + n + 1;
        const bool is_read = reads(&r, kind, body, &refusal);

        has_failed = n_allocations >= which_fails;
        which_fails = 0;
        if (!is_read && refusal.http != 503)
            fail_msg("%s: allocation %zu: %d", body, n, refusal.http);
        if (!is_read)
            continue;
        if (r.conversation ? !json_equal(r.conversation, whole.conversation)
                           : whole.conversation != NULL)
            fail_msg("%s: allocation %zu: a part of it", body, n);
        assert_int_equal(r.tools.n, whole.tools.n);
        assert_int_equal(!r.schema, !whole.schema);
        api_request_free(&r);
    }
    api_request_free(&whole);
    free(body);
    return n;
}

static void requests_are_whole(void **state)
{
    static const char chat[] =
        "{'messages': [{'role': 'system', 'content': [{'type': 'text', 'text': 's'}]}, "
        "{'role': 'assistant', 'content': null}, {'role': 'assistant', 'tool_calls': "
        "[{'id': 'i', 'function': {'name': 'f', 'arguments': '{}'}}]}, {'role': "
        "'tool', "
        "'tool_call_id': 'i', 'content': 'r'}, {'role': 'user', 'content': 'a'}], "
        "'chat_template': 'rag', 'chat_template_kwargs': {'own': 1, 'other': 2}, "
        "'documents': [1], 'enable_thinking': true, 'reasoning_effort': 'low', "
        "'tools': "
        "[{'type': 'function', 'function': {'name': 'f', 'parameters': {'type': "
        "'object'}}}]}";
    static const char schema[] = "{'prompt': 'a', 'response_format': {'type': "
                                 "'json_schema', 'json_schema': {'schema': {'a': 1}}}}";
    static const char responses[] =
        "{'input': [{'role': 'user', 'content': 'a'}], 'instructions': 'i'}";

    (void)state;
    assert_true(read_without_memory(API_CHAT, chat) > 20);
    assert_true(read_without_memory(API_COMPLETION, schema) > 1);
    assert_true(read_without_memory(API_RESPONSES, responses) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(translations_are_whole),
        cmocka_unit_test(requests_are_whole),
    };

    json_set_alloc_funcs(allocate, free);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
