/* SPDX-License-Identifier: MIT
 *
 * listen.h - the socket of a server, made before the fence forbids making one
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_SERVE_HTTP_LISTEN_H
#define SLM_HARNESS_SERVE_HTTP_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "engine/base/status.h"

struct listening {
    int fd;        /* listens, does not block; -1: none */
    char text[80]; /* "127.0.0.1:8080", "[::1]:8080", as others name it */
    bool loopback; /* nobody reaches it from another machine */
};

/* where: "HOST:PORT", "HOST", ":PORT" or "[ADDRESS]:PORT"; HOST is an address,
 * localhost or * (all addresses). port, unless it is -1, is the port. Without one of
 * both the host is 127.0.0.1 and the port 8080; port 0 takes a free one. Errors:
 * ST_USAGE (no address), ST_IO (cannot listen there; the message has the reason). */
enum status listen_open(struct listening *l, const char *where, int port,
                        struct err *err);
void listen_close(struct listening *l);

/* Who is at the other end of a connection. */
struct listen_peer {
    char text[48]; /* its address; "-": unknown */
    uint64_t key;  /* equal for one client: its IPv4 address, or its IPv6 network, since
                      a host may use every address of it */
};

/* An IPv4 address that came to a socket of IPv6 is one of IPv4. a may be NULL. */
void listen_name_peer(struct listen_peer *p, const struct sockaddr *a);

/* Whether a request that names this host is meant for a server on the loopback: an
 * address, or localhost. Any other name may come from a page in a browser whose name
 * server resolves it to this machine (DNS rebinding). NULL: no host was named. */
bool listen_is_own_name(const char *host);

#endif
