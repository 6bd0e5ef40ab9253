/* SPDX-License-Identifier: MIT
 *
 * mix_search.h - which group of weights gets which type, within a number of bytes
 *
 * Model of the world: weights are in groups; each group takes one of several types,
 * which costs bytes and a loss, and losses add up (what Malinovskii et al. 2024,
 * arXiv 2411.17525, prove of small errors). The least loss within a budget is a
 * knapsack with one choice for each group. It is solved by dynamic programming over the
 * bytes above the lightest mix, in at most MIX_SEARCH_SLOTS slots; a slot keeps
 * its mix of the least loss, with its exact bytes. So a result never
 * exceeds the budget, and is the optimum where the bytes to spend are fewer than the
 * slots.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_DECIDE_CHOOSE_MIX_SEARCH_H
#define SLM_HARNESS_DECIDE_CHOOSE_MIX_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define MIX_SEARCH_SLOTS     8192
#define MIX_SEARCH_MAX_TYPES 255

/* One group in one type. */
struct mix_option {
    uint64_t bytes;
    double loss; /* >= 0 */
};

struct mix_table {
    size_t n_groups, n_types;        /* types <= MIX_SEARCH_MAX_TYPES */
    const struct mix_option *option; /* [n_groups][n_types] */
};

/* The lightest mix there is. */
uint64_t mix_min_bytes(const struct mix_table *t);

/* The mix of the least loss within budget bytes, of equals the lighter one: type[g] of
 * each group, and its sums in *sum. Errors: ST_CHECK (the lightest mix exceeds the
 * budget), ST_NO_MEMORY; type and *sum are untouched then. */
enum status mix_search(uint8_t *type, struct mix_option *sum, const struct mix_table *t,
                       uint64_t budget, struct err *err);

#endif
