/* SPDX-License-Identifier: MIT
 *
 * translate.c - the parts of a chat that other APIs' bodies become
 */
#include "harness/serve/api/translate.h"

#include <string.h>

#include "engine/base/json_read.h"
#include "harness/serve/api/api_request.h"

static bool note(struct translation *t, int failed)
{
    if (failed)
        refuse(t->refusal, 503, NULL, NULL, "no memory for the request");
    return !t->refusal->http;
}

bool translate_set(struct translation *t, json_t *object, const char *key,
                   json_t *value)
{
    return note(t, json_object_set_new(object, key, value));
}

bool translate_append(struct translation *t, json_t *list, json_t *value)
{
    return note(t, json_array_append_new(list, value));
}

bool translate_copy(struct translation *t, json_t *to, const char *key,
                    const json_t *from, const char *name)
{
    json_t *value = api_member(from, name);

    return note(t, value && json_object_set(to, key, value));
}

/* The member; where it is missing, `empty` becomes it. NULL: no memory. */
static json_t *need(struct translation *t, json_t *object, const char *key,
                    json_t *empty)
{
    if (json_object_get(object, key))
        json_decref(empty);
    else
        translate_set(t, object, key, empty);
    return json_object_get(object, key);
}

/* A new object in the array; NULL: no memory. */
static json_t *append_object(struct translation *t, json_t *list)
{
    json_t *object = json_object();

    return translate_append(t, list, object) ? object : NULL;
}

/* ---- the whole ------------------------------------------------------------------- */

bool translate_begin(struct translation *t, const json_t *body,
                     const struct translate_dialect *dialect, struct refusal *refusal)
{
    json_t *system = api_member(body, dialect->system);

    *t = (struct translation){json_object(), NULL, body, dialect, refusal};
    for (int i = 0; dialect->fields[i][0]; i++)
        translate_copy(t, t->chat, dialect->fields[i][0], body, dialect->fields[i][1]);
    t->messages = need(t, t->chat, "messages", json_array());
    if (system)
        translate_add(t, "system", json_incref(system));
    return note(t, false);
}

json_t *translate_end(struct translation *t)
{
    if (note(t, false))
        return t->chat;
    json_decref(t->chat);
    return NULL;
}

/* ---- messages -------------------------------------------------------------------- */

json_t *translate_add(struct translation *t, const char *role, json_t *content)
{
    json_t *message = append_object(t, t->messages);

    translate_set(t, message, "role", json_string(role));
    return translate_set(t, message, "content", content) ? message : NULL;
}

bool translate_add_result(struct translation *t, json_t *id, json_t *content)
{
    return translate_set(t, translate_add(t, "tool", content), "tool_call_id",
                         json_incref(id));
}

bool translate_add_call(struct translation *t, json_t *message, json_t *id,
                        json_t *name, json_t *arguments)
{
    json_t *call = append_object(t, need(t, message, "tool_calls", json_array()));
    json_t *function;

    translate_set(t, call, "id", json_incref(id));
    translate_set(t, call, "type", json_string("function"));
    function = need(t, call, "function", json_object());
    translate_set(t, function, "name", json_incref(name));
    return translate_set(t, function, "arguments", arguments);
}

/* ---- tools and the answer's form ------------------------------------------------- */

static bool add_tool(struct translation *t, const json_t *tool)
{
    json_t *made = append_object(t, need(t, t->chat, "tools", json_array()));
    json_t *function;

    translate_set(t, made, "type", json_string("function"));
    function = need(t, made, "function", json_object());
    translate_copy(t, function, "name", tool, "name");
    translate_copy(t, function, "description", tool, "description");
    translate_copy(t, function, "parameters", tool, t->dialect->schema);
    return translate_copy(t, function, "strict", tool, "strict");
}

bool translate_tools(struct translation *t)
{
    json_t *list = api_member(t->body, "tools"), *tool;
    size_t i;

    if (!list)
        return true;
    if (!json_is_array(list))
        return refuse(t->refusal, 400, NULL, "tools", "tools must be an array");
    need(t, t->chat, "tools", json_array());
    json_array_foreach(list, i, tool)
    {
        const char *type = json_text(api_member(tool, "type"));

        type = type ? type : t->dialect->default_tool;
        if (strcmp(type, t->dialect->tool) != 0)
            return refuse(t->refusal, 400, "unsupported", "tools",
                          "a tool of type %.60s is not supported: this server runs no "
                          "tools of its own",
                          type);
        if (!add_tool(t, tool))
            return false;
    }
    return true;
}

bool translate_format(struct translation *t, const json_t *format)
{
    return !format ||
           translate_set(t, t->chat, "response_format",
                         json_pack("{s:O?,s:O?}", "type", api_member(format, "type"),
                                   "schema", api_member(format, "schema")));
}
