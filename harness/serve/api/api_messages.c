/* SPDX-License-Identifier: MIT
 *
 * api_messages.c - a chat's messages and variables, as its template gets them
 *
 * The template decides what they mean; here their types are checked. Parts of type text
 * become one text.
 */
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/serve/api/api_request.h"

static bool no_memory(struct refusal *refusal)
{
    return refuse(refusal, 503, NULL, NULL, "no memory for the messages");
}

/* What the template gets under that name. */
static bool set(struct api_request *r, const char *name, json_t *value,
                struct refusal *refusal)
{
    return !json_object_set(r->conversation, name, value) || no_memory(refusal);
}

static bool check_text(const json_t *text, struct refusal *refusal)
{
    if (json_text(text))
        return true;
    return refuse(refusal, 400, NULL, "messages",
                  "a message's content must be a text without zeros, or an array of "
                  "parts of type text");
}

static bool put_part(struct textbuf *out, const json_t *part, struct refusal *refusal)
{
    const char *type = json_text(api_member(part, "type"));
    const json_t *text = api_member(part, "text");

    if (!type || strcmp(type, "text"))
        return refuse(refusal, 400, NULL, "messages",
                      "content of type %.40s is not supported: this model reads text",
                      type ? type : "(none)");
    if (!check_text(text, refusal))
        return false;
    textbuf_put(out, json_string_value(text), json_string_length(text));
    return true;
}

/* Parts as one text; a new reference. */
static bool join_parts(json_t **text, const json_t *parts, struct refusal *refusal)
{
    struct textbuf out = {.text = NULL};
    bool ok = true;

    textbuf_put(&out, "", 0);
    for (size_t i = 0; ok && i < json_array_size(parts); i++)
        ok = put_part(&out, json_array_get(parts, i), refusal);
    *text = ok && !out.failed ? json_stringn(out.text, out.len) : NULL;
    textbuf_free(&out);
    return !ok ? false : *text ? true : no_memory(refusal);
}

/* An assistant may have called tools alone, or have no content (null), which templates
 * would write as the word None. */
static bool read_content(struct api_request *r, json_t *message, bool calls_tools,
                         bool is_answer, struct refusal *refusal)
{
    const json_t *content = api_member(message, "content");
    json_t *text;

    if (!content && calls_tools)
        return true;
    if (!content && is_answer)
        return !json_object_set_new(message, "content", json_string("")) ||
               no_memory(refusal);
    if (json_is_array(content)) {
        if (!join_parts(&text, content, refusal))
            return false;
        json_object_set_new(message, "content", text);
        content = text;
    }
    r->content_bytes += json_string_length(content);
    return check_text(content, refusal);
}

static bool is_role(const char *role, const char *name)
{
    return !strcmp(role, name);
}

static bool read_role(json_t *message, const char **role, struct refusal *refusal)
{
    *role = json_text(api_member(message, "role"));
    if (*role && (is_role(*role, "system") || is_role(*role, "developer") ||
                  is_role(*role, "user") || is_role(*role, "assistant") ||
                  is_role(*role, "tool")))
        return true;
    return refuse(refusal, 400, NULL, "messages",
                  "a message's role must be system, developer, user, assistant or "
                  "tool");
}

/* Values that a text of JSON has at most. */
static size_t count_values(const char *text)
{
    size_t n = 1;

    for (; (text = strpbrk(text, ",[{")); text++)
        n++;
    return n;
}

/* {"function": {"arguments": "{...}"}}: a template may want the object that the text
 * is. All of them may have as many values as the body. */
static bool bound_arguments(struct api_request *r, const json_t *calls,
                            struct refusal *refusal)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *function = api_member(json_array_get(calls, i), "function");
        const json_t *arguments = api_member(function, "arguments");

        if (json_is_string(arguments))
            r->n_arguments += count_values(json_string_value(arguments));
    }
    return r->n_arguments <= API_MAX_VALUES ||
           refuse(refusal, 400, NULL, "messages",
                  "the arguments of the tool calls have more than %d values",
                  API_MAX_VALUES);
}

static bool read_message(struct api_request *r, json_t *message, const char **role,
                         struct refusal *refusal)
{
    json_t *calls;

    if (!json_is_object(message))
        return refuse(refusal, 400, NULL, "messages", "a message must be an object");
    calls = api_member(message, "tool_calls");
    if (json_is_true(json_object_get(message, "prefix")))
        return refuse(refusal, 400, "unsupported", "prefix",
                      "prefix is not supported by this server: an answer has no "
                      "beginning of the client's");
    return (r->kind == API_TEMPLATE || api_check_calls(message, refusal)) &&
           bound_arguments(r, calls, refusal) && read_role(message, role, refusal) &&
           read_content(r, message, json_array_size(calls) > 0,
                        is_role(*role, "assistant"), refusal);
}

static bool read_messages(struct api_request *r, struct refusal *refusal)
{
    json_t *list = api_member(r->root, "messages");
    const size_t n = json_array_size(list);
    const char *role = NULL;

    if (!json_is_array(list) || n == 0 || n > API_MAX_MESSAGES)
        return refuse(refusal, 400, NULL, "messages",
                      "messages must be an array of 1 to %d messages",
                      API_MAX_MESSAGES);
    for (size_t i = 0; i < n; i++)
        if (!read_message(r, json_array_get(list, i), &role, refusal))
            return false;
    if (r->kind == API_CHAT && !is_role(role, "user") && !is_role(role, "tool"))
        return refuse(refusal, 400, NULL, "messages",
                      "the last message must be a user's or a tool's: it is what is "
                      "answered");
    if (r->kind == API_CHAT && !api_check_results(list, refusal))
        return false;
    return set(r, "messages", list, refusal);
}

/* The name of one of the model's templates; programs of callers are not run. */
static bool read_template_name(struct api_request *r, struct refusal *refusal)
{
    json_t *name = api_member(r->root, "chat_template");

    if (!name)
        return true;
    if (!json_text(name) || strpbrk(json_text(name), "{}"))
        return refuse(refusal, 400, NULL, "chat_template",
                      "chat_template must be the name of one of the model's templates; "
                      "templates of requests are not run");
    return set(r, "chat_template", name, refusal);
}

/* Variables that the request names for the template, and those that servers of this API
 * pass on under their own name. */
static bool read_variables(struct api_request *r, struct refusal *refusal)
{
    static const char *const passed[] = {"documents", "enable_thinking",
                                         "reasoning_effort", "tools"};
    const json_t *own = api_member(r->root, "chat_template_kwargs");
    const json_t *generates = api_member(r->root, "add_generation_prompt");

    if (own && !json_is_object(own))
        return refuse(refusal, 400, NULL, "chat_template_kwargs",
                      "chat_template_kwargs must be an object");
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        json_t *value = api_member(r->root, passed[i]);

        if (value && !(json_is_array(value) && !json_array_size(value)) &&
            !set(r, passed[i], value, refusal))
            return false;
    }
    if (own && json_object_update(r->conversation, (json_t *)own))
        return no_memory(refusal);
    json_object_del(r->conversation, "chat_template");
    return set(r, "add_generation_prompt",
               json_is_false(generates) ? json_false() : json_true(), refusal);
}

bool api_read_conversation(struct api_request *r, struct refusal *refusal)
{
    r->conversation = json_object();
    if (!r->conversation)
        return no_memory(refusal);
    return read_variables(r, refusal) && read_template_name(r, refusal) &&
           read_messages(r, refusal);
}
