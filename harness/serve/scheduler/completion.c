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

/* Copies one of a piece's texts to *at, which is moved behind it. */
static char *copy_text(char **at, const char *text, size_t n)
{
    char *own = *at;

    if (n)
        memcpy(own, text, n);
    own[n] = '\0';
    *at += n + 1;
    return own;
}

enum status completion_send(struct completion *c, const struct completion_piece *piece,
                            struct err *err)
{
    struct stored_piece *p =
        malloc(sizeof *p + piece->len + piece->n_thought + piece->n_call + 3);
    char *at = p ? p->bytes : NULL;

    if (!p)
        return err_set(err, ST_NO_MEMORY, "no memory for the text of a completion");
    p->next = NULL;
    p->piece = *piece;
    p->piece.text = copy_text(&at, piece->text, piece->len);
    p->piece.thought = copy_text(&at, piece->thought, piece->n_thought);
    p->piece.call = copy_text(&at, piece->call, piece->n_call);
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
    *out = p->piece;
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
