/* SPDX-License-Identifier: MIT
 *
 * translate_messages.c - the body of Anthropic's /v1/messages as a chat's
 */
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/serve/api/api_request.h"
#include "harness/serve/api/translate.h"

static bool is_type(const json_t *block, const char *type)
{
    const char *is = json_text(api_member(block, "type"));

    return is && !strcmp(is, type);
}

/* A chat's parts, of blocks that are text or are refused there by their type; a text
 * stays one. A new reference. */
static json_t *as_content(json_t *content)
{
    return content ? json_incref(content) : json_string("");
}

/* ---- an assistant's messages ---------------------------------------------------- */

static bool add_use(json_t *message, const json_t *block, struct refusal *refusal)
{
    const json_t *id = api_member(block, "id"), *name = api_member(block, "name");
    const json_t *input = api_member(block, "input");
    char *text;
    bool ok;

    if (!json_text(id) || !json_text(name) || !json_is_object(input))
        return refuse(refusal, 400, NULL, "messages",
                      "a block of type tool_use has an id and a name, which are texts, "
                      "and an input, which is an object");
    text = json_write(input, JSON_COMPACT);
    ok = text && translate_add_call(message, id, name, json_string(text));
    free(text);
    return ok || translate_no_memory(refusal);
}

static bool add_block(json_t *message, json_t *parts, json_t *block,
                      struct refusal *refusal)
{
    if (is_type(block, "tool_use"))
        return add_use(message, block, refusal);
    if (is_type(block, "thinking"))
        return translate_copy(message, "reasoning_content", block, "thinking") ||
               translate_no_memory(refusal);
    return !json_array_append(parts, block) || translate_no_memory(refusal);
}

static bool add_assistant(json_t *messages, json_t *content, struct refusal *refusal)
{
    json_t *message, *parts, *block;
    size_t i;

    if (!json_is_array(content))
        return translate_add(messages, "assistant", as_content(content)) ||
               translate_no_memory(refusal);
    message = translate_add(messages, "assistant", parts = json_array());
    if (!message)
        return translate_no_memory(refusal);
    json_array_foreach(content, i, block)
    {
        if (!add_block(message, parts, block, refusal))
            return false;
    }
    if (!json_array_size(parts) && json_object_get(message, "tool_calls"))
        json_object_set_new(message, "content", json_null());
    return true;
}

/* ---- messages of users and tools ------------------------------------------------- */

/* The tool's message, before the user's own text. */
static bool add_result(json_t *messages, json_t *block, struct refusal *refusal)
{
    json_t *id = api_member(block, "tool_use_id"), *message;

    if (!json_text(id))
        return refuse(refusal, 400, NULL, "messages",
                      "a block of type tool_result has a tool_use_id, which is a text");
    message = translate_add(messages, "tool", as_content(api_member(block, "content")));
    return (message && !json_object_set(message, "tool_call_id", id)) ||
           translate_no_memory(refusal);
}

static bool add_user(json_t *messages, json_t *content, struct refusal *refusal)
{
    json_t *parts, *block;
    bool ok = true;
    size_t i;

    if (!json_is_array(content))
        return translate_add(messages, "user", as_content(content)) ||
               translate_no_memory(refusal);
    parts = json_array();
    json_array_foreach(content, i, block)
    {
        if (is_type(block, "tool_result"))
            ok = ok && add_result(messages, block, refusal);
        else
            ok = ok &&
                 (!json_array_append(parts, block) || translate_no_memory(refusal));
    }
    if (ok && (json_array_size(parts) || !json_array_size(content)))
        ok = translate_add(messages, "user", json_incref(parts)) ||
             translate_no_memory(refusal);
    json_decref(parts);
    return ok;
}

static bool add_message(json_t *messages, const json_t *message,
                        struct refusal *refusal)
{
    const char *role = json_text(api_member(message, "role"));
    json_t *content = api_member(message, "content");

    if (!role || (strcmp(role, "user") && strcmp(role, "assistant")))
        return refuse(refusal, 400, NULL, "messages",
                      "a message's role must be user or assistant; a text of the "
                      "system is the field system");
    return strcmp(role, "user") ? add_assistant(messages, content, refusal)
                                : add_user(messages, content, refusal);
}

static bool add_messages(json_t *chat, const json_t *body, struct refusal *refusal)
{
    json_t *list = api_member(body, "messages"), *system = api_member(body, "system");
    json_t *messages = json_array(), *message;
    size_t i;

    if (!translate_set(chat, "messages", messages))
        return translate_no_memory(refusal);
    if (!json_is_array(list) || json_array_size(list) > API_MAX_MESSAGES)
        return refuse(refusal, 400, NULL, "messages",
                      "messages must be an array of 1 to %d messages",
                      API_MAX_MESSAGES);
    if (system && !translate_add(messages, "system", json_incref(system)))
        return translate_no_memory(refusal);
    json_array_foreach(list, i, message)
    {
        if (!add_message(messages, message, refusal))
            return false;
    }
    return true;
}

/* ---- tools ----------------------------------------------------------------------- */

static const struct translate_tool tools = {"custom", "custom", "input_schema"};

/* A chat's word for the choice; NULL: it has none. */
static const char *word_of(const json_t *choice)
{
    static const char *const words[][2] = {
        {"auto", "auto"}, {"any", "required"}, {"none", "none"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_type(choice, words[i][0]))
            return words[i][1];
    return NULL;
}

static bool add_choice(json_t *chat, const json_t *body, struct refusal *refusal)
{
    const json_t *choice = api_member(body, "tool_choice");
    const char *word = word_of(choice);
    json_t *name = is_type(choice, "tool") ? api_member(choice, "name") : NULL;
    const bool is_single =
        json_is_true(api_member(choice, "disable_parallel_tool_use"));

    if (!choice)
        return true;
    if (!word && !json_text(name))
        return refuse(refusal, 400, NULL, "tool_choice",
                      "tool_choice must be an object of type auto, any, none, or tool "
                      "with a name");
    return (translate_set(chat, "tool_choice",
                          word ? json_string(word)
                               : json_pack("{s:s,s:{s:O}}", "type", "function",
                                           "function", "name", name)) &&
            (!is_single || translate_set(chat, "parallel_tool_calls", json_false()))) ||
           translate_no_memory(refusal);
}

/* ---- the whole ------------------------------------------------------------------- */

/* A budget of thoughts, or none. "adaptive" leaves it to the model. */
static bool add_thinking(json_t *chat, const json_t *body, struct refusal *refusal)
{
    const json_t *thinking = api_member(body, "thinking");

    if (!thinking || is_type(thinking, "adaptive"))
        return true;
    if (is_type(thinking, "disabled"))
        return translate_set(chat, "thinking_budget", json_integer(0)) ||
               translate_no_memory(refusal);
    if (is_type(thinking, "enabled"))
        return translate_copy(chat, "thinking_budget", thinking, "budget_tokens") ||
               translate_no_memory(refusal);
    return refuse(refusal, 400, NULL, "thinking",
                  "thinking must be an object of type enabled, disabled or adaptive");
}

/* {"format": {"type": "json_schema", "schema": ...}} */
static bool add_format(json_t *chat, json_t *body, struct refusal *refusal)
{
    json_t *config = api_member(body, "output_config"), *value;
    const json_t *format = NULL;
    const char *name;

    json_object_foreach(config, name, value)
    {
        if (strcmp(name, "format") && !json_is_null(value))
            return refuse(refusal, 400, "unsupported", "output_config",
                          "output_config.%.60s is not supported by this server", name);
        format = json_is_null(value) ? NULL : value;
    }
    if (!format)
        return true;
    return translate_set(chat, "response_format",
                         json_pack("{s:O?,s:O?}", "type", api_member(format, "type"),
                                   "schema", api_member(format, "schema"))) ||
           translate_no_memory(refusal);
}

static bool add_all(json_t *chat, json_t *body, struct refusal *refusal)
{
    static const char *const same[] = {"model", "stream", "temperature",
                                       "top_p", "top_k",  "max_tokens"};
    bool ok = translate_copy(chat, "stop", body, "stop_sequences");

    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        ok &= translate_copy(chat, same[i], body, same[i]);
    return ok ? add_messages(chat, body, refusal) &&
                    translate_tools(chat, body, &tools, refusal) &&
                    add_choice(chat, body, refusal) &&
                    add_thinking(chat, body, refusal) && add_format(chat, body, refusal)
              : translate_no_memory(refusal);
}

json_t *translate_messages(json_t *body, bool is_count, struct refusal *refusal)
{
    json_t *chat;

    if (!is_count && !api_member(body, "max_tokens")) {
        refuse(refusal, 400, NULL, "max_tokens",
               "max_tokens is missing: this API requires it");
        return NULL;
    }
    chat = json_object();
    if (add_all(chat, body, refusal))
        return chat;
    json_decref(chat);
    return NULL;
}
