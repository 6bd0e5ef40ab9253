/* SPDX-License-Identifier: MIT
 *
 * reply_form.c - the blocks of a stream so far
 */
#include "harness/serve/api/reply_form.h"

#include <string.h>

void reply_blocks_free(struct reply_blocks *b)
{
    textbuf_free(&b->text);
    textbuf_free(&b->done);
}

void reply_blocks_name(struct reply_blocks *b, struct reply_calls *calls,
                       const struct reply_call_part *part)
{
    const size_t len = part->len < CALL_MAX_NAME ? part->len : CALL_MAX_NAME;

    memcpy(b->name, part->text, len);
    b->name[len] = '\0';
    reply_calls_id(calls, calls->n++, b->id);
}
