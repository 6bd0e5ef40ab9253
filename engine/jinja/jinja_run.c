/* SPDX-License-Identifier: MIT
 *
 * jinja_run.c - statements, macros, and rendering
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/jinja/jinja_impl.h"

/* What a rendering may take by itself, and for what it is given. */
#define RENDER_BYTES     ((size_t)7 << 20)
#define RENDER_STEPS     UINT64_C(700000)
#define BYTES_PER_BYTE   40
#define BYTES_PER_VALUE  1024
#define STEPS_PER_VALUE  1000
#define MAX_OUTPUT_BYTES ((size_t)64 << 20)

void jinja_run_fail(struct run *r, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    jinja_arena_fail(&r->arena, ST_INPUT, "%s", text);
}

void jinja_run_work(struct run *r, size_t steps)
{
    r->steps += steps;
    if (r->steps > r->max_steps)
        jinja_run_fail(r, "it takes more than %llu steps: does it loop without end?",
                       (unsigned long long)r->max_steps);
}

void jinja_run_enter(struct run *r)
{
    if (++r->depth > RUN_MAX_DEPTH)
        jinja_run_fail(r, "calls and values are nested more than %d deep",
                       RUN_MAX_DEPTH);
}

/* ---- scopes ---------------------------------------------------------------------- */

static struct scope *scope_new(struct run *r, struct scope *parent)
{
    struct scope *s = jinja_arena_alloc(&r->arena, sizeof *s);

    s->parent = parent;
    return s;
}

void jinja_bind(struct run *r, struct scope *s, const char *name, struct jv value)
{
    struct binding *b;

    for (b = s->first; b; b = b->next) {
        r->steps++;
        if (b->name == name) {
            b->value = value;
            return;
        }
    }
    b = jinja_arena_alloc(&r->arena, sizeof *b);
    *b = (struct binding){name, value, s->first};
    s->first = b;
}

static void assign_each(struct run *r, const struct node *targets,
                        const struct jv *value)
{
    const struct jv_list *l = jv_iterate(r, value);
    size_t n = 0;

    for (const struct node *t = targets; t; t = t->next)
        n++;
    if (n != l->n)
        jinja_run_fail(r, "%zu values cannot be set to %zu names", l->n, n);
    n = 0;
    for (const struct node *t = targets; t; t = t->next)
        jinja_assign(r, t, l->v[n++]);
}

void jinja_assign(struct run *r, const struct node *target, struct jv value)
{
    struct jv of;

    if (target->kind == NODE_LIST) {
        jinja_run_enter(r);
        assign_each(r, target->list, &value);
        r->depth--;
    } else if (target->kind == NODE_NAME) {
        jinja_bind(r, r->scope, target->name, value);
    } else {
        of = jinja_eval(r, target->a);
        if (of.kind != JV_NAMESPACE)
            jinja_run_fail(
                r, "only a namespace has members that can be set, and '%s' is a %s",
                target->a->name, jv_kind_name(&of));
        jv_set(r, of.dict, jv_cstr(target->name), value);
    }
}

/* ---- loops ----------------------------------------------------------------------- */

struct loop {
    struct run *r;
    const struct node *n;
    struct scope *outer;
    struct jv value; /* the variable `loop` */
    struct jv_list *items;
};

static void set_member(struct loop *l, const char *name, struct jv value)
{
    jv_set(l->r, l->value.dict, jv_cstr(name), value);
}

static void update(struct loop *l, size_t i)
{
    const size_t n = l->items->n;

    set_member(l, "index0", jv_int((int64_t)i));
    set_member(l, "index", jv_int((int64_t)i + 1));
    set_member(l, "revindex0", jv_int((int64_t)(n - i - 1)));
    set_member(l, "revindex", jv_int((int64_t)(n - i)));
    set_member(l, "first", jv_bool(i == 0));
    set_member(l, "last", jv_bool(i == n - 1));
    set_member(l, "previtem", i ? l->items->v[i - 1] : jv_undefined("previtem", 8));
    set_member(l, "nextitem",
               i + 1 < n ? l->items->v[i + 1] : jv_undefined("nextitem", 8));
}

/* Elements for which the loop's condition holds. */
static struct jv_list *chosen(struct run *r, const struct node *n,
                              struct jv_list *items)
{
    struct jv list = jv_list(&r->arena, 0);
    struct scope *outer = r->scope;

    for (size_t i = 0; i < items->n; i++) {
        struct jv keeps;

        r->scope = scope_new(r, outer);
        jinja_assign(r, n->a, items->v[i]);
        keeps = jinja_eval(r, n->d);
        if (jv_true(&keeps))
            jv_append(&r->arena, list.list, items->v[i]);
    }
    r->scope = outer;
    return list.list;
}

static struct jv call_loop(struct run *r, const struct jv *self, const struct args *a);

/* As in Jinja, `else` runs where no turn of the loop came to its end: also where the
 * first turn ended by `break`. */
static void run_items(struct loop *l)
{
    struct run *r = l->r;
    bool ended = false;

    for (size_t i = 0; i < l->items->n && r->flow != FLOW_BREAK; i++) {
        jinja_run_work(r, 8);
        update(l, i);
        r->scope = scope_new(r, l->outer);
        jinja_bind(r, r->scope, r->j->loop, l->value);
        jinja_assign(r, l->n->a, l->items->v[i]);
        r->flow = FLOW_ON;
        jinja_exec(r, l->n->list);
        ended |= r->flow == FLOW_ON;
    }
    r->flow = FLOW_ON;
    r->scope = l->outer;
    if (!ended)
        jinja_exec(r, l->n->c);
}

static void run_loop(struct run *r, const struct node *n, struct jv over, int depth)
{
    struct loop l = {.r = r, .n = n, .outer = r->scope};

    l.items = jv_iterate(r, &over);
    if (n->d)
        l.items = chosen(r, n, l.items);
    l.value = jv_dict(&r->arena, 16);
    l.value.kind = JV_NAMESPACE;
    set_member(&l, "length", jv_int((int64_t)l.items->n));
    set_member(&l, "depth", jv_int(depth + 1));
    set_member(&l, "depth0", jv_int(depth));
    if (n->op) {
        struct jv_function *f = jinja_arena_alloc(&r->arena, sizeof *f);

        *f = (struct jv_function){FUNCTION_LOOP,     "loop",
                                  call_loop,         .macro = n,
                                  .scope = r->scope, .caller = jv_int(depth)};
        f->self = (struct jv){.kind = JV_FUNCTION, .function = f};
        set_member(&l, "", f->self);
    }
    run_items(&l);
}

/* self: the loop's own function, which knows where the loop stands and its depth. */
static struct jv call_loop(struct run *r, const struct jv *self, const struct args *a)
{
    const struct jv_function *f = self->function;
    struct scope *scope = r->scope;
    struct builder *out = r->out, b = {.r = r};

    jinja_check_args(r, "loop", a, 1, 1, "");
    jinja_run_enter(r);
    r->scope = f->scope;
    r->out = &b;
    run_loop(r, f->macro, a->v[0], (int)f->caller.i + 1);
    r->out = out;
    r->scope = scope;
    r->depth--;
    return jinja_built(&b);
}

/* ---- macros ---------------------------------------------------------------------- */

static struct jv macro_value(struct run *r, const struct node *n)
{
    struct jv_function *f = jinja_arena_alloc(&r->arena, sizeof *f);

    *f = (struct jv_function){FUNCTION_MACRO, n->name, .macro = n, .scope = r->scope};
    return (struct jv){.kind = JV_FUNCTION, .function = f};
}

/* What no parameter takes: for `varargs` and `kwargs`, or too much. */
static void bind_rest(struct run *r, const struct jv_function *f, const struct args *a,
                      size_t n_parameters)
{
    struct jv rest = jv_list(&r->arena, 0), named = jv_dict(&r->arena, 0);

    rest.is_tuple = true;
    for (size_t i = n_parameters; i < a->n; i++)
        jv_append(&r->arena, rest.list, a->v[i]);
    for (size_t i = 0; i < a->n_named; i++) {
        bool known = jinja_string_is(&a->named[i].key, "caller");

        for (const struct node *p = f->macro->b; p && !known; p = p->next)
            known = jinja_string_is(&a->named[i].key, p->name);
        if (!known)
            jv_set(r, named.dict, a->named[i].key, a->named[i].value);
    }
    if (rest.list->n && !r->j->has_varargs)
        jinja_run_fail(r, "macro '%s' takes %zu values, and there are %zu", f->name,
                       n_parameters, a->n);
    if (named.dict->n && !r->j->has_kwargs)
        jinja_run_fail(r, "macro '%s' has no parameter '%.*s'", f->name,
                       (int)named.dict->v[0].key.s.n, named.dict->v[0].key.s.p);
    if (r->j->has_varargs)
        jinja_bind(r, r->scope, r->j->varargs, rest);
    if (r->j->has_kwargs)
        jinja_bind(r, r->scope, r->j->kwargs, named);
}

struct jv jinja_call_macro(struct run *r, const struct jv_function *f,
                           const struct args *a)
{
    const struct jv *caller = jinja_arg(a, SIZE_MAX, "caller");
    struct scope *scope = r->scope;
    size_t i = 0;
    struct jv text;

    jinja_run_enter(r);
    r->scope = scope_new(r, f->scope);
    for (const struct node *p = f->macro->b; p; p = p->next, i++) {
        const struct jv *v = jinja_arg(a, i, p->name);

        jinja_bind(r, r->scope, p->name,
                   v      ? *v
                   : p->a ? jinja_eval(r, p->a)
                          : jv_undefined(p->name, strlen(p->name)));
    }
    bind_rest(r, f, a, i);
    if (caller)
        jinja_bind(r, r->scope, r->j->caller, *caller);
    text = jinja_exec_text(r, f->macro->list);
    r->scope = scope;
    r->depth--;
    return text;
}

/* The call gets one more argument: the body as a macro. */
static void exec_call_block(struct run *r, const struct node *n)
{
    const struct node *call = n->a;
    const struct jv f = jinja_eval(r, call->a);
    struct jv list = jv_list(&r->arena, 0), named = jv_dict(&r->arena, 0), text;

    for (const struct node *e = call->list; e; e = e->next) {
        if (e->op)
            jinja_run_fail(r, "a call block takes no '*'");
        if (e->name)
            jv_set(r, named.dict, jv_cstr(e->name), jinja_eval(r, e->a));
        else
            jv_append(&r->arena, list.list, jinja_eval(r, e->a));
    }
    jv_set(r, named.dict, jv_cstr("caller"), macro_value(r, n));
    text = jinja_call_value(
        r, &f,
        &(struct args){list.list->v, list.list->n, named.dict->v, named.dict->n});
    text = jv_str(r, &text);
    jinja_put_string(r->out, &text);
}

/* ---- statements ------------------------------------------------------------------ */

/* A body in a scope of its own. */
static void exec_inside(struct run *r, const struct node *sets, const struct node *body)
{
    struct scope *outer = r->scope;

    r->scope = scope_new(r, outer);
    for (; sets; sets = sets->next) {
        struct scope *inner = r->scope;
        struct jv value;

        r->scope = outer;
        value = jinja_eval(r, sets->b);
        r->scope = inner;
        jinja_assign(r, sets->a, value);
    }
    jinja_exec(r, body);
    r->scope = outer;
}

struct jv jinja_exec_text(struct run *r, const struct node *list)
{
    struct builder *out = r->out, b = {.r = r};

    r->out = &b;
    exec_inside(r, NULL, list);
    r->out = out;
    return jinja_built(&b);
}

/* Filters of a block, whose innermost has nothing to its left. */
static struct jv filtered(struct run *r, const struct node *n, struct jv text)
{
    struct node constant = {.kind = NODE_CONST, .value = text}, whole;

    if (!n)
        return text;
    if (n->a)
        constant.value = filtered(r, n->a, text);
    whole = *n;
    whole.a = &constant;
    return jinja_eval(r, &whole);
}

static void exec_set_block(struct run *r, const struct node *n)
{
    jinja_assign(r, n->a, filtered(r, n->b, jinja_exec_text(r, n->list)));
}

static void exec_print(struct run *r, const struct node *n)
{
    const struct jv v = jinja_eval(r, n->a), text = jv_str(r, &v);

    jinja_put_string(r->out, &text);
}

static void exec_if(struct run *r, const struct node *n)
{
    const struct jv condition = jinja_eval(r, n->a);

    if (jv_true(&condition))
        jinja_exec(r, n->list);
    else
        jinja_exec(r, n->c);
}

static void exec_one(struct run *r, const struct node *n)
{
    struct jv text;

    switch (n->kind) {
    case NODE_TEXT:
        jinja_put_string(r->out, &n->value);
        break;
    case NODE_PRINT:
        exec_print(r, n);
        break;
    case NODE_IF:
        exec_if(r, n);
        break;
    case NODE_FOR:
        run_loop(r, n, jinja_eval(r, n->b), 0);
        break;
    case NODE_SET:
        jinja_assign(r, n->a, jinja_eval(r, n->b));
        break;
    case NODE_SETBLOCK:
        exec_set_block(r, n);
        break;
    case NODE_MACRO:
        jinja_bind(r, r->scope, n->name, macro_value(r, n));
        break;
    case NODE_CALLBLOCK:
        exec_call_block(r, n);
        break;
    case NODE_FILTERBLOCK:
        text = jinja_exec_text(r, n->list);
        text = filtered(r, n->a, text);
        text = jv_str(r, &text);
        jinja_put_string(r->out, &text);
        break;
    case NODE_WITH:
        exec_inside(r, n->b, n->list);
        break;
    case NODE_BREAK:
        r->flow = FLOW_BREAK;
        break;
    case NODE_CONTINUE:
        r->flow = FLOW_CONTINUE;
        break;
    default:
        jinja_exec(r, n->list);
    }
}

void jinja_exec(struct run *r, const struct node *list)
{
    jinja_run_enter(r);
    for (; list && r->flow == FLOW_ON; list = list->next) {
        jinja_run_work(r, 1);
        r->arena.line = list->line;
        exec_one(r, list);
    }
    r->depth--;
}

/* ---- rendering ------------------------------------------------------------------- */

/* The more there is to write, the more it may take. */
static void add_limits(struct run *r, const json_t *j)
{
    const char *key;
    json_t *value;
    size_t i;

    r->arena.limit += BYTES_PER_VALUE + BYTES_PER_BYTE * json_string_length(j);
    r->max_steps += STEPS_PER_VALUE + json_string_length(j);
    jinja_run_enter(r);
    json_object_foreach((json_t *)j, key, value) add_limits(r, value);
    json_array_foreach((json_t *)j, i, value) add_limits(r, value);
    r->depth--;
}

static void bind_object(struct run *r, struct scope *s, const json_t *j, bool input)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)j, key, value)
    {
        /* a name that the template does not have is not looked for */
        bool found;
        const size_t at = jinja_name_place(r->j, key, strlen(key), &found);

        if (found)
            jinja_bind(r, s, r->j->names[at].text, jv_from_json(r, value, input));
    }
}

static void bind_globals(struct run *r, struct scope *s)
{
    for (size_t i = 0; i < r->j->n_names; i++) {
        const struct jv *global = jinja_global_find(r->j->names[i].text);

        if (global)
            jinja_bind(r, s, r->j->names[i].text, *global);
    }
}

/* Out of the arena: the text, and where it is the template's own. */
static bool copy_out(struct jinja_text *out, const struct builder *b)
{
    struct jinja_text t = {.len = b->n};

    for (size_t i = 0; i < b->n; i++)
        t.n_own += !b->mark[i] && (i == 0 || b->mark[i - 1]);
    t.text = malloc(b->n + 1);
    t.own = calloc(t.n_own + 1, sizeof *t.own);
    if (!t.text || !t.own) {
        jinja_text_free(&t);
        return false;
    }
    if (b->n)
        memcpy(t.text, b->p, b->n);
    t.text[b->n] = '\0';
    t.n_own = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (b->mark[i])
            continue;
        if (i == 0 || b->mark[i - 1])
            t.own[t.n_own++].begin = i;
        t.own[t.n_own - 1].end = i + 1;
    }
    *out = t;
    return true;
}

static void render(struct run *r, const json_t *own, const json_t *input)
{
    struct scope *globals = scope_new(r, NULL);

    bind_globals(r, globals);
    if (own)
        bind_object(r, globals, own, false);
    if (input) {
        add_limits(r, input);
        bind_object(r, globals, input, true);
    }
    r->scope = scope_new(r, globals);
    jinja_exec(r, r->j->body);
}

enum status jinja_render(const struct jinja *j, const json_t *own, const json_t *input,
                         time_t now, struct jinja_text *out, struct err *err)
{
    struct run *r = calloc(1, sizeof *r);
    enum status st;

    if (!r)
        return err_set(err, ST_NO_MEMORY, "no memory to render a chat template");
    r->j = j;
    r->now = now;
    r->max_steps = RENDER_STEPS;
    r->documents = json_array();
    r->arena =
        (struct arena){.limit = RENDER_BYTES, .what = "render", .err = err, .line = 1};
    struct builder b = {.r = r};
    r->out = &b;
    if (setjmp(r->arena.fail)) {
        st = err->code;
    } else {
        render(r, own, input);
        st = b.n <= MAX_OUTPUT_BYTES && copy_out(out, &b)
                 ? ST_OK
                 : err_set(err, ST_NO_MEMORY, "no memory for a prompt of %zu bytes",
                           b.n);
    }
    jinja_arena_free(&r->arena);
    json_decref(r->documents);
    free(r);
    return st;
}

void jinja_text_free(struct jinja_text *t)
{
    free(t->text);
    free(t->own);
    *t = (struct jinja_text){.len = 0};
}
