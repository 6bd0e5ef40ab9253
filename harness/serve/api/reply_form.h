/* SPDX-License-Identifier: MIT
 *
 * reply_form.h - answers of a chat in the words of other APIs
 *
 * Model of the world: an answer has one choice, whose thoughts, text and calls are
 * blocks, one after another. Events of a stream begin and end each.
 *
 * Threading: data.
 * Sources: the API references of Anthropic (messages, streaming messages) and of OpenAI
 * (responses, streaming events).
 */
#ifndef SLM_HARNESS_SERVE_API_REPLY_FORM_H
#define SLM_HARNESS_SERVE_API_REPLY_FORM_H

#include "harness/serve/api/api_reply.h"

enum reply_block { BLOCK_NONE, BLOCK_THOUGHT, BLOCK_TEXT, BLOCK_CALL };

/* The blocks of a stream so far. */
struct reply_blocks {
    enum reply_block open;
    int n;               /* blocks that have ended */
    int n_events;        /* 0: it has not begun */
    struct textbuf text; /* of the open block, where its end repeats it */
    char name[CALL_MAX_NAME + 1], id[CALL_ID_CHARS + 1]; /* of BLOCK_CALL */
    struct textbuf done; /* the blocks that have ended, as JSON */
};

/* How a choice has ended. */
struct reply_ending {
    enum completion_end end;
    const char *stop;                /* the stop string, or NULL */
    const struct reply_calls *calls; /* n: how many there were */
    struct reply_usage usage;
};

struct reply_form {
    /* A whole answer, whose calls' bytes are in ending->calls->list. */
    void (*whole)(struct textbuf *out, const struct reply_head *head,
                  const struct textbuf *text, const struct textbuf *thought,
                  const struct reply_ending *ending);
    /* Events: a part, the end, a failure. */
    void (*part)(struct textbuf *out, const struct reply_head *head,
                 struct reply_blocks *b, const struct reply_part *part,
                 struct reply_calls *calls);
    void (*finish)(struct textbuf *out, const struct reply_head *head,
                   struct reply_blocks *b, const struct reply_ending *ending);
    void (*fail)(struct textbuf *out, const struct reply_head *head,
                 struct reply_blocks *b, const struct refusal *r);
};

extern const struct reply_form reply_messages, reply_responses;

void reply_blocks_free(struct reply_blocks *b);

/* The name and the id of the call that begins, which is counted. */
void reply_blocks_name(struct reply_blocks *b, struct reply_calls *calls,
                       const struct reply_call_part *part);

#endif
