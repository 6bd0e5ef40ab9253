/* SPDX-License-Identifier: MIT
 *
 * scheduler_impl.h - shared by scheduler*.c and completion*.c
 *
 * scheduler.c         opened, closed, stopped; requests taken in; the loop
 * scheduler_admit.c   who gets a sequence, who is dropped, what is kept of a sequence
 * scheduler_share.c   what those that run have in common
 * scheduler_mark.c    where they keep checkpoints
 * scheduler_step.c    what a step computes, and its tokens
 * scheduler_draft.c   tokens that completions guess, and what became of them
 * scheduler_draft_model.c  the draft model's sequences, which follow the completions'
 * scheduler_embed.c   the same of a scheduler that embeds
 * completion_make.c   a completion from its parameters
 * completion_thinking.c  thoughts apart from the text
 * completion_choice.c the next token from logits
 * completion_token.c  what a token means: text, ends, forced tokens
 * completion.c        the reader's side
 *
 * A completion has its tokens, those of the prompt first; the first n_done are in its
 * sequence. A step computes some of the others; when none is left, the logits of
 * the last one give one token more. So a prompt, a token that was drawn, tokens that a
 * grammar forces, and a text that was dropped are all the same.
 *
 * Two owners: the reader, and the scheduler until the completion is over. What is not
 * marked as under mu belongs to the scheduler's thread, or while a step's tokens are
 * drawn to the thread of the pool that has the completion.
 */
#ifndef SLM_HARNESS_SERVE_SCHEDULER_SCHEDULER_IMPL_H
#define SLM_HARNESS_SERVE_SCHEDULER_SCHEDULER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/mtp.h"
#include "harness/serve/scheduler/completion_text.h"
#include "harness/serve/scheduler/completion_thinking.h"
#include "harness/serve/scheduler/fair_queue.h"
#include "harness/serve/scheduler/mask_worker.h"
#include "harness/serve/scheduler/scheduler.h"
#include "harness/serve/scheduler/step_cost.h"

/* A piece that was not read. */
struct stored_piece {
    struct stored_piece *next;
    struct completion_piece piece;
    char bytes[]; /* its texts */
};

struct token_count {
    int32_t id;
    int n; /* times that it was generated */
};

/* Tokens that end a chat's answer, and are text to the vocabulary. */
struct chat_ends {
    int32_t id[8];
    int n;
    int32_t own; /* one of the vocabulary's ends; -1: it has none */
};

struct completion {
    struct fair_item item; /* first: what waits is a completion */
    const struct tokenizer *tok;
    const struct chat_template *chat;
    const struct chat_ends *ends; /* the scheduler's */

    /* as submitted */
    struct sampler_params sampling;
    float presence_penalty, frequency_penalty;
    struct completion_bias *biases;
    int n_biases, n_logprobs;
    bool ignore_end, computes_all;
    uint64_t client;
    int n_prompt, n_max; /* tokens that may be generated, >= 1 */
    void (*wake)(void *arg);
    void *arg;

    /* embedding: the first n_embedded texts have vectors; their tokens end at n_done */
    int *lengths; /* [n_texts]; NULL: it generates */
    int n_texts, n_embedded;
    float *vectors; /* [n_texts][n_vector], once it has had a sequence */

    /* generation */
    int32_t *tokens; /* [n] */
    int n, cap, n_done, n_sent;
    int n_counted; /* n_sent in the scheduler's statistics */
    int n_charged; /* of tokens[n_done], what its client has been charged for */
    bool planned;  /* it has its part of the step */
    int n_prefill; /* tokens[n_prefill] count as a prompt: what there was when it got
                      its sequence */
    int n_branch;  /* of its tokens, how many a known text or one that runs begins
                      with; 0: unknown */
    int seq;       /* -1: none */
    struct sampler *sampler;      /* NULL until it has had a sequence */
    int32_t draft[SPECULATE_MAX]; /* [n_draft], guesses of tokens[n], ..., which the
                                     step computes, too */
    int n_draft;
    int source;   /* of the draft, or of draft[0] that was not taken; -1: none */
    int n_before; /* n, before the step's tokens are drawn */
    int n_again;  /* tokens that the next step runs again, as drafts failed */
    struct speculate_rates rates;  /* of its drafts */
    struct sampler *draft_sampler; /* NULL: nothing draws its drafts */
    int n_read; /* tokens that the draft model reads in this step, and guesses none */
    int n_skipped; /* tokens behind the first that it leaves out */
    struct token_count *counts;
    int n_counts;
    size_t cap_counts;
    struct completion_text text;
    char *bytes; /* of a token */
    size_t cap_bytes;
    struct completion_thinking thinking;
    struct completion_text thought;
    char *split; /* what thinking makes of a token's bytes, twice [cap_bytes] and what
                    it holds; NULL: there are no thoughts */
    int n_thought, max_thought; /* tokens of thoughts; -1: any number */
    int32_t *closing;           /* [n_closing] close the block; NULL: never */
    int n_closing;
    const struct call_form *calls; /* NULL: it calls no tools */
    struct call_reader reader;
    bool drops_blank; /* of the next bytes */
    struct grammar *grammar;
    struct grammar_state *state; /* NULL: no grammar */
    struct mask_job mask;
    enum completion_end ending; /* how it is over; COMPLETION_RUNS: it is not */
    bool has_news;              /* for wake() */
    uint64_t submitted_ns, admitted_ns, first_ns;

    atomic_int n_owners;
    atomic_bool closed; /* the reader has gone */
    pthread_mutex_t mu;
    pthread_cond_t woken;
    /* under mu */
    struct stored_piece *first, *last, *reading;
    enum completion_end end;
    bool wakes; /* wake() is being called */
    struct err err;
    struct completion_usage usage;
};

struct scheduler {
    struct scheduler_params params;
    int n_vocab, n_sequences, max_step_tokens;
    int max_positions; /* of one sequence */
    size_t max_bytes;  /* of a token */
    struct chat_ends ends;
    double depth_cost; /* of attention at one position, in tokens at depth 0 */

    pthread_mutex_t mu;
    pthread_cond_t changed;
    /* under mu */
    struct fair_queue queue;
    int n_waiting, n_put_back; /* that have had no sequence; that were dropped */
    uint64_t n_tickets;
    bool stops, finishes, may_admit;
    struct scheduler_stats stats;
    double mean_s;    /* that a completion has its sequence; 0: unknown */
    double soonest_s; /* until one of the running ends, at most */

    pthread_mutex_t vocab_mu;
    struct grammar_vocab *vocab; /* opened with the first grammar */

    /* the scheduler's thread */
    struct completion **running; /* [n_sequences] by sequence; NULL: free */
    int n_running;
    struct completion *over; /* to be woken a last time, linked by item.next */
    struct slm_part *parts;  /* [n_parts] of the step */
    struct completion **part_of;
    int n_parts;
    bool limited; /* its chunks of prompts have the length that its limit allows */
    struct completion **drawing; /* [n_drawing] whose token the step gives; those with a
                                    grammar last */
    int *drawing_part;
    int n_drawing;
    struct mask_job **jobs;
    struct mask_worker *masks;
    float *scratch; /* [threads][n_vocab] */
    struct step_cost cost;
    int max_drafted;              /* tokens of drafts in a step */
    struct speculate_rates rates; /* of all drafts */
    struct drafter *drafters;     /* [n_sequences] */
    struct mtp_guess *guesses;    /* [n_sequences] */
    struct step_cost guess_cost;  /* of passes of what guesses */
    double guess_ratio; /* what it reads for a token, as a share of the model's; 0:
                           lookup */
    double plain_work;  /* of the step without drafts, */
    int n_plain;        /* which gives this many tokens */
    double guessed_s;   /* that the step's guesses take, as passes like them do */
    double lasted;      /* the last step, as a multiple of what is usual */
    double gained_s;    /* by all drafts so far; < 0: lost */
    int32_t n_shared;   /* ids that the draft model knows, too */
    int32_t *draft_ids; /* [n_batch] of a pass of the draft model */
    struct slm_part *draft_parts; /* [n_sequences] */
};

/* ---- scheduler_embed.c ----------------------------------------------------------- */

/* What a completion needs for its vectors, before its first text. Error: ST_NO_MEMORY.
 */
enum status completion_begin_vectors(struct completion *c, int n_vector,
                                     struct err *err);

/* One pass over texts of those that run, clients in turn. Errors: as scheduler_step().
 */
enum status scheduler_embed(struct scheduler *s, struct err *err);

/* ---- completion_make.c ----------------------------------------------------------- */

/* Errors: those of scheduler_submit() but for a full queue. */
enum status completion_make(struct completion **c, struct scheduler *s,
                            const struct completion_params *params, struct err *err);

/* One owner less. */
void completion_release(struct completion *c);

/* ---- completion_choice.c --------------------------------------------------------- */

/* The token after the last one, from its logits[n_vocab]; scratch has as many. With
 * logprobs piece has them. False: the grammar allows none. */
bool completion_choose(struct completion *c, const float *logits, int n_vocab,
                       float *scratch, int32_t *id, struct completion_piece *piece);

/* It was generated, and becomes less likely. Error: ST_NO_MEMORY. */
enum status completion_count(struct completion *c, int32_t id, struct err *err);

/* ---- completion_token.c ---------------------------------------------------------- */

/* Opens what generating takes, before the first sequence, with a sampler for drafts of
 * n_guessed ids, unless that is 0. Errors: those of sampler_open(). */
enum status completion_begin(struct completion *c, int n_vocab, int n_guessed,
                             struct err *err);

/* Have room for tokens[cap]. Error: ST_NO_MEMORY. */
enum status completion_reserve(struct completion *c, int cap, struct err *err);

/* Tokens that may still be generated. */
int completion_left(const struct completion *c);

/* Draw the next token and take it in, with those that it forces; *ending: whether
 * that was the last one. Any thread. */
void completion_step(struct completion *c, const float *logits, int n_vocab,
                     float *scratch);

/* ---- completion.c ---------------------------------------------------------------- */

/* Hands a piece with its n_top alternatives to the reader. Error: ST_NO_MEMORY. */
enum status completion_send(struct completion *c, const struct completion_piece *piece,
                            struct err *err);

/* It is over: ending, and an error's message or NULL. */
void completion_finish(struct completion *c, enum completion_end end,
                       const struct err *err);

/* Tell the reader. */
void completion_wake(struct completion *c);

/* ---- scheduler_admit.c; all with mu held ----------------------------------------- */

/* Give sequences to those that wait, as far as they and the pages go. */
void scheduler_admit(struct scheduler *s);

/* Drop the sequence that came last; it waits again. */
void scheduler_drop(struct scheduler *s);

/* A running completion is over, and its sequence free. */
void scheduler_end(struct scheduler *s, struct completion *c);

/* Those that wait and have been closed are gone. */
void scheduler_drop_closed(struct scheduler *s);

/* Everything that waits or runs is over; err: COMPLETION_FAILED with it, or NULL. */
void scheduler_end_all(struct scheduler *s, enum completion_end end,
                       const struct err *err);

/* How many tokens and pages there are now, for scheduler_read_stats(). */
void scheduler_count(struct scheduler *s);

/* ---- scheduler_share.c ----------------------------------------------------------- */

/* Fewer tokens are computed at once with the rest. */
#define SCHEDULER_MIN_SHARED 32

/* How many tokens both begin with, at most `most`. */
int scheduler_common(const struct completion *a, const struct completion *b, int most);

/* If another one that runs has computed more of what c begins with, c has it, too.
 * True: another one is about to, so c should wait. */
bool scheduler_share(struct scheduler *s, struct completion *c);

/* ---- scheduler_mark.c ------------------------------------------------------------ */

/* Ask for checkpoints where the parts that are planned come to one, of models that need
 * them: also where other prompts that wait part from one. */
void scheduler_mark(struct scheduler *s);

/* Where the one before the end of a prompt is; 0: nowhere. */
int scheduler_prompt_mark(const struct completion *c);

/* ---- scheduler_draft.c ----------------------------------------------------------- */

/* Errors: ST_NO_MEMORY, speculate_check_draft()'s. */
enum status scheduler_open_drafts(struct scheduler *s, struct err *err);
void scheduler_close_drafts(struct scheduler *s);

/* Ids that guesses are drawn from; 0: no guesses are drawn. */
int scheduler_guessed_ids(const struct scheduler *s);

/* The parts of one token each that are planned get room for drafts, where drafts pay.
 * plain_work: the step's work without them. */
void scheduler_plan_drafts(struct scheduler *s, double plain_work);

/* Fill the drafts that are planned; some become shorter. Seconds that it took. */
double scheduler_make_drafts(struct scheduler *s);

/* A pass of what guesses took this long. One that took much longer than was expected
 * was interrupted, or the first of its kind. */
void scheduler_count_guess(struct scheduler *s, double work, double took);

/* Whether the logits of a part's next row continue what has been drawn; *row: which. */
bool completion_follows_draft(const struct completion *c, int *row);

/* After all are drawn: which tokens of a part stay in its sequence, and the
 * acceptance of drafts. With mu held. */
void scheduler_learn_drafts(struct scheduler *s);

/* Tokens of part i that stay, after they were drawn. */
int scheduler_kept(const struct scheduler *s, int i);

/* ---- scheduler_draft_model.c; nothing without a draft model ---------------------- */

/* Errors: as scheduler_open_drafts(). */
enum status scheduler_open_draft_model(struct scheduler *s, struct err *err);
void scheduler_close_draft_model(struct scheduler *s);

/* Tokens that it has to read for a guess of the next one; at least 1, which is also
 * what other sources have. */
int scheduler_unread(const struct scheduler *s, const struct completion *c);

/* The next guess of each of guesses[n]: after all of its text that is unread (together
 * no more than a pass has), or after its id. Logits are NULL where there is no room, or
 * the draft model fails. Returns the tokens of the pass. */
int scheduler_guess_next(struct scheduler *s, int n, bool first);

/* It reads n more tokens of a text. */
void scheduler_read_draft(struct scheduler *s, const struct completion *c, int n);

/* It leaves out what is between the first token and the last n, and has read nothing.
 */
void scheduler_skip_draft(struct scheduler *s, struct completion *c, int n);

/* What it has read of c ends at n_past, or before. */
void scheduler_cut_draft(struct scheduler *s, const struct completion *c, int n_past);

/* c has got a sequence, whose beginning the draft model may know; takes over the
 * first n positions of another one's; gives its sequence back. */
void scheduler_begin_draft(struct scheduler *s, struct completion *c);
void scheduler_share_draft(struct scheduler *s, const struct completion *from,
                           const struct completion *c, int n);
void scheduler_end_draft(struct scheduler *s, const struct completion *c);

/* ---- scheduler_step.c ------------------------------------------------------------ */

/* Error: ST_IO, after which no step can succeed. */
enum status scheduler_step(struct scheduler *s, struct err *err);

/* A step of that work took step_s without its guesses. */
void scheduler_count_cost(struct scheduler *s, double work, double step_s);

static inline double scheduler_seconds(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (double)(to_ns - from_ns) * 1e-9 : 0;
}

#endif
