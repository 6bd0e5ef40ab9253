/* SPDX-License-Identifier: MIT
 *
 * tuning.h - parameters of a model's speed that do not change its results
 *
 * Every tuning gives the same logits within the rounding of a sum's order. All
 * parameters may change between two evaluations, except pages, which opening fixes.
 *
 * Threading: as slm_eval().
 */
#ifndef SLM_ENGINE_FORWARD_TUNING_H
#define SLM_ENGINE_FORWARD_TUNING_H

#include <stdint.h>

#include "engine/base/mem.h"
#include "kernels/kernels.h"

#define TUNING_MAX_CHUNKS   1024
#define TUNING_MAX_DISTANCE (1u << 20)

/* The queries from which on attention over latents, or on a cache of BF16, multiplies
 * by tiles: over latents they were faster than AVX-512 with 16 on one CPU (Intel family
 * 6 model 207), and took as long with 8. On BF16 they round as AVX512-BF16 does and
 * need a third of the products. Other attention does not multiply by them: of F16 they
 * are off by up to 2^-14.4 of a product, and what that changes of the activations'
 * rounding takes two tiny models with exact logits out of the bound of their logits. */
#define TUNING_TILE_QUERIES 12

struct slm_tuning {
    /* ISA levels that the products of a format are chosen from, among those the model
     * was opened with; 0: all of these. With one column (decoding), and with several.
     */
    uint32_t isa_mask[KERN_N_FMT], isa_mask_prefill[KERN_N_FMT];
    /* How weights in panels are read; a distance is at most TUNING_MAX_DISTANCE. */
    struct kern_prefetch prefetch[KERN_N_FMT];
    /* Parts into which a thread's share of the rows left is cut, of which it takes one
     * (row_chunks.h): more balance threads of unequal speed, fewer make longer runs.
     * 1..TUNING_MAX_CHUNKS */
    int chunks_decode, chunks_prefill;
    int n_batch;          /* tokens in a pass of prefill; 0: as opened, the most */
    enum mem_pages pages; /* of packed weights */
};

/* The default tuning. Its prefetch suits most machines; slm_measure_prefetch() starts
 * from it. */
struct slm_tuning slm_tuning_default(void);

#endif
