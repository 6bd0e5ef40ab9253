/* SPDX-License-Identifier: MIT
 *
 * jinja_impl.h - values, syntax tree and the running interpreter
 *
 * Memory: one arena for a compiled template and one for each rendering. Nothing is
 * freed before the arena is, so values are plain structs without owners, and a failure
 * leaves by longjmp() from any depth to the function that made the arena.
 */
#ifndef SLM_ENGINE_JINJA_JINJA_IMPL_H
#define SLM_ENGINE_JINJA_JINJA_IMPL_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/jinja/jinja.h"

/* ---- arena and failure (jinja_arena.c) ------------------------------------------- */

struct arena_block;

struct arena {
    struct arena_block *blocks;
    char *at, *end;
    size_t used, limit; /* bytes */
    const char *what;   /* "compile", "render": for the message */
    int line;           /* of the template, where the work is now */
    jmp_buf fail;       /* set by whoever made the arena */
    struct err *err;
};

/* Zeroed, 16-byte aligned; leaves by longjmp() when the limit is reached. */
void *jinja_arena_alloc(struct arena *a, size_t bytes);
void jinja_arena_free(struct arena *a);

/* Set the error, "chat template, line N: ...", and leave. */
void jinja_arena_fail(struct arena *a, enum status code, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

/* ---- values (jinja_value.c) ------------------------------------------------------ */

enum jv_kind {
    JV_UNDEFINED,
    JV_NONE,
    JV_BOOL,
    JV_INT,
    JV_FLOAT,
    JV_STRING,
    JV_LIST, /* list or tuple */
    JV_DICT,
    JV_NAMESPACE, /* a dict whose members a template may set */
    JV_FUNCTION,
};

/* UTF-8; mark[i] is 1 where byte i comes from the input, NULL: input says it of all. */
struct jv_string {
    const char *p;
    const uint8_t *mark;
    size_t n;
};

struct jv {
    uint8_t kind;  /* enum jv_kind */
    bool input;    /* of strings without marks */
    bool is_tuple; /* of lists */
    union {
        bool b;
        int64_t i;
        double f;
        struct jv_string s; /* of JV_UNDEFINED: the name of what is missing */
        struct jv_list *list;
        struct jv_dict *dict;
        struct jv_function *function;
    };
};

struct jv_list {
    struct jv *v;
    size_t n, cap;
};

struct jv_pair {
    struct jv key, value;
};

struct jv_dict {
    struct jv_pair *v; /* in the order of insertion */
    size_t n, cap;
};

struct run;
struct args;

struct jv_function {
    enum { FUNCTION_BUILTIN, FUNCTION_METHOD, FUNCTION_MACRO, FUNCTION_LOOP } type;
    const char *name;
    struct jv (*call)(struct run *r, const struct jv *self, const struct args *a);
    struct jv self;           /* of methods, and of what keeps a state */
    const struct node *macro; /* of macros and callers */
    struct scope *scope;      /* where a macro was defined */
    struct jv caller;         /* of loops: the depth */
};

static inline struct jv jv_undefined(const char *name, size_t n)
{
    return (struct jv){.kind = JV_UNDEFINED, .s = {name, NULL, n}};
}

static inline struct jv jv_none(void)
{
    return (struct jv){.kind = JV_NONE};
}

static inline struct jv jv_bool(bool b)
{
    return (struct jv){.kind = JV_BOOL, .b = b};
}

static inline struct jv jv_int(int64_t i)
{
    return (struct jv){.kind = JV_INT, .i = i};
}

static inline struct jv jv_float(double f)
{
    return (struct jv){.kind = JV_FLOAT, .f = f};
}

static inline struct jv jv_text(const char *p, size_t n, bool input)
{
    return (struct jv){.kind = JV_STRING, .input = input, .s = {p, NULL, n}};
}

/* A static string, the template's own. */
struct jv jv_cstr(const char *text);
struct jv jv_list(struct arena *a, size_t cap);
struct jv jv_dict(struct arena *a, size_t cap);
void jv_append(struct arena *a, struct jv_list *l, struct jv v);
void jv_set(struct run *r, struct jv_dict *d, struct jv key, struct jv value);
const struct jv *jv_get(struct run *r, const struct jv_dict *d, const struct jv *key);
const struct jv *jv_get_name(const struct jv_dict *d, const char *name, size_t n);

const char *jv_kind_name(const struct jv *v); /* as Python names its types */
bool jv_is_number(const struct jv *v);        /* bool, int, float */
double jv_number(const struct jv *v);
bool jv_true(const struct jv *v);
bool jv_equal(struct run *r, const struct jv *a, const struct jv *b);
/* <0, 0, >0; fails for kinds that have no order. */
int jv_compare(struct run *r, const struct jv *a, const struct jv *b);
/* Fails for what is no key of a dict: lists and dicts. */
void jv_need_key(struct run *r, const struct jv *v);
bool jv_contains(struct run *r, const struct jv *in, const struct jv *what);
/* Elements of a list, keys of a dict, characters of a string, nothing of what is
 * undefined; fails for others. */
struct jv_list *jv_iterate(struct run *r, const struct jv *v);
struct jv jv_from_json(struct run *r, const json_t *j, bool input);

/* ---- text (jinja_string.c) ------------------------------------------------------- */

/* A growing text with its marks, in the arena. */
struct builder {
    struct run *r;
    char *p;
    uint8_t *mark;
    size_t n, cap;
};

void jinja_put_bytes(struct builder *b, const char *p, size_t n, bool input);
void jinja_put_cstr(struct builder *b, const char *text, bool input);
void jinja_put_string(struct builder *b, const struct jv *s);
struct jv jinja_built(const struct builder *b);

/* As Python's str(), repr(); what is shown of strings keeps its marks. */
struct jv jv_str(struct run *r, const struct jv *v);
void jinja_put_repr(struct builder *b, const struct jv *v);
void jinja_put_float(struct builder *b, double f, bool input);

struct jv jinja_string_slice(const struct jv *s, size_t begin, size_t end); /* bytes */
bool jinja_string_mark(const struct jv *s, size_t i);
size_t jinja_string_length(const struct jv *s);            /* characters */
size_t jinja_string_offset(const struct jv *s, size_t at); /* byte of a character */
size_t jinja_string_find(const struct jv *s, size_t from,
                         const struct jv *what); /* SIZE_MAX */
bool jinja_string_is(const struct jv *s, const char *text);
unsigned jinja_char_code(const char *p, size_t n, int *len);
bool jinja_code_is_space(unsigned code);
struct jv jinja_string_strip(struct run *r, const struct jv *s, const struct jv *chars,
                             bool left, bool right);
struct jv jinja_string_replace(struct run *r, const struct jv *s, const struct jv *from,
                               const struct jv *to, int64_t most);
struct jv jinja_string_repeat(struct run *r, const struct jv *s, int64_t n);
/* CASE_TITLE: a letter after none is large, as Python's title(); CASE_WORDS: after a
 * blank, a hyphen or an opening bracket, as the filter. */
enum letter_case {
    CASE_UPPER,
    CASE_LOWER,
    CASE_TITLE,
    CASE_WORDS,
    CASE_CAPITALIZE,
    CASE_SWAP
};
struct jv jinja_string_case(struct run *r, const struct jv *s, enum letter_case c);

/* '%s of %d' % values (jinja_percent.c) */
struct jv jinja_string_percent(struct run *r, const struct jv *format,
                               const struct jv *values);

/* ---- JSON (jinja_json.c) --------------------------------------------------------- */

/* As Python's json.dumps(ensure_ascii=False). indent < 0: one line. */
struct jv jinja_json_dump(struct run *r, const struct jv *v, int indent,
                          const struct jv *item_separator,
                          const struct jv *key_separator, bool sort_keys,
                          bool ensure_ascii);

/* ---- syntax tree (jinja_parse.c, jinja_expr.c) ----------------------------------- */

enum node_kind {
    /* expressions */
    NODE_CONST,   /* value */
    NODE_NAME,    /* name */
    NODE_LIST,    /* list of a; op 1: tuple */
    NODE_DICT,    /* list of a: pairs, key a, value b */
    NODE_PAIR,    /* a, b */
    NODE_UNARY,   /* op, a */
    NODE_BINARY,  /* op, a, b */
    NODE_COMPARE, /* a, list: NODE_OPERAND op, a */
    NODE_OPERAND,
    NODE_AND,
    NODE_OR,
    NODE_NOT,
    NODE_CHOICE,    /* a if b else c */
    NODE_ATTRIBUTE, /* a . name */
    NODE_ITEM,      /* a [ b ] */
    NODE_SLICE,     /* a [ b : c : d ] */
    NODE_CALL,      /* a ( list ) */
    NODE_FILTER,    /* a | name ( list ); a NULL: a filter block */
    NODE_TEST,      /* a is name ( list ) */
    NODE_ARGUMENT,  /* a; name: keyword; op 1: *a, 2: **a */
    /* statements */
    NODE_TEXT,      /* value */
    NODE_PRINT,     /* a */
    NODE_IF,        /* a, body list, c: else's list */
    NODE_FOR,       /* a: target, b: iterable, d: condition, list: body, c: else; op 1:
                       recursive */
    NODE_SET,       /* a: target, b: value */
    NODE_SETBLOCK,  /* a: target, b: filters or NULL, list: body */
    NODE_MACRO,     /* name, b: list of NODE_PARAMETER, list: body */
    NODE_PARAMETER, /* name, a: default or NULL */
    NODE_CALLBLOCK, /* a: call, b: parameters, list: body */
    NODE_FILTERBLOCK, /* a: filters, list: body */
    NODE_WITH,        /* b: list of NODE_SET, list: body */
    NODE_BODY,        /* list: body, as it is: generation */
    NODE_BREAK,
    NODE_CONTINUE,
};

enum node_op {
    OP_NONE,
    OP_ADD = '+',
    OP_SUBTRACT = '-',
    OP_MULTIPLY = '*',
    OP_DIVIDE = '/',
    OP_FLOOR = 'f',
    OP_MODULO = '%',
    OP_POWER = 'p',
    OP_CONCAT = '~',
    OP_EQUAL = '=',
    OP_DIFFERENT = '!',
    OP_LESS = '<',
    OP_LESS_EQUAL = 'l',
    OP_GREATER = '>',
    OP_GREATER_EQUAL = 'g',
    OP_IN = 'i',
    OP_NOT_IN = 'n',
};

struct node {
    uint8_t kind, op;
    int line;
    const char *name; /* interned: equal names are one pointer */
    struct jv value;
    const void
        *what; /* the row of a filter or test; NULL: there is none of that name */
    struct node *a, *b, *c, *d;
    struct node *list, *next;
};

struct name {
    const char *text; /* zero-terminated */
    size_t n;
};

#define JINJA_MAX_NAMES 4096

struct jinja {
    struct arena arena;
    struct node *body;
    struct name *names; /* [n_names], sorted: interned */
    size_t n_names;
    const char *loop, *caller, *varargs, *kwargs; /* interned */
    bool has_varargs, has_kwargs; /* some macro takes whatever it is given */
};

#define JINJA_MAX_DEPTH 200 /* nested expressions and tags */

/* ---- tokens (jinja_lex.c) -------------------------------------------------------- */

enum token_kind {
    TOKEN_END,
    TOKEN_TEXT,         /* between tags */
    TOKEN_BLOCK,        /* {% */
    TOKEN_BLOCK_END,    /* %} */
    TOKEN_VARIABLE,     /* {{ */
    TOKEN_VARIABLE_END, /* }} */
    TOKEN_NAME,
    TOKEN_STRING, /* unescaped */
    TOKEN_INT,
    TOKEN_FLOAT,
    TOKEN_OPERATOR, /* text, one or two characters */
};

struct token {
    enum token_kind kind;
    int line;
    const char *p; /* text, name, operator */
    size_t n;
    int64_t i;
    double f;
};

struct lexer {
    struct arena *arena;
    const char *p, *end;
    int line;
    enum { LEX_DATA, LEX_BLOCK, LEX_VARIABLE } state;
    int n_open;         /* brackets inside a tag */
    bool line_starting; /* the last match ended a line */
    struct token token; /* the current one */
};

void jinja_lex_open(struct lexer *l, struct arena *a, const char *text, size_t len);
void jinja_lex_next(struct lexer *l);

struct parser {
    struct jinja *j;
    struct lexer lex;
    int depth, n_loops;
};

struct node *jinja_parse_node(struct parser *p, enum node_kind kind);
const char *jinja_parse_intern(struct parser *p, const char *text, size_t n);
/* The place of a name among those of a template, or where it would be. */
size_t jinja_name_place(const struct jinja *j, const char *text, size_t n, bool *found);
void jinja_parse_enter(struct parser *p); /* one level deeper; p->depth-- leaves */
bool jinja_token_is(const struct parser *p, enum token_kind kind, const char *text);
bool jinja_token_take(struct parser *p, enum token_kind kind, const char *text);
void jinja_token_expect(struct parser *p, enum token_kind kind, const char *text);
void jinja_parse_fail(struct parser *p, const char *wanted) __attribute__((noreturn));
struct node *jinja_parse_expression(struct parser *p, bool with_choice);
struct node *jinja_parse_tuple(struct parser *p, bool with_choice, bool until_in);
struct node *jinja_parse_arguments(struct parser *p); /* after "(" */
struct node *jinja_parse_filters(struct parser *p, struct node *of);
struct node *jinja_parse_postfix(struct parser *p, struct node *of);
struct node *jinja_parse_primary(struct parser *p);

/* ---- running (jinja_run.c, jinja_eval.c) ----------------------------------------- */

struct binding {
    const char *name; /* interned, or static text of a rendering's variables */
    struct jv value;
    struct binding *next;
};

struct scope {
    struct binding *first;
    struct scope *parent;
};

struct run {
    struct arena arena;
    const struct jinja *j;
    struct scope *scope;
    struct builder *out; /* where printing goes */
    json_t *documents;   /* what `from_json` has read; freed after the rendering */
    time_t now;
    uint64_t steps, max_steps;
    int depth;
    enum { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;
};

#define RUN_MAX_DEPTH 400

struct args {
    const struct jv *v; /* positional */
    size_t n;
    const struct jv_pair *named;
    size_t n_named;
};

/* Count steps of work; fails when the limit is reached. */
void jinja_run_work(struct run *r, size_t steps);
void jinja_run_enter(struct run *r); /* r->depth-- leaves */
void jinja_run_fail(struct run *r, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 2, 3)));

struct jv jinja_eval(struct run *r, const struct node *n);

/* Operators (jinja_operators.c): an enum node_op. */
struct jv jinja_binary(struct run *r, int op, const struct jv *a, const struct jv *b);
bool jinja_compare(struct run *r, int op, const struct jv *a, const struct jv *b);
void jinja_fail_undefined(struct run *r, const struct jv *v) __attribute__((noreturn));

void jinja_exec(struct run *r, const struct node *list);
/* What a body prints. */
struct jv jinja_exec_text(struct run *r, const struct node *list);
void jinja_assign(struct run *r, const struct node *target, struct jv value);
void jinja_bind(struct run *r, struct scope *s, const char *name, struct jv value);
struct jv jinja_call_value(struct run *r, const struct jv *f, const struct args *a);
struct jv jinja_call_macro(struct run *r, const struct jv_function *f,
                           const struct args *a);
struct jv jinja_get_attribute(struct run *r, const struct jv *of, const char *name,
                              size_t n);
struct jv jinja_get_item(struct run *r, const struct jv *of, const struct jv *key);
struct jv jinja_method_of(struct run *r, const struct jv *of, const char *name,
                          size_t n);
const struct jv *jinja_global_find(const char *name);

/* The argument at position i or with that name; NULL: not given. */
const struct jv *jinja_arg(const struct args *a, size_t i, const char *name);
/* Fails where there are more positional arguments than most, or named ones that are not
 * in names (separated by blanks). */
void jinja_check_args(struct run *r, const char *of, const struct args *a, size_t least,
                      size_t most, const char *names);
int64_t jinja_arg_int(struct run *r, const struct args *a, size_t i, const char *name,
                      int64_t otherwise);
bool jinja_arg_bool(const struct args *a, size_t i, const char *name, bool otherwise);
/* A string; fails for other kinds. NULL: not given. */
const struct jv *jinja_arg_string(struct run *r, const char *of, const struct args *a,
                                  size_t i, const char *name);
/* A string argument that must be given. */
const struct jv *jinja_need_string(struct run *r, const char *of, const struct args *a,
                                   size_t i);

/* ---- filters and tests (jinja_filters.c, jinja_lists.c, jinja_tests.c) ----------- */

struct filter {
    const char *name;
    struct jv (*call)(struct run *r, const struct jv *v, const struct args *a);
};

struct test {
    const char *name;
    bool (*call)(struct run *r, const struct jv *v, const struct args *a);
};

/* Methods of strings: v is the string; the last row has no name. */
extern const struct filter jinja_string_methods[];

const struct filter *jinja_filter_find(const char *name, size_t n);
const struct filter *jinja_list_filter_find(const char *name, size_t n);
const struct test *jinja_test_find(const char *name, size_t n);

#endif
