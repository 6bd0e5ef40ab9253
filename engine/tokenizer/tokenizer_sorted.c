/* SPDX-License-Identifier: MIT
 *
 * tokenizer_sorted.c - sorting and binary search
 */
#include "engine/tokenizer/tokenizer_sorted.h"

#include <stdlib.h>
#include <string.h>

static int compare(const struct sorted_token *x, const struct sorted_token *y)
{
    const int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static int by_text(const void *a, const void *b)
{
    const struct sorted_token *x = a, *y = b;
    const int order = compare(x, y);

    return order ? order : (x->id < y->id) - (x->id > y->id);
}

enum status sorted_begin(struct sorted *s, size_t cap, struct err *err)
{
    *s = (struct sorted){.cap = cap};
    s->v = malloc((cap + 1) * sizeof *s->v);
    return s->v ? ST_OK
                : err_set(err, ST_NO_MEMORY,
                          "cannot allocate a vocabulary of %zu tokens", cap);
}

void sorted_add(struct sorted *s, const char *text, size_t len, int32_t id)
{
    if (len && s->n < s->cap)
        s->v[s->n++] = (struct sorted_token){text, (uint32_t)len, id};
}

void sorted_end(struct sorted *s)
{
    size_t kept = 0;

    if (s->n)
        qsort(s->v, s->n, sizeof *s->v, by_text);
    for (size_t i = 0; i < s->n; i++)
        if (!kept || compare(&s->v[kept - 1], &s->v[i]))
            s->v[kept++] = s->v[i];
    s->n = kept;
    for (size_t i = 0; i < kept; i++)
        s->at[(unsigned char)*s->v[i].text + 1] = i + 1;
    for (int b = 1; b <= 256; b++)
        if (s->at[b] < s->at[b - 1])
            s->at[b] = s->at[b - 1];
}

void sorted_free(struct sorted *s)
{
    free(s->v);
}

/* The first of v[lo] .. v[hi] whose byte after the first n is at least `next`; they
 * agree in the first n bytes and are longer. */
static size_t first_from(const struct sorted *s, size_t lo, size_t hi, size_t n,
                         unsigned next)
{
    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;

        if ((unsigned char)s->v[middle].text[n] < next)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

struct sorted_walk sorted_walk(const struct sorted *s, unsigned char first)
{
    return (struct sorted_walk){s, s->at[first], s->at[first + 1], 1};
}

int32_t sorted_next(struct sorted_walk *w, const char *text, size_t len, size_t *n)
{
    int32_t found = -1;

    while (found < 0 && w->lo < w->hi && w->n <= len) {
        if (w->s->v[w->lo].len == w->n) { /* the shortest is the first, all differ */
            found = w->s->v[w->lo++].id;
            *n = w->n;
        }
        if (w->lo < w->hi && w->n < len) {
            const unsigned next = (unsigned char)text[w->n];

            w->lo = first_from(w->s, w->lo, w->hi, w->n, next);
            w->hi = first_from(w->s, w->lo, w->hi, w->n, next + 1);
        }
        w->n++;
    }
    return found;
}

int32_t sorted_longest(const struct sorted *s, const char *text, size_t len, size_t *n)
{
    struct sorted_walk w = sorted_walk(s, (unsigned char)*text);
    int32_t found = -1, id;

    while ((id = sorted_next(&w, text, len, n)) >= 0)
        found = id;
    return found;
}
