/* SPDX-License-Identifier: MIT
 *
 * translate.h - bodies of Anthropic's Messages and OpenAI's Responses API as chats
 *
 * Model of the world: both APIs have other names for what a chat's body has. Their
 * bodies become one, which api_request.c then reads with its types and ranges; what no
 * chat has is refused by its name. So errors name the chat's field, where it has
 * another name than the body's.
 *
 * Threading: data.
 * Sources: the API references of Anthropic (messages, count tokens) and of OpenAI
 * (responses).
 */
#ifndef SLM_HARNESS_SERVE_API_TRANSLATE_H
#define SLM_HARNESS_SERVE_API_TRANSLATE_H

#include <jansson.h>

#include "harness/serve/api/refusal.h"

/* The chat for a body of /v1/messages, a new reference, or NULL: *refusal has the
 * reason. An answer needs max_tokens, a count of tokens does not. */
json_t *translate_messages(json_t *body, bool is_count, struct refusal *refusal);

/* The chat for a body of /v1/responses. *echo is what a response repeats of its
 * request: members without braces, malloc'ed. */
json_t *translate_responses(json_t *body, char **echo, struct refusal *refusal);

/* ---- for translate_*.c ----------------------------------------------------------- */

/* Sets object[key] to a value (a new reference, or NULL: no memory), and returns
 * whether it could. */
bool translate_set(json_t *object, const char *key, json_t *value);

/* Sets to[key] to what from[name] is, unless that is missing or null. */
bool translate_copy(json_t *to, const char *key, const json_t *from, const char *name);

/* Appends {"role": role, "content": content} with content as a new reference; the
 * message, or NULL: no memory. */
json_t *translate_add(json_t *messages, const char *role, json_t *content);

/* How an API writes a tool: its type, what a tool without one is of, and where its
 * schema is. */
struct translate_tool {
    const char *type, *default_type, *schema;
};

/* The tools of a body as the chat has them: {"type": "function", "function": {...}}. */
bool translate_tools(json_t *chat, const json_t *body, const struct translate_tool *how,
                     struct refusal *refusal);

/* A call of the message's tool_calls; arguments is a new reference to a text. */
bool translate_add_call(json_t *message, const json_t *id, const json_t *name,
                        json_t *arguments);

bool translate_no_memory(struct refusal *refusal);

#endif
