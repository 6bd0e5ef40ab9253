/* SPDX-License-Identifier: MIT
 *
 * schema_check.h - whether a JSON value is valid under a schema, written down from the
 * specification and knowing nothing of automata: the oracle of the tests of grammars
 */
#ifndef SLM_TESTS_SCHEMA_CHECK_H
#define SLM_TESTS_SCHEMA_CHECK_H

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "tests/support/test.h"

static bool schema_valid(const json_t *root, const json_t *schema, const json_t *value);

static inline size_t schema_length(const json_t *string)
{
    const char *s = json_string_value(string);
    size_t n = 0;

    for (size_t i = 0; i < json_string_length(string); i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

static inline bool schema_matches(const char *pattern, const json_t *string)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &code, &at, NULL);

    if (!re)
        fail_msg("%s: %d at %zu", pattern, code, (size_t)at);
    pcre2_match_data *data = pcre2_match_data_create_from_pattern(re, NULL);
    const int n = pcre2_match(re, (PCRE2_SPTR)json_string_value(string),
                              json_string_length(string), 0, 0, data, NULL);

    pcre2_match_data_free(data);
    pcre2_code_free(re);
    return n > 0;
}

static inline bool schema_type_is(const char *type, const json_t *v)
{
    if (!strcmp(type, "integer")) /* a double beyond 2^63 is whole */
        return json_is_integer(v) || fabs(json_real_value(v)) >= 0x1p63;
    if (!strcmp(type, "number"))
        return json_is_number(v);
    if (!strcmp(type, "string"))
        return json_is_string(v);
    if (!strcmp(type, "object"))
        return json_is_object(v);
    if (!strcmp(type, "array"))
        return json_is_array(v);
    if (!strcmp(type, "boolean"))
        return json_is_boolean(v);
    return json_is_null(v);
}

static inline const json_t *schema_target(const json_t *root, const char *ref)
{
    char copy[256], *save = NULL;

    snprintf(copy, sizeof copy, "%s", ref + 1);
    for (char *part = strtok_r(copy, "/", &save); part;
         part = strtok_r(NULL, "/", &save))
        root = json_object_get(root, part);
    assert_non_null(root);
    return root;
}

static inline bool schema_number_valid(const json_t *schema, const json_t *value)
{
    const double x = json_number_value(value);
    const json_t *limit;

    if ((limit = json_object_get(schema, "multipleOf")) &&
        json_integer_value(value) % json_integer_value(limit))
        return false;
    if ((limit = json_object_get(schema, "minimum")) &&
        !(x >= json_number_value(limit)))
        return false;
    if ((limit = json_object_get(schema, "maximum")) &&
        !(x <= json_number_value(limit)))
        return false;
    if ((limit = json_object_get(schema, "exclusiveMinimum")) &&
        !(x > json_number_value(limit)))
        return false;
    return !(limit = json_object_get(schema, "exclusiveMaximum")) ||
           x < json_number_value(limit);
}

static inline bool schema_string_valid(const json_t *schema, const json_t *value)
{
    const double length = (double)schema_length(value);
    const json_t *limit;

    if ((limit = json_object_get(schema, "minLength")) &&
        !(length >= json_number_value(limit)))
        return false;
    if ((limit = json_object_get(schema, "maxLength")) &&
        !(length <= json_number_value(limit)))
        return false;
    return !(limit = json_object_get(schema, "pattern")) ||
           schema_matches(json_string_value(limit), value);
}

static inline bool schema_object_valid(const json_t *root, const json_t *schema,
                                       const json_t *value)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *others = json_object_get(schema, "additionalProperties");
    const json_t *required = json_object_get(schema, "required");
    const char *key;
    json_t *member;

    for (size_t i = 0; i < json_array_size(required); i++) {
        if (!json_object_get(value, json_string_value(json_array_get(required, i))))
            return false;
    }
    json_object_foreach((json_t *)value, key, member)
    {
        const json_t *s = json_object_get(properties, key);

        if (!s)
            s = others;
        if (s && !schema_valid(root, s, member))
            return false;
    }
    return true;
}

static inline bool schema_array_valid(const json_t *root, const json_t *schema,
                                      const json_t *value)
{
    const json_t *first = json_object_get(schema, "prefixItems");
    const json_t *items = json_object_get(schema, "items");
    const json_t *limit;
    const double n = (double)json_array_size(value);

    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *s = i < json_array_size(first) ? json_array_get(first, i) : items;

        if (s && !schema_valid(root, s, json_array_get(value, i)))
            return false;
    }
    if ((limit = json_object_get(schema, "minItems")) &&
        !(n >= json_number_value(limit)))
        return false;
    return !(limit = json_object_get(schema, "maxItems")) ||
           n <= json_number_value(limit);
}

/* How many of a list of schemas a value is valid under. */
static inline size_t schema_count(const json_t *root, const json_t *list,
                                  const json_t *value)
{
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(list); i++)
        n += schema_valid(root, json_array_get(list, i), value);
    return n;
}

static inline bool schema_lists(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);

        if (json_equal(v, value) ||
            (json_is_number(v) && json_number_value(v) == json_number_value(value)))
            return true;
    }
    return false;
}

static bool schema_valid(const json_t *root, const json_t *schema, const json_t *value)
{
    const json_t *s;

    if (json_is_boolean(schema))
        return json_is_true(schema);
    if ((s = json_object_get(schema, "$ref")) &&
        !schema_valid(root, schema_target(root, json_string_value(s)), value))
        return false;
    if ((s = json_object_get(schema, "anyOf")) && schema_count(root, s, value) == 0)
        return false;
    if ((s = json_object_get(schema, "oneOf")) && schema_count(root, s, value) != 1)
        return false;
    if ((s = json_object_get(schema, "allOf")) &&
        schema_count(root, s, value) != json_array_size(s))
        return false;
    if ((s = json_object_get(schema, "enum")) && !schema_lists(s, value))
        return false;
    if ((s = json_object_get(schema, "const")) && !json_equal(s, value))
        return false;
    if ((s = json_object_get(schema, "type"))) {
        bool is = json_is_string(s) && schema_type_is(json_string_value(s), value);

        for (size_t i = 0; i < json_array_size(s); i++)
            is |= schema_type_is(json_string_value(json_array_get(s, i)), value);
        if (!is)
            return false;
    }
    return (!json_is_number(value) || schema_number_valid(schema, value)) &&
           (!json_is_string(value) || schema_string_valid(schema, value)) &&
           (!json_is_object(value) || schema_object_valid(root, schema, value)) &&
           (!json_is_array(value) || schema_array_valid(root, schema, value));
}

/* JSON has integers of any size. jansson refuses those beyond 64 bits: a text with one
 * is read with all its integers as reals. NULL: the text is no JSON. */
static inline json_t *schema_read(const char *text, size_t len)
{
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_t *value = json_loadb(text, len, flags, NULL);

    return value ? value : json_loadb(text, len, flags | JSON_DECODE_INT_AS_REAL, NULL);
}

/* The text is JSON, and valid under the schema (NULL: an object). */
static inline bool schema_text_valid(const char *schema, const char *text, size_t len)
{
    json_t *value = schema_read(text, len);
    json_t *s = schema ? schema_read(schema, strlen(schema)) : NULL;
    const bool valid =
        value && (schema ? schema_valid(s, s, value) : json_is_object(value));

    json_decref(value);
    json_decref(s);
    return valid;
}

#endif
