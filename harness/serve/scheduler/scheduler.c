/* SPDX-License-Identifier: MIT
 *
 * scheduler.c - opened and closed, requests taken in, the loop
 */
#include "harness/serve/scheduler/scheduler.h"

#include <stdlib.h>

#include "engine/text/chat.h"
#include "harness/serve/scheduler/scheduler_impl.h"

/* Expected wait for a place in the queue before anything has been measured. */
#define UNKNOWN_S 1.0

/* This part of the queue is for clients without a waiting request. */
#define KEPT_PART 8

/* ---- open and close -------------------------------------------------------------- */

static enum status check_model(const struct scheduler_params *p, struct err *err)
{
    const struct slm_info *info = slm_info(p->m);
    const int least = info->n_batch < info->n_logits ? info->n_batch : info->n_logits;

    if (least < info->n_sequences)
        return err_set(err, ST_USAGE,
                       "a step of %d sequences takes as many tokens and logits; the "
                       "model was opened for %d and %d",
                       info->n_sequences, info->n_batch, info->n_logits);
    if (tokenizer_n_vocab(p->tok) > info->n_vocab)
        return err_set(err, ST_USAGE,
                       "the vocabulary has %d tokens, and the model logits of %d",
                       (int)tokenizer_n_vocab(p->tok), info->n_vocab);
    if (p->n_queue < 0)
        return err_set(err, ST_USAGE, "a queue of %d requests: it must be 0 or more",
                       p->n_queue);
    if (!(p->max_itl_s >= 0))
        return err_set(err, ST_USAGE, "steps of at most %g s: it must be 0 or more",
                       p->max_itl_s);
    return ST_OK;
}

/* Attention reads a position of layers that keep all of them for as many
 * multiplications as its queries and its mixed values have, compared with those of a
 * token's matrices. */
static double depth_cost(const struct slm_info *info)
{
    const int n_layers = info->n_attends - info->n_window_layers;

    if (info->kv_window || n_layers <= 0 || info->weight_token_macs == 0)
        return 0;
    return 2.0 * n_layers * info->n_heads * info->head_dim /
           (double)info->weight_token_macs;
}

static void measure_model(struct scheduler *s)
{
    const struct slm *m = s->params.m;
    const struct slm_info *info = slm_info(m);
    struct slm_tuning tuning;
    size_t n_pages, n_free;

    slm_get_tuning(m, &tuning);
    slm_pages(m, &n_pages, &n_free);
    s->n_vocab = tokenizer_n_vocab(s->params.tok);
    s->n_sequences = info->n_sequences;
    s->max_step_tokens = tuning.n_batch ? tuning.n_batch : info->n_batch;
    if (s->max_step_tokens < s->n_sequences)
        s->max_step_tokens = s->n_sequences;
    s->max_positions = info->kv_window ? SLM_MAX_POSITIONS : info->n_ctx;
    /* With all pages that it may take a sequence is as long as it may be: they are a
     * ring of the last positions. */
    if (n_pages < (size_t)info->n_seq_pages)
        s->max_positions = (int)(n_pages * SLM_PAGE);
    s->depth_cost = depth_cost(info);
}

static void look_at_tokens(struct scheduler *s)
{
    const struct tokenizer *tok = s->params.tok;
    struct chat_ends *ends = &s->ends;
    const int most = sizeof ends->id / sizeof *ends->id;

    s->max_bytes = 1;
    ends->own = -1;
    for (int32_t id = 0; id < s->n_vocab; id++) {
        const size_t n = tokenizer_piece(tok, id, NULL, 0);

        s->max_bytes = n > s->max_bytes ? n : s->max_bytes;
        if (tokenizer_is_end(tok, id))
            ends->own = id;
        else if (s->params.chat && chat_is_end(s->params.chat, tok, id) &&
                 ends->n < most)
            ends->id[ends->n++] = id;
    }
}

static enum status make_tables(struct scheduler *s, struct err *err)
{
    const size_t n = (size_t)s->n_sequences;
    const size_t n_threads = (size_t)thread_pool_capacity(slm_thread_pool(s->params.m));

    s->running = calloc(n, sizeof *s->running);
    s->parts = calloc(n, sizeof *s->parts);
    s->part_of = calloc(n, sizeof *s->part_of);
    s->drawing = calloc(n, sizeof *s->drawing);
    s->drawing_part = calloc(n, sizeof *s->drawing_part);
    s->jobs = calloc(n, sizeof *s->jobs);
    s->scratch = calloc(n_threads * (size_t)s->n_vocab, sizeof *s->scratch);
    if (!s->running || !s->parts || !s->part_of || !s->drawing || !s->drawing_part ||
        !s->jobs || !s->scratch)
        return err_set(err, ST_NO_MEMORY, "no memory to schedule %zu sequences", n);
    if (scheduler_open_drafts(s, err))
        return err->code;
    return mask_worker_open(&s->masks, s->n_sequences, err);
}

enum status scheduler_open(struct scheduler **s, const struct scheduler_params *params,
                           struct err *err)
{
    struct scheduler *new;
    enum status st = check_model(params, err);

    if (st)
        return st;
    new = calloc(1, sizeof *new);
    if (!new)
        return err_set(err, ST_NO_MEMORY, "no memory for a scheduler");
    new->params = *params;
    pthread_mutex_init(&new->mu, NULL);
    pthread_mutex_init(&new->vocab_mu, NULL);
    pthread_cond_init(&new->changed, NULL);
    measure_model(new);
    look_at_tokens(new);
    st = make_tables(new, err);
    if (st) {
        scheduler_close(new);
        return st;
    }
    scheduler_count(new);
    *s = new;
    return ST_OK;
}

/* Tell the readers of those that are over, which are the scheduler's no more. */
static void wake_over(struct scheduler *s)
{
    while (s->over) {
        struct completion *c = s->over;

        s->over = (struct completion *)c->item.next;
        completion_wake(c);
        completion_release(c);
    }
}

void scheduler_close(struct scheduler *s)
{
    if (!s)
        return;
    if (s->running) { /* requests that scheduler_run() has not seen */
        scheduler_end_all(s, COMPLETION_ABORTED, NULL);
        wake_over(s);
    }
    fair_queue_close(&s->queue);
    mask_worker_close(s->masks);
    if (s->vocab)
        grammar_vocab_close(s->vocab);
    free(s->running);
    free(s->parts);
    free(s->part_of);
    free(s->drawing);
    free(s->drawing_part);
    free(s->jobs);
    free(s->scratch);
    scheduler_close_drafts(s);
    pthread_mutex_destroy(&s->mu);
    pthread_mutex_destroy(&s->vocab_mu);
    pthread_cond_destroy(&s->changed);
    free(s);
}

/* ---- requests -------------------------------------------------------------------- */

/* Seconds until there are n_places more in a full queue: as many that run end. */
static double expected_s(const struct scheduler *s, int n_places)
{
    const int n_running = s->stats.n_running;
    double one_s = UNKNOWN_S;

    if (n_running > 0 && s->mean_s > 0)
        one_s = s->mean_s / n_running;
    else if (n_running > 0 && s->soonest_s > 0)
        one_s = s->soonest_s;
    return n_places * one_s;
}

/* How many may wait, and one more of this client come, with mu held. */
static int room_for(const struct scheduler *s, uint64_t client)
{
    const int n_queue = s->params.n_queue;
    const int kept = fair_queue_waits(&s->queue, client) ? n_queue / KEPT_PART : 0;

    return n_queue - kept + s->n_sequences - s->stats.n_running;
}

int scheduler_max_running(const struct scheduler *s)
{
    return s->n_sequences + s->params.n_queue - s->params.n_queue / KEPT_PART;
}

/* With mu held. Error: ST_UNSUPPORTED. */
static enum status check_place(struct scheduler *s, uint64_t client, bool *full,
                               double *retry_after_s, struct err *err)
{
    int room = room_for(s, client);

    if (s->n_waiting >= room) {
        scheduler_drop_closed(s);
        room = room_for(s, client);
    }
    *full = s->stops || s->n_waiting >= room;
    if (!*full)
        return ST_OK;
    s->stats.n_refused++;
    *retry_after_s = s->stops ? 0 : expected_s(s, s->n_waiting - room + 1);
    return s->stops ? err_set(err, ST_UNSUPPORTED, "the server stops")
                    : err_set(err, ST_UNSUPPORTED,
                              "%d requests wait; try again in about %.0f s",
                              s->n_waiting, *retry_after_s < 1 ? 1 : *retry_after_s);
}

enum status scheduler_submit(struct scheduler *s,
                             const struct completion_params *params,
                             struct completion **c, bool *full, double *retry_after_s,
                             struct err *err)
{
    struct completion *new = NULL;
    enum status st;

    *full = false;
    st = completion_make(&new, s, params, err);
    if (st)
        return st;
    pthread_mutex_lock(&s->mu);
    st = check_place(s, new->client, full, retry_after_s, err);
    if (!st)
        st = fair_queue_add(&s->queue, &new->item, new->client, err);
    if (!st) {
        new->item.ticket = ++s->n_tickets;
        atomic_store(&new->n_owners, 2);
        s->n_waiting++;
        s->may_admit = true;
        s->stats.n_requests++;
        s->stats.n_waiting = s->n_waiting + s->n_put_back;
        pthread_cond_signal(&s->changed);
        *c = new;
    }
    pthread_mutex_unlock(&s->mu);
    if (st)
        completion_release(new);
    return st;
}

void scheduler_read_stats(struct scheduler *s, struct scheduler_stats *out)
{
    pthread_mutex_lock(&s->mu);
    *out = s->stats;
    pthread_mutex_unlock(&s->mu);
}

void scheduler_stop(struct scheduler *s, bool finish)
{
    pthread_mutex_lock(&s->mu);
    s->finishes = finish && (s->finishes || !s->stops);
    s->stops = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->mu);
}

/* ---- the loop -------------------------------------------------------------------- */

/* Between two steps, with mu held: what was closed goes, what waits comes. */
static void change_running(struct scheduler *s)
{
    if (s->stops && !s->finishes)
        scheduler_end_all(s, COMPLETION_ABORTED, NULL);
    for (int seq = 0; seq < s->n_sequences; seq++) {
        struct completion *c = s->running[seq];

        if (c && atomic_load(&c->closed)) {
            completion_finish(c, COMPLETION_ABORTED, NULL);
            scheduler_end(s, c);
        }
    }
    scheduler_drop_closed(s);
    scheduler_admit(s);
    scheduler_count(s);
}

/* False: no work is left, and none will come. */
static bool wait_for_work(struct scheduler *s)
{
    bool works = false, ends = false;

    while (!works && !ends) {
        pthread_mutex_lock(&s->mu);
        change_running(s);
        works = s->n_running > 0;
        ends = !works && s->stops;
        if (!works && !ends && !s->over)
            pthread_cond_wait(&s->changed, &s->mu);
        pthread_mutex_unlock(&s->mu);
        wake_over(s);
    }
    return works;
}

enum status scheduler_run(struct scheduler *s, struct err *err)
{
    enum status st = ST_OK;

    while (!st && wait_for_work(s))
        st = scheduler_step(s, err);
    pthread_mutex_lock(&s->mu);
    s->stops = true;
    if (st)
        scheduler_end_all(s, COMPLETION_FAILED, err);
    scheduler_count(s);
    pthread_mutex_unlock(&s->mu);
    wake_over(s);
    return st;
}
