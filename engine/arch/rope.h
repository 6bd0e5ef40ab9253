/* SPDX-License-Identifier: MIT
 *
 * rope.h - rotary position embedding: the rotation of each pair of a head's elements
 *
 * Pair i of n_rot / 2 turns by base^(-2i / n_rot) radians per position (Su et al. 2021,
 * arXiv 2104.09864). Models extended to longer contexts than the original one change
 * that by "<arch>.rope.scaling.type": linear    all pairs slower by "factor" (Chen et
 * al. 2023, arXiv 2306.15595) yarn      slow pairs slower by "factor", fast ones
 * unchanged, those between (by their turns in the original context) in part; queries
 * and keys are scaled by 1 + ln(factor) / 10 (Peng et al. 2023, arXiv 2309.00071)
 *   longrope  each pair slower by a factor from the tensor rope_factors_short, or from
 *             rope_factors_long where the context is longer than the original one;
 *             queries and keys are scaled by attn_factor (Ding et al. 2024, arXiv
 *             2402.13753)
 * With yarn_log_multiplier m that is divided by 1 + m ln(factor) / 10.
 * "rope.scaling.yarn_truncate" is a key of this project: false where yarn's ramp begins
 * and ends within a pair ("truncate": false in config.json), for which GGUF has no key.
 * Files without a type, but with a factor, mean linear. The tensor rope_freqs divides
 * each pair's speed by a factor of its own (Llama 3.1).
 *
 * Threading: immutable after loading.
 */
#ifndef SLM_ENGINE_ARCH_ROPE_H
#define SLM_ENGINE_ARCH_ROPE_H

#include "engine/base/status.h"

struct loader;

/* Which elements form a pair: neighbours, or i and i + n_rot / 2. None: nothing is
 * rotated. */
enum rope_pairs { PAIRS_NEIGHBOURS, PAIRS_HALVES, PAIRS_NONE };

struct rope {
    int n_rot;         /* leading elements of a head that rotate: even, not 0 */
    int n_ctx_orig;    /* contexts longer than this one take step_long */
    int n_ctx;         /* the context that yarn was set up for; otherwise 0 */
    float scale;       /* of rotated elements: 1 except for yarn and longrope */
    double *step;      /* [n_rot / 2] radians per position */
    double *step_long; /* the same for long contexts; NULL: step for all */
};

/* Rotation of n_rot elements from the metadata ("rope.freq_base", "rope.scaling.*",
 * "rope.scale_linear") and the tensors; n_ctx_train is the default of the original
 * context. Files on which yarn was switched on later keep the original context as
 * "context_length", as model cards recommend it: r->n_ctx is factor times the original
 * context where the file names that one. In a model that is only planned, the tensors'
 * factors count as 1. Free it with rope_free(), also after an error. Errors: ST_INPUT,
 * ST_UNSUPPORTED (the type), ST_NO_MEMORY. */
enum status rope_load(struct loader *l, struct rope *r, int n_rot, int n_ctx_train);

/* Rotation by base alone, all pairs slower by factor. Error: ST_NO_MEMORY. */
enum status rope_plain(struct loader *l, struct rope *r, int n_rot, double base,
                       double factor);

void rope_free(struct rope *r);

/* turn[n_rot]: scaled cosine and sine of each pair at position pos of a context of
 * n_ctx positions, in the layout of the kernel for such pairs: pair after pair, or all
 * cosines before all sines. */
void rope_turns(const struct rope *r, enum rope_pairs pairs, int n_ctx, int pos,
                float *turn);

#endif
