/* SPDX-License-Identifier: MIT
 *
 * prefetch_rule.h - choose the fastest of some settings by interleaved rounds
 *
 * Model of the world: a machine has one best setting and neighbours that are equal
 * within the noise; any single round may be disturbed. Mistaking one of nearly equal
 * settings for another costs nothing, so the one in force stays unless another is
 * better by a margin in the median and in far more rounds than chance allows. Among
 * many settings few rounds rarely say so much: they say which of them may be the best,
 * and rounds of that one and the one in force alone, which are many, decide.
 *
 * Threading: a pure function.
 */
#ifndef SLM_ENGINE_FORWARD_PREFETCH_RULE_H
#define SLM_ENGINE_FORWARD_PREFETCH_RULE_H

#include <stddef.h>

enum {
    PREFETCH_MAX_CANDIDATES = 12,
    PREFETCH_MIN_ROUNDS = 8, /* with fewer nothing changes */
    PREFETCH_MAX_ROUNDS = 64,
};

/* The share by which a challenger's median must be below that of the one in force. */
#define PREFETCH_MARGIN 0.03

/* The challengers 1 .. n_candidates-1 in order[n_candidates - 1], fastest first: by the
 * median of their time in proportion to that of the one in force in the same round.
 * time as below. */
void prefetch_rank(size_t n_rounds, int n_candidates,
                   double time[][PREFETCH_MAX_CANDIDATES], int *order);

/* time[i][c]: of candidate c in round i, in any unit, > 0; candidate 0 is in force.
 * Returns the one to use. */
int prefetch_choose(size_t n_rounds, int n_candidates,
                    double time[][PREFETCH_MAX_CANDIDATES]);

#endif
