/* SPDX-License-Identifier: MIT
 *
 * random.h - small random number generators, reproducible from a seed on every machine,
 * and such a seed
 *
 * Not for secrets. Threading: a state belongs to one thread at a time.
 */
#ifndef SLM_ENGINE_BASE_RANDOM_H
#define SLM_ENGINE_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

#include "engine/base/clock.h"

/* A number that nobody has chosen: another one in each process, also where a clock
 * stands still or begins again at each start. */
static inline uint64_t random_number(void)
{
    uint64_t v = 0;

    return getrandom(&v, sizeof v, 0) == sizeof v ? v : clock_ns();
}

/* A seed where nobody has chosen one: short enough to be typed again, not 0. */
static inline uint64_t random_seed(void)
{
    return (random_number() >> 33) + 1;
}

/* 64 random bits; any initial state is valid. splitmix64: Steele, Lea and Flood 2014,
 * "Fast splittable pseudorandom number generators". */
static inline uint64_t random_bits(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A number below n, 1 <= n <= 2^31; the initial state must not be 0. xorshift64*: Vigna
 * 2014, arXiv 1402.6246. */
static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * 2685821657736338717u >> 33) % n;
}

/* Puts v[n], elements of size bytes each, into random order: all orders are equally
 * likely (Fisher and Yates). Any state is valid. */
static inline void random_shuffle(void *v, size_t n, size_t size, uint64_t *state)
{
    unsigned char *bytes = (unsigned char *)v;

    for (size_t i = n; i > 1; i--) {
        unsigned char *last = bytes + (i - 1) * size;
        unsigned char *other = bytes + random_bits(state) % i * size;

        for (size_t k = 0; k < size; k++) {
            const unsigned char kept = last[k];

            last[k] = other[k];
            other[k] = kept;
        }
    }
}

#endif
