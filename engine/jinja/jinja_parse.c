/* SPDX-License-Identifier: MIT
 *
 * jinja_parse.c - tags, and compiling
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/jinja/jinja_impl.h"

#define COMPILE_BYTES ((size_t)8 << 20)
#define TEXT_BYTES    ((size_t)2 << 20)

/* ---- helpers of the parser ------------------------------------------------------- */

struct node *jinja_parse_node(struct parser *p, enum node_kind kind)
{
    struct node *n = jinja_arena_alloc(&p->j->arena, sizeof *n);

    n->kind = (uint8_t)kind;
    n->line = p->lex.token.line;
    return n;
}

size_t jinja_name_place(const struct jinja *j, const char *text, size_t n, bool *found)
{
    size_t begin = 0, end = j->n_names;

    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        const struct name *name = &j->names[middle];
        const int order =
            name->n != n ? (name->n > n) - (name->n < n) : memcmp(name->text, text, n);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    *found = false;
    return begin;
}

const char *jinja_parse_intern(struct parser *p, const char *text, size_t n)
{
    struct jinja *j = p->j;
    bool found;
    const size_t at = jinja_name_place(j, text, n, &found);
    char *copy;

    if (found)
        return j->names[at].text;
    if (j->n_names == JINJA_MAX_NAMES)
        jinja_arena_fail(&j->arena, ST_INPUT, "it has more than %d names",
                         JINJA_MAX_NAMES);
    copy = jinja_arena_alloc(&j->arena, n + 1);
    memcpy(copy, text, n);
    memmove(j->names + at + 1, j->names + at, (j->n_names - at) * sizeof *j->names);
    j->names[at] = (struct name){copy, n};
    j->n_names++;
    return copy;
}

void jinja_parse_enter(struct parser *p)
{
    if (++p->depth > JINJA_MAX_DEPTH)
        jinja_arena_fail(&p->j->arena, ST_INPUT,
                         "expressions and tags are nested more than %d deep",
                         JINJA_MAX_DEPTH);
}

bool jinja_token_is(const struct parser *p, enum token_kind kind, const char *text)
{
    const struct token *t = &p->lex.token;

    return t->kind == kind && t->n == strlen(text) && !memcmp(t->p, text, t->n);
}

bool jinja_token_take(struct parser *p, enum token_kind kind, const char *text)
{
    if (!jinja_token_is(p, kind, text))
        return false;
    jinja_lex_next(&p->lex);
    return true;
}

void jinja_parse_fail(struct parser *p, const char *wanted)
{
    static const char *const kinds[] = {
        [TOKEN_END] = "the end of the template",
        [TOKEN_TEXT] = "text",
        [TOKEN_BLOCK] = "'{%'",
        [TOKEN_BLOCK_END] = "'%}'",
        [TOKEN_VARIABLE] = "'{{'",
        [TOKEN_VARIABLE_END] = "'}}'",
        [TOKEN_STRING] = "a string",
        [TOKEN_INT] = "a number",
        [TOKEN_FLOAT] = "a number",
    };
    const struct token *t = &p->lex.token;
    char seen[64];

    if (t->kind == TOKEN_NAME || t->kind == TOKEN_OPERATOR)
        snprintf(seen, sizeof seen, "'%.*s'", t->n < 40 ? (int)t->n : 40, t->p);
    else
        snprintf(seen, sizeof seen, "%s", kinds[t->kind]);
    p->j->arena.line = t->line;
    jinja_arena_fail(&p->j->arena, ST_INPUT, "there is %s where %s belongs", seen,
                     wanted);
}

void jinja_token_expect(struct parser *p, enum token_kind kind, const char *text)
{
    char wanted[24];

    if (jinja_token_take(p, kind, text))
        return;
    snprintf(wanted, sizeof wanted, "'%s'", text);
    jinja_parse_fail(p, wanted);
}

static const char *take_name(struct parser *p, const char *wanted)
{
    const char *name;

    if (p->lex.token.kind != TOKEN_NAME)
        jinja_parse_fail(p, wanted);
    name = jinja_parse_intern(p, p->lex.token.p, p->lex.token.n);
    jinja_lex_next(&p->lex);
    return name;
}

static void end_tag(struct parser *p)
{
    if (p->lex.token.kind != TOKEN_BLOCK_END)
        jinja_parse_fail(p, "'%}'");
    jinja_lex_next(&p->lex);
}

/* ---- bodies ---------------------------------------------------------------------- */

static struct node *parse_tag(struct parser *p);

/* Which of these words (separated by blanks) is the name here; NULL: none. */
static bool is_word_of(const struct parser *p, const char *words)
{
    const struct token *t = &p->lex.token;
    const char *at = words;

    while (t->kind == TOKEN_NAME && *at) {
        const size_t n = strcspn(at, " ");

        if (n == t->n && !memcmp(at, t->p, n))
            return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

/* Up to a tag that begins with one of these words, which is then the current token;
 * NULL: up to the end of the template. */
static struct node *parse_body(struct parser *p, const char *until)
{
    struct node *first = NULL, **last = &first, *n;

    jinja_parse_enter(p);
    for (;;) {
        const struct token t = p->lex.token;

        if (t.kind == TOKEN_END) {
            if (until)
                jinja_parse_fail(p, until);
            break;
        }
        if (t.kind == TOKEN_TEXT) {
            n = jinja_parse_node(p, NODE_TEXT);
            n->value = jv_text(t.p, t.n, false);
            jinja_lex_next(&p->lex);
        } else if (t.kind == TOKEN_VARIABLE) {
            jinja_lex_next(&p->lex);
            n = jinja_parse_node(p, NODE_PRINT);
            n->a = jinja_parse_tuple(p, true, false);
            if (p->lex.token.kind != TOKEN_VARIABLE_END)
                jinja_parse_fail(p, "'}}'");
            jinja_lex_next(&p->lex);
        } else {
            jinja_lex_next(&p->lex);
            if (until && is_word_of(p, until))
                break;
            n = parse_tag(p);
        }
        *last = n;
        last = &n->next;
    }
    p->depth--;
    return first;
}

/* A body, its end tag included. */
static struct node *parse_whole(struct parser *p, const char *end)
{
    struct node *body;

    end_tag(p);
    body = parse_body(p, end);
    jinja_lex_next(&p->lex);
    /* {% endmacro name %}, {% endblock name %} */
    if (p->lex.token.kind == TOKEN_NAME)
        jinja_lex_next(&p->lex);
    end_tag(p);
    return body;
}

/* ---- tags ------------------------------------------------------------------------ */

static struct node *parse_if(struct parser *p)
{
    struct node *n = jinja_parse_node(p, NODE_IF);

    n->a = jinja_parse_expression(p, true);
    end_tag(p);
    n->list = parse_body(p, "elif else endif");
    if (jinja_token_take(p, TOKEN_NAME, "elif")) {
        jinja_parse_enter(p);
        n->c = parse_if(p);
        p->depth--;
    } else if (jinja_token_take(p, TOKEN_NAME, "else")) {
        n->c = jinja_parse_node(p, NODE_BODY);
        n->c->list = parse_whole(p, "endif");
    } else {
        jinja_lex_next(&p->lex);
        end_tag(p);
    }
    return n;
}

static void check_target(struct parser *p, const struct node *target, bool members)
{
    if (target->kind == NODE_LIST && target->op) {
        for (const struct node *n = target->list; n; n = n->next)
            check_target(p, n, members);
        return;
    }
    if (target->kind != NODE_NAME &&
        !(members && target->kind == NODE_ATTRIBUTE && target->a->kind == NODE_NAME))
        jinja_arena_fail(&p->j->arena, ST_INPUT,
                         "a value cannot be set to an expression");
}

/* What a tag gives a value to: a name, several, or of a namespace (members) one member.
 */
static struct node *parse_target(struct parser *p, bool members)
{
    struct node *target = jinja_parse_tuple(p, false, true);

    check_target(p, target, members);
    return target;
}

static struct node *parse_for(struct parser *p)
{
    struct node *n = jinja_parse_node(p, NODE_FOR);

    n->a = parse_target(p, false);
    jinja_token_expect(p, TOKEN_NAME, "in");
    n->b = jinja_parse_tuple(p, false, false);
    if (jinja_token_take(p, TOKEN_NAME, "if"))
        n->d = jinja_parse_expression(p, true);
    n->op = jinja_token_take(p, TOKEN_NAME, "recursive");
    end_tag(p);
    p->n_loops++;
    n->list = parse_body(p, "else endfor");
    p->n_loops--;
    if (jinja_token_take(p, TOKEN_NAME, "else")) {
        n->c = jinja_parse_node(p, NODE_BODY);
        n->c->list = parse_whole(p, "endfor");
    } else {
        jinja_lex_next(&p->lex);
        end_tag(p);
    }
    return n;
}

static struct node *parse_set(struct parser *p)
{
    struct node *n = jinja_parse_node(p, NODE_SET);

    n->a = parse_target(p, true);
    if (jinja_token_take(p, TOKEN_OPERATOR, "=")) {
        n->b = jinja_parse_tuple(p, true, false);
        end_tag(p);
        return n;
    }
    n->kind = NODE_SETBLOCK;
    n->b = jinja_parse_filters(p, NULL);
    n->list = parse_whole(p, "endset");
    return n;
}

/* Behind "(". */
static struct node *parse_parameters(struct parser *p)
{
    struct node *first = NULL, **last = &first;

    while (!jinja_token_take(p, TOKEN_OPERATOR, ")")) {
        struct node *n = jinja_parse_node(p, NODE_PARAMETER);

        n->name = take_name(p, "the name of a parameter");
        if (jinja_token_take(p, TOKEN_OPERATOR, "="))
            n->a = jinja_parse_expression(p, true);
        *last = n;
        last = &n->next;
        if (!jinja_token_is(p, TOKEN_OPERATOR, ")"))
            jinja_token_expect(p, TOKEN_OPERATOR, ",");
    }
    return first;
}

static struct node *parse_macro(struct parser *p)
{
    struct node *n = jinja_parse_node(p, NODE_MACRO);
    const int n_loops = p->n_loops;

    n->name = take_name(p, "the name of a macro");
    jinja_token_expect(p, TOKEN_OPERATOR, "(");
    n->b = parse_parameters(p);
    p->n_loops = 0;
    n->list = parse_whole(p, "endmacro");
    p->n_loops = n_loops;
    return n;
}

static struct node *parse_call(struct parser *p)
{
    struct node *n = jinja_parse_node(p, NODE_CALLBLOCK);
    const int n_loops = p->n_loops;

    n->name = p->j->caller;
    if (jinja_token_take(p, TOKEN_OPERATOR, "("))
        n->b = parse_parameters(p);
    n->a = jinja_parse_expression(p, true);
    if (n->a->kind != NODE_CALL)
        jinja_parse_fail(p, "a call");
    p->n_loops = 0;
    n->list = parse_whole(p, "endcall");
    p->n_loops = n_loops;
    return n;
}

static struct node *parse_with(struct parser *p)
{
    struct node *n = jinja_parse_node(p, NODE_WITH), **last = &n->b;

    while (p->lex.token.kind != TOKEN_BLOCK_END) {
        struct node *set = jinja_parse_node(p, NODE_SET);

        set->a = parse_target(p, false);
        jinja_token_expect(p, TOKEN_OPERATOR, "=");
        set->b = jinja_parse_expression(p, true);
        *last = set;
        last = &set->next;
        if (p->lex.token.kind != TOKEN_BLOCK_END)
            jinja_token_expect(p, TOKEN_OPERATOR, ",");
    }
    n->list = parse_whole(p, "endwith");
    return n;
}

static struct node *parse_filter_block(struct parser *p)
{
    struct node *n = jinja_parse_node(p, NODE_FILTERBLOCK), *filter;

    filter = jinja_parse_node(p, NODE_FILTER);
    filter->name = take_name(p, "the name of a filter");
    filter->what = jinja_filter_find(filter->name, strlen(filter->name));
    if (jinja_token_take(p, TOKEN_OPERATOR, "("))
        filter->list = jinja_parse_arguments(p);
    n->a = jinja_parse_filters(p, filter);
    n->list = parse_whole(p, "endfilter");
    return n;
}

static struct node *parse_generation(struct parser *p)
{
    struct node *n = jinja_parse_node(p, NODE_BODY);

    n->list = parse_whole(p, "endgeneration");
    return n;
}

static struct node *parse_jump(struct parser *p, enum node_kind kind)
{
    if (!p->n_loops)
        jinja_arena_fail(&p->j->arena, ST_INPUT, "'%s' is in no loop",
                         kind == NODE_BREAK ? "break" : "continue");
    struct node *n = jinja_parse_node(p, kind);

    end_tag(p);
    return n;
}

static struct node *parse_tag(struct parser *p)
{
    static const struct {
        const char *name;
        struct node *(*parse)(struct parser *p);
    } tags[] = {
        {"if", parse_if},
        {"for", parse_for},
        {"set", parse_set},
        {"macro", parse_macro},
        {"call", parse_call},
        {"with", parse_with},
        {"filter", parse_filter_block},
        {"generation", parse_generation},
    };
    const struct token t = p->lex.token;

    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
        if (jinja_token_take(p, TOKEN_NAME, tags[i].name))
            return tags[i].parse(p);
    if (jinja_token_take(p, TOKEN_NAME, "break"))
        return parse_jump(p, NODE_BREAK);
    if (jinja_token_take(p, TOKEN_NAME, "continue"))
        return parse_jump(p, NODE_CONTINUE);
    if (is_word_of(p, "include import from extends block autoescape do"))
        jinja_arena_fail(&p->j->arena, ST_UNSUPPORTED,
                         "the tag '%.*s' is not for chat templates", (int)t.n, t.p);
    jinja_parse_fail(p, "the name of a tag");
}

/* Names that the language itself binds. */
static void intern_known(struct parser *p)
{
    p->j->loop = jinja_parse_intern(p, "loop", 4);
    p->j->caller = jinja_parse_intern(p, "caller", 6);
    p->j->varargs = jinja_parse_intern(p, "varargs", 7);
    p->j->kwargs = jinja_parse_intern(p, "kwargs", 6);
}

/* ---- compiling ------------------------------------------------------------------- */

static enum status check_text(const char *text, size_t len, struct err *err)
{
    int line = 1;

    if (len > TEXT_BYTES)
        return err_set(err, ST_INPUT, "the chat template has %zu bytes; at most %zu",
                       len, TEXT_BYTES);
    for (size_t i = 0; i < len;) {
        const int n = utf8_char_len(text + i, len - i);

        if (n <= 0 || !text[i])
            return err_set(err, ST_INPUT, "chat template, line %d: %s", line,
                           n <= 0 ? "it is not UTF-8" : "it has a zero byte");
        line += text[i] == '\n';
        i += (size_t)n;
    }
    return ST_OK;
}

enum status jinja_compile(struct jinja **out, const char *text, size_t len,
                          struct err *err)
{
    const enum status st = check_text(text, len, err);
    struct parser *p = NULL;
    struct jinja *j;

    if (st)
        return st;
    j = calloc(1, sizeof *j);
    if (!j)
        return err_set(err, ST_NO_MEMORY, "no memory for a chat template");
    j->arena.limit = COMPILE_BYTES;
    j->arena.what = "compile";
    j->arena.err = err;
    if (setjmp(j->arena.fail)) {
        jinja_free(j);
        return err->code;
    }
    j->names = jinja_arena_alloc(&j->arena, JINJA_MAX_NAMES * sizeof *j->names);
    p = jinja_arena_alloc(&j->arena, sizeof *p);
    p->j = j;
    intern_known(p);
    jinja_lex_open(&p->lex, &j->arena, text, len);
    j->body = parse_body(p, NULL);
    j->arena.err = NULL;
    *out = j;
    return ST_OK;
}

void jinja_free(struct jinja *j)
{
    if (j)
        jinja_arena_free(&j->arena);
    free(j);
}
