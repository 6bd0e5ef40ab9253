/* SPDX-License-Identifier: MIT
 *
 * automaton.c - nodes of an automaton, built from the end
 */
#include "engine/grammar/automaton.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void automaton_fail(struct automaton *a, enum status st, const char *fmt, ...)
{
    char why[sizeof a->err->msg];
    va_list args;

    if (a->st)
        return;
    a->st = st;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    err_set(a->err, st, "%s", why);
}

/* Room for `more` elements after n of *array. */
static bool grow(struct automaton *a, void **array, uint32_t n, uint32_t more,
                 uint32_t *cap, uint32_t limit, size_t size)
{
    if (a->st)
        return false;
    if (more > limit || n > limit - more) {
        automaton_fail(a, ST_INPUT,
                       "the schema is too large: its automaton would have more than "
                       "%u nodes, edges or rules",
                       limit);
        return false;
    }
    if (n + more <= *cap)
        return true;
    uint32_t want = *cap ? *cap * 2 : 64;

    while (want < n + more)
        want *= 2;
    void *p = realloc(*array, want * size);

    if (!p) {
        automaton_fail(a, ST_NO_MEMORY, "cannot allocate a grammar of %u nodes", want);
        return false;
    }
    *array = p;
    *cap = want;
    return true;
}

static uint32_t add_node(struct automaton *a, struct node node)
{
    if (!grow(a, (void **)&a->nodes, a->n_nodes, 1, &a->cap_nodes, a->max_nodes,
              sizeof *a->nodes))
        return NODE_DEAD;
    a->nodes[a->n_nodes] = node;
    return a->n_nodes++;
}

enum status automaton_init(struct automaton *a, struct err *err)
{
    *a = (struct automaton){.err = err,
                            .max_nodes = AUTOMATON_NODES,
                            .max_edges = AUTOMATON_EDGES,
                            .max_rules = AUTOMATON_RULES};
    add_node(a, (struct node){.kind = NODE_END_OF_RULE});
    add_node(a, (struct node){.kind = NODE_BYTES});
    return a->st;
}

void automaton_free(struct automaton *a)
{
    free(a->nodes);
    free(a->edges);
    free(a->rules);
    free(a->need);
}

static void *copy_array(const void *from, size_t bytes)
{
    void *p = malloc(bytes + 1);

    if (p && bytes)
        memcpy(p, from, bytes);
    return p;
}

enum status automaton_copy(struct automaton *to, const struct automaton *a)
{
    *to = *a;
    to->nodes = copy_array(a->nodes, a->n_nodes * sizeof *a->nodes);
    to->edges = copy_array(a->edges, a->n_edges * sizeof *a->edges);
    to->rules = copy_array(a->rules, a->n_rules * sizeof *a->rules);
    to->need = copy_array(a->need, a->n_nodes * sizeof *a->need);
    to->cap_nodes = a->n_nodes;
    to->cap_edges = a->n_edges;
    to->cap_rules = a->n_rules;
    if (!to->nodes || !to->edges || !to->rules || !to->need)
        to->st = ST_NO_MEMORY;
    return to->st;
}

static uint32_t add_edges(struct automaton *a, enum node_kind kind,
                          const struct edge *edges, uint32_t n)
{
    if (!grow(a, (void **)&a->edges, a->n_edges, n, &a->cap_edges, a->max_edges,
              sizeof *a->edges))
        return NODE_DEAD;
    if (n > 0)
        memcpy(a->edges + a->n_edges, edges, n * sizeof *edges);
    a->n_edges += n;
    return add_node(a,
                    (struct node){.kind = (uint8_t)kind, .at = a->n_edges - n, .n = n});
}

uint32_t build_bytes(struct automaton *a, const struct edge *edges, uint32_t n)
{
    return add_edges(a, NODE_BYTES, edges, n);
}

uint32_t build_range(struct automaton *a, uint8_t lo, uint8_t hi, uint32_t to)
{
    return build_bytes(a, &(struct edge){.lo = lo, .hi = hi, .to = to}, 1);
}

uint32_t build_text(struct automaton *a, const char *text, size_t len, uint32_t to)
{
    if (to == NODE_DEAD)
        return to;
    for (size_t i = len; i > 0 && !a->st; i--)
        to = build_range(a, (uint8_t)text[i - 1], (uint8_t)text[i - 1], to);
    return a->st ? NODE_DEAD : to;
}

uint32_t build_open(struct automaton *a, uint32_t n)
{
    const struct edge dead = {.to = NODE_DEAD};
    const uint32_t node = add_edges(a, NODE_SPLIT, &dead, 1);

    for (uint32_t i = 1; i < n && !a->st; i++) {
        if (!grow(a, (void **)&a->edges, a->n_edges, 1, &a->cap_edges, a->max_edges,
                  sizeof *a->edges))
            break;
        a->edges[a->n_edges++] = dead;
        a->nodes[node].n++;
    }
    return a->st ? NODE_DEAD : node;
}

void build_close(struct automaton *a, uint32_t open, uint32_t i, uint32_t to)
{
    if (!a->st)
        a->edges[a->nodes[open].at + i].to = to;
}

uint32_t build_split(struct automaton *a, const uint32_t *to, uint32_t n)
{
    uint32_t n_alive = 0, last = NODE_DEAD;

    for (uint32_t i = 0; i < n; i++) {
        if (to[i] != NODE_DEAD) {
            last = to[i];
            n_alive++;
        }
    }
    if (n_alive < 2)
        return last;
    const uint32_t node = build_open(a, n_alive);

    for (uint32_t i = n; i-- > 0;) {
        if (to[i] != NODE_DEAD)
            build_close(a, node, --n_alive, to[i]);
    }
    return node;
}

uint32_t build_either(struct automaton *a, uint32_t x, uint32_t y)
{
    return build_split(a, (uint32_t[]){x, y}, 2);
}

uint32_t build_call(struct automaton *a, uint32_t rule, uint8_t nest, uint32_t to)
{
    if (to == NODE_DEAD)
        return to;
    return add_node(
        a, (struct node){.kind = NODE_CALL, .nest = nest, .at = rule, .n = to});
}

/* Whether a repetition may be taken so often; a dead end is none. */
static bool may_repeat(struct automaton *a, uint32_t min, uint32_t max)
{
    if (min > AUTOMATON_REPEAT)
        automaton_fail(a, ST_INPUT,
                       "the schema requires at least %u characters or elements; at "
                       "most %u are supported",
                       min, AUTOMATON_REPEAT);
    return min <= max && !a->st;
}

uint32_t build_call_repeat(struct automaton *a, uint32_t rule, uint32_t min,
                           uint32_t max, uint32_t to)
{
    if (!may_repeat(a, min, max) || to == NODE_DEAD)
        return NODE_DEAD;
    return add_node(
        a,
        (struct node){.kind = NODE_CALL, .at = rule, .n = to, .min = min, .max = max});
}

uint32_t build_repeat(struct automaton *a, uint32_t body, uint32_t min, uint32_t max,
                      uint32_t to)
{
    if (!may_repeat(a, min, max) || to == NODE_DEAD || (body == NODE_DEAD && min > 0))
        return NODE_DEAD;
    if (max == 0 || body == NODE_DEAD)
        return to;
    return add_node(
        a, (struct node){
               .kind = NODE_REPEAT, .at = body, .n = to, .min = min, .max = max});
}

uint32_t build_lazy(struct automaton *a, uint32_t tool, uint16_t need, uint32_t to)
{
    if (to == NODE_DEAD)
        return to;
    return add_node(a,
                    (struct node){.kind = NODE_LAZY, .at = tool, .n = to, .min = need});
}

uint32_t build_rule(struct automaton *a)
{
    if (!grow(a, (void **)&a->rules, a->n_rules, 1, &a->cap_rules, a->max_rules,
              sizeof *a->rules))
        return 0;
    a->rules[a->n_rules] = (struct rule){.start = NODE_DEAD};
    return a->n_rules++;
}

/* ---- one of several texts -------------------------------------------------------- */

static int compare_texts(const void *x, const void *y)
{
    const struct text *a = x, *b = y;
    const size_t len = a->len < b->len ? a->len : b->len;
    const int order = memcmp(a->s, b->s, len);

    return order ? order : (a->len > b->len) - (a->len < b->len);
}

/* One of texts[lo] .. [hi], sorted, all different, which agree in their first `from`
 * bytes, from there on. Each level of the recursion parts texts from each other. */
static uint32_t texts_from(struct automaton *a, const struct text *texts, size_t lo,
                           size_t hi, size_t from, uint32_t to)
{
    const struct text *first = &texts[lo], *last = &texts[hi - 1];
    size_t at = from;
    struct edge edges[256];
    uint32_t n = 0, node;

    while (at < first->len && at < last->len && first->s[at] == last->s[at])
        at++;
    const bool ends = first->len == at; /* the shortest comes first */

    for (size_t i = lo + ends; i < hi && !a->st;) {
        const uint8_t byte = (uint8_t)texts[i].s[at];
        size_t end = i + 1;

        while (end < hi && (uint8_t)texts[end].s[at] == byte)
            end++;
        edges[n++] =
            (struct edge){byte, byte, texts_from(a, texts, i, end, at + 1, to)};
        i = end;
    }
    node = n ? build_bytes(a, edges, n) : NODE_DEAD;
    if (ends)
        node = build_either(a, to, node);
    return build_text(a, first->s + from, at - from, node);
}

uint32_t build_texts(struct automaton *a, struct text *texts, size_t n, uint32_t to)
{
    size_t n_different = 0;

    if (!n || a->st)
        return NODE_DEAD;
    qsort(texts, n, sizeof *texts, compare_texts);
    for (size_t i = 0; i < n; i++) {
        if (!i || compare_texts(&texts[i], &texts[n_different - 1])) {
            const struct text other = texts[n_different];

            texts[n_different++] = texts[i];
            texts[i] = other;
        }
    }
    return texts_from(a, texts, 0, n_different, 0, to);
}
