/* SPDX-License-Identifier: MIT
 *
 * rewind.h - return to an earlier position of a model whose cache has forgotten it
 *
 * Keys and values of a position do not change, so removing the last positions only
 * changes a count. A state has absorbed all tokens so far and cannot remove one.
 * Therefore the tokens are kept, and a copy of the states at a position where a return
 * is likely: before a pass of several tokens (speculative decoding may reject some),
 * and before the first pass of one token after it (where an answer begins). A return
 * starts from that copy, or from the beginning, and runs the tokens after it again.
 *
 * In the same way the ring of a layer with a sliding window holds the last positions
 * only. After a return by more than it has to spare, the window before the new end is
 * lost, and all tokens run again: every layer's keys come from the windows of those
 * below.
 *
 * In a sequence longer than n_ctx (kvcache.h: n_recent) only the last n_ctx tokens are
 * kept, so that it cannot run again from its beginning: rewind_min() says how far it
 * can be cut back.
 *
 * Threading: as slm_eval().
 */
#ifndef SLM_ENGINE_KV_REWIND_H
#define SLM_ENGINE_KV_REWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/kv/kvcache.h"

struct rewind {
    int32_t *tokens; /* [n_ctx], that of position p at p % n_ctx; NULL: nothing is ever
                        forgotten */
    int seq;         /* which sequence of the cache it is */
    int n_ctx;
    int known;    /* the first position whose token is kept */
    int n_ring;   /* positions of a ring of layers with a window; 0: none, or it holds
                     them all */
    int n_recent; /* positions of a ring of the other layers; 0: none */
    int end;      /* rings hold those before this one, */
    int begin;    /* and none before this one */
    int at;       /* positions that the states have absorbed */
    int saved_at; /* the same of their copy */
    bool single;  /* the last pass had one token */
};

/* For a sequence of a cache of n_ctx positions; empty without states and rings. Error:
 * ST_NO_MEMORY. */
enum status rewind_open(struct rewind *r, const struct kvcache *kv, int seq, int n_ctx,
                        struct err *err);
void rewind_close(struct rewind *r);

/* Whether rings still hold what the next token at position n_past sees. */
bool rewind_has_window(const struct rewind *r, const struct kvcache *kv, int n_past);

/* The least position but 0 that a sequence of n_past can be cut back to; 0: any. */
int rewind_min(const struct rewind *r, const struct kvcache *kv, int n_past);

/* The position to which rewind_to() would return. */
int rewind_start(const struct rewind *r, const struct kvcache *kv, int n_past);

/* Return to n_past (0, or at least rewind_min()) or an earlier position, the result:
 * the tokens from there to n_past, in r->tokens, must run again. */
int rewind_to(struct rewind *r, struct kvcache *kv, int n_past);

/* Call before a pass over tokens[n] at positions r->at and following, which copies the
 * states behind the first n_again of them itself (0: it does not). */
void rewind_pass(struct rewind *r, struct kvcache *kv, const int32_t *tokens, int n,
                 int n_again);

/* The pass failed, and what it copied may be wrong: a return begins from the beginning.
 * Only where all tokens are known. */
void rewind_forget(struct rewind *r);

/* The last position of a sequence of n_past whose states and window are there: those of
 * the end, or the copy of the states; 0: none. */
int rewind_kept(const struct rewind *r, const struct kvcache *kv, int n_past);

/* The states of such a position; NULL: no layer keeps any. */
const float *rewind_states(const struct rewind *r, const struct kvcache *kv,
                           int n_past);

/* Give an empty sequence tokens[n_past], with the checkpoint of that position. Only
 * with checkpoints in the cache, and with room for the tokens. */
void rewind_load(struct rewind *r, struct kvcache *kv, int place, const int32_t *tokens,
                 int n_past);

/* What kvcache_fork() means for the tokens. */
void rewind_fork(struct rewind *to, const struct rewind *from);

/* The cache was filled up to n_past without tokens, rings from where the sequence ended
 * if `kept`, else wholly: take the states as those of n_past. */
void rewind_fill(struct rewind *r, struct kvcache *kv, int n_past, bool kept);

#endif
