/* SPDX-License-Identifier: MIT
 *
 * answer.h - from the body of a request to its completions, and to the answer's JSON
 *
 * Model of the world: a request has one completion for each choice of each prompt. All
 * of them are handed to the scheduler at once, or none. The scheduler's thread calls
 * wake() when there is something to read; answer_advance() then reads what there is, so
 * that what a client does not take stands here, where its size is seen, and not in the
 * scheduler.
 *
 * Threading: answer_begin() may be called by any thread, and an answer that was begun
 * belongs to the server's.
 */
#ifndef SLM_HARNESS_SERVE_HTTP_ANSWER_H
#define SLM_HARNESS_SERVE_HTTP_ANSWER_H

#include "harness/serve/api/api_reply.h"
#include "harness/serve/http/metrics.h"
#include "harness/serve/http/request_memory.h"

struct answer;

/* Whom the answers are from; all of it lives longer than they do. */
struct answer_model {
    struct scheduler *scheduler;
    const struct tokenizer *tok;
    const struct chat_template *chat; /* or NULL: there are no chats */
    const char *why_no_chat;
    const char *name;
    bool any_model; /* requests may name any model */
    int n_ctx, n_vocab;
    bool embeds;          /* there are vectors, and neither completions nor chats */
    int n_vector;         /* numbers of one */
    size_t longest_token; /* bytes */
    /* More schemas are refused. An answer that does not stream, whose text and
     * log-probabilities (or tokens, prompt, vectors) grow beyond its limit, fails. */
    const struct request_memory *memory;
    uint64_t *schema_bytes; /* atomic: memory of all answers' schemas */
    uint64_t *whole_bytes;  /* of all answers that do not stream; the server's thread */
};

struct answer_request {
    enum api_kind kind;
    const char *body; /* [len], not kept */
    size_t len;
    uint64_t client;   /* whose queue it waits in */
    uint64_t begin_ns; /* when the request came */
    void (*wake)(void *arg);
    void *arg;
};

struct answer_facts {
    long long n_prompt, n_cached, n_generated;
    double queue_s; /* the longest of its completions */
    const char *reason;
};

/* Some kinds have an answer that is there at once, without a completion: API_TEMPLATE
 * the prompt, {"prompt": text}; API_COUNT its tokens, {"input_tokens": n}; API_TOKENIZE
 * {"tokens": [...]}; API_DETOKENIZE {"content": text}.
 * False: the reason is in *refusal, and nothing runs. */
bool answer_begin(struct answer **a, const struct answer_model *model,
                  const struct answer_request *req, struct refusal *refusal);

/* Cancels what still runs. wake is not called afterwards. */
void answer_close(struct answer *a); /* may be NULL */

/* Reads what the completions have, and writes events of a stream. */
void answer_advance(struct answer *a, struct metrics *m);

bool answer_streams(const struct answer *a);
bool answer_ended(const struct answer *a);

/* Events of a stream that nobody has taken yet. */
struct textbuf *answer_events(struct answer *a);

/* Memory for a stream: events, and what later ones repeat; 0: it does not stream. */
uint64_t answer_stream_bytes(const struct answer *a);

/* The whole of one that has ended and does not stream, once: its parts are given up as
 * they are written, and count no longer. False: it failed. */
bool answer_whole(struct answer *a, struct textbuf *out, struct refusal *refusal);

/* For the log, once it has ended. False: there was no completion. */
bool answer_read_facts(const struct answer *a, struct answer_facts *out);

#endif
