/* SPDX-License-Identifier: MIT
 *
 * expert_cache.h - which experts of a mixture of experts are in memory
 *
 * Model of the world: a model has n_layers layers of n_experts experts, of which a
 * token uses a few in each layer. Memory has slots, each for one expert; layers whose
 * experts are equally large share slots (a class). A pass takes the experts that its
 * tokens use, layer by layer: those that have no slot get one, from the expert of the
 * class that is needed least, and are to be read into it.
 *
 * That is the expert least likely to be used by the next token: the share of tokens
 * that use it, of which older ones count less, and for those that the last token used
 * what repeats have shown beyond that. So experts that are popular stay, and so do
 * those of the present text. Experts that have been taken and not given back keep their
 * slots.
 *
 * Bookkeeping alone: nothing is read here, and no memory of weights is touched.
 *
 * Threading: none; the caller locks.
 */
#ifndef SLM_ENGINE_WEIGHTS_EXPERT_CACHE_H
#define SLM_ENGINE_WEIGHTS_EXPERT_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* Tokens after which a use counts half. On simulated routers (popularities by powers of
 * 0 to 1 of the rank, 0 to 30 % repeats) hit rates with 64 to 1024 are within .02 of
 * each other; a shorter one follows a change of the text sooner. */
#define EXPERT_CACHE_HALF_LIFE 128

struct expert_cache;

/* expert_bytes[n_layers]: memory that one expert of a layer takes, 0 for a layer
 * without experts. The classes' shares of room_bytes are those of their layers' bytes,
 * and a class has room for all experts of a layer at least, since a pass of many tokens
 * takes them all. Errors: ST_NO_MEMORY (less than that; the message says what is
 * needed). */
enum status expert_cache_open(struct expert_cache **c, int n_layers, int n_experts,
                              const uint64_t *expert_bytes, uint64_t room_bytes,
                              struct err *err);
void expert_cache_close(struct expert_cache *c); /* NULL is fine */

/* The least room_bytes of the above, and that in which every expert has a slot. */
uint64_t expert_cache_min_bytes(int n_layers, int n_experts,
                                const uint64_t *expert_bytes);
uint64_t expert_cache_max_bytes(int n_layers, int n_experts,
                                const uint64_t *expert_bytes);

/* The bytes of all slots that a cache opened with room_bytes, at least the least, has.
 */
uint64_t expert_cache_planned_bytes(int n_layers, int n_experts,
                                    const uint64_t *expert_bytes, uint64_t room_bytes);

/* Take the last slots of every class away until the cache has those of one opened with
 * room_bytes, at least the least; experts in them have none any more. No expert may be
 * taken. gone(arg, at, bytes): memory that is no slot any more; at as
 * expert_cache_at(). */
void expert_cache_shrink(struct expert_cache *c, uint64_t room_bytes,
                         void (*gone)(void *arg, uint64_t at, uint64_t bytes),
                         void *arg);

/* Bytes of all slots, and their number. */
uint64_t expert_cache_bytes(const struct expert_cache *c);
size_t expert_cache_slots(const struct expert_cache *c);

/* Where an expert's slot is in the memory of all slots; -1: it has none. */
int64_t expert_cache_at(const struct expert_cache *c, int layer, int expert);

/* A pass of n_tokens begins: what was used before counts less. */
void expert_cache_begin(struct expert_cache *c, int n_tokens);

/* The pass takes an expert of the layer for n_uses of its tokens. True: it has just
 * been given a slot, so it must be read before it is used; *evicted is the expert whose
 * slot it was, as layer * n_experts + expert, or -1: the slot was free. */
bool expert_cache_take(struct expert_cache *c, int layer, int expert, int n_uses,
                       int *evicted);

/* All experts of the layer that were taken are given back. */
void expert_cache_give_back(struct expert_cache *c, int layer);

/* The next expert to fill a free slot with before anything is known of their use, as
 * layer * n_experts + expert; -1: no slot is free, or all experts have one. Layers get
 * equal numbers. The expert has a slot then. */
int expert_cache_fill(struct expert_cache *c);

/* Uses since opening that found the expert in memory, and all; a use is one expert of a
 * pass, whatever its tokens. */
void expert_cache_uses(const struct expert_cache *c, uint64_t *hits, uint64_t *uses);

#endif
