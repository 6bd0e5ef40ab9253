/* SPDX-License-Identifier: MIT
 *
 * scheduler.h - completions of many users by one model, in steps
 *
 * A step is one slm_batch(): a token of each completion that decodes, and chunks of
 * prompts for the rest of the step's tokens. Between two steps the scheduler takes
 * requests in, gives each a sequence and pages, and ends what is complete or cancelled.
 *
 * Requests wait in a queue of each client (fair_queue.h): the next one is of the client
 * with the fewest computed tokens, so that a client with many requests, or
 * long ones, does not hold up the others; within one first come, first served. A
 * request is admitted when a sequence is free, and the pages of its prompt and of the
 * first page that it generates; until then those behind it wait, too, so that small
 * ones cannot keep it waiting for ever. Where pages run out while sequences grow, kept
 * prefixes are forgotten first; then the sequence that came last is dropped: it waits
 * ahead of all that have not begun, and its prompt and what it has generated are
 * computed again, so that its text continues where it was. Prompts share the steps in
 * the same way: who has a short one need not wait for all of another client's long one.
 *
 * With drafts, a completion that decodes may bring further tokens to a step, guessed by
 * a lookup in its own text, by the model's layer that predicts further tokens or by a
 * draft model (speculate.h); those that are then drawn as well were computed with one
 * reading of the weights. Texts are what they are without. How many tokens, and whose,
 * follows from how long steps have taken so far and how often drafts were accepted
 * (scheduler_draft.c): with many that decode, a token more costs as much as it gains,
 * and there are no drafts. A draft model has a sequence for each of the model's, reads
 * a text once that is expected to pay, and keeps what texts begin with.
 *
 * With max_itl_s, prompts, and tokens that a grammar forces where others decode, get no
 * more of a step than keeps 19 of 20 steps, by what steps have taken so far
 * (step_cost.h), below that time while somebody decodes; but a few in every step, so
 * that no limit keeps a prompt waiting for ever.
 *
 * Threading: scheduler_run() belongs to the thread that opened the model; everything
 * else may be called by any thread, but of one completion by one thread at a time.
 * Pieces of text are handed over under a mutex of the completion's own.
 */
#ifndef SLM_HARNESS_SERVE_SCHEDULER_SCHEDULER_H
#define SLM_HARNESS_SERVE_SCHEDULER_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/engine.h"
#include "engine/grammar/grammar.h"
#include "engine/speculate/speculate.h"
#include "harness/measure/session/session.h"

struct scheduler;
struct completion;

#define COMPLETION_MAX_LOGPROBS 20
#define COMPLETION_MAX_STOPS    16

/* Tokens that all completions together may draft in a step. */
#define SCHEDULER_MAX_DRAFTED 16

struct scheduler_params {
    struct slm *m; /* it lives longer */
    const struct tokenizer *tok;
    const struct chat_template *chat; /* whose end tokens end an answer, too; or NULL */
    int n_queue;      /* requests that may wait for a sequence; one more is refused */
    double max_itl_s; /* a step's time while somebody decodes; 0: no limit */
    enum session_drafts drafts; /* as many tokens in a step as the model has logits
                                     for, besides those of a token of each sequence */
    struct slm *draft; /* of DRAFTS_MODEL, opened by the same thread with as many
                          sequences, and as many logits; it lives longer */
    const struct tokenizer *draft_tok; /* its vocabulary, for scheduler_open() */
    bool always_drafts;                /* whether they pay or not: for tests */
    bool keep_prefixes;                /* and share them among those that run */
    bool embeds; /* it makes vectors of texts, and generates nothing: */
    enum slm_pooling pooling;
};

struct completion_bias {
    int32_t id;
    float bias; /* added to its logit */
};

struct completion_params {
    const int32_t *prompt; /* [n_prompt], copied; n_prompt >= 1 */
    size_t n_prompt;
    const int *lengths; /* [n_texts], copied: the texts that the prompt consists of, of
                           a scheduler that embeds; their sum is n_prompt */
    int n_texts;
    int max_tokens; /* 0: as many as the context has room for */
    struct sampler_params sampling;
    float presence_penalty, frequency_penalty; /* -2 to 2, subtracted from the logits of
                                                  tokens that were generated: once, and
                                                  for each time */
    const struct completion_bias *biases;      /* [n_biases], copied */
    int n_biases;
    int n_logprobs; /* alternatives in addition to each token; -1: no log-probabilities
                     */
    const char *const *stops; /* [n_stops] strings, copied; text ends before one */
    int n_stops;
    bool begins_text; /* an answer in a chat, or a prompt without text: the blank that
                         SentencePiece puts before a text's first word is dropped; else
                         the text continues the prompt's, with every blank */
    bool ignore_end;  /* end tokens do not end it, but for that of a grammar's text: for
                         measuring */
    bool computes_all; /* no part of its prompt comes from kept prefixes, nor from
                          others that run: for measuring */
    const struct chat_thinking *thinking; /* markers, which live longer: thoughts are
                                             apart from the text; or NULL */
    bool thinks;     /* the prompt has opened a block of thoughts */
    int max_thought; /* tokens of thoughts, then the block is closed; -1: any */
    const struct call_form *calls; /* how it calls tools, which lives longer: calls are
                                      apart from the text, and grammar is one of
                                      grammar_from_calls(); or NULL */
    struct grammar *grammar; /* what the text must be (a reference is taken), or NULL */
    uint64_t client;         /* whose queue it waits in */
    void (*wake)(void *arg); /* there is something to read; called by the scheduler's
                                thread without locks held, never after
                                completion_close() has returned; must not block */
    void *arg;
};

enum completion_end {
    COMPLETION_RUNS,
    COMPLETION_STOP,    /* an end token, a stop string, or the grammar's end */
    COMPLETION_LENGTH,  /* max_tokens, the context is full, or the grammar's text can
                           neither end nor continue */
    COMPLETION_ABORTED, /* cancelled, or the server stops */
    COMPLETION_FAILED,  /* the engine failed: completion_error() */
};

struct completion_top {
    int32_t token;
    float logprob;
};

/* A token's part of the text: whole UTF-8 characters, malformed bytes as U+FFFD. Text
 * that may begin a stop string is kept back, so a piece may be empty (its token still
 * counts), or hold the text of several tokens. */
struct completion_piece {
    char *text; /* [len], zero-terminated too; until the next read of this completion */
    size_t len;
    char *thought; /* [n_thought], as text */
    size_t n_thought;
    char *call; /* [n_call], as text: CALL_NAME, a name, CALL_ARGUMENTS, arguments, or
                   what continues that (call_form.h) */
    size_t n_call;
    size_t begins; /* characters of the whole text before those of this token, which
                      may come with a later piece */
    int32_t token; /* an end token has a piece, too, whose text was held back */
    float logprob; /* with n_logprobs >= 0: natural logarithm, by the model's own
                      logits: before biases, penalties, grammar and temperature; 0 of a
                      token that the grammar forces */
    int n_top;     /* n_logprobs, or 0 of a forced token */
    struct completion_top top[COMPLETION_MAX_LOGPROBS]; /* likeliest first */
};

struct completion_usage {
    int n_prompt, n_cached;    /* n_cached of n_prompt came from kept prefixes, or from
                                  others that ran */
    int n_generated;           /* tokens, the end token with them */
    int n_forced;              /* of these, forced by the grammar without a choice, or
                                  to close a block of thoughts */
    int n_thought;             /* of these, in a block of thoughts */
    int n_drafted, n_accepted; /* tokens of drafts, and of these accepted */
    int n_preempted;           /* times that it was dropped and computed again */
    double queue_s, prefill_s,
        decode_s; /* until admitted, until the first token, since */
};

struct scheduler_stats { /* counters since the start, gauges now */
    uint64_t n_requests, n_refused, n_completed, n_cancelled, n_failed, n_preempted;
    uint64_t n_prompt, n_cached, n_generated; /* tokens */
    uint64_t n_forced; /* of n_generated, of completions that have ended: without the
                          model, by grammars or to close thoughts */
    uint64_t n_steps, n_step_tokens;
    uint64_t n_drafted; /* tokens of drafts; by position in a draft: */
    uint64_t drafted_at[SPECULATE_MAX], accepted_at[SPECULATE_MAX]; /* those that were
                           tried, as all before them were accepted; accepted */
    double busy_s;                                                  /* in steps */
    int n_waiting, n_running, n_sequences, n_checkpoints;
    size_t n_pages, n_pages_free, n_pages_kept, n_checkpoints_kept, n_checkpoints_free;
    uint64_t n_checkpoints_made, n_checkpoints_restored; /* since the start */
};

/* Errors: ST_NO_MEMORY, ST_USAGE, speculate_check_draft()'s. */
enum status scheduler_open(struct scheduler **s, const struct scheduler_params *params,
                           struct err *err);
/* After scheduler_run() has returned. Completions that are not closed stay readable. */
void scheduler_close(struct scheduler *s);

/* Work until scheduler_stop(); sleeps while there is nothing to do. An engine's error
 * of one step ends the completions of that step (COMPLETION_FAILED), not the run,
 * unless no further step can succeed (ST_IO of streamed weights): that is returned. */
enum status scheduler_run(struct scheduler *s, struct err *err);

/* Take no more requests. finish: those there are complete; else they are aborted.
 * May be called again, with finish = false after true, and from a signal handler's
 * thread, but not from the handler. */
void scheduler_stop(struct scheduler *s, bool finish);

/* *c is the caller's until completion_close(). Errors: ST_USAGE (the prompt is longer
 * than the context or empty, a token outside the vocabulary, a parameter outside its
 * range), ST_NO_MEMORY; *full, where the queue is full or the scheduler stops (then the
 * error is ST_UNSUPPORTED), and *retry_after_s is when a place is expected; 0: never,
 * it stops. The last eighth of the queue is for clients without a waiting request, so
 * that one with many requests does not keep the others out. */
enum status scheduler_submit(struct scheduler *s,
                             const struct completion_params *params,
                             struct completion **c, bool *full, double *retry_after_s,
                             struct err *err);

/* Completions that a client can have submitted at once, if there are no others. */
int scheduler_max_running(const struct scheduler *s);

void scheduler_read_stats(struct scheduler *s, struct scheduler_stats *out);

/* The next piece, if there is one. Without one, completion_end() returns whether there
 * will be more. */
bool completion_read(struct completion *c, struct completion_piece *out);

/* The vectors of the texts, where the scheduler embeds and the completion has ended
 * with COMPLETION_STOP: [n_texts][n_vector], not normalised; the caller's to free. */
float *completion_take_vectors(struct completion *c);

/* COMPLETION_RUNS until every piece has been read. */
enum completion_end completion_end(struct completion *c);
const char *completion_error(struct completion *c); /* of COMPLETION_FAILED */

/* The stop string that has ended it, until completion_close(); NULL: none has. Once
 * completion_end() is not COMPLETION_RUNS. */
const char *completion_stop(const struct completion *c);

void completion_read_usage(struct completion *c, struct completion_usage *out);

/* Cancels it if it still runs, and frees it. After return wake is not called; so it
 * waits for one that is, and must not be called by wake of the same completion. */
void completion_close(struct completion *c);

#endif
