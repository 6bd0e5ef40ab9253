/* SPDX-License-Identifier: MIT
 *
 * server.h - an HTTP server for a scheduler's completions
 *
 * Model of the world: one thread owns all connections and everything that belongs to
 * them; it runs libmicrohttpd's event loop and sleeps in epoll_pwait(). A request whose
 * answer is not there yet is suspended: libmicrohttpd does not look at its socket any
 * more, so this server watches it, and cancels the completions of a client that has
 * closed it (its sending half is enough). Scheduler and server meet at one list under
 * a mutex: the requests for which there is something to read.
 *
 * Requests are parsed, tokenised and submitted to the scheduler by two threads of their
 * own: the next one is of the client that has had least of their time, and there is
 * one at a time of each client. So requests, however many and large, delay no answer,
 * and requests of others by one of them at most.
 *
 * Limits: bytes of a body, of all bodies and of headers, connections, and time: a
 * request must have come within timeout_s of its connection's beginning or of the last
 * answer's end, and an answer be taken within timeout_s of its end. If a client reads a
 * stream too slowly, some bytes are kept in addition to what the kernel holds
 * (request_memory.h); with more it is cut off, and its completions are cancelled. Where
 * all clients together leave too much unread, the one that leaves most is cut off. So a
 * slow reader holds up nobody.
 *
 * Signals: interrupt_catch() is the caller's, which also blocks SIGINT, SIGTERM and
 * SIGHUP in all threads (server_block_signals()); the server's thread alone takes them.
 * The first finishes what runs, within grace_s; the second cancels it; the third ends
 * the process. Until it is ready, they are the caller's (interrupted()).
 *
 * Threading: as each function states.
 */
#ifndef SLM_HARNESS_SERVE_HTTP_SERVER_H
#define SLM_HARNESS_SERVE_HTTP_SERVER_H

#include "harness/serve/http/answer.h"
#include "harness/serve/http/apikeys.h"
#include "harness/serve/http/listen.h"

struct server;

/* Bytes of a connection: headers and buffers. */
#define SERVER_CONNECTION_BYTES (32u << 10)

/* More of a body that is too large is not read: the connection ends. */
#define SERVER_MAX_DROPPED (256u << 20)

struct server_params {
    const struct listening *at; /* what is kept of it: fd and loopback */
    const char *name;           /* of the model */
    const struct apikeys *keys; /* or NULL: everybody has access */
    const char *cors;           /* allowed browser origin; or NULL */
    uint64_t max_body;          /* bytes, where request_bytes are enough for it */
    uint64_t request_bytes;     /* memory that requests may take together; 0: what the
                                   limits of request_memory.h have */
    double timeout_s, grace_s;
    double keep_alive_s; /* a stream without output for so long gets a comment */
    int n_connections;   /* at once; others wait to be accepted */
    bool log;            /* a line on standard error for each request */
};

/* Blocks the three signals in the calling thread and those that it starts. */
void server_block_signals(void);

/* Starts the thread; /health answers 503 from now on. The strings of params live
 * longer. Errors: ST_NO_MEMORY, ST_IO. */
enum status server_open(struct server **s, const struct server_params *params,
                        struct err *err);

/* The model is ready. model is copied; what it points to lives longer than the
 * server. Another thread than the server's. */
void server_ready(struct server *s, const struct answer_model *model);

/* The scheduler has ended: answers that are left are sent, within some seconds, and the
 * thread ends. *cancelled: whether the second signal, or the end of grace_s, has
 * cancelled something. Another thread than the server's; may be NULL. */
void server_close(struct server *s, bool *cancelled);

#endif
