/* SPDX-License-Identifier: MIT
 *
 * scheduler_share.c - prompts that begin alike are computed once, also while they run
 *
 * What kept prefixes are for prompts that come one after the other this is for those
 * that come together: several answers to one question, or users with one system prompt.
 */
#include "harness/serve/scheduler/scheduler_impl.h"

int scheduler_common(const struct completion *a, const struct completion *b, int most)
{
    int n = 0;

    while (n < most && a->tokens[n] == b->tokens[n])
        n++;
    return n;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* c has n positions by now; others computed more of them than before. */
static void count_taken(struct scheduler *s, struct completion *c, int n)
{
    const int n_cached = least(n, c->n_prompt);

    c->n_done = n;
    c->n_charged = c->n_charged > n ? c->n_charged : n;
    pthread_mutex_lock(&s->mu);
    pthread_mutex_lock(&c->mu);
    if (!c->first_ns && n_cached > c->usage.n_cached) {
        s->stats.n_cached += (uint64_t)(n_cached - c->usage.n_cached);
        c->usage.n_cached = n_cached;
    }
    pthread_mutex_unlock(&c->mu);
    pthread_mutex_unlock(&s->mu);
}

/* c continues behind the first n positions of another one's sequence. */
static void take_over(struct scheduler *s, struct completion *c,
                      const struct completion *from, int n)
{
    slm_seq_fork(s->params.m, from->seq, c->seq);
    slm_seq_truncate(s->params.m, c->seq, n);
    scheduler_share_draft(s, from, c, n);
    count_taken(s, c, n);
}

/* ---- models that need checkpoints ------------------------------------------------ */

/* Where another one will keep a checkpoint of the n positions that both begin with
 * (scheduler_mark()). 0: it has computed them. */
static int coming_mark(const struct completion *other, int n)
{
    const int prompt = scheduler_prompt_mark(other);

    if (n <= other->n_done)
        return 0;
    if (other->n_branch > other->n_done)
        n = least(n, other->n_branch);
    return prompt > other->n_done && prompt > n - SCHEDULER_MIN_SHARED && prompt <= n
               ? prompt
               : n;
}

/* As scheduler_share(). */
static bool share_checkpoints(struct scheduler *s, struct completion *c)
{
    int n_common, soon = 0;
    const int known = slm_prefix_look(s->params.m, c->tokens, c->n, &n_common);
    const int now = known > c->n_done ? known : c->n_done;

    for (int seq = 0; seq < s->n_sequences; seq++) {
        const struct completion *other = s->running[seq];
        int n;

        if (!other || other->item.ticket >= c->item.ticket)
            continue;
        n = scheduler_common(c, other, least(c->n - 1, other->n_prefill));
        if (n >= now + SCHEDULER_MIN_SHARED && (n = coming_mark(other, n)) > soon)
            soon = n;
    }
    if (soon >= now + SCHEDULER_MIN_SHARED)
        return true;
    if (known >= c->n_done + SCHEDULER_MIN_SHARED) {
        slm_seq_truncate(s->params.m, c->seq, 0);
        count_taken(s, c, slm_prefix_take(s->params.m, c->seq, c->tokens, c->n));
    }
    return false;
}

bool scheduler_share(struct scheduler *s, struct completion *c)
{
    const struct completion *from = NULL;
    int now = c->n_done, soon = 0; /* positions that another one has, or will have */

    if (!s->params.keep_prefixes || !slm_keeps_prefixes(s->params.m) || c->computes_all)
        return false;
    if (slm_info(s->params.m)->n_checkpoints > 0)
        return share_checkpoints(s, c);
    for (int seq = 0; seq < s->n_sequences; seq++) {
        const struct completion *other = s->running[seq];
        int n;

        if (!other)
            continue;
        n = scheduler_common(c, other, least(c->n - 1, other->n));
        if (least(n, other->n_done) >= now + (from ? 1 : SCHEDULER_MIN_SHARED)) {
            now = least(n, other->n_done);
            from = other;
        }
        if (other->item.ticket < c->item.ticket && least(n, other->n_prefill) > soon)
            soon = least(n, other->n_prefill);
    }
    if (soon >= now + SCHEDULER_MIN_SHARED)
        return true;
    if (from)
        take_over(s, c, from, now);
    return false;
}
