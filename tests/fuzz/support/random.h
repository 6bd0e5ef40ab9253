/* SPDX-License-Identifier: MIT
 *
 * random.h - choices of a mutation, from libFuzzer's seed
 *
 * Threading: data of one owner.
 */
#ifndef SLM_TESTS_FUZZ_RANDOM_H
#define SLM_TESTS_FUZZ_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct choice_source {
    uint64_t state;
};

static inline struct choice_source choices_from(unsigned seed)
{
    return (struct choice_source){seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
}

/* 0 .. n - 1; n >= 1 */
static inline size_t choose(struct choice_source *c, size_t n)
{
    c->state ^= c->state << 13;
    c->state ^= c->state >> 7;
    c->state ^= c->state << 17;
    return (size_t)((c->state >> 20) % n);
}

/* A count: 1 to 4096, each power of two as often as the next. */
static inline size_t choose_count(struct choice_source *c)
{
    return (size_t)1 << choose(c, 13);
}

/* One of words, whose end is NULL; NULL if there is none. */
static inline const char *choose_word(struct choice_source *c, const char *const *words)
{
    size_t n = 0;

    while (words && words[n])
        n++;
    return n ? words[choose(c, n)] : NULL;
}

#endif
