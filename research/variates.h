/* SPDX-License-Identifier: MIT
 *
 * variates.h - random numbers of two distributions, for what is invented
 *
 * Threading: a state belongs to one thread at a time.
 */
#ifndef SLM_RESEARCH_VARIATES_H
#define SLM_RESEARCH_VARIATES_H

#include <math.h>

#include "engine/base/random.h"

/* Uniform in [0, 1). */
static inline double random_uniform(uint64_t *state)
{
    return (double)(random_bits(state) >> 11) * 0x1p-53;
}

/* Of mean 0 and standard deviation 1. Box and Muller 1958, "A note on the generation of
 * random normal deviates". */
static inline double random_normal(uint64_t *state)
{
    const double pi = 3.14159265358979323846, u = 1 - random_uniform(state);

    return sqrt(-2 * log(u)) * cos(2 * pi * random_uniform(state));
}

#endif
