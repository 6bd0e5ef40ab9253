/* SPDX-License-Identifier: MIT
 *
 * conversation.h - questions and answers with a model that remembers them
 *
 * The KV cache holds the conversation so far; a question evaluates only its own
 * tokens. When the next one does not fit, the oldest questions go with their answers,
 * the system's message stays, and the rest is evaluated again. Where the KV cache has a
 * window, every one fits: the model forgets what has left the window.
 *
 * Threading: one thread, the one that opened the model.
 */
#ifndef SLM_HARNESS_MEASURE_SESSION_CONVERSATION_H
#define SLM_HARNESS_MEASURE_SESSION_CONVERSATION_H

#include "engine/speculate/speculate.h"
#include "harness/measure/session/textmodel.h"

struct conversation;

struct conversation_params {
    const struct chat_template *chat;
    const char *system; /* or NULL; kept by the caller */
    int n_max;          /* tokens of an answer; 0: limited by the context */
    struct sampler_params sampling;
    enum session_drafts drafts;
};

struct conversation_stats {
    size_t n_prefill, n_decode; /* tokens of the last question and answer */
    uint64_t prefill_ns, decode_ns;
    uint64_t first_ns; /* from the last question to the first token of its answer; 0: it
                          has none */
    size_t all_prefill, all_decode; /* in all answers */
    uint64_t all_prefill_ns, all_decode_ns;
    int n_past, n_ctx, n_messages;
    int n_seen; /* positions that a token sees of a context without end; 0: it has one
                 */
    bool speculates; /* decoding is speculative: then */
    struct speculate_stats speculation,
        all_speculation; /* of the last answer, of all */
};

/* How an answer ended. */
enum conversation_end {
    CONVERSATION_ANSWERED,
    CONVERSATION_STOPPED,  /* interrupted(); the text so far is kept */
    CONVERSATION_CUT,      /* n_max tokens */
    CONVERSATION_FULL,     /* the context ended before the answer, or the answer had as
                              many tokens */
    CONVERSATION_TOO_LONG, /* the question alone does not fit; it is forgotten */
};

/* model is opened, stays the caller's, and lives longer. Error: ST_NO_MEMORY, and
 * those of sampler_open(). */
enum status conversation_open(struct conversation **c, struct textmodel *model,
                              const struct conversation_params *params,
                              struct err *err);
void conversation_close(struct conversation *c);

/* Prints the answer to standard output token by token, and a line's end. *n_dropped
 * messages were dropped. Errors: those of chat_encode() and slm_eval(), ST_IO. */
enum status conversation_answer(struct conversation *c, const char *question,
                                enum conversation_end *end, int *n_dropped,
                                struct err *err);

/* Forget everything but the system's message. */
void conversation_reset(struct conversation *c);

void conversation_read_stats(const struct conversation *c,
                             struct conversation_stats *out);

/* "acceptance by position: 83 %, 61 %; 1.35 times the speed of plain decoding" on a
 * line of standard error; nothing where no token was drafted. */
void speculation_print(const struct speculate_stats *s);

#endif
