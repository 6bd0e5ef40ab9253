/* SPDX-License-Identifier: MIT
 *
 * value.h - numbers, texts, arrays and functions of a script, by name
 *
 * Texts live in an arena that is freed at once; what is evaluated for a row of data is
 * given back after it.
 *
 * Threading: one thread per arena.
 */
#ifndef SLM_HARNESS_CHART_VALUE_H
#define SLM_HARNESS_CHART_VALUE_H

#include <stdbool.h>
#include <stddef.h>

#define DRAW_MAX_PARAMETERS 4
#define DRAW_MAX_VARIABLES  512
#define DRAW_NAME           32

enum value_kind {
    VALUE_INTEGER, /* in v, whole; its division has no remainder */
    VALUE_REAL,
    VALUE_TEXT
};

struct value {
    enum value_kind kind;
    double v;
    const char *text;
};

struct value value_integer(double v);
struct value value_real(double v);
struct value value_text(const char *text);

/* A text's number is what it begins with, 0 without any. */
double value_number(struct value v);

/* A number, an array of n or, with a body, a function. */
struct variable {
    char name[DRAW_NAME];
    struct value v;
    struct value *array;
    int n;
    const char *body;
    char parameter[DRAW_MAX_PARAMETERS][DRAW_NAME];
    int n_parameters;
};

struct variables {
    struct variable v[DRAW_MAX_VARIABLES];
    int slot[2 * DRAW_MAX_VARIABLES]; /* of a name's hash: 1 + its index; 0: free */
    int n;
};

/* The variable of that name; NULL: there is none. */
struct variable *variable_find(struct variables *t, const char *name);
/* The variable of that name, made if there is none yet; NULL: there is no room for it.
 */
struct variable *variable_make(struct variables *t, const char *name);

/* ---- memory ---------------------------------------------------------------------- */

struct arena {
    struct arena_block *last;
    size_t n_bytes; /* of all blocks */
};

struct arena_mark {
    struct arena_block *block;
    size_t used;
};

/* Aligned for anything; NULL: no memory, or more than 64 MiB in all. */
void *arena_take(struct arena *a, size_t n_bytes);
struct arena_mark arena_mark(const struct arena *a);
void arena_return(struct arena *a, struct arena_mark to);
void arena_free(struct arena *a);

#endif
