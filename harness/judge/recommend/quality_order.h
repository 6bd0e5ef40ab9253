/* SPDX-License-Identifier: MIT
 *
 * quality_order.h - types by what they keep of a model, where that was not measured
 *
 * An order, not a figure: how much a type costs depends on the model.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_JUDGE_RECOMMEND_QUALITY_ORDER_H
#define SLM_HARNESS_JUDGE_RECOMMEND_QUALITY_ORDER_H

#include <stdbool.h>

#include "engine/quantize/quantmix.h"
#include "harness/rows/row.h"

/* Ranks are 0 (keeps everything) .. QUALITY_N_RANKS - 1 (not known). */
#define QUALITY_N_RANKS (QUANTMIX_N + 1)

/* Rank of the row's weights and KV cache together. */
int quality_rank(const struct row *r);

/* Whether most weights have fewer than 4 bits. Such types lose too much quality to be
 * chosen for speed alone. */
bool quality_has_few_bits(const struct row *r);

#endif
