/* SPDX-License-Identifier: MIT
 *
 * pool_plan.h - how many positions all sequences of a server have together, and how
 * many checkpoints of earlier ones are kept
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_SERVE_HTTP_POOL_PLAN_H
#define SLM_HARNESS_SERVE_HTTP_POOL_PLAN_H

#include "engine/engine.h"

/* A conversation or two with places to continue from. */
#define POOL_MIN_CHECKPOINTS 6

struct pool_plan {
    size_t n_pool, n_max; /* positions; n_max: all that sequences may have */
    int n_checkpoints;
    uint64_t kv_bytes, max_bytes; /* max_bytes: with n_max positions */
    uint64_t weights_bytes, scratch_bytes;
    uint64_t memory_bytes; /* that all of it is planned in */
};

/* A draft model next to it, with as many positions. */
struct pool_draft {
    const struct gguf *g;
    struct slm_params params;            /* memory_bytes: any */
    uint64_t weights_bytes, other_bytes; /* planned: KV cache and scratch memory */
};

/* The bytes for models less request_bytes, which requests may take at one moment, or
 * less an eighth: more would leave a small machine without a model for what hardly ever
 * comes. */
uint64_t pool_plan_memory(uint64_t bytes, uint64_t request_bytes);

/* The largest pool, up to all that each of params->n_sequences may have (n_ctx; with a
 * kv_window a ring), with which the weights are held as they are with the smallest one,
 * which has room for one such sequence and a page of each other; the smallest where
 * even that does not fit. kv_bytes, unless it is 0, is a limit of the KV cache.
 * Models that keep what sequences begin with by checkpoints get some, unless
 * params->n_checkpoints is 0: as many as take the memory of all sequences' cache, but
 * one for a page at most. For the first POOL_MIN_CHECKPOINTS the pool gives up to a
 * quarter of its pages, where there is no other memory.
 * draft (may be NULL) has its place in the same memory, and its cache counts for
 * kv_bytes. params->n_ctx and n_sequences are set. Errors: slm_plan()'s; ST_NO_MEMORY
 * (kv_bytes is less than the smallest pool takes). */
enum status pool_plan_make(struct pool_plan *plan, const struct gguf *g,
                           const struct slm_params *params, uint64_t kv_bytes,
                           struct pool_draft *draft, struct err *err);

#endif
