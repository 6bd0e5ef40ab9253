/* SPDX-License-Identifier: MIT
 *
 * scheduler_share.c - prompts that begin alike are computed once, also while they run
 *
 * What kept prefixes are for prompts that come one after the other this is for those
 * that come together: several answers to one question, or users with one system prompt.
 */
#include "harness/serve/scheduler/scheduler_impl.h"

/* Fewer tokens are computed at once with the rest. */
#define MIN_SHARED 32

static int common(const struct completion *a, const struct completion *b, int most)
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

/* c continues behind the first n positions of another one's sequence. */
static void take_over(struct scheduler *s, struct completion *c,
                      const struct completion *from, int n)
{
    const int n_cached = least(n, c->n_prompt);

    slm_seq_fork(s->params.m, from->seq, c->seq);
    slm_seq_truncate(s->params.m, c->seq, n);
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

bool scheduler_share(struct scheduler *s, struct completion *c)
{
    const struct completion *from = NULL;
    int now = c->n_done, soon = 0; /* positions that another one has, or will have */

    if (!s->params.keep_prefixes || !slm_keeps_prefixes(s->params.m) || c->computes_all)
        return false;
    for (int seq = 0; seq < s->n_sequences; seq++) {
        const struct completion *other = s->running[seq];
        int n;

        if (!other)
            continue;
        n = common(c, other, least(c->n - 1, other->n));
        if (least(n, other->n_done) >= now + (from ? 1 : MIN_SHARED)) {
            now = least(n, other->n_done);
            from = other;
        }
        if (other->item.ticket < c->item.ticket && least(n, other->n_prefill) > soon)
            soon = least(n, other->n_prefill);
    }
    if (soon >= now + MIN_SHARED)
        return true;
    if (from)
        take_over(s, c, from, now);
    return false;
}
