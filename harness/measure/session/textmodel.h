/* SPDX-License-Identifier: MIT
 *
 * textmodel.h - a model with its vocabulary, for commands that generate text, and that
 * text on standard output
 *
 * Opened in two steps, so that errors in the file, the prompt or an option are reported
 * before a large model is read: textmodel_look(), then textmodel_open().
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_SESSION_TEXTMODEL_H
#define SLM_HARNESS_MEASURE_SESSION_TEXTMODEL_H

#include <stdbool.h>

#include "engine/engine.h"
#include "engine/text/chat.h"
#include "engine/tokenizer/tokenizer.h"
#include "harness/model/memory_relief.h"
#include "harness/model/modelref.h"
#include "harness/measure/session/session.h"

struct textmodel {
    struct modelref ref;
    struct slm_info planned; /* of a context of one position */
    struct tokenizer *tok;
    struct chat_template *chat; /* NULL: why_no_chat */
    struct err why_no_chat;
    struct slm *m;
    int n_threads;
    struct memory_relief relief; /* while it is open; *t stays where it is */
};

/* *t is zeroed first. The chat template is that of the file, or the one that
 * chat_template names (NULL: that of the file); one that cannot be opened is in
 * why_no_chat. Errors: those of session_model(), modelref_open(), slm_plan() and
 * tokenizer_open(), ST_UNSUPPORTED for an encoder, unless it is served, ST_INPUT for a
 * vocabulary that the model has no embeddings for, and
 * ST_USAGE for a window of the KV cache that is longer than the model's context. */
enum status textmodel_look(struct textmodel *t, const struct session_params *params,
                           const char *chat_template, struct err *err);

/* Then the model gives memory back when it is lacking, and reports that on standard
 * error. Errors: those of session_open(). */
enum status textmodel_open(struct textmodel *t, const struct session_params *params,
                           struct err *err);

/* After any of the two, failed or not. */
void textmodel_close(struct textmodel *t);

/* Rows of a table of options for how a model is run; s is a session_params. */
#define TEXTMODEL_OPTS(s)                                                           \
    SESSION_OPT(s, threads), SESSION_OPT(s, threads_prefill), SESSION_OPT_PLACE(s), \
        SESSION_OPT_HOLD(s), SESSION_OPT(s, kv_window)

/* ---- tokens on standard output --------------------------------------------------- */

/* One by one, in whole characters. */
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
