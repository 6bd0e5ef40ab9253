/* SPDX-License-Identifier: MIT
 *
 * grammar.c - grammars as callers see them
 */
#include "engine/grammar/build.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/jsonfile.h"
#include "engine/grammar/machine.h"

void build_free(struct build *b)
{
    for (size_t i = 0; i < b->n_schemas; i++)
        free(b->schemas[i].path);
    free(b->schemas);
    free(b->patterns);
    json_decref(b->made);
}

uint32_t build_json(struct automaton *a, json_t *schema)
{
    struct build b = {.a = a,
                      .root = schema,
                      .string = NO_RULE,
                      .any = NO_RULE,
                      .number = NO_RULE,
                      .integer = NO_RULE,
                      .raw = NO_RULE};
    const uint32_t start =
        schema ? build_schema_text(&b, NODE_POP) : build_any_object(&b, 0, NODE_POP);

    build_free(&b);
    return start;
}

/* The automaton of a schema, or of any object. */
static enum status make(struct grammar **out, json_t *schema, const char *text,
                        size_t len, struct err *err)
{
    struct grammar *g = calloc(1, sizeof *g);
    enum status st;

    if (!g)
        return err_set(err, ST_NO_MEMORY, "cannot allocate a grammar");
    g->n_refs = 1;
    st = automaton_init(&g->a, err);
    if (!st) {
        g->start = build_json(&g->a, schema);
        g->start_blank =
            build_either(&g->a, g->start, build_text(&g->a, " ", 1, g->start));
        st = automaton_finish(&g->a, g->start);
    }
    if (!st && schema) {
        g->text = malloc(len + 1);
        if (!g->text)
            st = err_set(err, ST_NO_MEMORY, "cannot allocate a schema's text");
        else
            memcpy(g->text, text, len);
        g->len = len;
    }
    g->a.err = NULL; /* the caller's */
    if (st) {
        grammar_unref(g);
        return st;
    }
    *out = g;
    return ST_OK;
}

enum status grammar_json(struct grammar **g, struct err *err)
{
    return make(g, NULL, NULL, 0, err);
}

enum status grammar_from_schema(struct grammar **g, const char *text, size_t len,
                                struct err *err)
{
    const struct json_limit limit = {SCHEMA_BYTES, SCHEMA_VALUES};
    struct jsonfile file = {.root = NULL};
    enum status st = jsonfile_parse(&file, "the schema", text, len, limit, 0, err);

    if (st)
        return st;
    st = make(g, file.root, text, len, err);
    jsonfile_free(&file);
    return st;
}

struct grammar *grammar_ref(struct grammar *g)
{
    if (g)
        __atomic_add_fetch(&g->n_refs, 1, __ATOMIC_RELAXED);
    return g;
}

size_t grammar_bytes(const struct grammar *g)
{
    const struct automaton *a = &g->a;

    return sizeof *g + g->len + g->tool_bytes + a->cap_nodes * sizeof *a->nodes +
           a->cap_edges * sizeof *a->edges + a->cap_rules * sizeof *a->rules +
           (a->need ? a->n_nodes * sizeof *a->need : 0);
}

void grammar_unref(struct grammar *g)
{
    if (!g || __atomic_sub_fetch(&g->n_refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    automaton_free(&g->a);
    for (size_t i = 0; i < g->n_tools; i++) {
        free(g->tools[i].name);
        free(g->tools[i].schema);
    }
    free(g->tools);
    call_form_free(&g->form);
    free(g->text);
    free(g);
}
