/* SPDX-License-Identifier: MIT
 *
 * tokenizer_sorted.h - tokens in the order of their bytes, and those that a text begins
 * with; for tokenizer*.c only
 *
 * Threading: immutable after sorted_end().
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_SORTED_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_SORTED_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct sorted_token {
    const char *text; /* not copied */
    uint32_t len;
    int32_t id;
};

struct sorted {
    struct sorted_token *v; /* [n] */
    size_t n, cap;
    size_t at[257]; /* those that begin with byte b are v[at[b]] .. v[at[b + 1]] */
};

/* Room for cap tokens. Error: ST_NO_MEMORY. */
enum status sorted_begin(struct sorted *s, size_t cap, struct err *err);
/* An empty text is left out. */
void sorted_add(struct sorted *s, const char *text, size_t len, int32_t id);
/* Where texts are equal the highest id stays. */
void sorted_end(struct sorted *s);
void sorted_free(struct sorted *s);

/* The tokens that a text begins with, from the shortest to the longest. */
struct sorted_walk {
    const struct sorted *s;
    size_t lo, hi; /* tokens that agree with the text so far */
    size_t n;      /* bytes of that */
};

struct sorted_walk sorted_walk(const struct sorted *s, unsigned char first);

/* The next one in text[len], len >= 1, whose first byte the walk began with, and its
 * bytes; -1: no more. */
int32_t sorted_next(struct sorted_walk *w, const char *text, size_t len, size_t *n);

/* The longest one; -1: none. */
int32_t sorted_longest(const struct sorted *s, const char *text, size_t len, size_t *n);

#endif
