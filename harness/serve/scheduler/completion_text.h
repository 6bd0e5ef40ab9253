/* SPDX-License-Identifier: MIT
 *
 * completion_text.h - the text of a completion from the bytes of its tokens
 *
 * Tokens may end anywhere inside a character, and stop strings anywhere inside a token.
 * What is given out are whole characters; malformed bytes become U+FFFD, one for each
 * maximal part of a character (Unicode standard, 3.9, "U+FFFD substitution of maximal
 * subparts"). The text is searched character by character, so that how it is cut into
 * tokens makes no difference: it ends before the stop string that is complete first,
 * of several at once before the longest. What may become one is held back.
 *
 * Threading: one text belongs to one thread at a time.
 */
#ifndef SLM_HARNESS_SERVE_SCHEDULER_COMPLETION_TEXT_H
#define SLM_HARNESS_SERVE_SCHEDULER_COMPLETION_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

struct completion_text {
    char **stops; /* [n_stops] */
    size_t *stop_len;
    int n_stops;
    size_t longest;
    char *held; /* [n_held] whole characters that may begin a stop string */
    size_t n_held;
    char pending[4]; /* [n_pending] of a character that is not whole */
    int n_pending;
    size_t n_chars; /* of the whole text, what is held back with it */
    bool stopped;
    int stop; /* that stopped it */
    char *out; /* [n_out] given out last */
    size_t n_out, cap;
};

/* stops[n_stops] are copied. Errors: ST_USAGE (an empty one, or malformed UTF-8),
 * ST_NO_MEMORY. */
enum status completion_text_open(struct completion_text *t, const char *const *stops,
                                 int n_stops, struct err *err);
void completion_text_close(struct completion_text *t); /* also of a failed open */

/* Add a token's bytes. What can be given out is out[n_out]. stopped: the text ends with
 * it. Error: ST_NO_MEMORY. */
enum status completion_text_add(struct completion_text *t, const char *bytes, size_t n,
                                struct err *err);

/* The text ends behind the token that was added last: what was held back follows in
 * out[n_out]. stopped: the end completed a stop string (a malformed one). */
void completion_text_end(struct completion_text *t);

#endif
