/* SPDX-License-Identifier: MIT
 *
 * translate_responses.c - the body of OpenAI's /v1/responses as a chat's
 *
 * What the API keeps on a server (previous answers, conversations, prompts by their
 * name) is refused: this server keeps nothing of an answer.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/serve/api/api_request.h"
#include "harness/serve/api/translate.h"

static bool is_type(const json_t *item, const char *type)
{
    const char *is = json_text(api_member(item, "type"));

    return is && !strcmp(is, type);
}

/* ---- input ----------------------------------------------------------------------- */

/* input_text and output_text are parts of type text; others are refused by their
 * type, as a chat's are. A new reference. */
static json_t *as_parts(json_t *content)
{
    json_t *parts, *part;
    int failed = 0;
    size_t i;

    if (!json_is_array(content))
        return content ? json_incref(content) : json_string("");
    parts = json_array();
    json_array_foreach(content, i, part)
    {
        const bool is_text =
            is_type(part, "input_text") || is_type(part, "output_text");
        json_t *text = api_member(part, "text");

        if (is_text && text)
            failed |= json_array_append_new(
                parts, json_pack("{s:s,s:O}", "type", "text", "text", text));
        else
            failed |= json_array_append(parts, part);
    }
    if (!failed)
        return parts;
    json_decref(parts);
    return NULL;
}

/* The assistant's message that a call belongs to: calls in a row are of one. */
static json_t *calling(json_t *messages)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_text(json_object_get(last, "role"));

    return role && !strcmp(role, "assistant")
               ? last
               : translate_add(messages, "assistant", json_null());
}

static bool add_call(json_t *messages, const json_t *item, struct refusal *refusal)
{
    const json_t *id = api_member(item, "call_id"), *name = api_member(item, "name");
    json_t *arguments = api_member(item, "arguments"), *message;

    if (!json_text(id) || !json_text(name) || !json_is_string(arguments))
        return refuse(refusal, 400, NULL, "input",
                      "an item of type function_call has call_id, name and arguments, "
                      "which are texts");
    message = calling(messages);
    return (message && translate_add_call(message, id, name, json_incref(arguments))) ||
           translate_no_memory(refusal);
}

static bool add_output(json_t *messages, json_t *item, struct refusal *refusal)
{
    json_t *id = api_member(item, "call_id"), *message;

    if (!json_text(id))
        return refuse(refusal, 400, NULL, "input",
                      "an item of type function_call_output has a call_id, which is a "
                      "text");
    message = translate_add(messages, "tool", as_parts(api_member(item, "output")));
    return (message && !json_object_set(message, "tool_call_id", id)) ||
           translate_no_memory(refusal);
}

/* Thoughts of an answer that comes again: the part before the assistant's next words.
 */
static bool add_thoughts(json_t *messages, const json_t *item, struct refusal *refusal)
{
    const json_t *first = json_array_get(api_member(item, "content"), 0);
    json_t *message;

    if (!api_member(first, "text"))
        return true; /* a summary alone, or nothing */
    message = translate_add(messages, "assistant", json_null());
    return (message && translate_copy(message, "reasoning_content", first, "text")) ||
           translate_no_memory(refusal);
}

/* An assistant's message whose thoughts stand before it is one with them. */
static bool add_message(json_t *messages, json_t *item, struct refusal *refusal)
{
    const char *role = json_text(api_member(item, "role"));
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    json_t *parts = as_parts(api_member(item, "content"));

    if (!role) {
        json_decref(parts);
        return refuse(refusal, 400, NULL, "input",
                      "a message of input has no role: system, developer, user or "
                      "assistant");
    }
    if (!strcmp(role, "assistant") && json_is_null(json_object_get(last, "content")) &&
        json_object_get(last, "reasoning_content"))
        return translate_set(last, "content", parts) || translate_no_memory(refusal);
    return translate_add(messages, role, parts) || translate_no_memory(refusal);
}

static bool add_item(json_t *messages, json_t *item, struct refusal *refusal)
{
    const char *type = json_text(api_member(item, "type"));

    if (!type || is_type(item, "message"))
        return add_message(messages, item, refusal);
    if (is_type(item, "function_call"))
        return add_call(messages, item, refusal);
    if (is_type(item, "function_call_output"))
        return add_output(messages, item, refusal);
    if (is_type(item, "reasoning"))
        return add_thoughts(messages, item, refusal);
    return refuse(refusal, 400, "unsupported", "input",
                  "an item of type %.60s is not supported by this server", type);
}

static bool add_input(json_t *chat, const json_t *body, struct refusal *refusal)
{
    json_t *input = api_member(body, "input"), *item;
    json_t *instructions = api_member(body, "instructions"), *messages = json_array();
    size_t i;

    if (!translate_set(chat, "messages", messages))
        return translate_no_memory(refusal);
    if (instructions && !translate_add(messages, "system", json_incref(instructions)))
        return translate_no_memory(refusal);
    if (json_is_string(input))
        return translate_add(messages, "user", json_incref(input)) ||
               translate_no_memory(refusal);
    if (!json_is_array(input) || json_array_size(input) > API_MAX_MESSAGES)
        return refuse(refusal, 400, NULL, "input",
                      "input must be a text, or an array of 1 to %d items",
                      API_MAX_MESSAGES);
    json_array_foreach(input, i, item)
    {
        if (!add_item(messages, item, refusal))
            return false;
    }
    return true;
}

/* ---- tools and the answer's form ------------------------------------------------- */

static const struct translate_tool tools = {"function", "(none)", "parameters"};

static json_t *chosen_tool(const json_t *tool)
{
    return json_pack("{s:O?,s:{s:O?}}", "type", api_member(tool, "type"), "function",
                     "name", api_member(tool, "name"));
}

static json_t *allowed_tools(const json_t *choice)
{
    json_t *list = json_array(), *tool;
    size_t i;

    json_array_foreach(api_member(choice, "tools"), i, tool)
    {
        json_array_append_new(list, chosen_tool(tool));
    }
    return json_pack("{s:s,s:{s:O?,s:o}}", "type", "allowed_tools", "allowed_tools",
                     "mode", api_member(choice, "mode"), "tools", list);
}

static bool add_choice(json_t *chat, const json_t *body, struct refusal *refusal)
{
    json_t *choice = api_member(body, "tool_choice");

    if (!json_is_object(choice))
        return translate_copy(chat, "tool_choice", body, "tool_choice") ||
               translate_no_memory(refusal);
    if (is_type(choice, "allowed_tools"))
        return translate_set(chat, "tool_choice", allowed_tools(choice)) ||
               translate_no_memory(refusal);
    if (!is_type(choice, "function") || !json_text(api_member(choice, "name")))
        return refuse(refusal, 400, NULL, "tool_choice",
                      "tool_choice must be auto, none, required, an object of type "
                      "function with a name, or one of type allowed_tools");
    return translate_set(chat, "tool_choice", chosen_tool(choice)) ||
           translate_no_memory(refusal);
}

/* {"format": {"type": "json_schema", "schema": ...}} */
static bool add_format(json_t *chat, const json_t *body, struct refusal *refusal)
{
    const json_t *text = api_member(body, "text");
    const json_t *format = api_member(text, "format");

    if (api_member(text, "verbosity"))
        return refuse(refusal, 400, "unsupported", "text",
                      "text.verbosity is not supported by this server");
    if (!format)
        return true;
    return translate_set(chat, "response_format",
                         json_pack("{s:O?,s:O?}", "type", api_member(format, "type"),
                                   "schema", api_member(format, "schema"))) ||
           translate_no_memory(refusal);
}

/* ---- the whole ------------------------------------------------------------------- */

static bool check_truncation(const json_t *body, struct refusal *refusal)
{
    const char *truncation = json_text(api_member(body, "truncation"));

    return !api_member(body, "truncation") ||
           (truncation && !strcmp(truncation, "disabled")) ||
           refuse(refusal, 400, "unsupported", "truncation",
                  "truncation must be disabled: a context is never cut here");
}

static bool add_all(json_t *chat, json_t *body, struct refusal *refusal)
{
    static const char *const same[][2] = {
        {"model", "model"},
        {"stream", "stream"},
        {"temperature", "temperature"},
        {"top_p", "top_p"},
        {"max_tokens", "max_output_tokens"},
        {"parallel_tool_calls", "parallel_tool_calls"}};
    bool ok = translate_copy(chat, "reasoning_effort", api_member(body, "reasoning"),
                             "effort");

    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        ok &= translate_copy(chat, same[i][0], body, same[i][1]);
    return ok ? check_truncation(body, refusal) && add_input(chat, body, refusal) &&
                    translate_tools(chat, body, &tools, refusal) &&
                    add_choice(chat, body, refusal) && add_format(chat, body, refusal)
              : translate_no_memory(refusal);
}

/* What is longer is not repeated: a stream has it three times, for each request that
 * waits. */
#define MAX_ECHO (128u << 10)

static json_t *default_echo(void)
{
    return json_pack(
        "{s:n,s:n,s:n,s:n,s:{},s:b,s:n,s:f,s:f,s:[],s:s,s:s,s:{s:{s:s}},s:n,s:b,s:b}",
        "error", "instructions", "max_output_tokens", "previous_response_id",
        "metadata", "parallel_tool_calls", 1, "reasoning", "temperature", 1.0, "top_p",
        1.0, "tools", "tool_choice", "auto", "truncation", "disabled", "text", "format",
        "type", "text", "user", "store", 0, "background", 0);
}

/* Clients' types require all of these members. */
static char *make_echo(json_t *body)
{
    json_t *echo = default_echo();
    char *text;

    json_object_update_existing(echo, body);
    text = json_write(echo, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(echo);
    if (text && strlen(text) > MAX_ECHO) {
        free(text);
        echo = default_echo();
        text = json_write(echo, JSON_COMPACT | JSON_PRESERVE_ORDER);
        json_decref(echo);
    }
    if (!text || strlen(text) < 2)
        return NULL;
    text[strlen(text) - 1] = '\0'; /* without braces */
    memmove(text, text + 1, strlen(text));
    return text;
}

json_t *translate_responses(json_t *body, char **echo, struct refusal *refusal)
{
    json_t *chat = json_object();

    if (!add_all(chat, body, refusal)) {
        json_decref(chat);
        return NULL;
    }
    *echo = make_echo(body);
    if (*echo)
        return chat;
    json_decref(chat);
    translate_no_memory(refusal);
    return NULL;
}
