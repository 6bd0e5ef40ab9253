/* SPDX-License-Identifier: MIT
 *
 * translate.c - the parts of a chat that other APIs' bodies become
 */
#include "harness/serve/api/translate.h"

#include <string.h>

#include "engine/base/json_read.h"
#include "harness/serve/api/api_request.h"

bool translate_no_memory(struct refusal *refusal)
{
    return refuse(refusal, 503, NULL, NULL, "no memory for the request");
}

bool translate_set(json_t *object, const char *key, json_t *value)
{
    return !json_object_set_new(object, key, value);
}

bool translate_copy(json_t *to, const char *key, const json_t *from, const char *name)
{
    json_t *value = api_member(from, name);

    return !value || !json_object_set(to, key, value);
}

json_t *translate_add(json_t *messages, const char *role, json_t *content)
{
    json_t *message = json_object();
    bool ok = translate_set(message, "role", json_string(role));

    ok &= translate_set(message, "content", content);
    if (!ok) {
        json_decref(message);
        return NULL;
    }
    return json_array_append_new(messages, message) ? NULL : message;
}

static bool add_tool(json_t *tools, const json_t *tool, const char *schema)
{
    json_t *function = json_object(), *made = json_object();
    bool ok = translate_copy(function, "name", tool, "name");

    ok &= translate_copy(function, "description", tool, "description");
    ok &= translate_copy(function, "parameters", tool, schema);
    ok &= translate_copy(function, "strict", tool, "strict");
    ok &= translate_set(made, "type", json_string("function"));
    ok &= translate_set(made, "function", function);
    if (!ok) {
        json_decref(made);
        return false;
    }
    return !json_array_append_new(tools, made);
}

bool translate_tools(json_t *chat, const json_t *body, const struct translate_tool *how,
                     struct refusal *refusal)
{
    json_t *list = api_member(body, "tools"), *tools, *tool;
    size_t i;

    if (!list)
        return true;
    if (!json_is_array(list))
        return refuse(refusal, 400, NULL, "tools", "tools must be an array");
    if (!translate_set(chat, "tools", tools = json_array()))
        return translate_no_memory(refusal);
    json_array_foreach(list, i, tool)
    {
        const char *type = json_text(api_member(tool, "type"));

        type = type ? type : how->default_type;
        if (strcmp(type, how->type) != 0)
            return refuse(refusal, 400, "unsupported", "tools",
                          "a tool of type %.60s is not supported: this server runs no "
                          "tools of its own",
                          type);
        if (!add_tool(tools, tool, how->schema))
            return translate_no_memory(refusal);
    }
    return true;
}

bool translate_add_call(json_t *message, const json_t *id, const json_t *name,
                        json_t *arguments)
{
    json_t *calls = json_object_get(message, "tool_calls");
    json_t *function = json_object(), *call = json_object();
    bool ok = calls || translate_set(message, "tool_calls", calls = json_array());

    ok &= !json_object_set(function, "name", (json_t *)name);
    ok &= translate_set(function, "arguments", arguments);
    ok &= !json_object_set(call, "id", (json_t *)id);
    ok &= translate_set(call, "type", json_string("function"));
    ok &= translate_set(call, "function", function);
    if (!ok) {
        json_decref(call);
        return false;
    }
    return !json_array_append_new(calls, call);
}
