/* SPDX-License-Identifier: MIT
 *
 * lazy.c - the arguments of tools, built when a text first comes to them
 *
 * A request may have hundreds of tools, and most answers call none or one. So the
 * machine of such a grammar has an automaton of its own, and a tool's arguments are
 * built behind what is there. Rules for strings and numbers are shared by all tools,
 * and so are their masks.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/build.h"
#include "engine/grammar/machine.h"

/* One machine's automaton; a schema alone has AUTOMATON_NODES at most. */
#define MAX_NODES (4 * AUTOMATON_NODES)
#define MAX_EDGES (4 * AUTOMATON_EDGES)
#define MAX_RULES ((uint32_t)60000) /* ranks have 16 bits */

/* All tools of a request together may take the work of that many schemas. */
#define WORK_OF_ALL 8

void lazy_open(struct machine *m)
{
    automaton_copy(&m->own, &m->g->a);
    m->own.max_nodes = MAX_NODES;
    m->own.max_edges = MAX_EDGES;
    m->own.max_rules = MAX_RULES;
    m->own.err = NULL;
    for (int i = 0; i < N_SHARED; i++)
        m->shared[i] = NO_RULE;
}

uint32_t lazy_build(struct automaton *a, const struct lazy_tool *tool,
                    const struct call_form *form, uint32_t *shared,
                    struct lazy_work *work, uint32_t to)
{
    const struct json_limit limit = {SIZE_MAX, SIZE_MAX};
    json_t *schema = json_try(tool->schema, tool->len, limit, 0);
    struct build b = {.a = a,
                      .root = schema,
                      .string = shared[SHARED_STRING],
                      .any = shared[SHARED_ANY],
                      .number = shared[SHARED_NUMBER],
                      .integer = shared[SHARED_INTEGER],
                      .raw = shared[SHARED_RAW],
                      .pattern_work = work->patterns / WORK_OF_ALL,
                      .merge_work = work->merging / WORK_OF_ALL};
    uint32_t start = NODE_DEAD;

    if (schema)
        start = build_arguments(&b, form, to);
    else
        automaton_fail(a, ST_NO_MEMORY, "cannot read the schema again");
    work->patterns += b.pattern_work - work->patterns / WORK_OF_ALL;
    work->merging += b.merge_work - work->merging / WORK_OF_ALL;
    shared[SHARED_STRING] = b.string;
    shared[SHARED_ANY] = b.any;
    shared[SHARED_NUMBER] = b.number;
    shared[SHARED_INTEGER] = b.integer;
    shared[SHARED_RAW] = b.raw;
    build_free(&b);
    json_decref(schema);
    return start;
}

bool machine_expand(struct machine *m, uint32_t id)
{
    struct automaton *a = &m->own;
    const uint32_t n_nodes = a->n_nodes, n_rules = a->n_rules;
    const struct node lazy = a->nodes[id];
    struct err err = ERR_INIT;
    struct lazy_work work = {0, 0, 0};
    uint32_t start, split;

    a->err = &err;
    start = lazy_build(a, &m->g->tools[lazy.at], &m->g->form, m->shared, &work, lazy.n);
    split = build_open(a, 1);
    build_close(a, split, 0, start);
    automaton_extend(a, n_nodes, n_rules);
    a->err = NULL;
    if (a->n_nodes > MAX_NODES / 2 || a->n_edges > MAX_EDGES / 2 ||
        a->n_rules > MAX_RULES / 2)
        __atomic_store_n(&m->is_full, true, __ATOMIC_RELAXED);
    if (a->st) { /* no text continues there, in this machine */
        __atomic_store_n(&m->is_full, true, __ATOMIC_RELAXED);
        a->st = ST_OK;
        a->n_nodes = n_nodes;
        a->n_rules = n_rules;
        for (int i = 0; i < N_SHARED; i++)
            m->shared[i] = m->shared[i] >= n_rules ? NO_RULE : m->shared[i];
        return false;
    }
    a->nodes[id].kind = NODE_SPLIT;
    a->nodes[id].at = a->nodes[split].at;
    a->nodes[id].n = 1;
    return true;
}
