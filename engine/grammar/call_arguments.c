/* SPDX-License-Identifier: MIT
 *
 * call_arguments.c - the arguments of a tool's call: a JSON object, or parameters
 *
 * Parameters are the members that the tool's schema declares, in its order. Where a
 * string is written as it is, a value of another type is JSON. Where both look alike, a
 * parameter that may be a string is one, or null, true or false where it may be that:
 * whatever else would be read in two ways.
 */
#include "engine/grammar/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 16 /* references in a row */

/* ---- types of a parameter -------------------------------------------------------- */

/* A schema without references and what is to be merged: true, false, or with one of
 * anyOf, oneOf, enum, const or a type. NULL after an error. */
static const json_t *resolve(struct build *b, const json_t *schema)
{
    static const char *const ref[] = {"$ref", NULL};
    static const char *const one[] = {"oneOf", NULL}, *const any[] = {"anyOf", NULL};
    static const char *const merged[] = {"$ref", "allOf", "anyOf", "oneOf"};

    for (int i = 0; i < MAX_STEPS; i++) {
        bool is_merged = false;

        if (!json_is_object(schema))
            return schema;
        if (!schema_check(b, schema))
            return NULL;
        if (json_object_get(schema, "$ref") && !schema_other(schema, ref)) {
            schema = build_resolve(b, json_object_get(schema, "$ref"));
            continue;
        }
        if ((json_object_get(schema, "oneOf") && !schema_other(schema, one)) ||
            (json_object_get(schema, "anyOf") && !schema_other(schema, any)))
            return schema;
        for (int k = 0; k < 4; k++)
            is_merged |= json_object_get(schema, merged[k]) != NULL;
        if (!is_merged)
            return schema;
        schema = schema_combine(b, schema);
        if (!schema)
            return NULL;
    }
    build_refuse(b, "more than %d references follow each other", MAX_STEPS);
    return NULL;
}

static const json_t *alternatives_of(const json_t *schema)
{
    const json_t *any = json_object_get(schema, "anyOf");

    return any ? any : json_object_get(schema, "oneOf");
}

/* The values that a schema lists, or NULL; one is an array of it. */
static json_t *listed(struct build *b, const json_t *schema)
{
    json_t *list = json_object_get(schema, "enum");
    json_t *value = json_object_get(schema, "const"), *one;

    if (!value || list)
        return list;
    one = json_pack("[O]", value);
    json_array_append_new(b->made, one);
    return one;
}

static unsigned types_of(struct build *b, const json_t *schema)
{
    const json_t *s = resolve(b, schema), *list;
    unsigned types = 0;

    if (!s || json_is_false(s) || b->a->st || b->depth == MAX_STEPS)
        return 0;
    if (json_is_true(s) || !json_object_size(s))
        return TYPE_ANY;
    list = alternatives_of(s);
    b->depth++;
    for (size_t i = 0; i < json_array_size(list); i++)
        types |= types_of(b, json_array_get(list, i));
    b->depth--;
    if (list)
        return types;
    list = listed(b, s);
    for (size_t i = 0; i < json_array_size(list); i++)
        types |= schema_type_of(json_array_get(list, i));
    return list ? types : schema_types(b, s);
}

/* ---- values ---------------------------------------------------------------------- */

/* One way for each alternative. */
static uint32_t each_way(struct build *b, const json_t *list, unsigned types,
                         uint32_t to,
                         uint32_t (*way)(struct build *b, const json_t *schema,
                                         unsigned types, uint32_t to))
{
    uint32_t node = NODE_DEAD;

    for (size_t i = 0; i < json_array_size(list) && !b->a->st; i++)
        node = build_either(b->a, node, way(b, json_array_get(list, i), types, to));
    return node;
}

static uint32_t raw_way(struct build *b, const json_t *schema, unsigned types,
                        uint32_t to)
{
    const json_t *s = resolve(b, schema), *list;
    uint32_t node = NODE_DEAD;

    if (!s || json_is_false(s))
        return NODE_DEAD;
    if (json_is_true(s))
        return build_raw_string(b, NULL, to);
    if (alternatives_of(s))
        return each_way(b, alternatives_of(s), types, to, raw_way);
    list = listed(b, s);
    if (!list)
        return (schema_types(b, s) & TYPE_STRING) ? build_raw_string(b, s, to)
                                                  : NODE_DEAD;
    for (size_t i = 0; i < json_array_size(list) && !b->a->st; i++) {
        const char *text = json_text(json_array_get(list, i));

        if (text && !strstr(text, b->a->raw) && !strchr(text, CALL_CONTROL))
            node = build_either(
                b->a, node,
                build_text(b->a, text, strlen(text),
                           build_text(b->a, b->a->raw, strlen(b->a->raw), to)));
    }
    return node;
}

/* The same schema, of these types alone. */
static const json_t *restricted(struct build *b, const json_t *schema, unsigned types)
{
    static const struct {
        unsigned type;
        const char *name;
    } names[] = {{TYPE_NULL, "null"},     {TYPE_BOOLEAN, "boolean"},
                 {TYPE_OBJECT, "object"}, {TYPE_ARRAY, "array"},
                 {TYPE_NUMBER, "number"}, {TYPE_INTEGER, "integer"}};
    json_t *copy = json_is_object(schema) ? json_copy((json_t *)schema) : json_object();
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (types & names[i].type &&
            !(names[i].type == TYPE_INTEGER && types & TYPE_NUMBER))
            json_array_append_new(list, json_string(names[i].name));
    json_object_set_new(copy, "type", list);
    json_array_append_new(b->made, copy);
    return copy;
}

static uint32_t other_way(struct build *b, const json_t *schema, unsigned types,
                          uint32_t to)
{
    const json_t *s = resolve(b, schema), *list;
    json_t *rest;

    if (!s || json_is_false(s))
        return NODE_DEAD;
    if (json_is_object(s) && alternatives_of(s)) {
        if (json_object_get(s, "oneOf"))
            schema_check_one(b, alternatives_of(s), TYPE_ANY);
        return each_way(b, alternatives_of(s), types, to, other_way);
    }
    list = json_is_object(s) ? listed(b, s) : NULL;
    if (list) {
        rest = json_array();
        for (size_t i = 0; i < json_array_size(list); i++)
            if (schema_type_of(json_array_get(list, i)) & types)
                json_array_append(rest, json_array_get(list, i));
        if (!json_array_size(rest)) {
            json_decref(rest);
            return NODE_DEAD;
        }
        json_array_append_new(b->made, rest = json_pack("{s:o}", "enum", rest));
        return build_schema(b, rest, 1, to);
    }
    types &= json_is_object(s) ? schema_types(b, s) : TYPE_ANY;
    if (types & TYPE_NUMBER)
        types |= TYPE_INTEGER;
    return types ? build_schema(b, restricted(b, s, types), 1, to) : NODE_DEAD;
}

/* Types of a parameter that are not written as strings. */
static unsigned other_types(const struct call_form *f, unsigned types)
{
    const bool alike = !strcmp(f->value[CALL_STRING], f->value[CALL_OTHER]);

    return alike && types & TYPE_STRING ? TYPE_NULL | TYPE_BOOLEAN
                                        : TYPE_ANY & ~(unsigned)TYPE_STRING;
}

static uint32_t value_of(struct build *b, const struct call_form *f,
                         const json_t *schema, uint32_t to)
{
    struct automaton *a = b->a;
    const uint32_t close = build_form_text(a, f->close[CALL_OTHER], to);
    const json_t *any = json_true();
    uint32_t string, other;
    unsigned types;

    if (!schema)
        schema = any;
    if (f->quotes)
        return build_form_text(a, f->value[CALL_OTHER],
                               build_schema(b, schema, 1, close));
    types = types_of(b, schema);
    other = other_way(b, schema, other_types(f, types), close);
    a->raw = f->close[CALL_STRING];
    string = raw_way(b, schema, types, to);
    a->raw = NULL;
    return build_either(
        a, string == NODE_DEAD ? string : build_form_text(a, f->value[0], string),
        other == NODE_DEAD ? other : build_form_text(a, f->value[1], other));
}

/* ---- parameters ------------------------------------------------------------------ */

static bool is_required(const json_t *schema, const char *name)
{
    const json_t *list = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *other = json_text(json_array_get(list, i));

        if (other && !strcmp(other, name))
            return true;
    }
    return false;
}

static bool check_key(struct build *b, const struct call_form *f, const char *key)
{
    if (*key && strlen(key) <= CALL_MAX_KEY && !strstr(key, f->value[CALL_OTHER]) &&
        (f->quotes || !strstr(key, f->value[CALL_STRING])) &&
        !strpbrk(key, "\xff\n\r\"'<>(){}[]=,"))
        return true;
    build_refuse(b,
                 "the name '%.64s' cannot be written in the way in which the model's "
                 "template writes parameters",
                 key);
    return false;
}

/* Every required name is declared. */
static bool check_required(struct build *b, const json_t *schema)
{
    const json_t *list = json_object_get(schema, "required");
    const json_t *declared = json_object_get(schema, "properties");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_text(json_array_get(list, i));

        if (!name || !json_object_get(declared, name)) {
            build_refuse(b, "'required' has a name that 'properties' does not declare");
            return false;
        }
    }
    return true;
}

/* From the last parameter back: `first` is what comes where none was written, `later`
 * where one was. */
static uint32_t parameters(struct build *b, const struct call_form *f,
                           const json_t *schema, uint32_t to)
{
    json_t *declared = json_object_get(schema, "properties");
    const size_t n = json_object_size(declared), path = build_enter(b, "properties");
    const char **keys = calloc(n + 1, sizeof *keys), *key;
    uint32_t first = to, later = to;
    json_t *value;
    size_t i = 0;

    if (!keys) {
        automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate %zu parameters", n);
        return NODE_DEAD;
    }
    json_object_foreach(declared, key, value) keys[i++] = key;
    for (i = n; i-- > 0 && !b->a->st;) {
        const size_t at = build_enter(b, keys[i]);
        uint32_t one;

        if (!check_key(b, f, keys[i]))
            break;
        one = value_of(b, f, json_object_get(declared, keys[i]), later);
        one = one == NODE_DEAD
                  ? one
                  : build_form_text(b->a, f->open,
                                    build_text(b->a, keys[i], strlen(keys[i]), one));
        const uint32_t joined =
            one == NODE_DEAD ? one : build_form_text(b->a, f->join, one);

        if (is_required(schema, keys[i])) {
            first = one;
            later = joined;
        } else {
            first = build_either(b->a, one, first);
            later = build_either(b->a, joined, later);
        }
        build_leave(b, at);
    }
    free(keys);
    build_leave(b, path);
    return first;
}

uint32_t build_arguments(struct build *b, const struct call_form *f, uint32_t to)
{
    const json_t *schema;
    uint32_t start;

    if (!f->parameters)
        return build_schema_text(b, to);
    snprintf(b->path, sizeof b->path, "#");
    b->path_len = 1;
    b->python = f->python;
    b->made = b->made ? b->made : json_array();
    schema = resolve(b, b->root);
    if (!schema || !check_required(b, schema))
        return NODE_DEAD;
    if (alternatives_of(schema)) {
        build_refuse(b, "alternatives of all parameters are not possible in the way in "
                        "which the model's template writes them");
        return NODE_DEAD;
    }
    start = parameters(b, f, schema, to);
    build_called(b);
    return b->a->st ? NODE_DEAD : start;
}

unsigned build_parameter_types(struct build *b, const char *key)
{
    const json_t *schema = resolve(b, b->root);
    const json_t *of = json_object_get(json_object_get(schema, "properties"), key);
    const unsigned types = of ? types_of(b, of) : (unsigned)TYPE_STRING;

    return (types & TYPE_STRING ? (unsigned)CALL_MAY_STRING : 0) |
           (types & TYPE_NULL ? (unsigned)CALL_MAY_NULL : 0) |
           (types & TYPE_BOOLEAN ? (unsigned)CALL_MAY_BOOLEAN : 0);
}
