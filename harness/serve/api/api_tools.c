/* SPDX-License-Identifier: MIT
 *
 * api_tools.c - the tools of a chat: which there are, and which must be called
 *
 * Source: OpenAI's API reference, "Create chat completion" (tools, tool_choice,
 * parallel_tool_calls).
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/serve/api/api_request.h"

static bool no_memory(struct refusal *refusal)
{
    return refuse(refusal, 503, NULL, NULL, "no memory for the tools");
}

/* {"type": "function", "function": {"name", "parameters"}} */
static bool read_tool(struct api_tools *t, const json_t *tool, struct refusal *refusal)
{
    const char *type = json_text(api_member(tool, "type"));
    const json_t *function = api_member(tool, "function");
    const json_t *schema = api_member(function, "parameters");
    const char *name = json_text(api_member(function, "name"));
    char *text = NULL;

    if (!type || strcmp(type, "function") != 0)
        return refuse(refusal, 400, NULL, "tools",
                      "a tool's type must be \"function\"; %.40s is not supported",
                      type ? type : "none");
    if (!name)
        return refuse(refusal, 400, NULL, "tools",
                      "a tool must have a function with a name");
    if (schema && !json_is_object(schema))
        return refuse(refusal, 400, NULL, "tools",
                      "the parameters of tool %.64s must be a JSON schema, an object",
                      name);
    text = schema ? json_dumps(schema, JSON_COMPACT) : strdup("");
    if (!text)
        return no_memory(refusal);
    t->v[t->n++] = (struct grammar_tool){name, text, strlen(text)};
    return true;
}

/* The tool of that name becomes one of the first, which may be called. */
static bool allow(struct api_tools *t, const char *name, struct refusal *refusal)
{
    for (size_t i = 0; name && i < t->n; i++) {
        const struct grammar_tool tool = t->v[i];

        if (strcmp(tool.name, name) != 0)
            continue;
        if (i >= t->n_allowed) {
            t->v[i] = t->v[t->n_allowed];
            t->v[t->n_allowed++] = tool;
        }
        return true;
    }
    return refuse(refusal, 400, NULL, "tool_choice", "there is no tool %.64s",
                  name ? name : "without a name");
}

static const char *function_name(const json_t *tool)
{
    return api_is_type(tool, "function")
               ? json_text(api_member(api_member(tool, "function"), "name"))
               : NULL;
}

/* "auto", "none" or "required". */
static bool read_mode(struct api_tools *t, const json_t *mode)
{
    static const char *const words[] = {"auto", "none", "required"}; /* the enum's */
    const char *word = json_text(mode);

    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (!strcmp(word, words[i])) {
            t->choice = (enum grammar_choice)i;
            return true;
        }
    return false;
}

/* {"mode": "auto" or "required", "tools": [{"type": "function", "function": {"name"}}]}
 */
static bool read_allowed(struct api_tools *t, const json_t *allowed,
                         struct refusal *refusal)
{
    const json_t *list = api_member(allowed, "tools");

    if (!read_mode(t, api_member(allowed, "mode")) || t->choice == GRAMMAR_NONE ||
        !json_array_size(list))
        return refuse(refusal, 400, NULL, "tool_choice",
                      "allowed_tools must have a mode, auto or required, and an array "
                      "of tools");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!allow(t, function_name(json_array_get(list, i)), refusal))
            return false;
    return true;
}

/* A mode, {"type": "function", "function": {"name"}}, or {"type": "allowed_tools",
 * "allowed_tools"}. */
static bool read_choice(const struct api_request *r, struct api_tools *t,
                        struct refusal *refusal)
{
    const json_t *choice = api_member(r->root, "tool_choice");
    const char *name = function_name(choice);

    if (!choice || read_mode(t, choice)) {
        if (!t->n && t->choice == GRAMMAR_REQUIRED)
            return refuse(refusal, 400, NULL, "tool_choice",
                          "tool_choice requires a call, and there are no tools");
        t->choice = t->n ? t->choice : GRAMMAR_NONE;
        t->n_allowed = t->n;
        return true;
    }
    if (api_is_type(choice, "allowed_tools"))
        return read_allowed(t, api_member(choice, "allowed_tools"), refusal);
    t->choice = GRAMMAR_REQUIRED;
    t->parallel = false;
    if (name)
        return allow(t, name, refusal);
    return refuse(refusal, 400, NULL, "tool_choice",
                  "tool_choice must be \"auto\", \"none\", \"required\", a function "
                  "with the name of a tool, or allowed_tools");
}

bool api_read_tools(struct api_request *r, struct refusal *refusal)
{
    const json_t *list = api_member(r->root, "tools");
    const json_t *parallel = api_member(r->root, "parallel_tool_calls");
    struct api_tools *t = &r->tools;
    const size_t n = json_array_size(list);

    if (list && (!json_is_array(list) || n > GRAMMAR_MAX_TOOLS))
        return refuse(refusal, 400, NULL, "tools",
                      "tools must be an array of at most %d tools", GRAMMAR_MAX_TOOLS);
    if (parallel && !json_is_boolean(parallel))
        return refuse(refusal, 400, NULL, "parallel_tool_calls",
                      "parallel_tool_calls must be true or false");
    t->parallel = !json_is_false(parallel);
    t->v = calloc(n + 1, sizeof *t->v);
    if (!t->v)
        return no_memory(refusal);
    for (size_t i = 0; i < n; i++)
        if (!read_tool(t, json_array_get(list, i), refusal))
            return false;
    return read_choice(r, t, refusal);
}

void api_free_tools(struct api_tools *t)
{
    for (size_t i = 0; i < t->n; i++)
        free((char *)t->v[i].schema);
    free(t->v);
    *t = (struct api_tools){.v = NULL};
}

/* ---- messages -------------------------------------------------------------------- */

/* {"id", "type": "function", "function": {"name", "arguments"}} */
static bool check_call(const json_t *call, struct refusal *refusal)
{
    const json_t *function = api_member(call, "function");
    const json_t *arguments = api_member(function, "arguments");

    if (json_text(api_member(call, "id")) && json_text(api_member(function, "name")) &&
        (json_text(arguments) || json_is_object(arguments)))
        return true;
    return refuse(refusal, 400, NULL, "messages",
                  "a tool call must have an id, and a function with a name and "
                  "arguments");
}

bool api_check_calls(const json_t *message, struct refusal *refusal)
{
    const json_t *calls = api_member(message, "tool_calls");

    if (calls && (!json_is_array(calls) || json_array_size(calls) > API_MAX_CALLS))
        return refuse(refusal, 400, NULL, "messages",
                      "tool_calls must be an array of at most %d calls", API_MAX_CALLS);
    for (size_t i = 0; i < json_array_size(calls); i++)
        if (!check_call(json_array_get(calls, i), refusal))
            return false;
    return true;
}

/* The name of the call with that id among calls, which is then answered. */
static const char *answer_call(const json_t *calls, const char *id, bool *answered)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);

        if (strcmp(json_text(api_member(call, "id")), id) != 0)
            continue;
        answered[i] = true;
        return json_text(api_member(api_member(call, "function"), "name"));
    }
    return NULL;
}

/* A tool's result gets the name of its tool, which some templates write. */
static bool check_result(json_t *message, const json_t *calls, bool *answered,
                         struct refusal *refusal)
{
    const char *id = json_text(api_member(message, "tool_call_id"));
    const char *name = id ? answer_call(calls, id, answered) : NULL;

    if (!name)
        return refuse(refusal, 400, NULL, "messages",
                      "a message of the role tool must have the tool_call_id of a call "
                      "in the assistant's message before it");
    if (!api_member(message, "name") &&
        json_object_set_new(message, "name", json_string(name)))
        return no_memory(refusal);
    return true;
}

static bool check_answered(const json_t *calls, const bool *answered,
                           struct refusal *refusal)
{
    for (size_t i = 0; i < json_array_size(calls); i++)
        if (!answered[i])
            return refuse(refusal, 400, NULL, "messages",
                          "tool call %.40s has no message of the role tool behind it",
                          json_text(api_member(json_array_get(calls, i), "id")));
    return true;
}

bool api_check_results(const json_t *messages, struct refusal *refusal)
{
    const json_t *calls = NULL;
    bool *answered = NULL, ok = true;
    json_t *message;
    size_t i;

    json_array_foreach(messages, i, message)
    {
        if (!strcmp(json_text(api_member(message, "role")), "tool")) {
            ok = check_result(message, calls, answered, refusal);
        } else {
            ok = check_answered(calls, answered, refusal);
            calls = api_member(message, "tool_calls");
            free(answered);
            answered = calloc(json_array_size(calls) + 1, sizeof *answered);
            if (!answered)
                ok = no_memory(refusal);
        }
        if (!ok)
            break;
    }
    ok = ok && check_answered(calls, answered, refusal);
    free(answered);
    return ok;
}
