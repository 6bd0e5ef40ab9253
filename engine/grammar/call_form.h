/* SPDX-License-Identifier: MIT
 *
 * call_form.h - how a model writes calls of tools, and reading them as they are written
 *
 * A model writes its calls in the midst of its answer:
 *
 *     begin NAME sep ARGUMENTS (mid NAME sep ARGUMENTS)* end
 *
 * Some models write the first call in several ways, each with a begin and a sep of its
 * own, and mark their texts, too (gpt-oss, Cohere); behind such a text and what ends it
 * another one or a call may begin. ARGUMENTS are a JSON object, or parameters, each
 * written as
 *
 *     open KEY value VALUE close           with `join` between two of them
 *
 * where a string is written as it is, between markers of its own, and every other value
 * as JSON. So <tool_call>, lists, Python's calls and XML are all of one form.
 *
 * Texts of a form are bytes. A control token is CALL_CONTROL, its spelling, and
 * CALL_CONTROL again, a byte that no UTF-8 has: so text that spells a marker is none.
 * Holes stand for what the model chooses: an id, a number.
 *
 * Threading: a form is immutable; a reader belongs to one thread at a time.
 */
#ifndef SLM_ENGINE_GRAMMAR_CALL_FORM_H
#define SLM_ENGINE_GRAMMAR_CALL_FORM_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

#define CALL_CONTROL     '\xff'
#define CALL_HOLE_ID     '\x01' /* letters and digits: nine, as templates require */
#define CALL_HOLE_NUMBER '\x02' /* one to three digits */
#define CALL_ID_CHARS    9
#define CALL_MAX_NAME    64
#define CALL_MAX_KEY     256

#define CALL_MAX_HEADS 9

enum call_kind { CALL_STRING, CALL_OTHER };

/* Another way to write what comes before the first arguments. */
struct call_head {
    char *begin, *sep;
};

struct call_form {
    char *begin, *sep, *mid, *end;          /* mid NULL: one call and no more */
    struct call_head heads[CALL_MAX_HEADS]; /* [n_heads] where an answer begins */
    int n_heads;
    char *answer;     /* before a text, which then comes behind it only; or NULL */
    char *preamble;   /* the same before a text that announces a call; or NULL */
    char *next;       /* behind these texts, where the answer begins again; or NULL */
    size_t n_next;    /* bytes of it after which the rest follows */
    size_t n_trigger; /* bytes of begin after which the text has become a call */
    bool anywhere;    /* in a text; else only where an answer begins */

    bool parameters; /* else: a JSON object */
    bool quotes;     /* strings are JSON, too: CALL_OTHER is all there is */
    bool python;     /* True, False, None */
    char *open, *join;
    char *value[2], *close[2]; /* by enum call_kind */
};

void call_form_free(struct call_form *f);

/* Whether a byte may be part of a tool's name. */
bool call_is_name(char ch);

/* Types that a parameter may have where its form does not show them: those of
 * enum call_types. */
enum call_types {
    CALL_MAY_STRING = 1,
    CALL_MAY_NULL = 2,
    CALL_MAY_BOOLEAN = 4,
};
typedef unsigned call_types_fn(const void *arg, const char *name, const char *key);

/* ---- reading --------------------------------------------------------------------- */

/* Calls as they are read: CALL_NAME, the name, CALL_ARGUMENTS, and the arguments' JSON,
 * for each call. */
#define CALL_NAME      '\x01'
#define CALL_ARGUMENTS '\x02'

struct call_bytes {
    char *s; /* [n] owned */
    size_t n, cap;
};

enum call_state {
    CALL_TEXT,
    CALL_PASSES, /* behind a marked text, up to where the answer begins again */
    CALL_BEGINS, /* behind the trigger */
    CALL_NAMES,
    CALL_SEPARATES,
    CALL_OBJECT, /* in a JSON object */
    CALL_NEXT,   /* a parameter, another call or the end */
    CALL_KEY,    /* up to its value */
    CALL_QUOTE,  /* whether the value is a string */
    CALL_RAW,    /* a string, up to its closing marker */
    CALL_VALUE,  /* JSON */
    CALL_CLOSES, /* behind a value of JSON */
    CALL_OVER,   /* behind the end */
    CALL_BROKEN, /* bytes that the form does not have */
};

/* Where a text with holes has been matched up to. */
struct call_match {
    const char *text;
    size_t at, n_hole;
    bool alive;
};

struct call_reader {
    const struct call_form *form;
    bool first; /* calls begin where the answer does */
    call_types_fn
        *types; /* of parameters; NULL: strings where strings look as others */
    const void *arg;
    struct call_bytes text, calls; /* what came of the bytes added last */
    int n_calls;

    enum call_state state;
    bool spoke;    /* text that is not blank was given, or the marker of one */
    bool has_text; /* text was given before the last marker */
    char held[512];
    size_t n_held;
    bool in_control;
    struct call_match next[3]; /* a parameter, another call, the end */
    struct call_match literal;
    const char *begin; /* of the call's head */
    char name[CALL_MAX_NAME + 1], key[CALL_MAX_KEY + 64];
    size_t n_name, n_key;
    int n_parameters;
    bool opened; /* the arguments' brace is given, and not closed */
    unsigned may;
    bool begun; /* the quote of a raw string is given */
    int depth;
    bool in_string, escaped, in_word;
    int none;        /* letters of None */
    char partial[4]; /* [n_partial] of a character of the calls */
    size_t n_partial;
    bool failed;
};

void call_reader_open(struct call_reader *r, const struct call_form *form,
                      call_types_fn *types, const void *arg);
void call_reader_close(struct call_reader *r);

/* Adds bytes of the answer; text and calls become what is decided by now, calls in
 * whole characters. Blanks before a call, and control tokens of a text, are left out.
 * Error: ST_NO_MEMORY. */
enum status call_reader_add(struct call_reader *r, const char *bytes, size_t n,
                            struct err *err);

/* The answer ends: what was held back is added to text and calls. */
enum status call_reader_end(struct call_reader *r, struct err *err);

/* Whether the last call is whole, and no bytes were unexpected. */
bool call_reader_is_whole(const struct call_reader *r);

#endif
