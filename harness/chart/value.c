/* SPDX-License-Identifier: MIT
 *
 * value.c - values, variables, and the memory of texts
 */
#include "harness/chart/value.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)1 << 16)
#define MAX_BYTES   ((size_t)64 << 20)
#define ALIGN       16

struct value value_integer(double v)
{
    return (struct value){.kind = VALUE_INTEGER, .v = v};
}

struct value value_real(double v)
{
    return (struct value){.kind = VALUE_REAL, .v = v};
}

struct value value_text(const char *text)
{
    return (struct value){.kind = VALUE_TEXT, .text = text};
}

double value_number(struct value v)
{
    return v.kind == VALUE_TEXT ? strtod(v.text, NULL) : v.v;
}

/* ---- names ----------------------------------------------------------------------- */

/* Where the name is, or the free place where it belongs. */
static int *slot_of(struct variables *t, const char *name)
{
    const unsigned n_slots = sizeof t->slot / sizeof t->slot[0];
    uint32_t hash = 2166136261u;

    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (;; hash++) {
        int *slot = &t->slot[hash % n_slots];

        if (!*slot || !strcmp(t->v[*slot - 1].name, name))
            return slot;
    }
}

struct variable *variable_find(struct variables *t, const char *name)
{
    const int at = *slot_of(t, name);

    return at ? &t->v[at - 1] : NULL;
}

struct variable *variable_make(struct variables *t, const char *name)
{
    int *slot = slot_of(t, name);

    if (!*slot) {
        if (t->n == DRAW_MAX_VARIABLES)
            return NULL;
        struct variable *v = &t->v[t->n++];

        memset(v, 0, sizeof *v);
        strncpy(v->name, name, sizeof v->name - 1);
        *slot = t->n;
    }
    return &t->v[*slot - 1];
}

/* ---- memory ---------------------------------------------------------------------- */

struct arena_block {
    struct arena_block *before;
    size_t used, cap;
};

#define HEAD ((sizeof(struct arena_block) + ALIGN - 1) / ALIGN * ALIGN)

void *arena_take(struct arena *a, size_t n_bytes)
{
    const size_t n = (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
    struct arena_block *b = a->last;

    if (n_bytes > MAX_BYTES)
        return NULL;
    if (!b || b->cap - b->used < n) {
        const size_t cap = n > BLOCK_BYTES ? n : BLOCK_BYTES;

        if (a->n_bytes + cap > MAX_BYTES || !(b = malloc(HEAD + cap)))
            return NULL;
        *b = (struct arena_block){a->last, 0, cap};
        a->last = b;
        a->n_bytes += cap;
    }
    b->used += n;
    return (char *)b + HEAD + b->used - n;
}

struct arena_mark arena_mark(const struct arena *a)
{
    return (struct arena_mark){a->last, a->last ? a->last->used : 0};
}

void arena_return(struct arena *a, struct arena_mark to)
{
    while (a->last != to.block) {
        struct arena_block *b = a->last;

        a->last = b->before;
        a->n_bytes -= b->cap;
        free(b);
    }
    if (a->last)
        a->last->used = to.used;
}

void arena_free(struct arena *a)
{
    arena_return(a, (struct arena_mark){0});
}
