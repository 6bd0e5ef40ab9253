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

/* ---- input ----------------------------------------------------------------------- */

/* input_text and output_text are parts of type text; others are refused by their
 * type, as a chat's are. A new reference. */
static json_t *as_parts(struct translation *t, json_t *content)
{
    json_t *parts, *part;
    size_t i;

    if (!json_is_array(content))
        return content ? json_incref(content) : json_string("");
    parts = json_array();
    json_array_foreach(content, i, part)
    {
        const bool is_text =
            api_is_type(part, "input_text") || api_is_type(part, "output_text");
        json_t *text = is_text ? api_member(part, "text") : NULL;

        translate_append(t, parts,
                         text ? json_pack("{s:s,s:O}", "type", "text", "text", text)
                              : json_incref(part));
    }
    return parts;
}

static json_t *last_message(const struct translation *t)
{
    return json_array_get(t->messages, json_array_size(t->messages) - 1);
}

/* Calls in a row are of one message. */
static bool add_call(struct translation *t, const json_t *item)
{
    json_t *id = api_member(item, "call_id"), *name = api_member(item, "name");
    json_t *arguments = api_member(item, "arguments"), *message = last_message(t);
    const char *role = json_text(json_object_get(message, "role"));

    if (!json_text(id) || !json_text(name) || !json_is_string(arguments))
        return refuse(t->refusal, 400, NULL, "input",
                      "an item of type function_call has call_id, name and arguments, "
                      "which are texts");
    if (!role || strcmp(role, "assistant") != 0)
        message = translate_add(t, "assistant", json_null());
    return translate_add_call(t, message, id, name, json_incref(arguments));
}

static bool add_output(struct translation *t, const json_t *item)
{
    json_t *id = api_member(item, "call_id");

    if (!json_text(id))
        return refuse(t->refusal, 400, NULL, "input",
                      "an item of type function_call_output has a call_id, which is a "
                      "text");
    return translate_add_result(t, id, as_parts(t, api_member(item, "output")));
}

/* Thoughts of an answer that comes again: the part before the assistant's next words.
 */
static bool add_thoughts(struct translation *t, const json_t *item)
{
    const json_t *first = json_array_get(api_member(item, "content"), 0);

    if (!api_member(first, "text"))
        return true; /* a summary alone, or nothing */
    return translate_copy(t, translate_add(t, "assistant", json_null()),
                          "reasoning_content", first, "text");
}

/* An assistant's message whose thoughts stand before it is one with them. */
static bool add_message(struct translation *t, const json_t *item)
{
    const char *role = json_text(api_member(item, "role"));
    json_t *content = api_member(item, "content"), *last = last_message(t);

    if (!role)
        return refuse(t->refusal, 400, NULL, "input",
                      "a message of input has no role: system, developer, user or "
                      "assistant");
    if (!strcmp(role, "assistant") && json_is_null(json_object_get(last, "content")) &&
        json_object_get(last, "reasoning_content"))
        return translate_set(t, last, "content", as_parts(t, content));
    return translate_add(t, role, as_parts(t, content)) != NULL;
}

static bool add_item(struct translation *t, const json_t *item)
{
    const char *type = json_text(api_member(item, "type"));

    if (!type || api_is_type(item, "message"))
        return add_message(t, item);
    if (api_is_type(item, "function_call"))
        return add_call(t, item);
    if (api_is_type(item, "function_call_output"))
        return add_output(t, item);
    if (api_is_type(item, "reasoning"))
        return add_thoughts(t, item);
    return refuse(t->refusal, 400, "unsupported", "input",
                  "an item of type %.60s is not supported by this server", type);
}

static bool add_input(struct translation *t)
{
    json_t *input = api_member(t->body, "input"), *item;
    size_t i;

    if (json_is_string(input))
        return translate_add(t, "user", json_incref(input)) != NULL;
    if (!json_is_array(input) || json_array_size(input) > API_MAX_MESSAGES)
        return refuse(t->refusal, 400, NULL, "input",
                      "input must be a text, or an array of 1 to %d items",
                      API_MAX_MESSAGES);
    json_array_foreach(input, i, item)
    {
        if (!add_item(t, item))
            return false;
    }
    return true;
}

/* ---- tools and the answer's form ------------------------------------------------- */

static json_t *chosen_tool(const json_t *tool)
{
    return json_pack("{s:O?,s:{s:O?}}", "type", api_member(tool, "type"), "function",
                     "name", api_member(tool, "name"));
}

static json_t *allowed_tools(struct translation *t, const json_t *choice)
{
    json_t *list = json_array(), *tool;
    size_t i;

    json_array_foreach(api_member(choice, "tools"), i, tool)
    {
        translate_append(t, list, chosen_tool(tool));
    }
    return json_pack("{s:s,s:{s:O?,s:o}}", "type", "allowed_tools", "allowed_tools",
                     "mode", api_member(choice, "mode"), "tools", list);
}

static bool add_choice(struct translation *t)
{
    json_t *choice = api_member(t->body, "tool_choice");

    if (!json_is_object(choice))
        return translate_copy(t, t->chat, "tool_choice", t->body, "tool_choice");
    if (api_is_type(choice, "allowed_tools"))
        return translate_set(t, t->chat, "tool_choice", allowed_tools(t, choice));
    if (!api_is_type(choice, "function") || !json_text(api_member(choice, "name")))
        return refuse(t->refusal, 400, NULL, "tool_choice",
                      "tool_choice must be auto, none, required, an object of type "
                      "function with a name, or one of type allowed_tools");
    return translate_set(t, t->chat, "tool_choice", chosen_tool(choice));
}

/* {"format": {"type": "json_schema", "schema": ...}} */
static bool add_format(struct translation *t)
{
    return translate_format(t, api_member(api_member(t->body, "text"), "format"));
}

/* ---- the whole ------------------------------------------------------------------- */

/* Members of fields that are objects. One that is not read may have a value that
 * changes nothing: the API's own default, or what it leaves to the model (a summary of
 * thoughts, where there is one; the thoughts themselves are in the answer). */
static bool check_members(struct translation *t, const char *field)
{
    static const struct {
        const char *field, *name, *neutral; /* neutral NULL: it is read */
    } members[] = {{"reasoning", "effort", NULL},
                   {"reasoning", "summary", "auto"},
                   {"reasoning", "generate_summary", "auto"},
                   {"text", "format", NULL},
                   {"text", "verbosity", "medium"}};
    json_t *object = api_member(t->body, field), *value;
    const char *name;

    if (object && !json_is_object(object))
        return refuse(t->refusal, 400, NULL, field, "%s must be an object", field);
    json_object_foreach(object, name, value)
    {
        const char *text = json_text(value);
        bool is_known = json_is_null(value);

        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
            is_known |=
                !strcmp(members[i].field, field) && !strcmp(members[i].name, name) &&
                (!members[i].neutral || (text && !strcmp(text, members[i].neutral)));
        if (!is_known)
            return refuse(t->refusal, 400, "unsupported", field,
                          "%s.%.60s%s%.40s is not supported by this server", field,
                          name, text ? " " : "", text ? text : "");
    }
    return true;
}

static bool check_truncation(struct translation *t)
{
    const json_t *truncation = api_member(t->body, "truncation");
    const char *text = json_text(truncation);

    return !truncation || (text && !strcmp(text, "disabled")) ||
           refuse(t->refusal, 400, "unsupported", "truncation",
                  "truncation must be disabled: a context is never cut here");
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
    static const struct translate_dialect dialect = {
        .fields = {{"model", "model"},
                   {"stream", "stream"},
                   {"temperature", "temperature"},
                   {"top_p", "top_p"},
                   {"max_tokens", "max_output_tokens"},
                   {"parallel_tool_calls", "parallel_tool_calls"}},
        .system = "instructions",
        .tool = "function",
        .default_tool = "(none)",
        .schema = "parameters"};
    struct translation t;

    if (translate_begin(&t, body, &dialect, refusal) &&
        check_members(&t, "reasoning") && check_members(&t, "text") &&
        translate_copy(&t, t.chat, "reasoning_effort", api_member(body, "reasoning"),
                       "effort") &&
        check_truncation(&t) && add_input(&t) && translate_tools(&t) &&
        add_choice(&t) && add_format(&t) && !(*echo = make_echo(body)))
        refuse(refusal, 503, NULL, NULL, "no memory for the request");
    return translate_end(&t);
}
