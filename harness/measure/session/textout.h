/* SPDX-License-Identifier: MIT
 *
 * textout.h - tokens to standard output one by one, in whole characters
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_SESSION_TEXTOUT_H
#define SLM_HARNESS_MEASURE_SESSION_TEXTOUT_H

#include <stdbool.h>

#include "engine/tokenizer/tokenizer.h"

struct textout {
    const struct tokenizer *tok;
    struct utf8_stream utf8;
    char *piece, *out; /* the longest token, and a buffer for completed characters */
    char *
        shown; /* the same for a terminal, which obeys control characters; NULL: none */
    size_t piece_cap;
    bool
        drops_space; /* the next token's blank is not the text's: see textout_begin() */
    char last;       /* byte printed last */
};

/* tok stays the caller's, and lives longer. Error: ST_NO_MEMORY. */
enum status textout_open(struct textout *t, const struct tokenizer *tok,
                         struct err *err);
void textout_close(struct textout *t); /* also after a failed or no textout_open() */

/* A text starts here. drops_space: its first token's blank is the one that
 * SentencePiece puts before a first word. */
void textout_begin(struct textout *t, bool drops_space);

/* Error, of this and the next: ST_IO. */
enum status textout_token(struct textout *t, int32_t id, struct err *err);

/* Prints the rest of an unfinished character, and a missing line end. */
enum status textout_end(struct textout *t, struct err *err);

#endif
