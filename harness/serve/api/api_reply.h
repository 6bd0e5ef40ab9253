/* SPDX-License-Identifier: MIT
 *
 * api_reply.h - answers in OpenAI's JSON: whole ones, and events of a stream
 *
 * Threading: data.
 * Source: OpenAI's API reference (completions, chat completions); the WHATWG's HTML
 * standard, server-sent events.
 */
#ifndef SLM_HARNESS_SERVE_API_API_REPLY_H
#define SLM_HARNESS_SERVE_API_API_REPLY_H

#include "engine/grammar/call_form.h"
#include "engine/tokenizer/tokenizer.h"
#include "harness/serve/api/api_request.h"
#include "harness/serve/scheduler/scheduler.h"
#include "harness/serve/api/textbuf.h"

/* What all objects of one answer begin with. */
struct reply_head {
    enum api_kind kind;
    bool stream, usage_follows; /* other events have "usage": null */
    char id[40];
    long long created; /* Unix time */
    const char *model;
    const struct reply_form *form; /* of a chat in another API's words, or NULL */
    const char *echo;              /* for the form, or NULL */
    long long n_prompt;            /* tokens */
};

/* Log-probabilities of tokens, as JSON that grows. */
struct reply_logprobs {
    bool wanted;
    int n;
    struct textbuf list;               /* chat: of "content" */
    struct textbuf tokens, each, tops; /* completions: the arrays of that name */
    struct textbuf offsets;
};

struct reply_usage {
    long long n_prompt, n_cached, n_generated;
    long long n_thought;             /* of n_generated, in thoughts */
    long long n_drafted, n_accepted; /* tokens of drafts; 0: none were made */
    double prefill_s, decode_s;      /* of an answer with one choice; else 0 */
};

/* Adds a token that was read. */
void reply_logprobs_add(struct reply_logprobs *l, enum api_kind kind,
                        const struct completion_piece *piece,
                        const struct tokenizer *tok);
void reply_logprobs_free(struct reply_logprobs *l);
size_t reply_logprobs_bytes(const struct reply_logprobs *l);

/* Calls of tools, as pieces have them. */
struct reply_calls {
    struct textbuf list; /* what was written of the JSON array of a whole answer */
    uint64_t seed;       /* of their ids */
    int n;
    bool in_name;
};

/* Adds bytes of a piece to a whole answer. */
void reply_calls_add(struct reply_calls *c, const char *bytes, size_t n);

/* The next part of a piece's bytes: a call's name, whole, or some of its arguments. */
struct reply_call_part {
    bool begins; /* a call, by its name */
    const char *text;
    size_t len;
};
bool reply_calls_next(const char **bytes, size_t *n, struct reply_call_part *part);

/* The id of call number i. */
void reply_calls_id(const struct reply_calls *c, int i, char id[CALL_ID_CHARS + 1]);

/* Keeps the bytes themselves, for an answer in another API's words. */
void reply_calls_keep(struct reply_calls *c, const char *bytes, size_t n);

/* What was added, as the member tool_calls of a message, with a comma before it. */
void reply_calls_put(struct textbuf *out, const struct reply_calls *c);

/* Bytes of a piece as elements of a delta's tool_calls. */
void reply_calls_deltas(struct textbuf *out, struct reply_calls *c, const char *bytes,
                        size_t n);

/* "stop", "tool_calls" or "length". */
const char *reply_reason(const struct reply_calls *calls, enum completion_end end);

/* ---- a whole answer: begin, a choice for each, end ------------------------------- */

void reply_begin(struct textbuf *out, const struct reply_head *head);
void reply_choice(struct textbuf *out, const struct reply_head *head, int index,
                  const struct textbuf *text, const struct textbuf *thought,
                  const struct reply_calls *calls, const struct reply_logprobs *l,
                  enum completion_end end);
void reply_end(struct textbuf *out, const struct reply_usage *usage);

/* ---- a stream -------------------------------------------------------------------- */

/* Text of a choice, and thoughts before it. */
struct reply_part {
    const char *text; /* [len] */
    size_t len;
    const char *thought; /* [n_thought] */
    size_t n_thought;
    const char *call; /* [n_call] */
    size_t n_call;
};

/* An event with a part of a choice; the first one of a chat's choice has the
 * role. l is emptied. end is COMPLETION_RUNS, or how the choice has ended. */
void reply_event(struct textbuf *out, const struct reply_head *head, int index,
                 bool first, const struct reply_part *part, struct reply_calls *calls,
                 struct reply_logprobs *l, enum completion_end end);
void reply_usage_event(struct textbuf *out, const struct reply_head *head,
                       const struct reply_usage *usage);
void reply_error_event(struct textbuf *out, const struct refusal *r);
void reply_done_event(struct textbuf *out);

#endif
