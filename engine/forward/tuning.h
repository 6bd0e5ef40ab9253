/* SPDX-License-Identifier: MIT
 *
 * tuning.h - what may be chosen about how a model runs, without changing what it says
 *
 * Every choice gives the same logits within the rounding of a sum's order. All may be
 * changed between two evaluations but for the pages, which belong to opening.
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

struct slm_tuning {
    /* Levels that the products of a format are chosen from, among those the model was
     * opened with; 0: all of these. With one column (decoding), and with several. */
    uint32_t isa_mask[KERN_N_FMT], isa_mask_prefill[KERN_N_FMT];
    /* Software prefetch of weights in panels; a distance is at most
     * TUNING_MAX_DISTANCE. */
    struct kern_prefetch prefetch[KERN_N_FMT];
    /* Parts that a matrix is handed out in, for each thread: more of them even out
     * threads that lose their CPU, fewer make longer runs. 1..TUNING_MAX_CHUNKS */
    int chunks_decode, chunks_prefill;
    int n_batch;          /* tokens in a pass of prefill; 0: as opened, the most */
    enum mem_pages pages; /* of packed weights */
};

/* What a model is opened with where nobody has tuned. The prefetch is one that serves
 * most machines, for slm_measure_prefetch() to start from. */
struct slm_tuning slm_tuning_default(void);

#endif
