/* SPDX-License-Identifier: MIT
 *
 * listen.c - addresses as people write them, and a socket there
 */
#include "harness/serve/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "harness/base/hash.h"
#include "harness/base/parse.h"

#define DEFAULT_PORT 8080
#define BACKLOG      512

struct place {
    char host[INET6_ADDRSTRLEN + 8];
    int port;
};

static enum status no_place(const char *where, struct err *err)
{
    return err_set(err, ST_USAGE,
                   "--listen %.60s: use ADDRESS:PORT, as 127.0.0.1:8080, [::1]:8080 or "
                   "*:8080 for all addresses",
                   where);
}

/* Splits HOST:PORT; an IPv6 address with a port is in brackets. */
static enum status split(struct place *p, const char *where, struct err *err)
{
    const char *host = where, *end, *port = NULL;
    long long number;

    if (*where == '[') {
        host = where + 1;
        end = strchr(host, ']');
        if (!end || (end[1] && end[1] != ':'))
            return no_place(where, err);
        port = end[1] ? end + 2 : NULL;
    } else {
        const char *colon = strchr(where, ':');
        const bool one = colon && !strchr(colon + 1, ':');

        end = one ? colon : where + strlen(where);
        port = one ? colon + 1 : NULL;
    }
    if ((size_t)(end - host) >= sizeof p->host)
        return no_place(where, err);
    if (end > host)
        snprintf(p->host, sizeof p->host, "%.*s", (int)(end - host), host);
    if (port && parse_count(port, "--listen, the port", "", 0, 65535, &number, err))
        return err->code;
    if (port)
        p->port = (int)number;
    return ST_OK;
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

static bool make_address(union address *a, socklen_t *len, const struct place *p)
{
    const char *host = !strcasecmp(p->host, "localhost") ? "127.0.0.1"
                       : !strcmp(p->host, "*")           ? "0.0.0.0"
                                                         : p->host;

    memset(a, 0, sizeof *a);
    if (inet_pton(AF_INET, host, &a->v4.sin_addr) == 1) {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons((uint16_t)p->port);
        *len = sizeof a->v4;
        return true;
    }
    if (inet_pton(AF_INET6, host, &a->v6.sin6_addr) == 1) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons((uint16_t)p->port);
        *len = sizeof a->v6;
        return true;
    }
    return false;
}

static bool is_loopback(const union address *a)
{
    return a->any.sa_family == AF_INET ? ntohl(a->v4.sin_addr.s_addr) >> 24 == 127
                                       : IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

/* With the port that the system has chosen. */
static void describe(struct listening *l, int fd, const struct place *p)
{
    union address a;
    socklen_t len = sizeof a;
    char host[INET6_ADDRSTRLEN] = "";
    int port = p->port;

    if (!getsockname(fd, &a.any, &len)) {
        const bool v4 = a.any.sa_family == AF_INET;

        inet_ntop(a.any.sa_family,
                  v4 ? (const void *)&a.v4.sin_addr : (const void *)&a.v6.sin6_addr,
                  host, sizeof host);
        port = ntohs(v4 ? a.v4.sin_port : a.v6.sin6_port);
        l->loopback = is_loopback(&a);
        snprintf(l->text, sizeof l->text, v4 ? "%s:%d" : "[%s]:%d", host, port);
    }
}

static enum status cannot_listen(int fd, const struct place *p, struct err *err)
{
    const int why = errno;

    if (fd >= 0)
        close(fd);
    errno = why;
    return err_set_errno(err, why == EACCES ? ST_PERMISSION : ST_IO,
                         "cannot listen at %s, port %d%s", p->host, p->port,
                         why == EADDRINUSE ? ", where another program does; --port "
                                             "chooses another one"
                                           : "");
}

enum status listen_open(struct listening *l, const char *where, int port,
                        struct err *err)
{
    struct place p = {.host = "127.0.0.1", .port = DEFAULT_PORT};
    const int on = 1;
    union address a;
    socklen_t len;
    enum status st = where ? split(&p, where, err) : ST_OK;
    int fd;

    if (st)
        return st;
    if (port >= 0)
        p.port = port;
    if (!make_address(&a, &len, &p))
        return no_place(where, err);
    fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        bind(fd, &a.any, len) || listen(fd, BACKLOG))
        return cannot_listen(fd, &p, err);
    *l = (struct listening){.fd = fd};
    describe(l, fd, &p);
    return ST_OK;
}

void listen_close(struct listening *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}

void listen_name_peer(struct listen_peer *p, const struct sockaddr *a)
{
    const int family = a ? a->sa_family : AF_UNSPEC;

    *p = (struct listen_peer){.text = "-"};
    if (family == AF_INET) {
        const struct in_addr *v4 =
            &((const struct sockaddr_in *)(const void *)a)->sin_addr;

        p->key = hash_add(HASH_BEGIN, v4, sizeof *v4);
        inet_ntop(AF_INET, v4, p->text, sizeof p->text);
    } else if (family == AF_INET6) {
        const struct in6_addr *v6 =
            &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
        const bool mapped = IN6_IS_ADDR_V4MAPPED(v6);

        p->key = mapped ? hash_add(HASH_BEGIN, v6->s6_addr + 12, 4)
                        : hash_add(HASH_BEGIN, v6->s6_addr, 8);
        inet_ntop(mapped ? AF_INET : AF_INET6,
                  mapped ? (const void *)(v6->s6_addr + 12) : (const void *)v6, p->text,
                  sizeof p->text);
    }
}

bool listen_is_own_name(const char *host)
{
    char name[64];
    const char *end;
    struct in6_addr ignored;

    if (!host)
        return true;
    end = *host == '[' ? strchr(host, ']') : host + strcspn(host, ":");
    host += *host == '[';
    if (!end || (size_t)(end - host) >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(end - host), host);
    return !strcasecmp(name, "localhost") || inet_pton(AF_INET, name, &ignored) == 1 ||
           inet_pton(AF_INET6, name, &ignored) == 1;
}
