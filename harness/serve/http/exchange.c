/* SPDX-License-Identifier: MIT
 *
 * exchange.c - a request from its first byte to the end of its answer
 */
#include <stdlib.h>
#include <sys/epoll.h>

#include "engine/base/clock.h"
#include "harness/serve/http/server_impl.h"

struct exchange *exchange_new(struct server *s, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct exchange *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->s = s;
    x->connection = connection;
    x->client = info ? info->socket_context : NULL;
    x->begin_ns = clock_ns();
    x->route = ROUTE_OTHER;
    if (x->client)
        x->client->x = x;
    s->metrics.n_requests++;
    return x;
}

void exchange_keep(struct exchange *x, uint64_t n_bytes)
{
    x->kept_bytes += n_bytes;
    x->s->metrics.whole_bytes += n_bytes;
}

void exchange_count_stream(struct exchange *x)
{
    const uint64_t bytes = x->answer ? answer_stream_bytes(x->answer) : 0;

    x->s->metrics.stream_bytes += bytes - x->stream_bytes;
    x->stream_bytes = bytes;
}

void exchange_add_body(struct exchange *x, const char *bytes, size_t n)
{
    const size_t before = x->body.len;

    textbuf_put(&x->body, bytes, n);
    x->s->metrics.body_bytes += x->body.len - before;
}

void exchange_drop_body(struct exchange *x)
{
    x->s->metrics.body_bytes -= x->body.len;
    textbuf_free(&x->body);
}

static void forget_awake(struct exchange *x)
{
    pthread_mutex_lock(&x->s->mutex);
    for (struct exchange **at = &x->s->awake; x->awake && *at; at = &(*at)->next_awake)
        if (*at == x) {
            *at = x->next_awake;
            break;
        }
    pthread_mutex_unlock(&x->s->mutex);
}

static void remove_pending(struct exchange *x)
{
    if (x->is_pending)
        fair_queue_remove(&x->s->pending, &x->item, true);
    x->is_pending = false;
}

void exchange_free(struct exchange *x)
{
    if (x->client) {
        x->client->x = NULL;
        x->client->since_ns = clock_ns();
    }
    x->client = NULL;
    x->is_gone = x->is_preparing;
    if (x->is_gone)
        return;              /* it is freed when it was prepared */
    answer_close(x->answer); /* nobody wakes it from here on */
    x->answer = NULL;
    exchange_count_stream(x);
    forget_awake(x);
    remove_pending(x);
    x->s->metrics.n_requests--;
    x->s->metrics.whole_bytes -= x->kept_bytes;
    x->s->has_served |= x->route <= ROUTE_TEMPLATE;
    exchange_drop_body(x);
    free(x);
}

void exchange_wake(void *arg)
{
    struct exchange *x = arg;
    struct server *s = x->s;
    bool first = false;

    pthread_mutex_lock(&s->mutex);
    if (!x->awake) {
        first = !s->awake;
        x->awake = true;
        x->next_awake = s->awake;
        s->awake = x;
    }
    pthread_mutex_unlock(&s->mutex);
    if (first)
        server_notify(s);
}

/* ---- pending --------------------------------------------------------------------- */

bool exchange_enqueue(struct exchange *x)
{
    struct err err = ERR_INIT;

    if (fair_queue_add(&x->s->pending, &x->item, x->client_key, &err))
        return refuse_err(&x->refusal, &err, NULL);
    x->is_pending = true;
    x->state = EXCHANGE_PENDING;
    exchange_suspend(x);
    prepare_begin(x->s);
    return true;
}

/* ---- suspended ------------------------------------------------------------------- */

void exchange_suspend(struct exchange *x)
{
    struct epoll_event event = {.events = EPOLLRDHUP, .data.ptr = x};

    MHD_suspend_connection(x->connection);
    x->suspended = true;
    /* Where it cannot be watched, its answer is written to nobody. */
    if (x->client)
        epoll_ctl(x->s->epoll, EPOLL_CTL_ADD, x->client->fd, &event);
}

void exchange_resume(struct exchange *x)
{
    if (!x->suspended)
        return;
    if (x->client)
        epoll_ctl(x->s->epoll, EPOLL_CTL_DEL, x->client->fd, NULL);
    x->suspended = false;
    MHD_resume_connection(x->connection);
}

void exchange_keep_alive(struct exchange *x)
{
    textbuf_puts(answer_events(x->answer), ": keep-alive\n\n");
    x->sent_ns = clock_ns();
    exchange_resume(x);
}

void exchange_drop(struct exchange *x, bool cut)
{
    if (x->cut)
        return;
    x->cut = true;
    if (cut)
        x->s->metrics.n_cut++;
    if (cut && x->client)
        shutdown(x->client->fd, SHUT_RDWR); /* libmicrohttpd closes it */
    answer_close(x->answer);
    x->answer = NULL;
    exchange_count_stream(x);
    remove_pending(x);
    exchange_resume(x);
}

/* Those that leave most unread are cut off until the others have room. */
static void cut_streams(struct server *s)
{
    while (s->metrics.stream_bytes > s->memory.streams) {
        struct exchange *largest = NULL;

        for (struct client *c = s->clients; c; c = c->next)
            if (c->x && c->x->stream_bytes > (largest ? largest->stream_bytes : 0))
                largest = c->x;
        if (!largest)
            return;
        exchange_drop(largest, true);
    }
}

void exchange_advance(struct exchange *x)
{
    struct textbuf *events;

    if (!x->answer || x->cut)
        return;
    answer_advance(x->answer, &x->s->metrics);
    if (answer_ended(x->answer) && !x->end_ns)
        x->end_ns = clock_ns();
    if (x->state == EXCHANGE_WAITS) {
        if (answer_ended(x->answer))
            exchange_resume(x);
        return;
    }
    events = answer_events(x->answer);
    exchange_count_stream(x);
    if (events->failed || textbuf_left(events) > x->s->memory.stream)
        exchange_drop(x, true);
    else if (textbuf_left(events) || answer_ended(x->answer))
        exchange_resume(x);
    cut_streams(x->s);
}

void exchange_advance_all(struct server *s)
{
    struct exchange *next;

    pthread_mutex_lock(&s->mutex);
    next = s->awake;
    s->awake = NULL;
    pthread_mutex_unlock(&s->mutex);
    /* None of them is freed here, so that the list stays whole. */
    while (next) {
        struct exchange *x = next;

        pthread_mutex_lock(&s->mutex);
        next = x->next_awake;
        x->awake = false;
        pthread_mutex_unlock(&s->mutex);
        exchange_advance(x);
    }
}
