/* SPDX-License-Identifier: MIT
 *
 * rope.h - rotary position embedding: how far each pair of a head's elements turns
 *
 * Pair i of n_rot / 2 turns by base^(-2i / n_rot) radians per position (Su et al. 2021,
 * arXiv 2104.09864). Models made fit for longer contexts than they were first trained
 * for change that in one of these ways, told by "<arch>.rope.scaling.type":
 *   linear    all pairs slower by "factor" (Chen et al. 2023, arXiv 2306.15595)
 *   yarn      slow pairs by "factor", fast ones not at all, and those between, found
 *             by the turns they make in the original context, in part; what is rotated
 *             grows by 1 + ln(factor) / 10 (Peng et al. 2023, arXiv 2309.00071)
 *   longrope  each pair by a factor from the tensor rope_factors_short, or from
 *             rope_factors_long where the context is longer than the original one;
 *             what is rotated grows by attn_factor (Ding et al. 2024, arXiv 2402.13753)
 * Files without a type, but with a factor, mean linear. The tensor rope_freqs divides
 * each pair's speed by a factor of its own (Llama 3.1).
 *
 * Threading: immutable after loading.
 */
#ifndef SLM_ENGINE_ARCH_ROPE_H
#define SLM_ENGINE_ARCH_ROPE_H

#include "engine/base/status.h"

struct loader;

/* What turns together: neighbours, or element i and element i + n_rot / 2. */
enum rope_pairs { PAIRS_NEIGHBOURS, PAIRS_HALVES };

struct rope {
    int n_rot;         /* leading elements of a head that turn: even, not 0 */
    int n_ctx_orig;    /* contexts longer than this one take step_long */
    float scale;       /* of what has been rotated: 1 but for yarn and longrope */
    double *step;      /* [n_rot / 2] radians per position */
    double *step_long; /* the same for long contexts; NULL: step for all */
};

/* Rotation of n_rot elements as the metadata ("rope.freq_base", "rope.scaling.*",
 * "rope.scale_linear") and the tensors say; n_ctx_train stands in for a missing
 * original context. Without the tensors' content, in a model that is only planned,
 * steps are those of factors of 1. Free it with rope_free(), also after an error.
 * Errors: ST_INPUT, ST_UNSUPPORTED (the type), ST_NO_MEMORY. */
enum status rope_load(struct loader *l, struct rope *r, int n_rot, int n_ctx_train);

/* One that follows from base alone, all pairs slower by factor. Error: ST_NO_MEMORY. */
enum status rope_plain(struct loader *l, struct rope *r, int n_rot, double base,
                       double factor);

void rope_free(struct rope *r);

/* turn[n_rot]: scaled cosine and sine of each pair at position pos of a context of
 * n_ctx positions, as the kernel for such pairs takes them: pair after pair, or all
 * cosines before all sines. */
void rope_turns(const struct rope *r, enum rope_pairs pairs, int n_ctx, int pos,
                float *turn);

#endif
