/* SPDX-License-Identifier: MIT
 *
 * worker_client.h - the parent's side of worker.h: a process that is started, sent
 * requests, and ended
 *
 * An error is one sentence with the program, its version and its last output; enum
 * worker_end is for callers that make a result of it.
 *
 * Threading: one thread per client, and it is the one that started it.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_WORKER_CLIENT_H
#define SLM_HARNESS_MEASURE_WORKER_WORKER_CLIENT_H

#include <jansson.h>
#include <sys/resource.h>

#include "engine/base/status.h"
#include "harness/machine/child.h"
#include "harness/machine/sandbox/sandbox.h"

enum worker_end {
    WORKER_RUNS,
    WORKER_INTERRUPTED, /* this process was */
    WORKER_SILENT,      /* it sent nothing for too long */
    WORKER_DIED,        /* it ended or was killed */
    WORKER_GAVE_UP,     /* it sent an error */
    WORKER_UNEXPECTED   /* it sent something that is no answer */
};

struct worker_params {
    const char *who;         /* "A": what messages call it */
    const char *program;     /* path; borrowed */
    const char *command;     /* hidden command of the program: "worker" */
    double timeout_s;        /* without a message from it; worker_silence_s() */
    struct sandbox *sandbox; /* may be NULL */
    bool pass_errors;        /* its standard error is this process's, and not kept */
    /* Called while waiting, at least five times a second; what and fraction are a phase
     * that it has reported, or NULL and 0. May be NULL. */
    void (*tick)(void *arg, const char *what, double fraction);
    /* Called for its messages before the answer, other than phases. NULL: such a
     * message is an error. */
    void (*hear)(void *arg, const json_t *message);
    void *arg;
};

struct worker_client {
    struct worker_params p;
    struct child child;
    char version[64], commit[64], compiler[64];
    json_t *hello;      /* its greeting */
    const char *wanted; /* key of the answer that is waited for */
    enum worker_end end;
    char error[480];          /* WORKER_GAVE_UP: its error */
    enum status error_status; /* and its status */
    bool reaped;
    int wstatus;         /* once it is reaped, as waitpid() has it */
    struct rusage usage; /* once it is reaped */
    struct sandbox *own; /* the group it is in where it has no sandbox; may be NULL */
    json_t *answer;      /* not read yet */
    int n_bad;           /* lines that were no answer */
};

/* How long a measuring process of this program may send nothing before it hangs: it
 * reports from inside all that takes long. SLMBENCH_SILENCE, in seconds, or 120: a pass
 * over a prompt's batch on a slow machine is the longest step without a report. */
double worker_silence_s(void);

/* Starts the program, inside its sandbox. *c is for worker_client_close() afterwards in
 * any case. Errors: ST_IO, those of sandbox_add(). */
enum status worker_client_start(struct worker_client *c, const struct worker_params *p,
                                struct err *err);

/* Reads its greeting, and version, commit and compiler from that. Errors:
 * ST_INTERRUPTED, ST_IO (it sends nothing), ST_CHECK (it ended without a greeting; *err
 * is not set). */
enum status worker_client_greet(struct worker_client *c, struct err *err);

/* Sends a request, which it takes, and waits for the answer, which has that key and
 * becomes the caller's. doing: "opening the model". Errors: ST_INTERRUPTED; ST_IO (it
 * died, sent nothing or something else); the worker's own error. */
enum status worker_client_request(struct worker_client *c, json_t *request,
                                  const char *key, const char *doing, json_t **answer,
                                  struct err *err);

/* What the kernel counts of its group: its sandbox, or this process's own group, whose
 * limit is the one in force here. Zeros where there is no such group. */
void worker_client_usage(const struct worker_client *c, struct sandbox_usage *usage);

/* Whether the kernel killed it for memory, by its group's counter. *usage has the
 * limit. */
bool worker_client_was_oom(const struct worker_client *c, struct sandbox_usage *usage);

/* Ends it, and reads what it had sent. It is killed where kill_it, or where it does not
 * end within some seconds. */
void worker_client_end(struct worker_client *c, bool kill_it);

/* Ends and frees. */
void worker_client_close(struct worker_client *c);

#endif
