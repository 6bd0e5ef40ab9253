/* SPDX-License-Identifier: MIT
 *
 * worker_client.h - the asking side of worker.h: a process that is started, asked,
 * ended
 *
 * What goes wrong becomes one sentence that says which program it is, its version and
 * its last words; and, for those who make a result of it, enum worker_end.
 *
 * Threading: one thread per client, and it is the one that started it.
 */
#ifndef SLM_HARNESS_WORKER_WORKER_CLIENT_H
#define SLM_HARNESS_WORKER_WORKER_CLIENT_H

#include <jansson.h>
#include <sys/resource.h>

#include "engine/base/status.h"
#include "harness/machine/child.h"

enum worker_end {
    WORKER_RUNS,
    WORKER_INTERRUPTED, /* we were */
    WORKER_SILENT,      /* it said nothing for too long */
    WORKER_DIED,        /* by itself, or somebody killed it */
    WORKER_GAVE_UP,     /* it said why */
    WORKER_UNEXPECTED   /* it said something that is no answer */
};

struct worker_params {
    const char *who;         /* "A": what messages call it */
    const char *program;     /* path; borrowed */
    const char *command;     /* hidden command of the program: "worker" */
    double timeout_s;        /* without a word from it */
    struct sandbox *sandbox; /* may be NULL */
    bool pass_errors;        /* its standard error is ours, not kept as last words */
    /* While waiting, at least five times a second; what and fraction are a phase that
     * it has reported, or NULL and 0. May be NULL. */
    void (*tick)(void *arg, const char *what, double fraction);
    /* What it says beside phases before its answer. NULL: that is no answer. */
    void (*hear)(void *arg, const json_t *message);
    void *arg;
};

struct worker_client {
    struct worker_params p;
    struct child child;
    char version[64], commit[64], compiler[64];
    json_t *hello; /* its greeting */
    enum worker_end end;
    char error[200];          /* WORKER_GAVE_UP: its words */
    enum status error_status; /* and what they mean */
    bool reaped;
    int wstatus;         /* once it is reaped, as waitpid() has it */
    struct rusage usage; /* likewise */
    json_t *answer;      /* not looked at yet */
    int n_bad;           /* lines that were no answer */
};

/* Starts the program, inside its sandbox. *c is for worker_client_close() afterwards in
 * any case. Errors: ST_IO, those of sandbox_add(). */
enum status worker_client_start(struct worker_client *c, const struct worker_params *p,
                                struct err *err);

/* Its greeting, of which c has version, commit and compiler then. Errors:
 * ST_INTERRUPTED, ST_IO (it says nothing), ST_CHECK (nothing but its end came: *err is
 * as before). */
enum status worker_client_greet(struct worker_client *c, struct err *err);

/* A request, which it takes, and its answer, which has that key and becomes the
 * caller's. doing: "opening the model". Errors: ST_INTERRUPTED; ST_IO (it died, says
 * nothing or something else); what it has given up for. */
enum status worker_client_ask(struct worker_client *c, json_t *request, const char *key,
                              const char *doing, json_t **answer, struct err *err);

/* Lets it end by itself - kills it, where it does not within some seconds or is not to
 * be waited for - and hears what it had said. */
void worker_client_end(struct worker_client *c, bool kill_it);

/* Ends and frees. */
void worker_client_close(struct worker_client *c);

#endif
