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

/* Arrays of a completion's log-probabilities. */
enum { REPLY_TOKENS, REPLY_LOGPROBS, REPLY_TOPS, REPLY_OFFSETS, REPLY_N_LISTS };

/* What is written of a choice. Unless it streams, it is kept until it has ended. */
struct reply_choice {
    struct textbuf text, thought;
    struct reply_calls {
        struct textbuf list; /* bytes of pieces (call_form.h) */
        uint64_t seed;       /* of their ids */
        int n;               /* that have begun */
    } calls;
    struct reply_logprobs { /* log-probabilities of tokens */
        bool wanted;
        struct textbuf list[REPLY_N_LISTS]; /* JSON: a chat's "content" alone */
    } logprobs;
    enum completion_end end;
    char *stop;      /* owned, the stop string that ended it, for a form; or NULL */
    bool has_spoken; /* an event was written */
};

struct reply_usage {
    long long n_prompt, n_cached, n_generated;
    long long n_thought;             /* of n_generated, in thoughts */
    long long n_drafted, n_accepted; /* tokens of drafts; 0: none were made */
    double prefill_s, decode_s;      /* of an answer with one choice; else 0 */
};

/* A call of a tool; arguments may be cut. */
struct reply_call {
    char id[CALL_ID_CHARS + 1], name[CALL_MAX_NAME + 1];
    const char *arguments; /* [n_arguments] */
    size_t n_arguments;
};

enum reply_block { REPLY_NONE, REPLY_THOUGHT, REPLY_TEXT, REPLY_CALL, N_REPLY_BLOCKS };

/* A stream with a form (reply_form.h) so far. */
struct reply_blocks {
    enum reply_block open;
    bool has_begun;
    int n, n_events;        /* blocks that have ended; events */
    struct textbuf text;    /* of the open block, where its end repeats it */
    struct reply_call call; /* the open one */
    struct textbuf done;    /* the blocks that have ended, as JSON */
};

/* An answer, and what all its objects begin with. */
struct reply_head {
    enum api_kind kind;
    bool stream, usage_follows; /* other events have "usage": null */
    char id[40];
    long long created; /* Unix time */
    const char *model;
    const struct reply_form *form; /* of a chat in another API's words, or NULL */
    char *echo;                    /* owned, for the form, or NULL */
    long long n_prompt;            /* tokens */
    struct reply_blocks blocks;    /* with a form */
};

void reply_head_free(struct reply_head *head);

/* ---- pieces ---------------------------------------------------------------------- */

/* Adds the log-probabilities of a token that was read. */
void reply_logprobs_add(struct reply_logprobs *l, enum api_kind kind,
                        const struct completion_piece *piece,
                        const struct tokenizer *tok);

/* Keeps a piece of a choice that does not stream. */
void reply_choice_keep(struct reply_choice *c, const struct completion_piece *piece);

/* Bytes that are kept. */
size_t reply_choice_bytes(const struct reply_choice *c);
void reply_choice_free(struct reply_choice *c);

/* "stop", "tool_calls" or "length". */
const char *reply_reason(const struct reply_choice *c);

/* A token's text, in buf[cap]; a control token, which has none, as it is spelled. */
size_t reply_token(const struct tokenizer *tok, int32_t id, char *buf, size_t cap);

/* ---- calls of tools -------------------------------------------------------------- */

/* The next part of a piece's bytes: a call's name, whole, or some of its arguments. */
struct reply_call_part {
    bool begins; /* a call, by its name */
    const char *text;
    size_t len;
};
bool reply_calls_next(const char **bytes, size_t *n, struct reply_call_part *part);

/* The call that begins, with the next identity. */
void reply_calls_begin(struct reply_calls *c, struct reply_call *call,
                       const struct reply_call_part *name);

/* The kept call that begins at byte *at, which is moved behind it; number i. */
bool reply_calls_read(const struct reply_calls *c, size_t *at, int i,
                      struct reply_call *call);

/* The kept ones as the member tool_calls of a message, with a comma before it. */
void reply_calls_put(struct textbuf *out, const struct reply_calls *c);

/* Bytes of a piece as elements of a delta's tool_calls. */
void reply_calls_deltas(struct textbuf *out, struct reply_calls *c, const char *bytes,
                        size_t n);

/* ---- a whole answer: begin, a choice for each, end ------------------------------- */

void reply_begin(struct textbuf *out, const struct reply_head *head);
void reply_choice(struct textbuf *out, const struct reply_head *head, int index,
                  const struct reply_choice *c, const struct reply_usage *usage);
void reply_end(struct textbuf *out, const struct reply_head *head,
               const struct reply_usage *usage);

/* ---- a stream -------------------------------------------------------------------- */

/* An event with a piece of a choice: its thoughts come before its text. The first one
 * of a chat's choice has the role, the last one how it ended. The choice's
 * log-probabilities are emptied. */
void reply_event(struct textbuf *out, struct reply_head *head, int index,
                 struct reply_choice *c, const struct completion_piece *piece);

/* ,"timings":{...} as llama.cpp's server has it, or nothing where nothing is known. */
void reply_timings(struct textbuf *out, const struct reply_usage *u);

/* The last events: usage and the end, of choices whose first one is c; or a failure. */
void reply_end_stream(struct textbuf *out, struct reply_head *head,
                      const struct reply_choice *c, const struct reply_usage *usage);
void reply_fail_stream(struct textbuf *out, struct reply_head *head,
                       const struct refusal *failure);

#endif
