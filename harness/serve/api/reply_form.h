/* SPDX-License-Identifier: MIT
 *
 * reply_form.h - answers of a chat in the words of other APIs
 *
 * Model of the world: an answer has one choice, whose thoughts, text and calls are
 * blocks, one after another. Events of a stream begin and end each. An API is a table
 * of texts, from which reply_form.c writes every answer and event. In these texts ' is
 * written as ", and $ with letters as a value:
 *
 *     $id $created $model      of the answer
 *     $echo                    what it repeats of its request, with a comma before it
 *     $n                       the number of the block
 *     $item $part $block       the texts of that name in its row
 *     $text                    a text of the block: in a delta what is new
 *     $call $name              the identity of a call, and its tool
 *     $object                  $text as an object, {} where it is none
 *     $blocks                  all blocks
 *     $status                  of a block or an answer: in_progress, completed or
 *                              incomplete
 *     $reason $stop            how the answer ended, and by which stop string
 *     $prompt $fresh $cached   tokens of the prompt: all, computed, from kept prompts
 *     $output $thought $total  tokens of the answer, those of thoughts, both together
 *     $timings                 how long the answer took, with a comma before it
 *     $event                   the number of the event, which is counted
 *     $code $type $message     of a failure
 *
 * $model, $text, $name, $stop and $message are JSON; what else is a text stands in
 * quotes of the table. Events are lines: a name and the members of its data behind
 * "type", which is the name again.
 *
 * Threading: data.
 * Sources: the API references of Anthropic (messages, streaming messages) and of OpenAI
 * (responses, streaming events).
 */
#ifndef SLM_HARNESS_SERVE_API_REPLY_FORM_H
#define SLM_HARNESS_SERVE_API_REPLY_FORM_H

#include "harness/serve/api/api_reply.h"

/* How an answer ends. */
enum reply_reason {
    REPLY_TURN,
    REPLY_CALLS,
    REPLY_STOP,
    REPLY_LENGTH,
    N_REPLY_REASONS
};

struct reply_form {
    const char *prefix;             /* of identities, without the _ behind it */
    const char *whole;              /* a whole answer */
    const char *members;            /* of all events, with a comma before them */
    const char *begin, *end, *fail; /* events */
    bool fails_begun;               /* a stream that fails has begun in any case */
    bool repeats;                   /* what ends is repeated: blocks, and the stream */
    struct {
        const char *whole, *item, *part;  /* $block, $item, $part */
        const char *open, *delta, *close; /* events */
    } block[N_REPLY_BLOCKS];
    const char *reason[N_REPLY_REASONS];
};

extern const struct reply_form reply_messages, reply_responses;

void reply_form_whole(struct textbuf *out, const struct reply_head *head,
                      const struct reply_choice *choice,
                      const struct reply_usage *usage);

/* Events: a piece of the choice, its end, a failure. */
void reply_form_piece(struct textbuf *out, struct reply_head *head,
                      struct reply_choice *choice,
                      const struct completion_piece *piece);
void reply_form_end(struct textbuf *out, struct reply_head *head,
                    const struct reply_choice *choice, const struct reply_usage *usage);
void reply_form_fail(struct textbuf *out, struct reply_head *head,
                     const struct refusal *failure);

#endif
