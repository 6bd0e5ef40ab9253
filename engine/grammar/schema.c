/* SPDX-License-Identifier: MIT
 *
 * schema.c - the automaton of a JSON schema: references, alternatives, types
 */
#include "engine/grammar/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64 /* schemas within schemas; references begin again at 0 */

/* ---- where we are ---------------------------------------------------------------- */

size_t build_enter(struct build *b, const char *key)
{
    const size_t before = b->path_len;

    if (before < sizeof b->path)
        snprintf(b->path + before, sizeof b->path - before, "/%s", key);
    b->path_len += strlen(key) + 1;
    return before;
}

size_t build_enter_index(struct build *b, size_t i)
{
    char text[24];

    snprintf(text, sizeof text, "%zu", i);
    return build_enter(b, text);
}

void build_leave(struct build *b, size_t path_len)
{
    b->path_len = path_len;
    if (path_len < sizeof b->path)
        b->path[path_len] = '\0';
}

void build_refuse(struct build *b, const char *fmt, ...)
{
    char why[320];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    automaton_fail(b->a, ST_INPUT, "the schema's %s: %s", b->path, why);
}

void build_get_count(struct build *b, const json_t *schema, const char *key,
                     uint32_t *out)
{
    const json_t *value = json_object_get(schema, key);
    double n;

    if (!value)
        return;
    if (!json_finite(value, &n) || !(n >= 0) ||
        (n < 2147483648.0 && n != (uint32_t)n)) {
        char shown[60];

        build_refuse(b, "'%s' is %s, and not a whole number from 0 on", key,
                     json_shown(shown, sizeof shown, value));
        return;
    }
    *out = n < 2147483648.0 ? (uint32_t)n : (uint32_t)1 << 31;
}

/* ---- references ------------------------------------------------------------------ */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* A byte of a URI's fragment, which may be written as %XX. */
static char fragment_byte(const char **at)
{
    const char *s = *at;

    *at += 1;
    if (s[0] != '%' || hex_digit(s[1]) < 0 || hex_digit(s[2]) < 0)
        return s[0];
    *at += 2;
    return (char)(hex_digit(s[1]) * 16 + hex_digit(s[2]));
}

/* The next part of a JSON pointer, unescaped; false: too long, or there is none
 * of that name. */
static bool pointer_part(const char **at, char *part, size_t cap)
{
    size_t n = 0;

    while (**at && **at != '/') {
        char c = fragment_byte(at);

        if (c == '~' && (**at == '0' || **at == '1'))
            c = *(*at)++ == '0' ? '~' : '/';
        if (n + 1 >= cap || !c)
            return false;
        part[n++] = c;
    }
    part[n] = '\0';
    return true;
}

/* SIZE_MAX: it is none. */
static size_t array_index(const char *part)
{
    char *end = NULL;
    const unsigned long i = strtoul(part, &end, 10);

    return *part >= '0' && *part <= '9' && !*end ? i : SIZE_MAX;
}

const json_t *build_resolve(struct build *b, const json_t *ref)
{
    const char *text = json_text(ref), *at = text;
    const json_t *value = b->root;
    char part[256];

    if (!text || text[0] != '#' || (text[1] && text[1] != '/')) {
        build_refuse(b, "$ref '%.64s' is not a place in this schema, like '#/$defs/x'",
                     text ? text : "?");
        return NULL;
    }
    for (at = text + 1; *at == '/' && value;) {
        at++;
        if (!pointer_part(&at, part, sizeof part))
            value = NULL;
        else if (json_is_array(value))
            value = json_array_get(value, array_index(part));
        else
            value = json_object_get(value, part);
    }
    if (!value)
        build_refuse(b, "$ref '%.64s' names nothing in this schema", text);
    return value;
}

uint32_t build_schema_call(struct build *b, const json_t *schema, uint8_t nest,
                           uint32_t to)
{
    for (size_t i = 0; i < b->n_schemas; i++) {
        if (b->schemas[i].schema == schema)
            return build_call(b->a, b->schemas[i].rule, nest, to);
    }
    if (b->n_schemas == b->cap_schemas) {
        const size_t cap = b->cap_schemas ? b->cap_schemas * 2 : 16;
        struct schema_rule *more = realloc(b->schemas, cap * sizeof *more);

        if (!more) {
            automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate %zu schemas", cap);
            return NODE_DEAD;
        }
        b->schemas = more;
        b->cap_schemas = cap;
    }
    struct schema_rule *rule = &b->schemas[b->n_schemas];

    *rule = (struct schema_rule){.schema = schema, .path = strdup(b->path)};
    if (!rule->path) {
        automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate a schema's place");
        return NODE_DEAD;
    }
    b->n_schemas++;
    rule->rule = build_rule(b->a);
    return build_call(b->a, rule->rule, nest, to);
}

static uint32_t reference(struct build *b, const json_t *schema, uint8_t nest,
                          uint32_t to)
{
    const json_t *ref = json_object_get(schema, "$ref");
    const json_t *target = build_resolve(b, ref);
    char path[sizeof b->path];
    uint32_t node;

    if (!target)
        return NODE_DEAD;
    /* Messages about the target, which is built later, name its own place. */
    memcpy(path, b->path, sizeof path);
    snprintf(b->path, sizeof b->path, "%s", json_text(ref));
    node = build_schema_call(b, target, nest, to);
    memcpy(b->path, path, sizeof path);
    return node;
}

/* ---- alternatives ---------------------------------------------------------------- */

static uint32_t alternatives(struct build *b, const json_t *schema, const char *key,
                             uint8_t nest, uint32_t to)
{
    const json_t *list = json_object_get(schema, key);
    const size_t n = json_array_size(list), path = build_enter(b, key);
    uint32_t *ways = n ? calloc(n, sizeof *ways) : NULL, node = NODE_DEAD;

    if (!n)
        build_refuse(b, "this is not a list of schemas");
    else if (!ways)
        automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate %zu alternatives", n);
    for (size_t i = 0; i < n && ways && !b->a->st; i++) {
        const size_t at = build_enter_index(b, i);

        ways[i] = build_schema(b, json_array_get(list, i), nest, to);
        build_leave(b, at);
    }
    if (ways && !b->a->st)
        node = build_split(b->a, ways, (uint32_t)n);
    free(ways);
    build_leave(b, path);
    return node;
}

/* ---- types ----------------------------------------------------------------------- */

static uint32_t by_type(struct build *b, const json_t *schema, uint8_t nest,
                        uint32_t to)
{
    const unsigned types = schema_types(b, schema);
    struct text words[3];
    uint32_t ways[6], n = 0;
    size_t n_words = 0;

    if (types & TYPE_OBJECT)
        ways[n++] = build_object_type(b, schema, nest, to);
    if (types & TYPE_ARRAY)
        ways[n++] = build_array_type(b, schema, nest, to);
    if (types & TYPE_STRING)
        ways[n++] = build_string_type(b, schema, to);
    if (types & (TYPE_NUMBER | TYPE_INTEGER))
        ways[n++] = build_number_type(b, schema, !(types & TYPE_NUMBER), to);
    if (types & TYPE_BOOLEAN) {
        words[n_words++] = build_word(b, "true");
        words[n_words++] = build_word(b, "false");
    }
    if (types & TYPE_NULL)
        words[n_words++] = build_word(b, "null");
    if (n_words)
        ways[n++] = build_texts(b->a, words, n_words, to);
    return b->a->st ? NODE_DEAD : build_split(b->a, ways, n);
}

/* A schema that says what its value is by other schemas only, one of them. */
static bool is_alone(const json_t *schema, const char *key)
{
    const char *const but[] = {key, NULL};

    return json_object_get(schema, key) && !schema_other(schema, but);
}

static uint32_t schema_object(struct build *b, const json_t *schema, uint8_t nest,
                              uint32_t to)
{
    static const char *const by_others[] = {"$ref", "anyOf", "oneOf", "allOf"};
    static const char *const nothing[] = {NULL};

    if (!schema_check(b, schema))
        return NODE_DEAD;
    if (!schema_other(schema, nothing))
        return build_any(b, nest, to);
    if (is_alone(schema, "$ref"))
        return reference(b, schema, nest, to);
    if (is_alone(schema, "oneOf")) {
        schema_check_one(b, json_object_get(schema, "oneOf"), TYPE_ANY);
        return alternatives(b, schema, "oneOf", nest, to);
    }
    if (is_alone(schema, "anyOf"))
        return alternatives(b, schema, "anyOf", nest, to);
    for (int i = 0; i < 4; i++) {
        if (json_object_get(schema, by_others[i])) {
            const json_t *all = schema_combine(b, schema);

            return all ? build_schema(b, all, nest, to) : NODE_DEAD;
        }
    }
    if (json_object_get(schema, "enum") || json_object_get(schema, "const"))
        return build_values(b, schema, to);
    return by_type(b, schema, nest, to);
}

uint32_t build_schema(struct build *b, const json_t *schema, uint8_t nest, uint32_t to)
{
    uint32_t node = NODE_DEAD;

    if (b->a->st || json_is_false(schema))
        return NODE_DEAD;
    if (json_is_true(schema))
        return build_any(b, nest, to);
    if (!json_is_object(schema)) {
        build_refuse(b, "this is no schema: neither an object nor true or false");
        return NODE_DEAD;
    }
    if (b->depth == MAX_DEPTH) {
        build_refuse(b, "more than %d schemas are within each other", MAX_DEPTH);
        return NODE_DEAD;
    }
    b->depth++;
    node = schema_object(b, schema, nest, to);
    b->depth--;
    return b->a->st ? NODE_DEAD : node;
}

uint32_t build_schema_text(struct build *b, uint32_t to)
{
    snprintf(b->path, sizeof b->path, "#");
    b->path_len = 1;
    const uint32_t start = build_schema(b, b->root, 0, to);

    build_called(b);
    return start;
}

void build_called(struct build *b)
{
    for (; b->n_built < b->n_schemas && !b->a->st; b->n_built++) {
        const struct schema_rule rule = b->schemas[b->n_built];

        snprintf(b->path, sizeof b->path, "%s", rule.path);
        b->path_len = strlen(b->path);
        const uint32_t body = build_schema(b, rule.schema, 0, NODE_POP);

        if (!b->a->st)
            b->a->rules[rule.rule].start = body;
    }
}
