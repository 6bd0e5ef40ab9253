/* SPDX-License-Identifier: MIT
 *
 * prepare.c - requests that were received become completions, on threads of their own
 *
 * Parsing a body, rendering a template, cutting a prompt into tokens and compiling a
 * schema take milliseconds, for a hostile request seconds. Whoever sends such requests
 * waits: the thread that sends answers does not, and the other threads are for other
 * clients.
 */

#include "engine/base/clock.h"
#include "harness/serve/http/server_impl.h"

/* ---- on a preparing thread ------------------------------------------------------- */

static void prepare(struct exchange *x)
{
    static const enum api_kind kinds[] = {
        [ROUTE_COMPLETIONS] = API_COMPLETION, [ROUTE_CHAT] = API_CHAT,
        [ROUTE_MESSAGES] = API_MESSAGES,      [ROUTE_RESPONSES] = API_RESPONSES,
        [ROUTE_EMBEDDINGS] = API_EMBEDDING,   [ROUTE_TOKENIZE] = API_TOKENIZE,
        [ROUTE_DETOKENIZE] = API_DETOKENIZE,  [ROUTE_COUNT] = API_COUNT,
        [ROUTE_TEMPLATE] = API_TEMPLATE};
    const struct answer_request req = {.kind = kinds[x->route],
                                       .body = x->body.text ? x->body.text : "",
                                       .len = x->body.len,
                                       .client = x->client_key,
                                       .begin_ns = x->begin_ns,
                                       .wake = exchange_wake,
                                       .arg = x};

    answer_begin(&x->made.answer, &x->s->model, &req, &x->made.refusal);
}

static void *work(void *arg)
{
    struct preparer *p = arg;
    struct server *s = p->s;

    pthread_mutex_lock(&s->mutex);
    while (!s->preparers_end) {
        if (!p->x || p->is_done) {
            pthread_cond_wait(&s->work, &s->mutex);
            continue;
        }
        pthread_mutex_unlock(&s->mutex);
        prepare(p->x);
        pthread_mutex_lock(&s->mutex);
        p->is_done = true;
        server_notify(s);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

/* ---- on the server's thread ------------------------------------------------------ */

static bool is_busy(const struct server *s, uint64_t client)
{
    for (int i = 0; i < SERVER_PREPARERS; i++)
        if (s->preparers[i].x && s->preparers[i].x->client_key == client)
            return true;
    return false;
}

/* The next request of a client without one on another thread: the client with the least
 * service first, then the request that came first. */
static struct exchange *next_pending(const struct server *s)
{
    struct exchange *next = NULL;

    for (struct fair_item *i = NULL; (i = fair_queue_each(&s->pending, i));) {
        struct exchange *x = (struct exchange *)(void *)i;
        const double least = next ? fair_queue_service(&next->item) : 0;

        if (is_busy(s, x->client_key))
            continue;
        if (!next || fair_queue_service(i) < least ||
            (!(fair_queue_service(i) > least) && x->begin_ns < next->begin_ns))
            next = x;
    }
    return next;
}

/* A client that has left while its request was prepared is forgotten here. */
static void take(struct server *s, struct exchange *x, double ms)
{
    x->is_preparing = false;
    fair_queue_charge(&x->item, 1 + ms);
    fair_queue_remove(&s->pending, &x->item, false);
    exchange_drop_body(x);
    x->answer = x->made.answer;
    x->made.answer = NULL;
    x->refusal = x->made.refusal;
    if (x->cut) { /* its answer is closed with it, or here */
        answer_close(x->answer);
        x->answer = NULL;
    }
    if (x->is_gone) {
        exchange_free(x);
        return;
    }
    if (!x->refusal.http)
        x->state =
            x->answer && answer_streams(x->answer) ? EXCHANGE_STREAMS : EXCHANGE_WAITS;
    if (x->refusal.http || x->state == EXCHANGE_STREAMS)
        exchange_resume(x);
    exchange_advance(x); /* it may have been woken before it had an answer */
}

void prepare_begin(struct server *s)
{
    for (int i = 0; i < SERVER_PREPARERS; i++) {
        struct preparer *p = &s->preparers[i];
        struct exchange *next = p->x || !p->has_thread ? NULL : next_pending(s);

        if (!next)
            continue;
        fair_queue_take(&s->pending, &next->item);
        next->is_pending = false;
        next->is_preparing = true;
        p->begin_ns = clock_ns();
        pthread_mutex_lock(&s->mutex);
        p->x = next;
        pthread_cond_broadcast(&s->work);
        pthread_mutex_unlock(&s->mutex);
    }
}

void prepare_advance(struct server *s)
{
    for (int i = 0; i < SERVER_PREPARERS; i++) {
        struct preparer *p = &s->preparers[i];
        struct exchange *done = NULL;

        pthread_mutex_lock(&s->mutex);
        if (p->is_done) {
            done = p->x;
            p->x = NULL;
            p->is_done = false;
        }
        pthread_mutex_unlock(&s->mutex);
        if (done)
            take(s, done, (double)(clock_ns() - p->begin_ns) * 1e-6);
    }
    prepare_begin(s);
}

bool prepare_open(struct server *s)
{
    int n = 0;

    pthread_cond_init(&s->work, NULL);
    for (int i = 0; i < SERVER_PREPARERS; i++) {
        struct preparer *p = &s->preparers[i];

        p->s = s;
        p->has_thread = !pthread_create(&p->thread, NULL, work, p);
        n += p->has_thread;
    }
    return n > 0;
}

void prepare_close(struct server *s)
{
    pthread_mutex_lock(&s->mutex);
    s->preparers_end = true;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->mutex);
    for (int i = 0; i < SERVER_PREPARERS; i++) {
        struct preparer *p = &s->preparers[i];

        if (p->has_thread)
            pthread_join(p->thread, NULL);
        if (p->x)
            take(s, p->x, 0);
    }
    pthread_cond_destroy(&s->work);
}
