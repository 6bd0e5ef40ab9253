/* SPDX-License-Identifier: MIT
 *
 * server.c - the server's thread: its loop, signals, time limits, the end
 */
#include "harness/serve/http/server.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/serve/http/server_impl.h"

#define SECOND_NS  UINT64_C(1000000000)
#define SWEEP_MS   1000
#define STOPPED_NS UINT64_C(2500000000)
#define MAX_EVENTS 64
#define KEPT_BYTES (128 << 10)

/* What this makes libmicrohttpd 0.9 refuse, http_framing.c refuses: its own reply to a
 * request without Host has its header twice. In 1.0 lines must end in CR LF. */
#define IS_STRICT (MHD_VERSION >= 0x01000000)

/* What connections have at the end to take answers that are there. */
#define LAST_NS (5 * SECOND_NS)

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

void server_block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&set, signals[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

void server_notify(struct server *s)
{
    const uint64_t one = 1;

    if (write(s->event, &one, sizeof one) < 0)
        return; /* it counts as far as it can already: the thread will wake */
}

/* ---- time ------------------------------------------------------------------------ */

static void answer_timeout(struct client *c)
{
    struct refusal late = {.http = 0};

    refuse(&late, 408, "timeout", NULL, "the request did not come in time");
    http_send_refusal(c, &late);
}

static bool is_late(const struct client *c, uint64_t now, uint64_t limit_ns)
{
    const struct exchange *x = c->x;
    const uint64_t since = !x                           ? c->since_ns
                           : x->state == EXCHANGE_COMES ? x->begin_ns
                                                        : x->end_ns;

    return since && now - since > limit_ns;
}

/* Whether a stream has had no output for so long that a proxy may time out. */
static bool is_silent(const struct client *c, uint64_t now, uint64_t limit_ns)
{
    const struct exchange *x = c->x;

    return x && x->state == EXCHANGE_STREAMS && x->suspended && x->answer &&
           now - x->sent_ns > limit_ns;
}

/* Whether a client has ended its side while its request was not whole. libmicrohttpd
 * may not see an end that comes together with the bytes before it. */
static bool has_ended(const struct client *c)
{
    char byte;

    return (!c->x || c->x->state == EXCHANGE_COMES) &&
           recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A large piece of memory goes back to the system when it is freed, and what is free at
 * the end of a thread's memory: else glibc keeps as much of that, for each thread, as
 * the largest piece that was ever freed. */
static void keep_little_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
#endif
}

/* Memory of requests goes back to the system when no request is left. */
static void give_memory_back(struct server *s)
{
    if (s->metrics.n_requests || !s->has_served)
        return;
    s->has_served = false;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* libmicrohttpd closes what is shut down here. */
static void sweep(struct server *s)
{
    const uint64_t now = clock_ns();
    const uint64_t limit_ns = (uint64_t)(s->params.timeout_s * 1e9);
    const uint64_t silent_ns = (uint64_t)(s->params.keep_alive_s * 1e9);

    for (struct client *c = s->clients; c; c = c->next) {
        const bool late = is_late(c, now, limit_ns);

        if (late && c->x && c->x->state == EXCHANGE_COMES && !c->x->status)
            answer_timeout(c);
        else if (late && c->x)
            exchange_drop(c->x, true);
        if (late || has_ended(c))
            shutdown(c->fd, SHUT_RDWR);
        if (is_silent(c, now, silent_ns))
            exchange_keep_alive(c->x);
    }
    give_memory_back(s);
}

/* ---- stopping -------------------------------------------------------------------- */

static void cancel(struct server *s)
{
    if (s->cancels)
        return;
    s->cancels = true;
    scheduler_stop(s->model.scheduler, false);
}

static void stop(struct server *s)
{
    struct scheduler_stats stats;
    int n;

    scheduler_read_stats(s->model.scheduler, &stats);
    n = stats.n_running + stats.n_waiting;
    s->stops = true;
    s->stop_ns = clock_ns() + (uint64_t)(s->params.grace_s * 1e9);
    if (n)
        fprintf(stderr,
                "bench: stops when %d completion%s ended, in %.0f s at the latest; "
                "a second signal ends %s now\n",
                n, n > 1 ? "s have" : " has", s->params.grace_s, n > 1 ? "them" : "it");
    scheduler_stop(s->model.scheduler, true);
}

static void look_at_signals(struct server *s)
{
    if (!s->model.scheduler)
        return; /* whoever loads the model looks */
    if (interrupted() && !s->stops) {
        interrupt_forget();
        stop(s);
    } else if (interrupted()) {
        cancel(s); /* without interrupt_forget(): a third one ends the process */
    }
    if (s->stops && !s->end_ns && clock_ns() > s->stop_ns)
        cancel(s);
}

/* Events from other threads. */
static void look_at_others(struct server *s)
{
    bool ends;

    pthread_mutex_lock(&s->mutex);
    if (!s->model.scheduler) { /* preparing threads read it from then on */
        s->model = s->made;
        s->model.schema_bytes = &s->metrics.schema_bytes;
        s->model.whole_bytes = &s->metrics.whole_bytes;
        s->model.memory = &s->memory;
    }
    ends = s->ends;
    pthread_mutex_unlock(&s->mutex);
    if (ends && !s->end_ns) {
        s->stops = true;
        s->end_ns = clock_ns() + LAST_NS;
    }
}

static bool is_over(const struct server *s)
{
    return s->end_ns && (!s->metrics.n_requests || clock_ns() > s->end_ns);
}

/* ---- the loop -------------------------------------------------------------------- */

/* -1: without end. What ends that wait is in epoll: another thread's event, a
 * connection to accept. */
static int timeout_ms(struct server *s)
{
    const int room_ms = server_listen(s);
    const bool sweeps = s->clients || s->stops || s->has_served;
    MHD_UNSIGNED_LONG_LONG ms;

    if (MHD_get_timeout(s->daemon, &ms) != MHD_YES || ms > SWEEP_MS)
        ms = SWEEP_MS;
    if (room_ms >= 0 && (unsigned)room_ms < ms)
        ms = (unsigned)room_ms;
    return sweeps || ms < SWEEP_MS ? (int)ms : -1;
}

/* epoll_pwait() lets a signal in only if it has to wait, which it never has while there
 * are events all the time. */
static void let_signals_in(const sigset_t *unblocked)
{
    sigset_t blocked;

    pthread_sigmask(SIG_SETMASK, unblocked, &blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}

static void wait_for_events(struct server *s, const sigset_t *unblocked)
{
    struct epoll_event events[MAX_EVENTS];
    const int n = epoll_pwait(s->epoll, events, MAX_EVENTS, timeout_ms(s), unblocked);
    uint64_t ignored;

    if (n > 0)
        let_signals_in(unblocked);
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == s->daemon)
            continue;
        if (events[i].data.ptr == &s->listens)
            server_accept(s);
        else if (events[i].data.ptr != s)
            exchange_drop(events[i].data.ptr, false); /* its client has left */
        else if (read(s->event, &ignored, sizeof ignored) < 0)
            continue;
    }
}

static void drop_all(struct server *s)
{
    for (struct client *c = s->clients; c; c = c->next) {
        if (c->x)
            exchange_drop(c->x, true);
        shutdown(c->fd, SHUT_RDWR);
    }
    MHD_run(s->daemon); /* none is suspended when the daemon is stopped */
}

static void *serve(void *server)
{
    struct server *s = server;
    uint64_t swept_ns = clock_ns();
    bool was_stopped = false;
    sigset_t unblocked;

    pthread_sigmask(SIG_BLOCK, NULL, &unblocked);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigdelset(&unblocked, signals[i]);
    while (!is_over(s)) {
        wait_for_events(s, &unblocked);
        look_at_others(s);
        look_at_signals(s);
        prepare_advance(s);
        exchange_advance_all(s);
        const uint64_t since_ns = clock_ns() - swept_ns;
        if (since_ns > SWEEP_MS * UINT64_C(1000000)) {
            /* who was stopped, as in a frozen container, reads first what has come */
            was_stopped = since_ns > STOPPED_NS && !was_stopped;
            if (!was_stopped)
                sweep(s);
            swept_ns = clock_ns();
        }
        MHD_run(s->daemon); /* last: it continues what was resumed above */
        s->n_accepted = 0;  /* all have begun by now */
    }
    drop_all(s);
    prepare_close(s);
    return NULL;
}

/* ---- opening and closing --------------------------------------------------------- */

static enum status add_to_epoll(struct server *s, int fd, void *what, struct err *err)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event))
        return err_set_errno(err, ST_IO, "cannot wait for connections");
    return ST_OK;
}

enum status server_start_daemon(struct server *s, struct err *err)
{
    const struct server_params *p = &s->params;
    const union MHD_DaemonInfo *info;
    /* Time is kept by the sweep, whose answers are better. */
    const unsigned timeout_s = (unsigned)p->timeout_s + 3;

    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, NULL,
        NULL, http_request, s, MHD_OPTION_URI_LOG_CALLBACK, http_begin, s,
        MHD_OPTION_UNESCAPE_CALLBACK, http_decode, s, MHD_OPTION_NOTIFY_COMPLETED,
        http_completed, s, MHD_OPTION_NOTIFY_CONNECTION, http_connection, s,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)p->n_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)SERVER_CONNECTION_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, IS_STRICT,
        MHD_OPTION_END);
    info = s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info)
        return err_set(err, ST_IO, "libmicrohttpd cannot serve at %s", p->at->text);
    return add_to_epoll(s, info->epoll_fd, s->daemon, err);
}

static void free_server(struct server *s)
{
    if (s->daemon)
        MHD_stop_daemon(s->daemon);
    if (s->event >= 0)
        close(s->event);
    if (s->epoll >= 0)
        close(s->epoll);
    pthread_mutex_destroy(&s->mutex);
    fair_queue_close(&s->pending);
    free(s);
}

enum status server_open(struct server **s, const struct server_params *params,
                        struct err *err)
{
    struct server *new = calloc(1, sizeof *new);
    enum status st;

    if (!new)
        return err_set(err, ST_NO_MEMORY, "no memory for a server");
    keep_little_memory();
    signal(SIGPIPE, SIG_IGN); /* a client that leaves is no reason to end */
    new->params = *params;
    new->memory = request_memory_within(params->max_body, params->request_bytes);
    pthread_mutex_init(&new->mutex, NULL);
    new->epoll = epoll_create1(EPOLL_CLOEXEC);
    new->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    st = new->epoll < 0 || new->event < 0
             ? err_set_errno(err, ST_IO, "cannot wait for connections")
             : add_to_epoll(new, new->event, new, err);
    if (!st)
        st = server_start_daemon(new, err);
    if (!st && !prepare_open(new))
        st = err_set_errno(err, ST_NO_MEMORY, "cannot start a thread for requests");
    if (!st && (errno = pthread_create(&new->thread, NULL, serve, new))) {
        st = err_set_errno(err, ST_NO_MEMORY, "cannot start the server's thread");
        prepare_close(new);
    }
    if (st)
        free_server(new);
    else
        *s = new;
    return st;
}

void server_ready(struct server *s, const struct answer_model *model)
{
    pthread_mutex_lock(&s->mutex);
    s->made = *model;
    pthread_mutex_unlock(&s->mutex);
    server_notify(s);
}

void server_close(struct server *s, bool *cancelled)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    s->ends = true;
    pthread_mutex_unlock(&s->mutex);
    server_notify(s);
    pthread_join(s->thread, NULL);
    *cancelled = s->cancels;
    free_server(s);
}
