/* SPDX-License-Identifier: MIT
 *
 * checkpoint.h - what a sequence has at a position besides pages, copied apart
 *
 * States change with every token and rings forget, so pages alone cannot bring a
 * sequence back to an earlier position. A checkpoint is what they lack: the states
 * behind the tokens before a position, and the keys and values that the next token sees
 * in layers with a window. The cache has n_checkpoints places of the same
 * size for them:
 *
 *     { states [n_states][state_floats], of each head of each layer with a window
 *       panels of keys, panels of values }
 *
 * Only arithmetic: which place has what is the caller's (prefix.h).
 *
 * Threading: as kvcache.h.
 */
#ifndef SLM_ENGINE_KV_CHECKPOINT_H
#define SLM_ENGINE_KV_CHECKPOINT_H

#include "engine/kv/kvcache.h"

/* Bytes of a checkpoint of sequences of n_ctx positions. */
uint64_t checkpoint_bytes(const struct kvcache_shape *shape, int n_ctx);

/* The states in a place: [n_states][state_floats]. */
float *checkpoint_states(const struct kvcache *kv, int place);

/* Copy what windows see from position pos on, and the states from `states`, unless that
 * is NULL. The ring must still hold the window. */
void checkpoint_save(struct kvcache *kv, int place, int seq, size_t pos,
                     const float *states);

/* Give a sequence what was copied for position pos. The first position that its rings
 * have then. */
size_t checkpoint_load(struct kvcache *kv, int place, int seq, size_t pos);

#endif
