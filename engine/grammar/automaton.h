/* SPDX-License-Identifier: MIT
 *
 * automaton.h - a grammar as an automaton over bytes that calls rules; for
 * engine/grammar
 *
 * Nodes have edges for bytes, or are passed without a byte: a choice, the call of a
 * rule, a repetition, the end of a rule (NODE_POP, which goes back to what follows the
 * call, or to the next turn of the repetition). Rules may call each other in circles,
 * but not before a byte was read; no rule and no body of a repetition is empty.
 *
 * Automata are built from their end: each function takes the node that follows what it
 * builds and returns where that begins. An error is kept in the automaton, whose
 * functions then return NODE_DEAD.
 *
 * Threading: immutable once automaton_finish() has returned.
 */
#ifndef SLM_ENGINE_GRAMMAR_AUTOMATON_H
#define SLM_ENGINE_GRAMMAR_AUTOMATON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define NO_LIMIT         UINT32_MAX
#define AUTOMATON_NODES  ((uint32_t)1 << 18) /* limits of one grammar */
#define AUTOMATON_EDGES  ((uint32_t)1 << 20)
#define AUTOMATON_RULES  ((uint32_t)1 << 12)
#define AUTOMATON_REPEAT ((uint32_t)1 << 16) /* times that a repetition must have */
#define MAX_NEST         256 /* calls inside of brackets, one in the other */
#define NEVER            UINT16_MAX

/* NODE_LAZY becomes a NODE_SPLIT when a text first comes there (lazy.c): the arguments
 * of a tool, which most texts never call. */
enum node_kind {
    NODE_BYTES,
    NODE_SPLIT,
    NODE_CALL,
    NODE_REPEAT,
    NODE_END_OF_RULE,
    NODE_LAZY
};

/* The first two nodes of every automaton. */
#define NODE_POP  0u /* the only NODE_END_OF_RULE */
#define NODE_DEAD 1u /* NODE_BYTES without edges: no text continues here */

struct node {
    uint8_t kind;
    uint8_t nest; /* NODE_CALL: brackets around the call within its rule */
    uint32_t at;  /* first edge; CALL: the rule; REPEAT: the body, which ends in POP;
                     LAZY: the number of the tool */
    uint32_t n;   /* number of edges; CALL, REPEAT, LAZY: the node that follows */
    uint32_t min, max; /* REPEAT; CALL: of the repetition that the rule begins with,
                          where max > 0; LAZY: min is what the body needs */
};

struct edge {
    uint8_t lo, hi; /* of NODE_BYTES */
    uint32_t to;
};

struct rule {
    uint32_t start;
    uint16_t rank; /* above those that it calls before its first byte */
};

struct automaton {
    struct node *nodes;
    struct edge *edges;
    struct rule *rules;
    uint32_t n_nodes, n_edges, n_rules;
    uint32_t cap_nodes, cap_edges, cap_rules;

    /* of automaton_finish() */
    uint16_t *need; /* [n_nodes] calls inside of brackets that the way to the end of the
                       rule takes at least; NEVER: there is none */
    uint8_t class_of[256]; /* bytes that no edge tells apart */
    uint8_t byte_of[256];  /* [n_classes] the first byte of a class */
    int n_classes;
    uint8_t max_nest;  /* of all calls */
    uint16_t max_need; /* of all nodes that lead to an end */

    uint32_t max_nodes; /* AUTOMATON_NODES or less, in automaton_init() */
    uint32_t max_edges, max_rules;
    const char *raw; /* what closes a string that is written as it is: build_chars()
                        makes no escapes, and not its first byte. NULL: JSON's strings
                      */
    enum status st;
    struct err *err;
};

/* Error: ST_NO_MEMORY, also in a->st. automaton_free() is due in any case. */
enum status automaton_init(struct automaton *a, struct err *err);
void automaton_free(struct automaton *a);

/* The first error, with its sentence: ST_INPUT for what the schema is to blame for. */
void automaton_fail(struct automaton *a, enum status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

uint32_t build_bytes(struct automaton *a, const struct edge *edges, uint32_t n);
uint32_t build_range(struct automaton *a, uint8_t lo, uint8_t hi, uint32_t to);
uint32_t build_text(struct automaton *a, const char *text, size_t len, uint32_t to);
uint32_t build_split(struct automaton *a, const uint32_t *to, uint32_t n);
uint32_t build_either(struct automaton *a, uint32_t x, uint32_t y);

/* A choice whose ways (n, now dead) are set later: for loops. */
uint32_t build_open(struct automaton *a, uint32_t n);
void build_close(struct automaton *a, uint32_t open, uint32_t i, uint32_t to);

uint32_t build_call(struct automaton *a, uint32_t rule, uint8_t nest, uint32_t to);
/* The same of a rule that begins with a repetition, whose limits are others; max > 0.
 */
uint32_t build_call_repeat(struct automaton *a, uint32_t rule, uint32_t min,
                           uint32_t max, uint32_t to);
uint32_t build_repeat(struct automaton *a, uint32_t body, uint32_t min, uint32_t max,
                      uint32_t to);
/* A new rule; its start is set later. */
uint32_t build_rule(struct automaton *a);

/* One of texts[n], which are put into another order here. */
struct text {
    const char *s;
    size_t len;
};
uint32_t build_texts(struct automaton *a, struct text *texts, size_t n, uint32_t to);

/* The body of a tool that is built later, whose way to its end takes `need`. */
uint32_t build_lazy(struct automaton *a, uint32_t tool, uint16_t need, uint32_t to);

/* The start of a whole text and what automaton.h says is computed at the end. Errors:
 * a->st; ST_INPUT where a rule calls itself before a byte, or no text ends. */
enum status automaton_finish(struct automaton *a, uint32_t start);

/* As automaton_finish() for what was built behind n_nodes and n_rules, which nothing
 * before calls but by NODE_LAZY; its bytes are of the classes that there are. */
enum status automaton_extend(struct automaton *a, uint32_t n_nodes, uint32_t n_rules);

/* Bytes that b distinguishes are distinguished by a as well; limits of nesting are
 * those of both. */
void automaton_join(struct automaton *a, const struct automaton *b);

/* A copy that can be extended. Error: ST_NO_MEMORY, also in to->st. */
enum status automaton_copy(struct automaton *to, const struct automaton *a);

#endif
