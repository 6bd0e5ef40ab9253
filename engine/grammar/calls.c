/* SPDX-License-Identifier: MIT
 *
 * calls.c - grammars of answers that may call tools
 *
 * The names of tools are a tree, with what separates a name from its arguments behind
 * each; arguments are built later (lazy.c). But every schema is checked here, so that a
 * request with one that is not supported is refused before anything is computed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/jsonfile.h"
#include "engine/grammar/build.h"
#include "engine/grammar/machine.h"

#define ALL_BYTES ((size_t)4 << 20)
/* Made and thrown away, so that checking takes a second. */
#define ALL_NODES (1 << 22)

static enum status no_memory(struct err *err)
{
    return err_set(err, ST_NO_MEMORY, "cannot allocate the grammar of tools");
}

/* ---- tools ----------------------------------------------------------------------- */

/* An object with the members that are declared. */
static enum status close_schema(json_t *schema, const char *name, struct err *err)
{
    const json_t *type = json_object_get(schema, "type");

    if (type && (!json_text(type) || strcmp(json_text(type), "object") != 0))
        return err_set(err, ST_INPUT,
                       "tool %s: the type of its parameters must be "
                       "object",
                       name);
    if (!type)
        json_object_set_new(schema, "type", json_string("object"));
    if (!json_object_get(schema, "additionalProperties") &&
        (json_object_get(schema, "properties") || json_object_size(schema) == 1) &&
        !json_object_get(schema, "$ref") && !json_object_get(schema, "allOf") &&
        !json_object_get(schema, "anyOf") && !json_object_get(schema, "oneOf"))
        json_object_set_new(schema, "additionalProperties", json_false());
    return ST_OK;
}

static enum status read_tool(struct lazy_tool *t, const struct grammar_tool *tool,
                             struct err *err)
{
    const struct json_limit limit = {SCHEMA_BYTES, SCHEMA_VALUES};
    struct jsonfile file = {.root = NULL};
    char name[96];
    enum status st;

    snprintf(name, sizeof name, "the schema of tool %s", tool->name);
    st = jsonfile_parse(&file, name, tool->len ? tool->schema : "{}",
                        tool->len ? tool->len : 2, limit, 0, err);
    if (!st)
        st = close_schema(file.root, tool->name, err);
    if (!st) {
        t->name = strdup(tool->name);
        t->schema = json_dumps(file.root, JSON_COMPACT);
        t->len = t->schema ? strlen(t->schema) : 0;
        if (!t->name || !t->schema)
            st = no_memory(err);
    }
    jsonfile_free(&file);
    return st;
}

/* Build it in an automaton that is thrown away; classes of bytes stay in join. */
static enum status check_tool(struct lazy_tool *t, const struct call_form *form,
                              struct automaton *join, bool *joined,
                              struct lazy_work *work, struct err *err)
{
    uint32_t shared[N_SHARED];
    struct automaton a;
    struct err why = ERR_INIT;
    uint32_t start = NODE_DEAD;

    for (int i = 0; i < N_SHARED; i++)
        shared[i] = NO_RULE;
    if (!automaton_init(&a, &why))
        start = lazy_build(&a, t, form, shared, work, NODE_POP);
    if (!automaton_finish(&a, start)) {
        t->need = a.need[start];
        if (*joined)
            automaton_join(join, &a);
        else
            memcpy(join->class_of, a.class_of, sizeof a.class_of);
        *joined = true;
        join->max_nest = a.max_nest > join->max_nest ? a.max_nest : join->max_nest;
        join->max_need = a.max_need > join->max_need ? a.max_need : join->max_need;
    }
    work->nodes += a.n_nodes;
    if (!a.st && work->nodes > ALL_NODES)
        automaton_fail(&a, ST_INPUT,
                       "the schemas of all tools are too large together: they would "
                       "have more than %d nodes",
                       ALL_NODES);
    if (a.st)
        err_set(err, a.st, "tool %s: %s", t->name, why.msg);
    automaton_free(&a);
    return a.st;
}

static int compare_tools(const void *x, const void *y)
{
    const struct lazy_tool *a = x, *b = y;

    return strcmp(a->name, b->name);
}

static bool is_name(const char *name)
{
    size_t n = 0;

    while (call_is_name(name[n]))
        n++;
    return n && n <= CALL_MAX_NAME && !name[n];
}

static enum status read_tools(struct grammar *g, const struct grammar_calls *c,
                              struct automaton *join, struct err *err)
{
    size_t bytes = 0;
    struct lazy_work work = {0, 0, 0};
    bool joined = false;
    enum status st = ST_OK;

    if (!c->n_tools || c->n_tools > GRAMMAR_MAX_TOOLS)
        return err_set(err, ST_INPUT, "%zu tools; 1 to %d are possible", c->n_tools,
                       GRAMMAR_MAX_TOOLS);
    g->tools = calloc(c->n_tools, sizeof *g->tools);
    if (!g->tools)
        return no_memory(err);
    for (size_t i = 0; i < c->n_tools && !st; i++) {
        if (!is_name(c->tools[i].name))
            return err_set(err, ST_INPUT,
                           "tool %zu has the name '%.80s'; a name has 1 to %d letters, "
                           "digits, _ and -",
                           i, c->tools[i].name, CALL_MAX_NAME);
        bytes += c->tools[i].len;
        if (bytes > ALL_BYTES)
            return err_set(err, ST_INPUT,
                           "the schemas of all tools have more than %zu "
                           "MiB",
                           ALL_BYTES >> 20);
        st = read_tool(&g->tools[g->n_tools++], &c->tools[i], err);
        if (!st)
            st = check_tool(&g->tools[i], &g->form, join, &joined, &work, err);
    }
    if (st)
        return st;
    qsort(g->tools, g->n_tools, sizeof *g->tools, compare_tools);
    for (size_t i = 1; i < g->n_tools; i++)
        if (!strcmp(g->tools[i].name, g->tools[i - 1].name))
            return err_set(err, ST_INPUT, "two tools have the name %s",
                           g->tools[i].name);
    return ST_OK;
}

/* ---- the automaton --------------------------------------------------------------- */

/* Names of tools lo .. hi, which agree in their first `from` bytes, from there on. */
static uint32_t names_from(struct automaton *a, const struct grammar *g, size_t lo,
                           size_t hi, size_t from, const uint32_t *behind)
{
    struct edge edges[256];
    uint32_t n = 0, node;
    const bool ends = !g->tools[lo].name[from];

    for (size_t i = lo + ends; i < hi && !a->st;) {
        const char ch = g->tools[i].name[from];
        size_t end = i + 1;

        while (end < hi && g->tools[end].name[from] == ch)
            end++;
        edges[n++] = (struct edge){(uint8_t)ch, (uint8_t)ch,
                                   names_from(a, g, i, end, from + 1, behind)};
        i = end;
    }
    node = n ? build_bytes(a, edges, n) : NODE_DEAD;
    return ends ? build_either(a, behind[lo], node) : node;
}

/* Names behind a beginning, with each separator that it may have; arguments[i] follow,
 * and behind[] is for use here. */
static uint32_t build_names(struct automaton *a, const struct grammar *g,
                            const struct call_form *f, const char *begin,
                            const uint32_t *arguments, uint32_t *behind)
{
    for (size_t i = 0; i < g->n_tools; i++) {
        behind[i] = strcmp(f->begin, begin) != 0
                        ? NODE_DEAD
                        : build_form_text(a, f->sep, arguments[i]);
        for (int k = 0; k < f->n_heads; k++)
            if (!strcmp(f->heads[k].begin, begin))
                behind[i] = build_either(
                    a, behind[i], build_form_text(a, f->heads[k].sep, arguments[i]));
    }
    return a->st ? NODE_DEAD : names_from(a, g, 0, g->n_tools, 0, behind);
}

/* Whether an earlier head begins as head k does. */
static bool has_begun(const struct call_form *f, int k)
{
    bool known = !strcmp(f->begin, f->heads[k].begin);

    for (int i = 0; i < k; i++)
        known |= !strcmp(f->heads[i].begin, f->heads[k].begin);
    return known;
}

/* Calls: behind the trigger, and with each head. */
static void build_calls(struct automaton *a, const struct grammar *g,
                        const struct grammar_calls *c, struct call_start *s)
{
    const struct call_form *f = c->form;
    const uint32_t next = build_open(a, 2);
    uint32_t *nodes = calloc(2 * g->n_tools, sizeof *nodes);
    uint32_t *behind, names;

    if (!nodes) {
        automaton_fail(a, ST_NO_MEMORY, "cannot allocate %zu names", g->n_tools);
        return;
    }
    behind = nodes + g->n_tools;
    for (size_t i = 0; i < g->n_tools; i++)
        nodes[i] = build_lazy(a, (uint32_t)i, g->tools[i].need, next);
    names = build_names(a, g, f, f->begin, nodes, behind);
    s->calls = build_form_text(a, f->begin + f->n_trigger, names);
    s->heads = build_text(a, f->begin, f->n_trigger, s->calls);
    for (int k = 0; k < f->n_heads; k++) {
        const char *begin = f->heads[k].begin;

        if (!has_begun(f, k))
            s->heads = build_either(
                a, s->heads,
                build_form_text(a, begin, build_names(a, g, f, begin, nodes, behind)));
    }
    build_close(a, next, 0, build_form_text(a, f->end, NODE_POP));
    if (c->parallel && f->mid)
        build_close(a, next, 1, build_form_text(a, f->mid, names));
    free(nodes);
}

/* The text of an answer that follows a schema; NODE_DEAD: it is free. */
static uint32_t build_value(struct automaton *a, const struct grammar_calls *c)
{
    const struct json_limit limit = {SCHEMA_BYTES, SCHEMA_VALUES};
    struct jsonfile file = {.root = NULL};
    uint32_t value = NODE_DEAD;

    if (!c->schema)
        return NODE_DEAD;
    if (c->n_schema &&
        jsonfile_parse(&file, "the schema", c->schema, c->n_schema, limit, 0, a->err))
        a->st = a->err->code;
    else
        value = build_json(a, file.root);
    jsonfile_free(&file);
    return value;
}

static uint32_t build_answer(struct automaton *a, const struct grammar *g,
                             const struct grammar_calls *c)
{
    const struct call_form *f = c->form;
    struct call_start s = {.think_begin = c->think_begin,
                           .think_end = c->think_end,
                           .thinks = c->thinks,
                           .trigger = f->begin,
                           .n_trigger = f->n_trigger,
                           .anywhere = f->anywhere,
                           .answer = f->answer,
                           .preamble = f->preamble,
                           .next = f->next,
                           .n_next = f->n_next,
                           .text = c->choice != GRAMMAR_REQUIRED && !c->schema,
                           .value = build_value(a, c),
                           .calls = NODE_DEAD,
                           .heads = NODE_DEAD};

    if (c->choice != GRAMMAR_NONE)
        build_calls(a, g, c, &s);
    return build_call_start(a, &s);
}

/* ---- what distinguishes grammars ------------------------------------------------- */

struct blob {
    char *s;
    size_t n, cap;
    bool failed;
};

/* Texts of any bytes, each with its length. */
static void add_text(struct blob *b, const char *s, size_t n)
{
    const size_t more = n + sizeof n;

    if (b->failed)
        return;
    if (b->n + more > b->cap) {
        char *p = realloc(b->s, 2 * (b->n + more));

        b->failed = !p;
        if (!p)
            return;
        b->s = p;
        b->cap = 2 * (b->n + more);
    }
    memcpy(b->s + b->n, &n, sizeof n);
    if (n)
        memcpy(b->s + b->n + sizeof n, s, n);
    b->n += more;
}

static void add_string(struct blob *b, const char *s)
{
    add_text(b, s, s ? strlen(s) : 0);
}

static enum status make_text(struct grammar *g, const struct grammar_calls *c,
                             struct err *err)
{
    const struct call_form *f = c->form;
    const unsigned char flags[] = {0,
                                   (unsigned char)c->choice,
                                   c->parallel,
                                   c->thinks,
                                   c->think_end != NULL,
                                   f->anywhere,
                                   f->parameters,
                                   f->quotes,
                                   f->python,
                                   (unsigned char)f->n_trigger,
                                   f->mid != NULL,
                                   f->answer != NULL,
                                   f->preamble != NULL,
                                   f->next != NULL,
                                   (unsigned char)f->n_next,
                                   (unsigned char)f->n_heads,
                                   c->schema != NULL};
    const char *const texts[] = {f->begin,    f->sep,         f->mid,      f->end,
                                 f->answer,   f->preamble,    f->next,     f->open,
                                 f->join,     f->value[0],    f->value[1], f->close[0],
                                 f->close[1], c->think_begin, c->think_end};
    struct blob b = {.s = NULL};

    add_text(&b, (const char *)flags, sizeof flags);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add_string(&b, texts[i]);
    for (int i = 0; i < f->n_heads; i++) {
        add_string(&b, f->heads[i].begin);
        add_string(&b, f->heads[i].sep);
    }
    add_text(&b, c->schema, c->n_schema);
    for (size_t i = 0; i < g->n_tools; i++) {
        add_string(&b, g->tools[i].name);
        add_text(&b, g->tools[i].schema, g->tools[i].len);
        g->tool_bytes += sizeof *g->tools + strlen(g->tools[i].name) + g->tools[i].len;
    }
    g->text = b.s;
    g->len = b.n;
    return b.failed ? no_memory(err) : ST_OK;
}

/* ---- the whole ------------------------------------------------------------------- */

static char *copy(const char *s, bool *failed)
{
    char *p = s ? strdup(s) : NULL;

    *failed |= s && !p;
    return p;
}

static enum status copy_form(struct call_form *to, const struct call_form *f,
                             struct err *err)
{
    bool failed = false;

    *to = (struct call_form){.parameters = f->parameters,
                             .quotes = f->quotes,
                             .python = f->python,
                             .open = copy(f->open, &failed),
                             .join = copy(f->join, &failed)};
    for (int i = 0; i < 2; i++) {
        to->value[i] = copy(f->value[i], &failed);
        to->close[i] = copy(f->close[i], &failed);
    }
    return failed ? no_memory(err) : ST_OK;
}

enum status grammar_from_calls(struct grammar **out, const struct grammar_calls *c,
                               struct err *err)
{
    struct grammar *g = calloc(1, sizeof *g);
    struct automaton join = {.n_classes = 0};
    enum status st;

    if (!g)
        return no_memory(err);
    g->n_refs = 1;
    g->calls_first = c->schema != NULL;
    st = automaton_init(&g->a, err);
    if (!st)
        st = copy_form(&g->form, c->form, err);
    if (!st)
        st = read_tools(g, c, &join, err);
    if (!st) {
        g->start = build_answer(&g->a, g, c);
        g->start_blank =
            build_either(&g->a, g->start, build_text(&g->a, " ", 1, g->start));
        st = automaton_finish(&g->a, g->start);
    }
    if (!st) {
        automaton_join(&g->a, &join);
        st = make_text(g, c, err);
    }
    g->a.err = NULL; /* the caller's */
    if (st) {
        grammar_unref(g);
        return st;
    }
    *out = g;
    return ST_OK;
}

bool grammar_calls_first(const struct grammar *g)
{
    return g->calls_first;
}

unsigned grammar_parameter_types(const void *grammar, const char *name, const char *key)
{
    const struct grammar *g = grammar;
    const struct json_limit limit = {SIZE_MAX, SIZE_MAX};
    unsigned types = CALL_MAY_STRING;

    for (size_t i = 0; i < g->n_tools; i++) {
        struct err err = ERR_INIT;
        struct automaton a = {.err = &err};
        struct build b = {.a = &a};

        if (strcmp(g->tools[i].name, name) != 0)
            continue;
        b.root = json_try(g->tools[i].schema, g->tools[i].len, limit, 0);
        b.made = json_array();
        types = build_parameter_types(&b, key);
        build_free(&b);
        json_decref(b.root);
    }
    return types;
}
