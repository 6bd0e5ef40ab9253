/* SPDX-License-Identifier: MIT
 *
 * answer.h - an answer put together from its events, for the next turn of a
 * conversation
 *
 * Model of the world: a client sends back what a server answered: its text and its
 * calls of tools, without its thoughts. Calls beyond ANSWER_MAX_CALLS are dropped;
 * names and identities are cut where they are longer than their room.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_CLIENT_ANSWER_H
#define SLM_HARNESS_CLIENT_ANSWER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define ANSWER_MAX_CALLS 16

/* Thoughts that a server leaves in the content. */
#define ANSWER_THINK_BEGIN "<think>"
#define ANSWER_THINK_END   "</think>"

struct answer_text {
    char *v; /* [n], malloc'ed */
    size_t n, cap;
};

/* Appends bytes. False: no memory. */
bool answer_text_add(struct answer_text *t, const char *bytes, size_t n);

struct answer {
    struct answer_text text;
    struct answer_call {
        char id[128], name[128];
        struct answer_text arguments;
    } call[ANSWER_MAX_CALLS];
    size_t n_calls;
    size_t n_bytes; /* of its text, and of the arguments of its calls */
};

/* Adds the `delta` of an event; one that is no object adds nothing. False: no memory.
 */
bool answer_add(struct answer *a, const json_t *delta);

/* The assistant's message; NULL: no memory. */
json_t *answer_message(const struct answer *a);

/* Back to an answer without anything. */
void answer_free(struct answer *a);

#endif
