/* SPDX-License-Identifier: MIT
 *
 * server_accept.c - connections are accepted, while there is room for them
 *
 * libmicrohttpd could accept them, but it takes its socket out of its epoll set where
 * it has no room, and puts it back only when it is run again, which may be never:
 * nothing wakes the thread for that. Here the room is looked at before each wait.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/serve/http/server_impl.h"

/* Between two of those, what is open is served. */
#define ACCEPT_AT_ONCE 16

/* Descriptors may come back without a connection of this server having ended. */
#define RETRY_MS 200
#define MS_NS    UINT64_C(1000000)

/* Neither descriptors nor memory for another connection. */
static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS ||
           error == ENOSPC;
}

static void wait_for_room(struct server *s, int error)
{
    s->retry_ns = clock_ns() + RETRY_MS * MS_NS;
    if (s->shortage_reported)
        return;
    s->shortage_reported = true;
    fprintf(
        stderr,
        "bench: with %d connection%s open the system has no room for another one (%s); "
        "more wait to be accepted; ulimit -n raises the limit of open files\n",
        s->metrics.n_connections, plural(s->metrics.n_connections, "s"),
        strerror(error));
}

/* Whether another connection may be accepted. */
static bool has_room(const struct server *s)
{
    return s->metrics.n_connections + s->n_accepted < s->params.n_connections;
}

/* libmicrohttpd 0.9 begins a connection at once, 1.0 when it runs next: until then it
 * is not one of metrics.n_connections, and one beyond the limit would be closed. */
static void add_connection(struct server *s, int fd, const struct sockaddr *peer,
                           socklen_t len)
{
    const int before = s->metrics.n_connections;

    if (MHD_add_connection(s->daemon, fd, peer, len) == MHD_YES &&
        s->metrics.n_connections == before)
        s->n_accepted++;
}

int server_listen(struct server *s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &s->listens};
    const uint64_t now = s->retry_ns ? clock_ns() : 0;
    const bool short_now = now < s->retry_ns;

    if (s->listens != (has_room(s) && !short_now)) {
        if (epoll_ctl(s->epoll, s->listens ? EPOLL_CTL_DEL : EPOLL_CTL_ADD,
                      s->params.at->fd, &event)) {
            wait_for_room(s, errno);
            return RETRY_MS;
        }
        s->listens = !s->listens;
    }
    return short_now ? (int)((s->retry_ns - now) / MS_NS) + 1 : -1;
}

void server_accept(struct server *s)
{
    s->retry_ns = 0;
    for (int i = 0; i < ACCEPT_AT_ONCE && has_room(s); i++) {
        struct sockaddr_storage peer;
        socklen_t len = sizeof peer;
        const int fd = accept4(s->params.at->fd, (struct sockaddr *)&peer, &len,
                               SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0)
            add_connection(s, fd, (struct sockaddr *)&peer, len);
        else if (is_shortage(errno))
            wait_for_room(s, errno);
        if (fd < 0 && (errno == EAGAIN || s->retry_ns))
            return;
    }
}
