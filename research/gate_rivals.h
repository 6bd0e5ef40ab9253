/* SPDX-License-Identifier: MIT
 *
 * gate_rivals.h - rules that other tools judge a benchmark's two runs by
 *
 * Each run is a series of times, one build after the other, as these tools take them.
 * The rules are those of the tools' documentation, with their defaults.
 *
 * Threading: pure functions.
 */
#ifndef SLM_RESEARCH_GATE_RIVALS_H
#define SLM_RESEARCH_GATE_RIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rival {
    RIVAL_PLAIN,     /* the mean time is 2 % longer, which is what many write first */
    RIVAL_ACTION,    /* github-action-benchmark: twice the time (200 %) */
    RIVAL_T_TEST,    /* Welch's t test, two-sided, 5 % */
    RIVAL_CRITERION, /* criterion: a bootstrapped t test, 5 %, and the mean's interval
                        beyond a noise threshold of 1 % */
    RIVAL_MANN_WHITNEY, /* google-benchmark's compare.py: U test, two-sided, 5 % */
    RIVAL_N
};

const char *rival_name(enum rival rival);

/* Does the rule say that b is slower than a? Times above 0, n >= 2 of each; seed is for
 * the one that draws. */
bool rival_alarm(enum rival rival, const double *a, const double *b, size_t n,
                 uint64_t seed);

#endif
