/* SPDX-License-Identifier: MIT
 *
 * server_ready.h - a server that was started here: its port, and waiting for it
 *
 * Model of the world: it listens at 127.0.0.1, at a port that was free just before.
 * /health is requested, or /v1/models where it has no /health, until the answer is 200,
 * or that it wants a key: at most 500 times a second, so that the time until then is
 * known within 2 % or 2 ms, and at least ten times.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_CLIENT_SERVER_READY_H
#define SLM_HARNESS_CLIENT_SERVER_READY_H

#include "engine/base/status.h"
#include "harness/machine/child.h"

/* A port at which nobody listens now. 0: there is no free port. */
int server_free_port(void);

enum server_state {
    SERVER_READY,
    SERVER_ENDED,       /* before it was ready */
    SERVER_LATE,        /* not within wait_s */
    SERVER_INTERRUPTED, /* this process was */
};

/* Waits for the server of *child at url, without a '/' at its end. tick (may be NULL)
 * is called before each question, with the time waited. Errors: load_client_get()'s. */
enum status server_wait(enum server_state *state, const struct child *child,
                        const char *url, double wait_s,
                        void (*tick)(void *arg, double waited_s), void *arg,
                        struct err *err);

/* The first model of /v1/models, malloc'ed, for free(); NULL: it names none. http: the
 * status of its answer, 0: nobody answers. Errors: load_client_get()'s, ST_NO_MEMORY.
 */
enum status server_model(char **name, const char *url, const char *key, int *http,
                         struct err *err);

#endif
