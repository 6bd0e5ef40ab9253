/* SPDX-License-Identifier: MIT
 *
 * client.h - requests to a server, and when each piece of their answers came
 *
 * Model of the world: one thread drives all connections (libcurl's multi interface) and
 * sleeps when there is nothing to do. Closed loop: N users; each sends
 * the next request when the last has ended. Open loop: requests are sent at given
 * times, whatever the server does with those before; where answers lead to further
 * requests, users come at these times, send theirs one after the other, and leave. The
 * load is kept up until the last request that counts has ended, so that none of them
 * runs in an emptier server; requests sent after that one are ended and not counted.
 *
 * What the client itself does is measured with it: its CPU time, and its lateness. A
 * timer wakes it 100 times a second; how late it then looks is how late it looks at a
 * piece of text that comes at any time. It takes real-time priority where it may (as
 * root): the server may keep all CPUs busy.
 *
 * A user may pause after an answer. One whose request has failed waits LOAD_PAUSE_S, or
 * the time in Retry-After up to LOAD_PAUSE_MAX_S. Redirects are not followed and
 * proxies not used.
 *
 * Without libcurl every function returns ST_UNSUPPORTED.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_CLIENT_CLIENT_H
#define SLM_HARNESS_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/client/record.h"

#define LOAD_MAX_USERS   512 /* and connections of an open loop */
#define LOAD_PAUSE_S     0.25
#define LOAD_PAUSE_MAX_S 10.0

/* A run is given up after this many failures in a row without a success. */
#define LOAD_GIVE_UP(n_users) (10 + 2 * (size_t)(n_users))

struct load_target {
    const char *url;  /* where requests go: http://host:port/v1/chat/completions */
    const char *key;  /* "Authorization: Bearer"; NULL: none */
    bool is_vector;   /* replies are embeddings, not streams */
    double silence_s; /* without text for so long, a request has failed */
    double max_s;     /* and after so long in all; 0: no limit */
};

/* The body of a user's request r->index, malloc'ed. Sets r->n_requested, the maximum of
 * tokens that it requests, and where it belongs to a conversation r->turn and
 * r->n_known. Users of a closed loop are 0..n_users - 1. */
typedef enum status load_body_fn(void *arg, size_t user, struct load_record *r,
                                 char **body, struct err *err);

/* The user's request has ended, with this answer; *pause_s: how long the user waits
 * until the next, where it did not fail; negative: the user leaves (open loop). Errors:
 * ST_NO_MEMORY. */
typedef enum status load_answered_fn(void *arg, size_t user,
                                     const struct load_record *r,
                                     const struct answer *answer, double *pause_s,
                                     struct err *err);

struct load_work {
    int n_users;           /* closed loop, 1..LOAD_MAX_USERS; 0: open loop */
    const double *at_s;    /* open loop: [n_at] ascending, from the beginning */
    size_t n_at;           /* n_wanted at least: those behind keep the load up */
    size_t n_wanted;       /* requests that count */
    double limit_s;        /* closed loop: those sent later do not count; 0: no limit */
    const double *first_s; /* when each of n_users begins; NULL: at once. Open loop:
                              when the n_first who are there continue */
    int n_first;
    load_body_fn *body;
    load_answered_fn *answered; /* NULL: answers are not kept, requests stand alone */
    void *body_arg;             /* of both */
    void (*progress)(void *arg, size_t n_ended, double seconds); /* may be NULL */
    void *progress_arg;
};

struct load_result {
    struct load_record *records; /* [n], in the order of starting */
    size_t n, n_started;         /* that count, and with those that do not */
    uint64_t begin_ns, end_ns;   /* end: when the last that counts was sent */
    double wall_s, cpu_s;        /* of the client's thread, until all had ended */
    double late_p99_ms, late_max_ms;
    bool is_interrupted, gave_up;
};

/* How long a user waits behind this request until the next one; 0 where it succeeded.
 */
double client_pause_s(const struct load_record *r);

/* Runs the work. What a server does wrong is in the records. Errors: ST_UNSUPPORTED (no
 * libcurl), ST_USAGE (a URL that cannot be one), ST_NO_MEMORY, ST_IO, and those of
 * work->body. */
enum status load_client_run(struct load_result *r, const struct load_target *target,
                            const struct load_work *work, struct err *err);
void load_result_free(struct load_result *r);

/* The HTTP status of a GET, its body into buf[cap]; 0: there was no answer within
 * seconds. Errors: ST_UNSUPPORTED, ST_NO_MEMORY. */
enum status load_client_get(const char *url, const char *key, double seconds,
                            int *http_status, char *buf, size_t cap, struct err *err);

/* Whether this program has libcurl. Error: ST_UNSUPPORTED. */
enum status load_client_check(struct err *err);

#endif
