/* SPDX-License-Identifier: MIT
 *
 * reply_form.h - answers of a chat in the words of other APIs
 *
 * Model of the world: an answer has one choice, whose thoughts, text and calls are
 * blocks, one after another. A stream says of each when it begins, goes on and ends.
 *
 * Threading: data.
 * Sources: the API references of Anthropic (messages, streaming messages) and of OpenAI
 * (responses, streaming events).
 */
#ifndef SLM_HARNESS_SERVE_HTTP_REPLY_FORM_H
#define SLM_HARNESS_SERVE_HTTP_REPLY_FORM_H

#include "harness/serve/http/api_reply.h"

enum reply_block { BLOCK_NONE, BLOCK_THOUGHT, BLOCK_TEXT };

/* What a stream has said so far. */
struct reply_blocks {
    enum reply_block open;
    int n;               /* blocks that have ended */
    int n_events;        /* 0: it has not begun */
    struct textbuf text; /* of the open block, where its end repeats it */
    struct textbuf done; /* the blocks that have ended, as JSON */
};

/* How a choice has ended. */
struct reply_ending {
    enum completion_end end;
    const char *stop; /* the stop string, or NULL */
    struct reply_usage usage;
};

struct reply_form {
    /* A whole answer. */
    void (*whole)(struct textbuf *out, const struct reply_head *head,
                  const struct textbuf *text, const struct textbuf *thought,
                  const struct reply_ending *ending);
    /* Events: a part, the end, a failure. */
    void (*part)(struct textbuf *out, const struct reply_head *head,
                 struct reply_blocks *b, const struct reply_part *part);
    void (*finish)(struct textbuf *out, const struct reply_head *head,
                   struct reply_blocks *b, const struct reply_ending *ending);
    void (*fail)(struct textbuf *out, const struct reply_head *head,
                 struct reply_blocks *b, const struct refusal *r);
};

extern const struct reply_form reply_messages, reply_responses;

void reply_blocks_free(struct reply_blocks *b);

#endif
