/* SPDX-License-Identifier: MIT
 *
 * keywords.c - the keywords of JSON Schema, the types that they are about, and values
 * that a schema lists
 *
 * Source: JSON Schema 2020-12, core and validation.
 */
#include "engine/grammar/build.h"
#include "engine/grammar/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Types that a keyword is about; NOTE: it says nothing about valid values. */
#define NOTE 0x100u
#define CORE 0x200u
static const struct {
    const char *name;
    unsigned about;
} keywords[] = {
    {"type", CORE},
    {"enum", CORE},
    {"const", CORE},
    {"anyOf", CORE},
    {"oneOf", CORE},
    {"allOf", CORE},
    {"$ref", CORE},
    {"properties", TYPE_OBJECT},
    {"required", TYPE_OBJECT},
    {"additionalProperties", TYPE_OBJECT},
    {"items", TYPE_ARRAY},
    {"prefixItems", TYPE_ARRAY},
    {"minItems", TYPE_ARRAY},
    {"maxItems", TYPE_ARRAY},
    {"minLength", TYPE_STRING},
    {"maxLength", TYPE_STRING},
    {"pattern", TYPE_STRING},
    {"format", TYPE_STRING},
    {"minimum", TYPE_NUMBER},
    {"maximum", TYPE_NUMBER},
    {"exclusiveMinimum", TYPE_NUMBER},
    {"exclusiveMaximum", TYPE_NUMBER},
    {"multipleOf", TYPE_NUMBER},
    {"title", NOTE},
    {"description", NOTE},
    {"default", NOTE},
    {"examples", NOTE},
    {"example", NOTE},
    {"deprecated", NOTE},
    {"readOnly", NOTE},
    {"writeOnly", NOTE},
    {"$schema", NOTE},
    {"$id", NOTE},
    {"$anchor", NOTE},
    {"$comment", NOTE},
    {"$defs", NOTE},
    {"definitions", NOTE},
    {"contentEncoding", NOTE},
    {"contentMediaType", NOTE},
    {"contentSchema", NOTE},
    {"discriminator", NOTE},
};
#define N_KEYWORDS (sizeof keywords / sizeof *keywords)

static unsigned about(const char *key)
{
    for (size_t i = 0; i < N_KEYWORDS; i++) {
        if (!strcmp(key, keywords[i].name))
            return keywords[i].about;
    }
    return !strncmp(key, "x-", 2) ? NOTE : 0;
}

bool schema_restricts(const char *key)
{
    return about(key) != NOTE;
}

/* Keywords that are not supported may say what is true of every value. */
static bool restricts_nothing(const char *key, const json_t *value)
{
    double n;

    if (!strcmp(key, "uniqueItems") || !strcmp(key, "nullable"))
        return json_is_false(value);
    if (!strcmp(key, "minProperties") || !strcmp(key, "minContains"))
        return json_finite(value, &n) && !(n < 0 || n > 0);
    return false;
}

bool schema_check(struct build *b, const json_t *schema)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)schema, key, value)
    {
        if (about(key) == 0 && !restricts_nothing(key, value)) {
            build_refuse(b, "the keyword '%.64s' is not supported%s", key,
                         strcmp(key, "nullable") ? ""
                                                 : "; write \"type\": [..., \"null\"]");
            return false;
        }
    }
    return true;
}

const char *schema_other(const json_t *schema, const char *const *but)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)schema, key, value)
    {
        bool listed = !schema_restricts(key) || restricts_nothing(key, value);

        for (size_t i = 0; but[i] && !listed; i++)
            listed = !strcmp(key, but[i]);
        if (!listed)
            return key;
    }
    return NULL;
}

/* ---- types ----------------------------------------------------------------------- */

static unsigned type_named(struct build *b, const json_t *name)
{
    static const struct {
        const char *name;
        unsigned type;
    } names[] = {{"null", TYPE_NULL},     {"boolean", TYPE_BOOLEAN},
                 {"object", TYPE_OBJECT}, {"array", TYPE_ARRAY},
                 {"string", TYPE_STRING}, {"integer", TYPE_INTEGER},
                 {"number", TYPE_NUMBER}};
    const char *text = json_text(name);

    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
        if (!strcmp(text, names[i].name))
            return names[i].type;
    }
    build_refuse(b,
                 "the type '%.32s' is not one of null, boolean, object, array, string, "
                 "integer, number",
                 text ? text : "?");
    return 0;
}

unsigned schema_types(struct build *b, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    unsigned types = 0;
    const char *key;
    json_t *value;

    if (json_is_array(type) && json_array_size(type) > 0) {
        for (size_t i = 0; i < json_array_size(type); i++)
            types |= type_named(b, json_array_get(type, i));
    } else if (type) {
        types = type_named(b, type);
    } else if (!json_object_get(schema, "enum") && !json_object_get(schema, "const")) {
        json_object_foreach((json_t *)schema, key, value) types |=
            strcmp(key, "format") ? about(key) & TYPE_ANY : schema_format_about(value);
    }
    if (types & TYPE_NUMBER)
        types &= ~(unsigned)TYPE_INTEGER;
    return type || types ? types : TYPE_ANY & ~(unsigned)TYPE_INTEGER;
}

/* ---- listed values --------------------------------------------------------------- */

unsigned schema_type_of(const json_t *value)
{
    if (json_no_number(value))
        return TYPE_INTEGER | TYPE_NUMBER;
    if (json_is_real(value) && floor(json_real_value(value)) == json_real_value(value))
        return TYPE_INTEGER | TYPE_NUMBER;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return TYPE_OBJECT;
    case JSON_ARRAY:
        return TYPE_ARRAY;
    case JSON_STRING:
        return TYPE_STRING;
    case JSON_INTEGER:
        return TYPE_INTEGER | TYPE_NUMBER;
    case JSON_REAL:
        return TYPE_NUMBER;
    case JSON_NULL:
        return TYPE_NULL;
    default:
        return TYPE_BOOLEAN;
    }
}

/* A number in it that no decimal holds; NULL: there is none. */
static const char *unread_in(const json_t *value)
{
    const char *found = json_no_number(value), *key;
    struct decimal d;
    json_t *part;
    size_t i;

    if (found && decimal_parse(&d, found))
        found = NULL;
    json_array_foreach((json_t *)value, i, part) found =
        found ? found : unread_in(part);
    json_object_foreach((json_t *)value, key, part) found =
        found ? found : unread_in(part);
    return found;
}

/* A value as it is written. */
static void write_value(FILE *out, const json_t *value)
{
    const char *key;
    json_t *member;
    char text[32];
    size_t n = 0;

    if (json_is_real(value)) {
        fputs(decimal_shortest(text, json_real_value(value)), out);
    } else if (json_no_number(value)) {
        fputs(json_no_number(value), out);
    } else if (json_is_array(value)) {
        for (fputc('[', out); n < json_array_size(value); n++) {
            fputs(n ? "," : "", out);
            write_value(out, json_array_get(value, n));
        }
        fputc(']', out);
    } else if (json_is_object(value)) {
        fputc('{', out);
        json_object_foreach((json_t *)value, key, member)
        {
            json_t *name = json_string(key);

            fputs(n++ ? "," : "", out);
            json_dumpf(name, out, JSON_ENCODE_ANY);
            json_decref(name);
            fputc(':', out);
            write_value(out, member);
        }
        fputc('}', out);
    } else {
        json_dumpf(value, out, JSON_ENCODE_ANY);
    }
}

/* NULL: no memory. */
static char *value_text(const json_t *value)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    write_value(out, value);
    const bool failed = ferror(out);

    if (!fclose(out) && !failed)
        return text;
    free(text);
    return NULL;
}

uint32_t build_values(struct build *b, const json_t *schema, uint32_t to)
{
    static const char *const allowed[] = {"type", "enum", "const", NULL};
    const json_t *list = json_object_get(schema, "enum");
    const json_t *one = json_object_get(schema, "const");
    const unsigned types = schema_types(b, schema);
    const char *other = schema_other(schema, allowed);
    const size_t n = list ? json_array_size(list) : 1;
    struct text *texts;
    size_t n_texts = 0;
    uint32_t node = NODE_DEAD;

    if (other) {
        build_refuse(b, "'%.64s' together with enum or const is not supported", other);
        return NODE_DEAD;
    }
    if (list && (!json_is_array(list) || n == 0)) {
        build_refuse(b, "enum is not a list of values");
        return NODE_DEAD;
    }
    texts = calloc(n, sizeof *texts);
    for (size_t i = 0; i < n && texts; i++) {
        const json_t *value = list ? json_array_get(list, i) : one;

        const char *unread = unread_in(value);

        if (unread)
            build_refuse(b, "the number %.40s is beyond the range of a double, or none",
                         unread);
        if (!(types & schema_type_of(value)) ||
            (one && !decimal_equal_values(value, one)))
            continue;
        char *s = value_text(value);

        if (!s)
            break;
        texts[n_texts++] = (struct text){s, strlen(s)};
    }
    if (!texts)
        automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate %zu values", n);
    else if (n_texts > 0)
        node = build_texts(b->a, texts, n_texts, to);
    for (size_t i = 0; i < n_texts; i++)
        free((char *)texts[i].s);
    free(texts);
    return node;
}
