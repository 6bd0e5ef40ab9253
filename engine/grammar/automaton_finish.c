/* SPDX-License-Identifier: MIT
 *
 * automaton_finish.c - what is computed of a whole automaton: the classes of bytes, the
 * order in which rules call each other, and which nodes lead to an end
 */
#include "engine/grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

static void set_classes(struct automaton *a, const bool *begins)
{
    int n = 0;

    for (int byte = 0; byte < 256; byte++) {
        if (begins[byte])
            a->byte_of[n++] = (uint8_t)byte;
        a->class_of[byte] = (uint8_t)(n - 1);
    }
    a->n_classes = n;
}

static void find_classes(struct automaton *a)
{
    bool begins[257] = {true};

    for (uint32_t i = 0; i < a->n_nodes; i++) {
        const struct node *node = &a->nodes[i];

        if (node->kind != NODE_BYTES)
            continue;
        for (uint32_t k = node->at; k < node->at + node->n; k++) {
            begins[a->edges[k].lo] = true;
            begins[a->edges[k].hi + 1] = true;
        }
    }
    set_classes(a, begins);
}

void automaton_join(struct automaton *a, const struct automaton *b)
{
    bool begins[257] = {true};

    for (int byte = 1; byte < 256; byte++)
        begins[byte] = a->class_of[byte] != a->class_of[byte - 1] ||
                       b->class_of[byte] != b->class_of[byte - 1];
    set_classes(a, begins);
    if (b->max_nest > a->max_nest)
        a->max_nest = b->max_nest;
    if (b->max_need > a->max_need)
        a->max_need = b->max_need;
}

/* ---- ranks ----------------------------------------------------------------------- */

/* The nodes reached from a rule's start without a byte, and the rules called there. A
 * depth-first search with its own stack: rules may call each other in long chains. */
struct search {
    struct automaton *a;
    uint32_t *stack; /* nodes to look at, between the marks of the rules they are in */
    size_t n, cap;
    uint32_t *seen; /* [n_nodes] the rule for whose start a node was last seen, + 1 */
    uint8_t *state; /* [n_rules] 0: not yet, 1: begun, 2: done */
};

#define MARK 0x80000000u /* of a rule: its calls are all done */

static void push(struct search *s, uint32_t what)
{
    if (s->a->st)
        return;
    if (s->n == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 256;
        uint32_t *stack = realloc(s->stack, cap * sizeof *stack);

        if (!stack) {
            automaton_fail(s->a, ST_NO_MEMORY, "cannot allocate a stack of %zu nodes",
                           cap);
            return;
        }
        s->stack = stack;
        s->cap = cap;
    }
    s->stack[s->n++] = what;
}

/* Calls of a rule before its first byte, appended to the stack as rules. */
static void push_calls(struct search *s, uint32_t rule)
{
    struct automaton *a = s->a;
    const size_t base = s->n;
    size_t n_calls = 0;
    uint32_t *calls = NULL;

    push(s, a->rules[rule].start);
    while (s->n > base && !a->st) {
        const uint32_t id = s->stack[--s->n];
        const struct node *node = &a->nodes[id];

        if (s->seen[id] == rule + 1)
            continue;
        s->seen[id] = rule + 1;
        if (node->kind == NODE_CALL) {
            uint32_t *more = realloc(calls, (n_calls + 1) * sizeof *calls);

            if (!more) {
                automaton_fail(a, ST_NO_MEMORY, "cannot allocate %zu calls", n_calls);
                break;
            }
            calls = more;
            calls[n_calls++] = node->at;
        } else if (node->kind == NODE_SPLIT) {
            for (uint32_t k = node->at; k < node->at + node->n; k++)
                push(s, a->edges[k].to);
        } else if (node->kind == NODE_REPEAT) { /* NODE_LAZY is in no rule */
            push(s, node->at);
            /* A call may say how often the rule's first repetition is taken. */
            push(s, node->n);
        }
    }
    s->n = base;
    for (size_t i = 0; i < n_calls; i++)
        push(s, calls[i]);
    free(calls);
}

/* Ranks by the order in which the search leaves the rules: callees first. Those before
 * `from` have theirs. */
static void rank_rules(struct search *s, uint32_t from)
{
    struct automaton *a = s->a;
    uint16_t n_left = (uint16_t)from;

    memset(s->state, 2, from);
    for (uint32_t first = from; first < a->n_rules && !a->st; first++) {
        push(s, first);
        while (s->n > 0 && !a->st) {
            const uint32_t top = s->stack[--s->n], rule = top & ~MARK;

            if (top & MARK) {
                s->state[rule] = 2;
                a->rules[rule].rank = ++n_left;
            } else if (s->state[rule] == 1) {
                automaton_fail(a, ST_INPUT,
                               "the schema refers to itself without anything in "
                               "between, so it has no meaning");
            } else if (s->state[rule] == 0) {
                s->state[rule] = 1;
                push(s, rule | MARK);
                push_calls(s, rule);
            }
        }
    }
}

static void find_ranks(struct automaton *a, uint32_t from)
{
    struct search s = {.a = a,
                       .seen = calloc(a->n_nodes, sizeof(uint32_t)),
                       .state = calloc(a->n_rules + 1, 1)};

    if (!s.seen || !s.state)
        automaton_fail(a, ST_NO_MEMORY, "cannot allocate the order of %u rules",
                       a->n_rules);
    else
        rank_rules(&s, from);
    free(s.seen);
    free(s.state);
    free(s.stack);
}

/* ---- which nodes lead to an end -------------------------------------------------- */

static uint16_t larger(uint16_t x, uint16_t y)
{
    return x > y ? x : y;
}

static uint16_t need_of(const struct automaton *a, uint32_t id)
{
    const struct node *node = &a->nodes[id];
    uint16_t need = NEVER;

    switch ((enum node_kind)node->kind) {
    case NODE_END_OF_RULE:
        return 0;
    case NODE_BYTES:
    case NODE_SPLIT:
        for (uint32_t k = node->at; k < node->at + node->n; k++) {
            if (a->need[a->edges[k].to] < need)
                need = a->need[a->edges[k].to];
        }
        return need;
    case NODE_CALL: {
        const uint16_t body = a->need[a->rules[node->at].start];

        return body == NEVER ? NEVER
                             : larger((uint16_t)(body + node->nest), a->need[node->n]);
    }
    case NODE_LAZY:
        return larger((uint16_t)node->min, a->need[node->n]);
    case NODE_REPEAT:
        need = a->need[node->n];
        return node->min > 0 ? larger(need, a->need[node->at]) : need;
    }
    return NEVER;
}

/* Which nodes are computed again when a node's need has fallen: before[from[i]] ..
 * [from[i + 1]], of nodes from `first` on, numbered from there. */
struct reverse {
    uint32_t first;
    uint32_t *from, *before, *work;
    bool *waits;
};

static void note_next(struct reverse *r, uint32_t id, uint32_t next, bool count)
{
    if (next < r->first)
        return;
    next -= r->first;
    if (count)
        r->from[next + 1]++;
    else
        r->before[--r->from[next + 1]] = id - r->first;
}

static void each_next(const struct automaton *a, uint32_t id, struct reverse *r,
                      bool count)
{
    const struct node *node = &a->nodes[id];

    if (node->kind == NODE_BYTES || node->kind == NODE_SPLIT) {
        for (uint32_t k = node->at; k < node->at + node->n; k++)
            note_next(r, id, a->edges[k].to, count);
    } else if (node->kind != NODE_END_OF_RULE) {
        note_next(r, id, node->n, count);
        if (node->kind != NODE_LAZY)
            note_next(r, id,
                      node->kind == NODE_CALL ? a->rules[node->at].start : node->at,
                      count);
    }
}

/* Falls from "never" to what is true; each node waits in the queue once at a time. */
static void let_fall(struct automaton *a, struct reverse *r)
{
    const uint32_t n = a->n_nodes - r->first;
    uint32_t head = 0, waiting = n;

    for (uint32_t i = 0; i < n; i++) {
        r->work[i] = i;
        r->waits[i] = true;
    }
    while (waiting > 0) {
        const uint32_t i = r->work[head], id = i + r->first;

        head = (head + 1) % n;
        waiting--;
        r->waits[i] = false;
        const uint16_t need = need_of(a, id);

        if (need >= a->need[id])
            continue;
        a->need[id] = need;
        for (uint32_t k = r->from[i]; k < r->from[i + 1]; k++) {
            const uint32_t prev = r->before[k];

            if (!r->waits[prev]) {
                r->waits[prev] = true;
                r->work[(head + waiting++) % n] = prev;
            }
        }
    }
}

static void find_needs(struct automaton *a, uint32_t first)
{
    const uint32_t n = a->n_nodes - first;
    const size_t n_links = (size_t)a->n_edges + 2 * (size_t)n;
    struct reverse r = {.first = first,
                        .from = calloc((size_t)n + 2, sizeof(uint32_t)),
                        .before = calloc(n_links + 1, sizeof(uint32_t)),
                        .work = calloc((size_t)n + 1, sizeof(uint32_t)),
                        .waits = calloc((size_t)n + 1, sizeof(bool))};
    uint16_t *need = realloc(a->need, a->n_nodes * sizeof *a->need);

    if (need)
        a->need = need;
    if (!r.from || !r.before || !r.work || !r.waits || !need) {
        automaton_fail(a, ST_NO_MEMORY, "cannot allocate a grammar of %u nodes", n);
    } else {
        for (uint32_t i = 0; i < n; i++)
            each_next(a, i + first, &r, true);
        for (uint32_t i = 1; i <= n; i++)
            r.from[i] += r.from[i - 1];
        const uint32_t n_before = r.from[n];

        /* Filling takes from[i + 1] down to where node i's begin. */
        for (uint32_t i = 0; i < n; i++)
            each_next(a, i + first, &r, false);
        memmove(r.from, r.from + 1, n * sizeof *r.from);
        r.from[n] = n_before;
        memset(a->need + first, 0xff, n * sizeof *a->need);
        let_fall(a, &r);
    }
    free(r.from);
    free(r.before);
    free(r.work);
    free(r.waits);
}

/* The most that nodes and calls from `first` on need. */
static void find_limits(struct automaton *a, uint32_t first)
{
    for (uint32_t i = first; i < a->n_nodes && !a->st; i++) {
        if (a->nodes[i].kind == NODE_CALL && a->nodes[i].nest > a->max_nest)
            a->max_nest = a->nodes[i].nest;
        if (a->need[i] != NEVER && a->need[i] > a->max_need)
            a->max_need = a->need[i];
    }
}

enum status automaton_extend(struct automaton *a, uint32_t n_nodes, uint32_t n_rules)
{
    if (!a->st)
        find_ranks(a, n_rules);
    if (!a->st)
        find_needs(a, n_nodes);
    find_limits(a, n_nodes);
    return a->st;
}

enum status automaton_finish(struct automaton *a, uint32_t start)
{
    if (a->st)
        return a->st;
    find_classes(a);
    automaton_extend(a, 0, 0);
    if (!a->st && a->need[start] == NEVER)
        automaton_fail(a, ST_INPUT,
                       "no text is valid under the schema: something that it requires "
                       "is not allowed, or needs another of its kind without end");
    if (!a->st && a->need[start] > MAX_NEST)
        automaton_fail(a, ST_INPUT,
                       "the schema's texts have more than %d brackets within each "
                       "other",
                       MAX_NEST);
    return a->st;
}
