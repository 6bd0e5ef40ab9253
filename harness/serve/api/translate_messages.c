/* SPDX-License-Identifier: MIT
 *
 * translate_messages.c - the body of Anthropic's /v1/messages as a chat's
 */
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/serve/api/api_request.h"
#include "harness/serve/api/translate.h"

/* A chat's parts, of blocks that are text or are refused there by their type; a text
 * stays one. A new reference. */
static json_t *as_content(json_t *content)
{
    return content ? json_incref(content) : json_string("");
}

/* ---- an assistant's messages ---------------------------------------------------- */

static bool add_use(struct translation *t, json_t *message, const json_t *block)
{
    json_t *id = api_member(block, "id"), *name = api_member(block, "name");
    const json_t *input = api_member(block, "input");
    char *text;

    if (!json_text(id) || !json_text(name) || !json_is_object(input))
        return refuse(t->refusal, 400, NULL, "messages",
                      "a block of type tool_use has an id and a name, which are texts, "
                      "and an input, which is an object");
    text = json_write(input, JSON_COMPACT);
    translate_add_call(t, message, id, name, json_string(text));
    free(text);
    return !t->refusal->http;
}

static bool add_block(struct translation *t, json_t *message, json_t *block)
{
    if (api_is_type(block, "tool_use"))
        return add_use(t, message, block);
    if (api_is_type(block, "thinking"))
        return translate_copy(t, message, "reasoning_content", block, "thinking");
    return translate_append(t, json_object_get(message, "content"), json_incref(block));
}

static bool add_assistant(struct translation *t, json_t *content)
{
    json_t *message, *block;
    size_t i;

    if (!json_is_array(content))
        return translate_add(t, "assistant", as_content(content)) != NULL;
    message = translate_add(t, "assistant", json_array());
    json_array_foreach(content, i, block)
    {
        if (!add_block(t, message, block))
            return false;
    }
    if (!json_array_size(json_object_get(message, "content")) &&
        json_object_get(message, "tool_calls"))
        translate_set(t, message, "content", json_null());
    return !t->refusal->http;
}

/* ---- messages of users and tools ------------------------------------------------- */

/* The tool's message, before the user's own text. */
static bool add_result(struct translation *t, json_t *block)
{
    json_t *id = api_member(block, "tool_use_id");

    if (!json_text(id))
        return refuse(t->refusal, 400, NULL, "messages",
                      "a block of type tool_result has a tool_use_id, which is a text");
    return translate_add_result(t, id, as_content(api_member(block, "content")));
}

static bool add_user(struct translation *t, json_t *content)
{
    json_t *parts, *block;
    bool ok = true;
    size_t i;

    if (!json_is_array(content))
        return translate_add(t, "user", as_content(content)) != NULL;
    parts = json_array();
    json_array_foreach(content, i, block)
    {
        if (ok && api_is_type(block, "tool_result"))
            ok = add_result(t, block);
        else if (ok)
            ok = translate_append(t, parts, json_incref(block));
    }
    if (ok && (json_array_size(parts) || !json_array_size(content)))
        ok = translate_add(t, "user", json_incref(parts)) != NULL;
    json_decref(parts);
    return ok;
}

static bool add_message(struct translation *t, const json_t *message)
{
    const char *role = json_text(api_member(message, "role"));
    json_t *content = api_member(message, "content");

    if (!role || (strcmp(role, "user") && strcmp(role, "assistant")))
        return refuse(t->refusal, 400, NULL, "messages",
                      "a message's role must be user or assistant; a text of the "
                      "system is the field system");
    return strcmp(role, "user") ? add_assistant(t, content) : add_user(t, content);
}

static bool add_messages(struct translation *t)
{
    json_t *list = api_member(t->body, "messages"), *message;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) > API_MAX_MESSAGES)
        return refuse(t->refusal, 400, NULL, "messages",
                      "messages must be an array of 1 to %d messages",
                      API_MAX_MESSAGES);
    json_array_foreach(list, i, message)
    {
        if (!add_message(t, message))
            return false;
    }
    return true;
}

/* ---- which tool ------------------------------------------------------------------ */

/* A chat's word for the choice; NULL: it has none. */
static const char *word_of(const json_t *choice)
{
    static const char *const words[][2] = {
        {"auto", "auto"}, {"any", "required"}, {"none", "none"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (api_is_type(choice, words[i][0]))
            return words[i][1];
    return NULL;
}

static bool add_choice(struct translation *t)
{
    const json_t *choice = api_member(t->body, "tool_choice");
    const char *word = word_of(choice);
    json_t *name = api_is_type(choice, "tool") ? api_member(choice, "name") : NULL;

    if (!choice)
        return true;
    if (!word && !json_text(name))
        return refuse(t->refusal, 400, NULL, "tool_choice",
                      "tool_choice must be an object of type auto, any, none, or tool "
                      "with a name");
    if (json_is_true(api_member(choice, "disable_parallel_tool_use")))
        translate_set(t, t->chat, "parallel_tool_calls", json_false());
    return translate_set(t, t->chat, "tool_choice",
                         word ? json_string(word)
                              : json_pack("{s:s,s:{s:O}}", "type", "function",
                                          "function", "name", name));
}

/* ---- the whole ------------------------------------------------------------------- */

/* A budget of thoughts, or none. "adaptive" leaves it to the model. */
static bool add_thinking(struct translation *t)
{
    const json_t *thinking = api_member(t->body, "thinking");

    if (!thinking || api_is_type(thinking, "adaptive"))
        return true;
    if (api_is_type(thinking, "disabled"))
        return translate_set(t, t->chat, "thinking_budget", json_integer(0));
    if (api_is_type(thinking, "enabled"))
        return translate_copy(t, t->chat, "thinking_budget", thinking, "budget_tokens");
    return refuse(t->refusal, 400, NULL, "thinking",
                  "thinking must be an object of type enabled, disabled or adaptive");
}

/* {"format": {"type": "json_schema", "schema": ...}} */
static bool add_format(struct translation *t)
{
    json_t *config = api_member(t->body, "output_config"), *value;
    const char *name;

    json_object_foreach(config, name, value)
    {
        if (strcmp(name, "format") && !json_is_null(value))
            return refuse(t->refusal, 400, "unsupported", "output_config",
                          "output_config.%.60s is not supported by this server", name);
    }
    return translate_format(t, api_member(config, "format"));
}

json_t *translate_messages(json_t *body, bool is_count, struct refusal *refusal)
{
    static const struct translate_dialect dialect = {
        .fields = {{"model", "model"},
                   {"stream", "stream"},
                   {"temperature", "temperature"},
                   {"top_p", "top_p"},
                   {"top_k", "top_k"},
                   {"max_tokens", "max_tokens"},
                   {"stop", "stop_sequences"}},
        .system = "system",
        .tool = "custom",
        .default_tool = "custom",
        .schema = "input_schema"};
    struct translation t;

    if (!is_count && !api_member(body, "max_tokens")) {
        refuse(refusal, 400, NULL, "max_tokens",
               "max_tokens is missing: this API requires it");
        return NULL;
    }
    if (translate_begin(&t, body, &dialect, refusal) && add_messages(&t) &&
        translate_tools(&t) && add_choice(&t) && add_thinking(&t))
        add_format(&t);
    return translate_end(&t);
}
