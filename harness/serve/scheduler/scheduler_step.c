/* SPDX-License-Identifier: MIT
 *
 * scheduler_step.c - what a step computes, and the tokens that it gives
 */
#include "harness/serve/scheduler/scheduler_impl.h"

#include <assert.h>

#include "engine/base/clock.h"

enum {
    /* Tokens of prompts in every step, whatever the limit: else a step that takes too
     * long without them would hold them up for ever. */
    MIN_PROMPT = 8,
    /* Logits from which on threads draw together: waking them takes the
     * time in which one looks at some thousands. */
    SHARED_LOGITS = 1 << 16,
};

/* ---- what is computed ------------------------------------------------------------ */

static double work_of(const struct scheduler *s, int n, int depth)
{
    return step_cost_work(s->depth_cost, n, depth);
}

static bool generates(const struct completion *c)
{
    return c->n_done >= c->n_prefill;
}

static void add_part(struct scheduler *s, struct completion *c, int n)
{
    const bool to_end = c->n_done + n == c->n;

    s->parts[s->n_parts] =
        (struct slm_part){.seq = c->seq,
                          .tokens = c->tokens + c->n_done,
                          .n = n,
                          .which = to_end ? SLM_LOGITS_LAST : SLM_LOGITS_NONE};
    s->part_of[s->n_parts++] = c;
    c->n_draft = c->n_read = 0;
    c->source = -1;
}

/* A token of each that generates. */
static void plan_generating(struct scheduler *s)
{
    for (int seq = 0; seq < s->n_sequences; seq++)
        if (s->running[seq] && generates(s->running[seq]))
            add_part(s, s->running[seq], 1);
}

static double planned_work(const struct scheduler *s)
{
    double work = 0;

    for (int i = 0; i < s->n_parts; i++)
        work +=
            work_of(s, s->parts[i].n + s->part_of[i]->n_again, s->part_of[i]->n_done);
    return work;
}

/* What a step may have in addition to a token of each that generates. */
struct room {
    int n;        /* tokens */
    bool limited; /* somebody waits for a next token, so: */
    double work;  /* of these tokens, at most, */
    int least;    /* but as many as this in any case */
};

static struct room find_room(const struct scheduler *s)
{
    const double done = planned_work(s);
    const double most = work_of(s, s->max_step_tokens, s->max_positions) + done;
    const double aim_s = step_cost_aim_s(&s->cost, s->params.max_itl_s);
    struct room r = {.n = s->max_step_tokens,
                     .limited = s->n_parts > 0 && s->params.max_itl_s > 0,
                     .least = MIN_PROMPT};

    for (int i = 0; i < s->n_parts; i++)
        r.n -= s->parts[i].n;
    if (r.limited)
        r.work = step_cost_within(&s->cost, aim_s, most) - done;
    return r;
}

/* As many of n tokens from a depth on as there is room for. */
static int take_room(struct scheduler *s, struct room *r, int n, int depth)
{
    n = n < r->n ? n : r->n;
    if (r->limited) {
        int within = step_cost_tokens(s->depth_cost, r->work, depth);

        within = within > r->least ? within : r->least;
        n = n < within ? n : within;
        r->work -= work_of(s, n, depth);
        r->least -= n < r->least ? n : r->least;
        s->limited |= n > 0;
    }
    r->n -= n;
    return n;
}

/* Tokens that were forced, behind the one that each has. Whose text they are has read
 * them already; where he is the only one who waits, they need keep no limit. */
static void plan_forced(struct scheduler *s, struct room *r)
{
    const bool limited = r->limited;

    r->limited = limited && s->n_parts > 1;
    for (int i = 0; i < s->n_parts; i++) {
        const struct completion *c = s->part_of[i];
        struct slm_part *part = &s->parts[i];

        part->n += take_room(s, r, c->n - c->n_done - 1, c->n_done + 1);
        if (c->n_done + part->n == c->n)
            part->which = SLM_LOGITS_LAST;
    }
    if (limited && !r->limited)
        *r = find_room(s);
}

static bool waits_for_part(const struct completion *c)
{
    return c && !generates(c) && !c->planned;
}

/* Within a client, first come, first served. */
static bool is_first(const struct scheduler *s, const struct completion *c)
{
    for (int seq = 0; seq < s->n_sequences; seq++) {
        const struct completion *other = s->running[seq];

        if (waits_for_part(other) && other->client == c->client &&
            other->item.ticket < c->item.ticket)
            return false;
    }
    return true;
}

static bool goes_before(const struct completion *a, const struct completion *b)
{
    const double for_a = fair_queue_service(&a->item);
    const double for_b = fair_queue_service(&b->item);
    const int left_a = a->n - a->n_done, left_b = b->n - b->n_done;

    if (for_a < for_b || for_a > for_b)
        return for_a < for_b;
    return left_a < left_b || (left_a == left_b && a->item.ticket < b->item.ticket);
}

/* The next prompt without a part: that of the client with the fewest computed tokens,
 * so that nobody waits for all of a long one; among equal ones the shorter. */
static struct completion *next_prompt(const struct scheduler *s)
{
    struct completion *next = NULL;

    for (int seq = 0; seq < s->n_sequences; seq++) {
        struct completion *c = s->running[seq];

        if (waits_for_part(c) && is_first(s, c) && (!next || goes_before(c, next)))
            next = c;
    }
    return next;
}

static void plan_prompts(struct scheduler *s, struct room *r)
{
    for (int seq = 0; seq < s->n_sequences; seq++)
        if (s->running[seq])
            s->running[seq]->planned = false;
    for (struct completion *c; r->n > 0 && (c = next_prompt(s));) {
        int n;

        c->planned = true;
        if (scheduler_share(s, c))
            continue;
        n = take_room(s, r, c->n - c->n_done, c->n_done);
        if (n == 0)
            break;
        add_part(s, c, n);
    }
}

static void plan(struct scheduler *s, bool drafts)
{
    struct room r;

    s->n_parts = 0;
    s->limited = false;
    plan_generating(s);
    if (drafts)
        scheduler_plan_drafts(s, planned_work(s));
    r = find_room(s);
    plan_forced(s, &r);
    plan_prompts(s, &r);
}

/* Whether the pages that the parts take are free. */
static bool has_pages(const struct scheduler *s)
{
    size_t n_pages, n_free, wanted = slm_batch_pages(s->params.m, s->parts, s->n_parts);

    slm_pages(s->params.m, &n_pages, &n_free);
    if (wanted > n_free) {
        /* A page that is forgotten need not be copied any more, so fewer are wanted. */
        slm_prefix_forget(s->params.m, wanted);
        slm_pages(s->params.m, &n_pages, &n_free);
        wanted = slm_batch_pages(s->params.m, s->parts, s->n_parts);
    }
    return wanted <= n_free;
}

/* Nobody is dropped because of a draft. */
static void plan_with_pages(struct scheduler *s)
{
    plan(s, true);
    if (s->n_running > 1 && !has_pages(s))
        plan(s, false);
    for (; s->n_running > 1 && !has_pages(s); plan(s, false)) {
        pthread_mutex_lock(&s->mu);
        scheduler_drop(s);
        pthread_mutex_unlock(&s->mu);
    }
    if (s->n_running == 1)
        has_pages(s);
}

/* ---- tokens ---------------------------------------------------------------------- */

/* Those whose logits the step gives; a mask may not be there at once, so those
 * with a grammar are last, while their masks are computed. */
static void list_drawing(struct scheduler *s)
{
    int n_jobs = 0;

    s->n_drawing = 0;
    for (int grammars = 0; grammars < 2; grammars++)
        for (int i = 0; i < s->n_parts; i++) {
            struct completion *c = s->part_of[i];

            if (s->parts[i].which == SLM_LOGITS_NONE || (c->state != NULL) != grammars)
                continue;
            s->drawing[s->n_drawing] = c;
            s->drawing_part[s->n_drawing++] = i;
            if (c->state)
                s->jobs[n_jobs++] = &c->mask;
        }
    if (n_jobs)
        mask_worker_post(s->masks, s->jobs, n_jobs);
}

/* The token after the part, or those after its tokens one by one while they are
 * those of its draft. */
static void draw_one(struct scheduler *s, int i, int thread)
{
    struct completion *c = s->drawing[i];
    int row = 0;

    if (c->state)
        mask_worker_finish(s->masks, &c->mask);
    c->n_before = c->n;
    do {
        if (row && c->state)
            c->mask.all = grammar_state_mask(c->state, c->mask.mask);
        completion_step(c,
                        slm_batch_logits(s->params.m, s->drawing_part[i], (size_t)row),
                        s->n_vocab, s->scratch + (size_t)thread * (size_t)s->n_vocab);
    } while (completion_follows_draft(c, &row));
}

static void draw_shared(void *arg, int thread, int n_threads)
{
    struct scheduler *s = arg;

    (void)n_threads;
    for (size_t i; (i = thread_pool_next(slm_thread_pool(s->params.m), 1)) <
                   (size_t)s->n_drawing;)
        draw_one(s, (int)i, thread);
}

static void draw_all(struct scheduler *s)
{
    if (s->n_drawing > 1 && (int64_t)s->n_drawing * s->n_vocab >= SHARED_LOGITS)
        thread_pool_run(slm_thread_pool(s->params.m), draw_shared, s);
    else
        for (int i = 0; i < s->n_drawing; i++)
            draw_one(s, i, 0);
    mask_worker_post(s->masks, NULL, 0);
}

/* ---- the step -------------------------------------------------------------------- */

/* Everybody whose tokens it was to compute; their sequences are as before. */
static void fail_parts(struct scheduler *s, const struct err *err)
{
    for (int i = 0; i < s->n_drawing; i++)
        if (s->drawing[i]->state)
            mask_worker_finish(s->masks, &s->drawing[i]->mask);
    mask_worker_post(s->masks, NULL, 0);
    for (int i = 0; i < s->n_parts; i++)
        completion_finish(s->part_of[i], COMPLETION_FAILED, err);
}

/* Seconds until the first of those that run has all the tokens that it may have. */
static double soonest_end_s(const struct scheduler *s, double step_s)
{
    double soonest = 0;

    for (int seq = 0; seq < s->n_sequences; seq++) {
        const struct completion *c = s->running[seq];
        const double left = c ? (c->n_max - (c->n - c->n_prompt)) * step_s : 0;

        if (c && (!(soonest > 0) || left < soonest))
            soonest = left;
    }
    return soonest;
}

/* What the step did, with mu held; then those that are over are gone. */
static void account(struct scheduler *s, uint64_t begin_ns)
{
    const double step_s = scheduler_seconds(begin_ns, clock_ns());

    s->stats.n_steps++;
    s->stats.busy_s += step_s;
    for (int i = 0; i < s->n_parts; i++) {
        struct completion *c = s->part_of[i];

        s->stats.n_step_tokens += (uint64_t)s->parts[i].n;
        if (c->ending)
            scheduler_end(s, c);
    }
    s->soonest_s = soonest_end_s(s, step_s);
    scheduler_count(s);
}

/* What was computed and generated; clients are charged for what they have computed the
 * first time, and not for what was dropped. */
static void count_tokens(struct scheduler *s)
{
    for (int i = 0; i < s->n_parts; i++) {
        struct completion *c = s->part_of[i];

        if (c->n_done > c->n_charged) {
            fair_queue_charge(&c->item, c->n_done - c->n_charged);
            c->n_charged = c->n_done;
        }
        s->stats.n_generated += (uint64_t)(c->n_sent - c->n_counted);
        c->n_counted = c->n_sent;
    }
}

/* What the step computed is in the sequences, but for drafts that were not drawn. */
static void keep_parts(struct scheduler *s)
{
    const bool again = slm_info(s->params.m)->n_recurrent > 0;

    for (int i = 0; i < s->n_parts; i++) {
        struct completion *c = s->part_of[i];
        const int kept = scheduler_kept(s, i);

        c->n_done += kept;
        c->n_again = again && kept < s->parts[i].n ? kept : 0;
        if (kept < s->parts[i].n) {
            slm_seq_truncate(s->params.m, c->seq, c->n_done);
            scheduler_cut_draft(s, c, c->n_done);
        }
    }
}

void scheduler_count_cost(struct scheduler *s, double work, double step_s)
{
    if (s->limited)
        step_cost_add_limited(&s->cost, work, step_s);
    else
        step_cost_add(&s->cost, work, step_s);
    s->lasted = step_s / step_cost_usual_s(&s->cost, work);
}

enum status scheduler_step(struct scheduler *s, struct err *err)
{
    const uint64_t begin_ns = clock_ns();
    double draft_s;
    enum status st;

    if (s->params.embeds)
        return scheduler_embed(s, err);
    plan_with_pages(s);
    assert(s->n_parts > 0);
    draft_s = scheduler_make_drafts(s);
    list_drawing(s);
    scheduler_mark(s);
    st = slm_batch(s->params.m, s->parts, s->n_parts, err);
    if (st) {
        fail_parts(s, err);
    } else {
        const double work = planned_work(s);

        draw_all(s);
        keep_parts(s);
        scheduler_count_cost(s, work,
                             scheduler_seconds(begin_ns, clock_ns()) - draft_s);
    }
    pthread_mutex_lock(&s->mu);
    if (!st) {
        count_tokens(s);
        scheduler_learn_drafts(s);
    }
    account(s, begin_ns);
    pthread_mutex_unlock(&s->mu);
    if (st && st != ST_IO) {
        err_clear(err);
        st = ST_OK;
    }
    for (int seq = 0; seq < s->n_sequences; seq++)
        if (s->running[seq] && s->running[seq]->has_news)
            completion_wake(s->running[seq]);
    return st;
}
