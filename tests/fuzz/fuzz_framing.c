/* SPDX-License-Identifier: MIT
 *
 * fuzz_framing.c - what a client sends to `bench serve`, as bytes of a connection
 *
 * Through libmicrohttpd with the server's own options and callbacks; no model is
 * loaded. Replies are the same however the bytes are divided, but for a refusal by
 * libmicrohttpd itself, which may be missing. A first request whose end or host could
 * be read in two ways is refused, and nothing after it is answered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/serve/http/server_impl.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

#define MAX_TURNS 200 /* of libmicrohttpd, without anything to read or write */

/* ---- a server without threads ---------------------------------------------------- */

static struct server *the_server(void)
{
    static const struct listening at = {.fd = -1, .text = "socket", .loopback = true};
    static struct server *s;
    struct err err = ERR_INIT;

    if (s)
        return s;
    s = calloc(1, sizeof *s);
    if (!s)
        fuzz_fail("no memory for a server");
    s->params = (struct server_params){.at = &at,
                                       .name = "m",
                                       .cors = "*",
                                       .max_body = 4096,
                                       .timeout_s = 600,
                                       .n_connections = 4};
    s->memory = request_memory_within(s->params.max_body, 0);
    pthread_mutex_init(&s->mutex, NULL);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->event = -1;
    if (server_start_daemon(s, &err))
        fuzz_fail("%s", err.msg);
    return s;
}

/* ---- a connection ---------------------------------------------------------------- */

/* All replies to an input. Not allocated: without memory they come, too. */
#define MAX_REPLIES ((size_t)4 << 20)

struct replies {
    uint8_t *bytes; /* [MAX_REPLIES] */
    size_t n;
    bool ended; /* the server has closed the connection */
};

/* What has come by now. */
static bool receive(struct replies *r, int fd)
{
    const ssize_t n = recv(fd, r->bytes + r->n, MAX_REPLIES - r->n, MSG_DONTWAIT);

    if (n > 0) {
        r->n += (size_t)n;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        r->ended = true;
    }
    return n > 0;
}

/* step bytes at a time, and then no more. A request that is not whole may keep the
 * connection until the server's time is over, or until the client closes it. */
static void exchange(struct replies *r, const uint8_t *data, size_t size, size_t step)
{
    struct server *s = the_server();
    const struct sockaddr peer = {.sa_family = AF_UNIX};
    size_t sent = 0;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
        fuzz_fail("no sockets");
    if (MHD_add_connection(s->daemon, pair[1], &peer, sizeof peer) != MHD_YES)
        fuzz_fail("libmicrohttpd takes no connection");
    for (int quiet = 0; !r->ended && quiet < MAX_TURNS; quiet++) {
        const size_t left = size - sent, part = left < step ? left : step;
        const ssize_t n = part ? send(pair[0], data + sent, part, MSG_NOSIGNAL) : 0;

        if (n > 0 && (sent += (size_t)n) == size)
            shutdown(pair[0], SHUT_WR);
        MHD_run(s->daemon);
        if (receive(r, pair[0]) || n > 0)
            quiet = 0;
    }
    close(pair[0]);
    for (int i = 0; s->metrics.n_connections && i < MAX_TURNS; i++)
        MHD_run(s->daemon);
    if (s->metrics.n_connections || s->metrics.n_requests || s->metrics.body_bytes)
        fuzz_fail("%d connections, %d requests and %zu bytes of bodies are left",
                  s->metrics.n_connections, s->metrics.n_requests,
                  (size_t)s->metrics.body_bytes);
}

/* ---- requests, read strictly ----------------------------------------------------- */

struct head {
    bool whole;     /* it is there, and its lines end in CR LF */
    bool ambiguous; /* and must not be answered */
    bool has_body;  /* whatever answers it, for its method is GET or POST */
    bool has_own;   /* or what libmicrohttpd refuses by itself with a header twice */
};

static bool is_name(const char *s, size_t n, const char *name)
{
    return n == strlen(name) && !strncasecmp(s, name, n);
}

static bool is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!s[i] || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                             "0123456789!#$%&'*+-.^_`|~",
                             s[i]))
            return false;
    return n > 0;
}

static bool holds(const uint8_t *data, size_t size, const char *name)
{
    const size_t n = strlen(name);

    for (size_t i = 0; i + n <= size; i++)
        if (!strncasecmp((const char *)data + i, name, n))
            return true;
    return false;
}

/* The first request, where it is of the plain kind: a method, a path and a version
 * that this server has. */
static struct head read_head(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = memmem(text, size, "\r\n\r\n", 4);
    const char *line = end ? memmem(text, size, "\r\n", 2) : NULL;
    struct head h = {.has_own = holds(data, size, "Content-Length") ||
                                holds(data, size, "Cookie")};
    int n_ends = 0, n_hosts = 0;

    if (!line)
        return h;
    h.has_body = !strncmp(text, "GET ", 4) || !strncmp(text, "POST ", 5);
    if (!(h.has_body || !strncmp(text, "HEAD ", 5)) || line - text < 14 ||
        memcmp(line - 9, " HTTP/1.1", 9) != 0 || memchr(text, 0, (size_t)(end - text)))
        return h;
    h.whole = true;
    while (line < end) {
        const char *begin = line + 2;
        const char *next = memmem(begin, (size_t)(end + 2 - begin), "\r\n", 2);
        const char *colon = next ? memchr(begin, ':', (size_t)(next - begin)) : NULL;
        const size_t n = colon ? (size_t)(colon - begin) : 0;

        if (!next)
            break;
        if (memchr(begin, '\n', (size_t)(next - begin)) ||
            memchr(begin, '\r', (size_t)(next - begin)))
            h.whole = false;
        h.ambiguous |= colon && !is_token(begin, n);
        n_ends += is_name(begin, n, "Content-Length") ||
                  is_name(begin, n, "Transfer-Encoding");
        n_hosts += is_name(begin, n, "Host");
        line = next;
    }
    h.ambiguous |= n_ends > 1 || n_hosts != 1;
    return h;
}

/* ---- replies --------------------------------------------------------------------- */

struct seen {
    int n;      /* replies, interim ones (1xx) apart */
    int status; /* of the first; 0: none */
};

static const char *value_in(const char *head, const char *line_of)
{
    const char *line = strcasestr(head, line_of);

    return line ? line + strlen(line_of) : NULL;
}

/* Whether the same header follows, and then the body that it announces:
 * libmicrohttpd before 1.0 repeats the header of its own refusal of a Content-Length
 * that is no number, or of cookies that it has no memory for. */
static bool is_repeated(const char *head, const char *rest, size_t n)
{
    const size_t len = strlen(head) + 4;

    return MHD_VERSION < 0x01000000 && !value_in(head, "\r\nContent-Type:") &&
           n >= len && !memcmp(rest, head, len - 4);
}

/* The header, whose text is copied. Returns its bytes. */
static size_t read_header(char *text, size_t cap, const char *begin, size_t left)
{
    const char *end = memmem(begin, left, "\r\n\r\n", 4);
    const size_t n = end ? (size_t)(end - begin) : 0;

    if (!end || n >= cap || n < 12 || memcmp(begin, "HTTP/1.", 7) != 0)
        fuzz_fail("what comes back is not a reply");
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)begin[i] < ' ' && begin[i] != '\r' && begin[i] != '\n' &&
            begin[i] != '\t')
            fuzz_fail("a header of a reply has the byte %d", begin[i]);
    memcpy(text, begin, n);
    text[n] = '\0';
    return n + 4;
}

/* Every reply is whole, and the last where it closes the connection. */
static struct seen read_replies(const struct replies *r, const struct head *head)
{
    const char *bytes = (const char *)r->bytes;
    struct seen seen = {0, 0};

    for (size_t at = 0; at < r->n;) {
        char text[4096];
        const size_t n = read_header(text, sizeof text, bytes + at, r->n - at);
        const int status = atoi(text + 9);
        const char *length = value_in(text, "\r\nContent-Length:");

        at += n;
        if (status < 200)
            continue;
        if (!seen.n++)
            seen.status = status;
        if (head->has_own && is_repeated(text, bytes + at, r->n - at))
            at += n;
        if (length && ((seen.n == 1 && head->has_body) ||
                       (at < r->n && memcmp(bytes + at, "HTTP/1.", 7) != 0)))
            at += strtoul(length, NULL, 10);
        if (at > r->n)
            fuzz_fail("a reply lacks %zu bytes of its body", at - r->n);
        if (strcasestr(text, "\r\nConnection: close") && at < r->n)
            fuzz_fail("%zu bytes follow a reply that closes the connection", r->n - at);
    }
    return seen;
}

/* ---- the target ------------------------------------------------------------------ */

/* Replies of bench serve so far: its own, not those of libmicrohttpd. */
static uint64_t count_own_replies(void)
{
    const struct metrics *m = &the_server()->metrics;
    uint64_t n = 0;

    for (int route = 0; route < N_ROUTES; route++)
        for (size_t i = 0; i < sizeof m->replies[0] / sizeof m->replies[0][0]; i++)
            n += m->replies[route][i];
    return n;
}

/* Whether one is nothing, the other one refusal. */
static bool is_one_refusal(struct seen a, struct seen b)
{
    return a.n + b.n == 1 && a.status + b.status >= 400;
}

static void serve(const uint8_t *data, size_t size)
{
    const struct head head = read_head(data, size);
    static uint8_t room[2][MAX_REPLIES];
    struct replies whole = {.bytes = room[0]}, parts = {.bytes = room[1]};
    const uint64_t n_own = count_own_replies();
    struct seen a, b;

    if (!size)
        return;
    exchange(&whole, data, size, size);
    exchange(&parts, data, size, 1 + size / 16);
    a = read_replies(&whole, &head);
    b = read_replies(&parts, &head);
    if (head.whole && head.ambiguous && (a.n > 1 || (a.n == 1 && a.status < 400)))
        fuzz_fail("an ambiguous request is answered with %d, %d replies", a.status,
                  a.n);
    /* libmicrohttpd 0.9 may close the connection in place of a refusal of its own */
    if (count_own_replies() == n_own && is_one_refusal(a, b))
        return;
    /* which refusal is the first, one for its size or another, depends on how it comes
     */
    if (a.n != b.n || (a.status != b.status && (a.status < 400 || b.status < 400)))
        fuzz_fail("whole it is answered with %d, %d replies, in parts with %d, %d",
                  a.status, a.n, b.status, b.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    the_server();
    return fuzz_run(serve, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"GET ",
                                        "POST ",
                                        "HEAD ",
                                        "OPTIONS ",
                                        "/health",
                                        "/v1/models",
                                        "/v1/completions",
                                        "/%00",
                                        " HTTP/1.1\r",
                                        " HTTP/1.0\r",
                                        "Host: localhost\r",
                                        "Host: b\r",
                                        "Content-Length: 3\r",
                                        "Content-Length: 30\r",
                                        "Content-Length : 3\r",
                                        "Content-Length: +3\r",
                                        "Transfer-Encoding: chunked\r",
                                        "Transfer-Encoding: identity\r",
                                        "Transfer-Encoding : chunked\r",
                                        "Content-Type: application/json\r",
                                        "Content-Encoding: gzip\r",
                                        "Connection: close\r",
                                        "Cookie: a=b;a=b;a=b;a=b\r",
                                        "?a&a&a&a&a&a&a&a",
                                        "Expect: 100-continue\r",
                                        "Origin: x\r",
                                        "0\r\n\r\n",
                                        "3\r\nabc\r\n",
                                        "ffffffffffffffff\r",
                                        "\r\n\r\n",
                                        " folded\r",
                                        NULL};

    return mutate_text(data, size, max_size, seed, words);
}
