/* SPDX-License-Identifier: MIT
 *
 * rewind.h - going back in a sequence whose model keeps states besides a cache
 *
 * Keys and values of a position stay where they are, so forgetting the last ones is a
 * matter of counting. A state has taken in all tokens so far and cannot give one back.
 * So the tokens are kept, and a copy of the states from a place where going back is
 * likely: before several tokens at once (which speculation may take back in part), and
 * before the first single one after these (where an answer begins). Whoever goes back
 * starts from that copy, or from the beginning, and runs the tokens after it again.
 *
 * Threading: as slm_eval().
 */
#ifndef SLM_ENGINE_KV_REWIND_H
#define SLM_ENGINE_KV_REWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/kv/kvcache.h"

struct rewind {
    int32_t *tokens; /* [n_ctx] of the sequence; NULL: there are no states */
    int at;          /* positions that the states have taken in */
    int saved_at;    /* the same of their copy */
    bool single;     /* the last pass took one token */
};

/* For a cache of n_ctx positions; nothing to do without states. Error: ST_NO_MEMORY. */
enum status rewind_open(struct rewind *r, const struct kvcache *kv, int n_ctx,
                        struct err *err);
void rewind_close(struct rewind *r);

/* Take the states back to n_past or to an earlier position, which is returned: tokens
 * from there to n_past, in r->tokens, must run again. */
int rewind_to(struct rewind *r, struct kvcache *kv, int n_past);

/* To be called before a pass that takes tokens[n] from r->at on. */
void rewind_pass(struct rewind *r, struct kvcache *kv, const int32_t *tokens, int n);

/* The cache has been filled up to n_past without tokens: the states are what they are
 * there. */
void rewind_fill(struct rewind *r, struct kvcache *kv, int n_past);

#endif
