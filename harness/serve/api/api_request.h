/* SPDX-License-Identifier: MIT
 *
 * api_request.h - the bodies of requests, read
 *
 * Model of the world: a field that this server does not know is refused by its name,
 * since a client that sends it expects something; so is one that is not supported,
 * unless its value changes nothing (api_fields.c). Every number has a range.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_SERVE_API_API_REQUEST_H
#define SLM_HARNESS_SERVE_API_API_REQUEST_H

#include <jansson.h>

#include "engine/text/chat.h"
#include "harness/serve/api/refusal.h"
#include "harness/serve/scheduler/scheduler.h"

enum api_kind {
    API_COMPLETION,
    API_CHAT,
    API_EMBEDDING,
    API_TEMPLATE, /* the prompt of a chat, and no answer */
    API_TOKENIZE, /* the tokens of a text */
    API_DETOKENIZE,
    API_MESSAGES,  /* these three are read as API_CHAT (translate.h): Anthropic's, */
    API_RESPONSES, /* OpenAI's newer API, */
    API_COUNT,     /* and how many tokens a prompt of API_MESSAGES has */
};
enum api_format { API_TEXT, API_JSON, API_SCHEMA };

#define API_MAX_CHOICES  128  /* prompts times n */
#define API_MAX_INPUTS   2048 /* texts that vectors are made of */
#define API_MAX_BIASES   1024
#define API_MAX_STOP     256 /* bytes of a stop string */
#define API_MAX_MESSAGES 4096
#define API_MAX_CALLS    1024 /* of tools in a message */

/* Values of JSON in a body, each takes up to a hundred bytes of memory. */
#define API_MAX_VALUES (256 * 1024)

struct api_prompt {
    const char *text; /* [len], in root; NULL: */
    size_t len;
    int32_t *ids; /* [n_ids], owned */
    size_t n_ids;
};

/* Tools of a chat. Names are in the request's root, schemas owned. */
struct api_tools {
    struct grammar_tool *v;     /* [n] */
    size_t n, n_allowed;        /* the first n_allowed may be called */
    enum grammar_choice choice; /* GRAMMAR_NONE without tools */
    bool parallel;
};

struct api_request {
    enum api_kind kind;
    json_t *root;                  /* owned */
    const char *model;             /* in root, or NULL */
    const struct reply_form *form; /* of its answer; NULL: that of its kind */
    char *echo; /* owned, what the form repeats of the request, or NULL */

    struct api_prompt *prompts; /* [n_prompts], of completions and of vectors */
    size_t n_prompts;
    bool add_special, parse_special, with_pieces; /* of API_TOKENIZE */
    bool base64;                                  /* how vectors are written */
    int dimensions;                               /* of a vector; 0: all */
    json_t *conversation; /* owned, of a chat: the variables of its template */
    size_t content_bytes; /* of its messages' contents */
    size_t n_arguments;   /* JSON values of its tool calls' arguments */
    int max_thought;      /* tokens of thoughts; -1: any number */

    int n; /* choices of each prompt */
    bool stream, include_usage;
    int max_tokens; /* 0: no limit but the context */
    struct sampler_params sampling;
    bool has_seed;
    float presence_penalty, frequency_penalty;
    struct completion_bias *biases; /* [n_biases], owned */
    int n_biases;
    int n_logprobs; /* -1: none */
    const char *stops[COMPLETION_MAX_STOPS];
    int n_stops;
    bool ignore_end, uses_prefixes;
    enum api_format format;
    struct api_tools tools;
    char *schema; /* owned, of API_SCHEMA: JSON */
};

/* Reads body[len]. Token ids are below n_vocab. On failure the reason is in *refusal,
 * and *r is empty. */
bool api_request_read(struct api_request *r, enum api_kind kind, const char *body,
                      size_t len, int n_vocab, struct refusal *refusal);
void api_request_free(struct api_request *r);

/* ---- parts, for api_request.c ---------------------------------------------------- */

/* The member, unless it is missing or null. */
json_t *api_member(const json_t *object, const char *key);

/* Whether the object's "type" is this one. */
bool api_is_type(const json_t *object, const char *type);

/* "prompt" of completions, "input" of vectors, "content" or "tokens" of the others. */
bool api_read_prompts(struct api_request *r, int n_vocab, struct refusal *refusal);

/* "messages" of a chat, and what else its template may look at (api_messages.c). */
bool api_read_conversation(struct api_request *r, struct refusal *refusal);

/* "tools", "tool_choice", "parallel_tool_calls", after the others (api_tools.c). */
bool api_read_tools(struct api_request *r, struct refusal *refusal);
void api_free_tools(struct api_tools *t);

/* The calls of an assistant's message; and that each is answered by a message of the
 * role tool right behind it, which answers one. Messages have roles. */
bool api_check_calls(const json_t *message, struct refusal *refusal);
bool api_check_results(const json_t *messages, struct refusal *refusal);

/* Fields that are unknown, or would change the answer and are not supported
 * (api_fields.c). */
bool api_check_fields(const struct api_request *r, struct refusal *refusal);

#endif
