/* SPDX-License-Identifier: MIT
 *
 * scheduler_admit.c - who gets a sequence, who is dropped, what is kept of a sequence
 */
#include "harness/serve/scheduler/scheduler_impl.h"

#include <assert.h>

#include "engine/base/clock.h"

/* Completions that end weigh an eighth in what they take on average. */
#define MEAN_SHARE 0.125

/* ---- the end of a completion ----------------------------------------------------- */

/* It is in no queue and has no sequence: the loop wakes its reader. */
static void set_over(struct scheduler *s, struct completion *c)
{
    s->stats.n_forced += (uint64_t)c->usage.n_forced;
    switch (c->ending) {
    case COMPLETION_STOP:
    case COMPLETION_LENGTH:
        s->stats.n_completed++;
        break;
    case COMPLETION_FAILED:
        s->stats.n_failed++;
        break;
    default:
        s->stats.n_cancelled++;
        break;
    }
    c->item.next = (struct fair_item *)s->over;
    s->over = c;
}

/* The sequence is free; what it computed may be kept for others. */
static void give_sequence_back(struct scheduler *s, struct completion *c)
{
    struct slm *m = s->params.m;

    if (s->params.keep_prefixes)
        slm_prefix_keep(m, c->seq, c->tokens);
    slm_seq_truncate(m, c->seq, 0);
    scheduler_end_draft(s, c);
    s->running[c->seq] = NULL;
    s->n_running--;
    s->may_admit = true;
    c->seq = -1;
    c->n_done = 0;
}

void scheduler_end(struct scheduler *s, struct completion *c)
{
    const double took = scheduler_seconds(c->admitted_ns, clock_ns());

    give_sequence_back(s, c);
    s->mean_s = s->mean_s > 0 ? s->mean_s + MEAN_SHARE * (took - s->mean_s) : took;
    fair_queue_remove(&s->queue, &c->item, false);
    set_over(s, c);
}

/* One that waits. */
static void remove_waiting(struct scheduler *s, struct completion *c)
{
    if (c->admitted_ns)
        s->n_put_back--;
    else
        s->n_waiting--;
    fair_queue_remove(&s->queue, &c->item, true);
}

void scheduler_drop_closed(struct scheduler *s)
{
    struct fair_item *next, *item = fair_queue_each(&s->queue, NULL);

    for (; item; item = next) {
        struct completion *c = (struct completion *)item;

        next = fair_queue_each(&s->queue, item);
        if (!atomic_load(&c->closed))
            continue;
        remove_waiting(s, c);
        s->stats.n_cancelled++;
        completion_release(c);
    }
}

void scheduler_end_all(struct scheduler *s, enum completion_end end,
                       const struct err *err)
{
    for (int seq = 0; seq < s->n_sequences; seq++)
        if (s->running[seq]) {
            completion_finish(s->running[seq], end, err);
            scheduler_end(s, s->running[seq]);
        }
    for (struct fair_item *item; (item = fair_queue_next(&s->queue));) {
        struct completion *c = (struct completion *)item;

        remove_waiting(s, c);
        completion_finish(c, end, err);
        set_over(s, c);
    }
}

void scheduler_count(struct scheduler *s)
{
    s->stats.n_waiting = s->n_waiting + s->n_put_back;
    s->stats.n_running = s->n_running;
    s->stats.n_sequences = s->n_sequences;
    slm_pages(s->params.m, &s->stats.n_pages, &s->stats.n_pages_free);
    slm_prefix_pages(s->params.m, &s->stats.n_pages_kept, NULL);
    s->stats.n_checkpoints = slm_info(s->params.m)->n_checkpoints;
    s->stats.n_checkpoints_kept = slm_prefix_checkpoints(s->params.m);
    s->stats.n_checkpoints_free = slm_prefix_checkpoints_free(s->params.m);
    slm_prefix_count(s->params.m, &s->stats.n_checkpoints_made,
                     &s->stats.n_checkpoints_restored);
}

/* ---- sequences ------------------------------------------------------------------- */

/* Pages of what it has to compute, and of the first page that it may generate. */
static size_t pages_wanted(const struct scheduler *s, const struct completion *c)
{
    const int left = c->n_max - (c->n - c->n_prompt) - 1;
    const int more = left < SLM_PAGE ? left : SLM_PAGE;

    return slm_seq_pages(s->params.m, c->seq, c->n - c->n_done + (more > 0 ? more : 0));
}

/* Whether all that run, c with them, have pages; kept ones can be forgotten. */
static bool has_room(const struct scheduler *s, const struct completion *c)
{
    size_t n_pages, n_free, n_kept, n_own, wanted = pages_wanted(s, c);

    slm_pages(s->params.m, &n_pages, &n_free);
    slm_prefix_pages(s->params.m, &n_kept, &n_own);
    for (int seq = 0; seq < s->n_sequences; seq++)
        if (s->running[seq])
            wanted += pages_wanted(s, s->running[seq]);
    return wanted <= n_free + n_own;
}

static int free_sequence(const struct scheduler *s)
{
    int seq = 0;

    while (s->running[seq])
        seq++;
    return seq;
}

static void count_admitted(struct scheduler *s, struct completion *c)
{
    if (c->admitted_ns) {
        s->n_put_back--;
        return;
    }
    s->n_waiting--;
    c->admitted_ns = clock_ns();
    s->stats.n_prompt += (uint64_t)c->n_prompt;
    pthread_mutex_lock(&c->mu);
    c->usage.n_cached = c->n_done < c->n_prompt ? c->n_done : c->n_prompt;
    c->usage.queue_s = scheduler_seconds(c->submitted_ns, c->admitted_ns);
    s->stats.n_cached += (uint64_t)c->usage.n_cached;
    pthread_mutex_unlock(&c->mu);
}

/* False: there is no room for it now. Alone it has room. */
static bool admit(struct scheduler *s, struct completion *c)
{
    struct slm *m = s->params.m;

    c->seq = free_sequence(s);
    slm_prefix_look(m, c->tokens, c->n, &c->n_branch);
    /* One that was dropped continues behind what it had computed itself. */
    c->n_done = c->computes_all && !c->admitted_ns
                    ? 0
                    : slm_prefix_take(m, c->seq, c->tokens, c->n);
    if (s->n_running && !s->params.embeds && !has_room(s, c)) {
        slm_seq_truncate(m, c->seq, 0);
        c->seq = -1;
        c->n_done = 0;
        return false;
    }
    scheduler_begin_draft(s, c);
    s->running[c->seq] = c;
    s->n_running++;
    c->n_prefill = c->n;
    c->n_again = 0;
    if (!c->admitted_ns)
        speculate_rates_follow(&c->rates, &s->rates);
    c->n_charged = c->n_charged > c->n_done ? c->n_charged : c->n_done;
    fair_queue_take(&s->queue, &c->item);
    count_admitted(s, c);
    return true;
}

void scheduler_admit(struct scheduler *s)
{
    bool goes_on = s->may_admit;

    s->may_admit = false;
    while (goes_on && s->n_running < s->n_sequences) {
        struct completion *c = (struct completion *)fair_queue_next(&s->queue);
        struct err err = ERR_INIT;

        if (!c)
            break;
        if (s->params.embeds
                ? completion_begin_vectors(c, slm_info(s->params.m)->n_vector, &err)
                : completion_begin(c, s->n_vocab, scheduler_guessed_ids(s), &err)) {
            remove_waiting(s, c);
            completion_finish(c, COMPLETION_FAILED, &err);
            set_over(s, c);
        } else {
            goes_on = admit(s, c);
        }
    }
}

void scheduler_drop(struct scheduler *s)
{
    struct completion *last = NULL;

    for (int seq = 0; seq < s->n_sequences; seq++)
        if (s->running[seq] &&
            (!last || s->running[seq]->item.ticket > last->item.ticket))
            last = s->running[seq];
    assert(last);
    give_sequence_back(s, last);
    fair_queue_put_back(&s->queue, &last->item);
    s->n_put_back++;
    s->stats.n_preempted++;
    pthread_mutex_lock(&last->mu);
    last->usage.n_preempted++;
    pthread_mutex_unlock(&last->mu);
}
