/* SPDX-License-Identifier: MIT
 *
 * build.h - automata of JSON values and of schemas, built from the end (automaton.h)
 *
 * Functions take the node that follows and return where what they build begins.
 *
 * Threading: one thread per object.
 */
#ifndef SLM_ENGINE_GRAMMAR_BUILD_H
#define SLM_ENGINE_GRAMMAR_BUILD_H

#include "engine/base/json_read.h"
#include "engine/grammar/automaton.h"
#include "engine/grammar/call_form.h"

#define NO_RULE UINT32_MAX

/* A schema that is called by rule: the target of $ref, or of array elements. */
struct schema_rule {
    const json_t *schema;
    char *path; /* JSON pointer, for messages */
    uint32_t rule;
};

/* A pattern and its rule: what follows a string's opening quote. */
struct known_pattern {
    const char *text;
    size_t len;
    const char *also;
    uint32_t min, max, rule;
    const char *raw; /* the automaton's */
};

struct build {
    struct automaton *a;
    json_t *root;                /* the schema; NULL: any object */
    char path[256];              /* JSON pointer of what is being built, cut to fit */
    size_t path_len;             /* may be more than fits */
    int depth;                   /* of schemas within schemas */
    struct schema_rule *schemas; /* [n_schemas], of which n_built are built */
    size_t n_schemas, n_built, cap_schemas;
    json_t *made;                   /* an array that owns schemas merged here */
    int n_merged;                   /* schemas looked at for that, */
    uint64_t merge_work;            /* and values and names compared */
    struct known_pattern *patterns; /* [n_patterns] */
    size_t n_patterns;
    uint64_t pattern_work;    /* steps of making all patterns deterministic */
    uint32_t string, any;     /* rules, NO_RULE: not there yet */
    uint32_t number, integer; /* the same */
    uint32_t raw;             /* the same: a string up to what closes it (calls.c) */
    bool python;              /* True, False, None */
};

void build_free(struct build *b);

/* Limits of a schema. What a value takes in memory is bounded by jsonfile.h. */
#define SCHEMA_BYTES  ((size_t)256 << 10)
#define SCHEMA_VALUES ((size_t)32 << 10)

/* The texts of a schema; NULL: any object's. */
uint32_t build_json(struct automaton *a, json_t *schema);

/* Unicode characters lo .. hi. */
struct char_range {
    uint32_t lo, hi;
};
#define CHAR_MAX_CODE 0x10ffffu

/* One character of ranges[n] as a JSON string has it: itself, or the shortest escape
 * where it needs one. Not U+0000, which many readers refuse; surrogates are no
 * characters. */
uint32_t build_chars(struct automaton *a, const struct char_range *ranges, size_t n,
                     uint32_t to);

/* ---- values.c: any value of a type ----------------------------------------------- */

/* White space that may be there: nothing, a blank, or a line break with blanks or tabs;
 * after a colon, nothing or a blank. */
uint32_t build_space(struct automaton *a, uint32_t to);
uint32_t build_colon(struct automaton *a, uint32_t to);

/* A string of min to max characters in any spelling, with its quotes. */
uint32_t build_string(struct build *b, uint32_t min, uint32_t max, uint32_t to);
uint32_t build_number(struct build *b, uint32_t to);
uint32_t build_integer(struct build *b, uint32_t to);

/* Any value; nest: brackets around it within its rule. */
uint32_t build_any(struct build *b, uint8_t nest, uint32_t to);
uint32_t build_any_object(struct build *b, uint8_t nest, uint32_t to);

/* ---- schema.c -------------------------------------------------------------------- */

/* The text of b->root's schema. Errors are in b->a. */
uint32_t build_schema_text(struct build *b, uint32_t to);

/* The rules of schemas that were called. */
void build_called(struct build *b);

/* Valid values of one schema, within b->path. */
uint32_t build_schema(struct build *b, const json_t *schema, uint8_t nest, uint32_t to);

/* Builds a schema as a rule of its own, for schemas that are used more than once. */
uint32_t build_schema_call(struct build *b, const json_t *schema, uint8_t nest,
                           uint32_t to);

/* Steps into a member of the schema, or an element, for messages. */
size_t build_enter(struct build *b, const char *key);
size_t build_enter_index(struct build *b, size_t i);
void build_leave(struct build *b, size_t path_len);

/* ST_INPUT at the present place. */
void build_refuse(struct build *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A member that is a whole number, 0 to 2^31; absent: *out stays. */
void build_get_count(struct build *b, const json_t *schema, const char *key,
                     uint32_t *out);

/* The schema that a local $ref names; NULL after an error. */
const json_t *build_resolve(struct build *b, const json_t *ref);

/* ---- schema_object.c, schema_array.c, schema_number.c, schema_string.c, ... ------ */

enum schema_type {
    TYPE_NULL = 1,
    TYPE_BOOLEAN = 2,
    TYPE_OBJECT = 4,
    TYPE_ARRAY = 8,
    TYPE_STRING = 16,
    TYPE_INTEGER = 32,
    TYPE_NUMBER = 64, /* whole ones among them */
    TYPE_ANY = 127
};

/* Types that a schema allows, by its `type` or by what its keywords are about. */
unsigned schema_types(struct build *b, const json_t *schema);

/* Whether all keywords are known; what is not supported is refused. */
bool schema_check(struct build *b, const json_t *schema);
/* Whether a keyword says something about valid values. */
bool schema_restricts(const char *key);
/* The first keyword that does and is none of but[], which ends with NULL; or NULL. */
const char *schema_other(const json_t *schema, const char *const *but);

/* The type of a value; a whole number has two. */
unsigned schema_type_of(const json_t *value);

/* One schema for what $ref, allOf, anyOf, oneOf and other keywords of one say together:
 * without any of them, or anyOf alone, or false. Owned by b; NULL after an error. */
const json_t *schema_combine(struct build *b, const json_t *schema);

/* Refuses alternatives of oneOf that may be valid at once, for values of types. */
void schema_check_one(struct build *b, const json_t *list, unsigned types);

/* Values of `enum` and `const`. */
uint32_t build_values(struct build *b, const json_t *schema, uint32_t to);

uint32_t build_object_type(struct build *b, const json_t *schema, uint8_t nest,
                           uint32_t to);
uint32_t build_array_type(struct build *b, const json_t *schema, uint8_t nest,
                          uint32_t to);
uint32_t build_string_type(struct build *b, const json_t *schema, uint32_t to);
uint32_t build_number_type(struct build *b, const json_t *schema, bool integer,
                           uint32_t to);

/* ---- call_arguments.c, call_texts.c: calls of tools ------------------------------ */

/* The arguments that a tool's schema, b->root, allows, as a form writes them. */
uint32_t build_arguments(struct build *b, const struct call_form *form, uint32_t to);

/* enum call_types of a parameter of b->root. */
unsigned build_parameter_types(struct build *b, const char *key);

/* A string of a schema without quotes, with what closes it, b->a->raw. */
uint32_t build_raw_string(struct build *b, const json_t *schema, uint32_t to);

/* Any text in UTF-8 up to the first `close`, with it. */
uint32_t build_raw_until(struct automaton *a, const char *close, uint32_t to);

/* A text of a form, whose holes are filled. */
uint32_t build_form_text(struct automaton *a, const char *text, uint32_t to);

/* What a text is before its calls begin, with blanks or thoughts first. */
struct call_start {
    const char *think_begin, *think_end; /* NULL: there are no thoughts */
    bool thinks;                         /* the prompt has opened them */
    const char *trigger;                 /* [n_trigger] */
    size_t n_trigger;
    bool anywhere;
    const char *answer;          /* before a text or value; NULL: nothing */
    const char *preamble, *next; /* of texts that are marked, as a form has them */
    size_t n_next;
    bool text;      /* a text may be all there is */
    uint32_t value; /* instead of calls; NODE_DEAD: nothing */
    uint32_t calls; /* behind the trigger; NODE_DEAD: no call may begin */
    uint32_t heads; /* calls where an answer begins */
};
uint32_t build_call_start(struct automaton *a, const struct call_start *s);

/* true, false, null, as they are written. */
struct text build_word(const struct build *b, const char *word);

/* The type that a format is about. */
unsigned schema_format_about(const json_t *format);

/* A string whose decoded text matches a regular expression (ECMA 262's, a subset), and
 * another one unless `also` is NULL (static, so that equal ones are one), and has min
 * to max characters, with its quotes. */
uint32_t build_pattern(struct build *b, const char *pattern, size_t len,
                       const char *also, uint32_t min, uint32_t max, uint32_t to);

#endif
