/* SPDX-License-Identifier: MIT
 *
 * serve.h - a model for others: a server, a scheduler, from start to stop
 *
 * Threading: the calling thread opens the model and runs the scheduler.
 */
#ifndef SLM_HARNESS_SERVE_HTTP_SERVE_H
#define SLM_HARNESS_SERVE_HTTP_SERVE_H

#include "harness/serve/http/server.h"
#include "harness/serve/scheduler/scheduler.h"
#include "harness/measure/session/session.h"

struct serve_settings {
    struct session_params session;
    struct server_params server; /* without keys and place; name NULL: the model's */
    const char *chat_template;   /* NULL: that of the file */
    const char *listen;          /* as listen.h has it; NULL: 127.0.0.1:8080 */
    int port;                    /* -1: that of listen */
    const char *key_file;
    int n_queue;
    double max_itl_ms;
    const char *draft; /* the model of DRAFTS_MODEL */
    uint64_t kv_bytes; /* 0: what memory holds */
    bool no_prefixes, any_model;
};

/* Proxies close a stream without output after a minute, some after half of one. */
#define SERVE_KEEP_ALIVE_S 15

#define SERVE_DEFAULTS                                                               \
    {                                                                                \
        .session = {.n_sequences = 8}, .port = -1, .n_queue = 64, .max_itl_ms = 500, \
        .server = {                                                                  \
            .n_connections = 512,                                                    \
            .timeout_s = 60,                                                         \
            .grace_s = 30,                                                           \
            .keep_alive_s = SERVE_KEEP_ALIVE_S,                                      \
            .max_body = 8u << 20                                                     \
        }                                                                            \
    }

/* Serves until a signal that interrupt_catch() catches; *cancelled: it was ended before
 * what ran was complete. Errors: listen_open()'s, apikeys_read()'s, textmodel_look()'s,
 * textmodel_open()'s, speculate_check_draft()'s, server_open()'s, scheduler_open()'s
 * and scheduler_run()'s; ST_USAGE (an unknown chat template, more positions than the
 * model has). */
enum status serve(const struct serve_settings *settings, bool *cancelled,
                  struct err *err);

#endif
