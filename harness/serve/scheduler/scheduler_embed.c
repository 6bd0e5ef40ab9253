/* SPDX-License-Identifier: MIT
 *
 * scheduler_embed.c - steps of a scheduler that embeds: passes over texts
 *
 * A completion has several texts. A pass takes as many texts of those that run as
 * fit, first of the client with the fewest computed tokens; so a request with many
 * texts shares the passes with all others.
 */
#include "harness/serve/scheduler/scheduler_impl.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"

enum status completion_begin_vectors(struct completion *c, int n_vector,
                                     struct err *err)
{
    const size_t n = (size_t)c->n_texts * (size_t)n_vector;

    c->vectors = malloc(n * sizeof *c->vectors);
    return c->vectors ? ST_OK
                      : err_set(err, ST_NO_MEMORY, "no memory for %d vectors of %d",
                                c->n_texts, n_vector);
}

/* The texts of a pass, and whose they are. */
struct pass {
    struct slm_text texts[SLM_MAX_SEQUENCES];
    struct completion *of[SLM_MAX_SEQUENCES];
    int n, n_tokens;
};

static struct completion *next_of(const struct scheduler *s)
{
    struct completion *next = NULL;

    for (int seq = 0; seq < s->n_sequences; seq++) {
        struct completion *c = s->running[seq];

        if (!c || c->planned)
            continue;
        if (!next || fair_queue_service(&c->item) < fair_queue_service(&next->item) ||
            (!(fair_queue_service(&c->item) > fair_queue_service(&next->item)) &&
             c->item.ticket < next->item.ticket))
            next = c;
    }
    return next;
}

/* False: its next text does not fit any more. */
static bool take_texts(const struct scheduler *s, struct pass *p, struct completion *c)
{
    int at = c->n_done;

    for (int i = c->n_embedded; i < c->n_texts; i++) {
        const int n = c->lengths[i];

        if (p->n == s->n_sequences || p->n_tokens + n > s->max_step_tokens)
            return false;
        p->texts[p->n] = (struct slm_text){c->tokens + at, n};
        p->of[p->n++] = c;
        p->n_tokens += n;
        at += n;
    }
    return true;
}

static void plan(const struct scheduler *s, struct pass *p)
{
    struct completion *c;

    p->n = p->n_tokens = 0;
    for (int seq = 0; seq < s->n_sequences; seq++)
        if (s->running[seq])
            s->running[seq]->planned = false;
    do {
        c = next_of(s);
        if (c)
            c->planned = true;
    } while (c && take_texts(s, p, c));
}

static void take_vectors(const struct scheduler *s, const struct pass *p)
{
    const size_t n = (size_t)slm_info(s->params.m)->n_vector;

    for (int i = 0; i < p->n; i++) {
        struct completion *c = p->of[i];

        memcpy(c->vectors + (size_t)c->n_embedded++ * n,
               slm_vector(s->params.m, (size_t)i), n * sizeof *c->vectors);
        c->n_done += p->texts[i].n;
        if (c->n_embedded == c->n_texts)
            completion_finish(c, COMPLETION_STOP, NULL);
    }
}

/* What the pass did; those that are over are gone. */
static void account(struct scheduler *s, const struct pass *p, uint64_t begin_ns)
{
    const double step_s = scheduler_seconds(begin_ns, clock_ns());

    pthread_mutex_lock(&s->mu);
    s->stats.n_steps++;
    s->stats.busy_s += step_s;
    s->stats.n_step_tokens += (uint64_t)p->n_tokens;
    for (int i = 0; i < p->n; i++)
        fair_queue_charge(&p->of[i]->item, p->texts[i].n);
    for (int seq = 0; seq < s->n_sequences; seq++)
        if (s->running[seq] && s->running[seq]->ending)
            scheduler_end(s, s->running[seq]);
    scheduler_count(s);
    pthread_mutex_unlock(&s->mu);
}

enum status scheduler_embed(struct scheduler *s, struct err *err)
{
    const uint64_t begin_ns = clock_ns();
    struct pass p;
    enum status st;

    plan(s, &p);
    st = slm_embed(s->params.m, p.texts, p.n, s->params.pooling, err);
    if (!st)
        take_vectors(s, &p);
    for (int i = 0; st && i < p.n; i++)
        if (!p.of[i]->ending)
            completion_finish(p.of[i], COMPLETION_FAILED, err);
    account(s, &p, begin_ns);
    if (st && st != ST_IO) {
        err_clear(err);
        st = ST_OK;
    }
    return st;
}
