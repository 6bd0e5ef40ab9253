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

/* How an API writes what a chat has, too. */
struct translate_dialect {
    const char *fields[8][2]; /* a chat's name and the body's, up to NULL */
    const char *system;       /* the field with the system's text */
    const char *tool, *default_tool, *schema; /* a tool's type, what a tool without one
                                                 is of, and where its schema is */
};

/* A chat in the making. Once something was refused, or memory was lacking, no part of
 * it is used: functions that follow do no harm, and each returns whether nothing has
 * failed so far. Values are new references; NULL: no memory. */
struct translation {
    json_t *chat, *messages; /* messages: chat's */
    const json_t *body;
    const struct translate_dialect *dialect;
    struct refusal *refusal;
};

/* A chat with the fields and the system's text of a body. */
bool translate_begin(struct translation *t, const json_t *body,
                     const struct translate_dialect *dialect, struct refusal *refusal);

/* The chat; NULL: something has failed. */
json_t *translate_end(struct translation *t);

bool translate_set(struct translation *t, json_t *object, const char *key,
                   json_t *value);
bool translate_append(struct translation *t, json_t *list, json_t *value);

/* Sets to[key] to what from[name] is, unless that is missing or null. */
bool translate_copy(struct translation *t, json_t *to, const char *key,
                    const json_t *from, const char *name);

/* A message {"role": role, "content": content}; NULL: no memory. */
json_t *translate_add(struct translation *t, const char *role, json_t *content);

/* A call of the message's tool_calls, with an id and a name that stay the caller's;
 * arguments is a text. */
bool translate_add_call(struct translation *t, json_t *message, json_t *id,
                        json_t *name, json_t *arguments);

/* A message with the result of the call of that id, which stays the caller's. */
bool translate_add_result(struct translation *t, json_t *id, json_t *content);

/* The body's tools: {"type": "function", "function": {...}}. */
bool translate_tools(struct translation *t);

/* The form of the answer, {"type", "schema"}; NULL: it has none. */
bool translate_format(struct translation *t, const json_t *format);

#endif
