/* SPDX-License-Identifier: MIT
 *
 * pattern.h - regular expressions: parsed here, made deterministic in pattern_dfa.c
 *
 * Source: ECMA 262, the part of its syntax that is regular: characters, classes,
 * groups, alternatives, repetitions, and ^ and $ at the ends.
 *
 * Threading: one thread per object.
 */
#ifndef SLM_ENGINE_GRAMMAR_PATTERN_H
#define SLM_ENGINE_GRAMMAR_PATTERN_H

#include "engine/grammar/build.h"

#define PATTERN_BYTES 2048 /* of a regular expression */

enum pattern_kind {
    PATTERN_EMPTY,
    PATTERN_CHARS,
    PATTERN_BOTH,
    PATTERN_EITHER,
    PATTERN_TIMES
};

/* A part of an expression: characters, x then y, x or y, x min to max times. */
struct pattern_part {
    enum pattern_kind kind;
    uint32_t x, y;     /* parts; CHARS: ranges[x] .. [x + y] */
    uint32_t min, max; /* TIMES */
};

struct pattern {
    const char *whole, *text, *end; /* the expression, what is left of it */
    struct build *b;
    struct pattern_part *parts;
    struct char_range *ranges;
    uint32_t n_parts, n_ranges, cap_parts, cap_ranges;
    int depth;
};

/* The part that a whole text must match; errors are in p->b->a. pattern_free() is due
 * in any case. */
uint32_t pattern_parse(struct pattern *p, struct build *b, const char *text,
                       size_t len);
void pattern_free(struct pattern *p);

#endif
