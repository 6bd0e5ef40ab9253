/* SPDX-License-Identifier: MIT
 *
 * random.h - small random number generators, reproducible from a seed on every machine
 *
 * Not for secrets. Threading: a state belongs to one thread at a time.
 */
#ifndef SLM_ENGINE_BASE_RANDOM_H
#define SLM_ENGINE_BASE_RANDOM_H

#include <stdint.h>

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

#endif
