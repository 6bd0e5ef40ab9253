/* SPDX-License-Identifier: MIT
 *
 * engine_talk.h - a server from its start to its end, and what it answered in between
 *
 * Model of the world: the server is started as any other program is; /health is
 * requested until it is ready. A short request warms it up; then come those that count,
 * one after the other: POST /v1/completions with a prompt of token ids that no earlier
 * request began with, streamed, without an end of its own. Times are ours: from sending
 * to the first piece of text (prefill), and between pieces (decode). Then it is
 * ended (SIGTERM), with all it has started.
 *
 * What it sends is not trusted: client/record.h reads it.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_ENGINE_TALK_H
#define SLM_HARNESS_MEASURE_ENGINES_ENGINE_TALK_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/client/record.h"
#include "harness/measure/engines/engine_child.h"
#include "harness/measure/engines/engine_output.h"

struct engine_talk {
    int port;
    int n_prompt; /* tokens of each prompt, at least 1 */
    int n_output; /* tokens to decode; 1: prefill is measured, and not the decoding */
    int n_requests;
    int n_vocab;       /* of the model; 0: not known */
    const char *model; /* that requests name; NULL: none */
    bool in_words;     /* the prompt is a text of about as many tokens: the server takes
                          no token ids */
    uint64_t seed;
    double ready_s;   /* the longest that it may take until it is ready */
    double silence_s; /* without text for so long a request has failed */
    double max_s;     /* and after so long in all */
    double budget_s;  /* no further request after so long */

    double load_s;                 /* until it was ready */
    struct engine_figures figures; /* n and mean 0: none, and why has the reason */
    char why[200];
    char note[120]; /* what is odd about the answers; "" */
};

/* engine_child_run() with a server, whose standard output is nobody's. *c is for
 * engine_child_free() in any case. c->end: ENGINE_HUNG where it was not ready or a
 * request took too long; c->wstatus: 0 if it ran until it was ended. Errors:
 * child_start()'s, ST_NO_MEMORY, ST_UNSUPPORTED (no libcurl). */
enum status engine_talk_run(struct engine_child *c, struct engine_talk *t,
                            struct err *err);

/* The requests of *t to a server that is there, at url without a '/' at its end: a
 * warm-up, then those that count. tick may be NULL. Errors: as above; ST_INTERRUPTED.
 */
enum status engine_talk_at(struct engine_talk *t, const char *url,
                           void (*tick)(void *arg, double elapsed_s), void *arg,
                           struct err *err);

/* What the server at url is; "": it has no known page for that. Errors:
 * load_client_get()'s. */
enum status engine_talk_version(const char *url, char *version, size_t cap,
                                struct err *err);

/* The body of one request of t, malloc'ed: tokens of the vocabulary's first half
 * without its first entries, which are controls and bytes; or words. NULL: no memory.
 */
char *engine_talk_body(const struct engine_talk *t, int n_prompt, int n_output,
                       uint64_t seed);

/* The times of tokens in a streamed answer as figures. Pieces that come within a tenth
 * of a token's mean time after another came with it, and share the time of both. Where
 * not every token is accounted for, only their mean is a figure. Error: ST_INPUT (no
 * time between two tokens). */
enum status engine_read_stream(struct engine_figures *f, const struct load_record *r,
                               struct err *err);

/* What it is, of /props of llama-server or /version of vLLM and Ollama; "": unknown. */
void engine_read_server_version(char *version, size_t cap, const char *text,
                                size_t len);

/* Reads "version: 4754 (abc1234)", which llama-server prints for --version. */
void engine_read_version_words(char *version, size_t cap, const char *words);

#endif
