/* SPDX-License-Identifier: MIT
 *
 * completion.c - pieces from the scheduler's threads to the reader's
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/serve/scheduler/scheduler_impl.h"

/* ---- the scheduler's side -------------------------------------------------------- */

enum status completion_send(struct completion *c, const struct completion_piece *piece,
                            struct err *err)
{
    const size_t top_bytes = (size_t)piece->n_top * sizeof *piece->top;
    struct stored_piece *p = malloc(sizeof *p + top_bytes + piece->len +
                                    piece->n_thought + piece->n_call + 3);

    if (!p)
        return err_set(err, ST_NO_MEMORY, "no memory for the text of a completion");
    *p = (struct stored_piece){.len = piece->len,
                               .n_thought = piece->n_thought,
                               .n_call = piece->n_call,
                               .begins = piece->begins,
                               .token = piece->token,
                               .logprob = piece->logprob,
                               .n_top = piece->n_top};
    memcpy(p->top, piece->top, top_bytes);
    p->text = (char *)p->top + top_bytes;
    if (p->len)
        memcpy(p->text, piece->text, p->len);
    p->text[p->len] = '\0';
    p->thought = p->text + p->len + 1;
    if (p->n_thought)
        memcpy(p->thought, piece->thought, p->n_thought);
    p->thought[p->n_thought] = '\0';
    p->call = p->thought + p->n_thought + 1;
    if (p->n_call)
        memcpy(p->call, piece->call, p->n_call);
    p->call[p->n_call] = '\0';
    pthread_mutex_lock(&c->mu);
    if (c->last)
        c->last->next = p;
    else
        c->first = p;
    c->last = p;
    c->usage.n_generated++;
    c->usage.n_thought = c->n_thought;
    pthread_mutex_unlock(&c->mu);
    c->has_news = true;
    return ST_OK;
}

void completion_finish(struct completion *c, enum completion_end end,
                       const struct err *err)
{
    const uint64_t now_ns = clock_ns();

    assert(end != COMPLETION_RUNS);
    c->ending = end;
    c->has_news = true;
    pthread_mutex_lock(&c->mu);
    if (err)
        c->err = *err;
    if (!c->admitted_ns)
        c->usage.queue_s = scheduler_seconds(c->submitted_ns, now_ns);
    else if (!c->first_ns)
        c->usage.prefill_s = scheduler_seconds(c->admitted_ns, now_ns);
    else
        c->usage.decode_s = scheduler_seconds(c->first_ns, now_ns);
    c->end = end;
    pthread_mutex_unlock(&c->mu);
}

void completion_wake(struct completion *c)
{
    bool calls;

    c->has_news = false;
    pthread_mutex_lock(&c->mu);
    calls = c->wakes = c->wake && !atomic_load(&c->closed);
    pthread_mutex_unlock(&c->mu);
    if (!calls)
        return;
    c->wake(c->arg);
    pthread_mutex_lock(&c->mu);
    c->wakes = false;
    pthread_cond_broadcast(&c->woken);
    pthread_mutex_unlock(&c->mu);
}

/* ---- the reader's side ----------------------------------------------------------- */

bool completion_read(struct completion *c, struct completion_piece *out)
{
    struct stored_piece *p;

    pthread_mutex_lock(&c->mu);
    p = c->first;
    if (p) {
        c->first = p->next;
        if (!c->first)
            c->last = NULL;
    }
    pthread_mutex_unlock(&c->mu);
    free(c->reading);
    c->reading = p;
    if (!p)
        return false;
    out->text = p->text;
    out->len = p->len;
    out->thought = p->thought;
    out->n_thought = p->n_thought;
    out->call = p->call;
    out->n_call = p->n_call;
    out->begins = p->begins;
    out->token = p->token;
    out->logprob = p->logprob;
    out->n_top = p->n_top;
    memcpy(out->top, p->top, (size_t)p->n_top * sizeof *p->top);
    return true;
}

enum completion_end completion_end(struct completion *c)
{
    enum completion_end end;

    pthread_mutex_lock(&c->mu);
    end = c->first ? COMPLETION_RUNS : c->end;
    pthread_mutex_unlock(&c->mu);
    return end;
}

float *completion_take_vectors(struct completion *c)
{
    float *vectors;

    pthread_mutex_lock(&c->mu);
    vectors = c->vectors;
    c->vectors = NULL;
    pthread_mutex_unlock(&c->mu);
    return vectors;
}

const char *completion_stop(const struct completion *c)
{
    return c->text.stopped ? c->text.stops[c->text.stop] : NULL;
}

const char *completion_error(struct completion *c)
{
    const char *msg;

    /* Set once, before the end. */
    pthread_mutex_lock(&c->mu);
    msg = c->err.msg;
    pthread_mutex_unlock(&c->mu);
    return msg;
}

void completion_read_usage(struct completion *c, struct completion_usage *out)
{
    pthread_mutex_lock(&c->mu);
    *out = c->usage;
    pthread_mutex_unlock(&c->mu);
}

void completion_close(struct completion *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->mu);
    atomic_store(&c->closed, true);
    while (c->wakes)
        pthread_cond_wait(&c->woken, &c->mu);
    pthread_mutex_unlock(&c->mu);
    completion_release(c);
}
