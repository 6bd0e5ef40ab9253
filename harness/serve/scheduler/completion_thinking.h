/* SPDX-License-Identifier: MIT
 *
 * completion_thinking.h - which bytes of a completion are thoughts, and which its
 * answer
 *
 * A model that thinks writes a marker, its thoughts, a second marker and the answer,
 * before which some write a marker, too. Blanks around thoughts belong to the markers.
 * Tokens may end anywhere inside a marker: what may become one is held back. A control
 * token has no text; where a marker is made of it, it is compared as it is spelled, and
 * dropped where it is no marker, but for answers whose calls are read from it.
 *
 * Threading: one belongs to one thread at a time.
 */
#ifndef SLM_HARNESS_SERVE_SCHEDULER_COMPLETION_THINKING_H
#define SLM_HARNESS_SERVE_SCHEDULER_COMPLETION_THINKING_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/text/chat.h"

/* Bytes that are held back at most: a marker, and blanks before it. */
#define THINKING_MAX_HELD 256

enum thinking_state {
    THINKING_OVER, /* or never: all is the answer */
    THINKING_STARTS,
    THINKING_RUNS,
    THINKING_ANSWERS, /* behind thoughts */
};

struct completion_thinking {
    const struct chat_thinking *markers;
    enum thinking_state state;
    bool drops_blanks;               /* of what follows a marker */
    bool keeps;                      /* control tokens of the answer */
    char held[THINKING_MAX_HELD];    /* [n_held] */
    bool spelled[THINKING_MAX_HELD]; /* of a control token, which has no text */
    size_t n_held;
};

/* What came of the bytes that were added: room for as many as were added and held. */
struct thinking_bytes {
    char *thought, *answer;
    size_t n_thought, n_answer;
};

/* runs: the prompt has opened the block. keeps: the answer's control tokens are text.
 * markers live longer. */
void completion_thinking_open(struct completion_thinking *t,
                              const struct chat_thinking *markers, bool runs,
                              bool keeps);

/* Whether a token that is spelled text[n] is part of a marker that may come. */
bool completion_thinking_knows(const struct completion_thinking *t, const char *text,
                               size_t n);

/* Add bytes[n] of a token's text, or of its spelling; *out becomes what is decided. */
void completion_thinking_add(struct completion_thinking *t, const char *bytes, size_t n,
                             bool spelled, struct thinking_bytes *out);

/* The completion ends: what was held back. */
void completion_thinking_end(struct completion_thinking *t, struct thinking_bytes *out);

#endif
