/* SPDX-License-Identifier: MIT
 *
 * schema_merge.c - several schemas for one value as one schema, and schemas that have
 * no value in common
 *
 * What is merged exactly: types, required names, properties (those of one schema that
 * the other does not declare fall under its additionalProperties), lengths and limits,
 * listed values. Alternatives within are multiplied out.
 */
#include "engine/grammar/build.h"
#include "engine/grammar/decimal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PARTS  256                 /* of one value's schema */
#define MAX_MERGED 50000               /* parts, of all values */
#define MAX_WORK   ((uint64_t)4 << 20) /* values and names compared */

static json_t *keep(struct build *b, json_t *made)
{
    if (!b->made)
        b->made = json_array();
    if (!made || json_array_append_new(b->made, made))
        automaton_fail(b->a, ST_NO_MEMORY, "cannot allocate a merged schema");
    return b->a->st ? NULL : made;
}

/* Both at once, merged when they are built. */
static json_t *all_of(const json_t *x, const json_t *y)
{
    return json_pack("{s:[O,O]}", "allOf", x, y);
}

/* n more comparisons; false: they are too many. */
static bool may_compare(struct build *b, size_t n)
{
    b->merge_work += n + 1;
    if (b->merge_work > MAX_WORK)
        build_refuse(b,
                     "the schemas for one value, or the alternatives of oneOf, are too "
                     "many to be compared");
    return !b->a->st;
}

/* ---- keywords -------------------------------------------------------------------- */

static json_t *type_names(unsigned types)
{
    static const char *const names[] = {"null",   "boolean", "object", "array",
                                        "string", "integer", "number"};
    json_t *list = json_array();

    for (int i = 0; i < 7; i++) {
        if (types & 1u << i)
            json_array_append_new(list, json_string(names[i]));
    }
    return list;
}

/* Types of both; a whole number is a number. False: none. */
static bool merge_types(struct build *b, json_t *acc, const json_t *y)
{
    unsigned s = schema_types(b, acc), t = schema_types(b, y);

    if (s & TYPE_NUMBER)
        s |= TYPE_INTEGER;
    if (t & TYPE_NUMBER)
        t |= TYPE_INTEGER;
    s &= t;
    if (s & TYPE_NUMBER)
        s &= ~(unsigned)TYPE_INTEGER;
    json_object_set_new(acc, "type", type_names(s));
    return s != 0;
}

static bool contains(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (decimal_equal_values(json_array_get(list, i), value))
            return true;
    }
    return false;
}

/* Listed values of a schema as a list; NULL: it lists none. A new reference. */
static json_t *listed(const json_t *schema)
{
    json_t *one = json_object_get(schema, "const");

    if (one)
        return json_pack("[O]", one);
    return json_incref(json_object_get(schema, "enum"));
}

static void merge_listed(struct build *b, json_t *acc, const json_t *y)
{
    json_t *mine = listed(acc), *other = listed(y), *both = json_array();

    for (size_t i = 0;
         i < json_array_size(mine) && may_compare(b, json_array_size(other)); i++) {
        if (contains(other, json_array_get(mine, i)))
            json_array_append(both, json_array_get(mine, i));
    }
    if (mine && other) {
        json_object_del(acc, "const");
        json_object_set(acc, "enum", both);
    } else if (other) {
        json_object_set(acc, "enum", other);
    }
    json_decref(mine);
    json_decref(other);
    json_decref(both);
}

static json_t *others_of(const json_t *schema)
{
    json_t *others = json_object_get(schema, "additionalProperties");

    return json_is_true(others) ? NULL : others;
}

/* Members of one schema, where the other does not declare them, must be what the other
 * says of others. */
static void add_members(json_t *to, const json_t *from, const json_t *other)
{
    const json_t *declared = json_object_get(other, "properties");
    const json_t *others = others_of(other);
    const char *name;
    json_t *schema;

    json_object_foreach(json_object_get(from, "properties"), name, schema)
    {
        const json_t *twin = json_object_get(declared, name);

        if (json_object_get(to, name))
            continue;
        if (twin || others)
            json_object_set_new(to, name, all_of(schema, twin ? twin : others));
        else
            json_object_set(to, name, schema);
    }
}

static void merge_members(json_t *acc, const json_t *y)
{
    json_t *properties = json_object();
    const json_t *mine = others_of(acc), *other = others_of(y);

    add_members(properties, acc, y);
    add_members(properties, y, acc);
    if (json_object_size(properties) > 0)
        json_object_set(acc, "properties", properties);
    json_decref(properties);
    if (mine && other)
        json_object_set_new(acc, "additionalProperties", all_of(mine, other));
    else if (other)
        json_object_set(acc, "additionalProperties", (json_t *)other);
}

static void merge_required(struct build *b, json_t *acc, const json_t *list)
{
    json_t *both = json_copy(json_object_get(acc, "required"));

    if (!both)
        both = json_array();
    for (size_t i = 0;
         i < json_array_size(list) && may_compare(b, json_array_size(both)); i++) {
        if (!contains(both, json_array_get(list, i)))
            json_array_append(both, json_array_get(list, i));
    }
    json_object_set_new(acc, "required", both);
}

/* A keyword that neither of the above handles. */
static void merge_keyword(struct build *b, json_t *acc, const char *key, json_t *value)
{
    static const char *const lower[] = {"minimum", "exclusiveMinimum", "minLength",
                                        "minItems"};
    static const char *const upper[] = {"maximum", "exclusiveMaximum", "maxLength",
                                        "maxItems"};
    json_t *mine = json_object_get(acc, key);

    if (!mine) {
        json_object_set(acc, key, value);
        return;
    }
    if (json_equal(mine, value))
        return;
    for (int i = 0; i < 4; i++) {
        const bool is_lower = !strcmp(key, lower[i]), is_upper = !strcmp(key, upper[i]);
        struct decimal x, y;

        if (!is_lower && !is_upper)
            continue;
        if (!decimal_read(&x, mine))
            return; /* which is refused where it counts */
        if (!decimal_read(&y, value) ||
            decimal_compare(is_lower ? &y : &x, is_lower ? &x : &y) > 0)
            json_object_set(acc, key, value);
        return;
    }
    if (!strcmp(key, "items") && !json_object_get(acc, "prefixItems")) {
        json_object_set_new(acc, key, all_of(mine, value));
        return;
    }
    build_refuse(b,
                 "several schemas for one value differ in '%.32s', which is not "
                 "supported",
                 key);
}

/* acc becomes both; y has no schemas in place of itself. False: no value is both. */
static bool merge(struct build *b, json_t *acc, const json_t *y)
{
    const char *key;
    json_t *value;
    bool possible = true;

    if (json_object_get(y, "type") && json_object_get(acc, "type"))
        possible = merge_types(b, acc, y);
    if (json_object_get(y, "properties") || json_object_get(y, "additionalProperties"))
        merge_members(acc, y);
    merge_listed(b, acc, y);
    if ((json_object_get(acc, "prefixItems") && json_object_get(y, "items")) ||
        (json_object_get(acc, "items") && json_object_get(y, "prefixItems")))
        build_refuse(b,
                     "'prefixItems' and 'items' of several schemas for one value are "
                     "not supported");
    json_object_foreach((json_t *)y, key, value)
    {
        static const char *const done[] = {"properties", "additionalProperties",
                                           "enum",       "const",
                                           "$ref",       "allOf",
                                           "anyOf",      "oneOf"};
        bool is_done = !schema_restricts(key) ||
                       (!strcmp(key, "type") && json_object_get(acc, key));

        for (size_t i = 0; i < sizeof done / sizeof *done; i++)
            is_done |= !strcmp(key, done[i]);
        if (!strcmp(key, "required"))
            merge_required(b, acc, value);
        else if (!is_done)
            merge_keyword(b, acc, key, value);
    }
    return possible;
}

/* Types that values may have by `type`: where it is missing, all, whatever the other
 * keywords are about. */
static unsigned allowed_types(struct build *b, const json_t *schema)
{
    const unsigned types =
        json_object_get(schema, "type") ? schema_types(b, schema) : TYPE_ANY;

    return types & TYPE_NUMBER ? types | TYPE_INTEGER : types;
}

/* ---- schemas in place of themselves ---------------------------------------------- */

/* parts: a list that grows by what $ref and allOf of its elements say; acc: all else;
 * *ways: the first alternatives; those after it go to rest; ones: those of oneOf. */
static json_t *collect(struct build *b, json_t *parts, json_t *acc, json_t *rest,
                       json_t *ones, const json_t **ways)
{
    for (size_t i = 0; i < json_array_size(parts) && !b->a->st; i++) {
        const json_t *part = json_array_get(parts, i), *list;

        if (json_array_size(parts) > MAX_PARTS || ++b->n_merged > MAX_MERGED) {
            build_refuse(b, "too many schemas for one value, or one that refers to "
                            "itself");
            return NULL;
        }
        if (json_is_true(part))
            continue;
        if (json_is_false(part))
            return json_false();
        if (!json_is_object(part)) {
            build_refuse(b, "this is no schema: neither an object nor true or false");
            return NULL;
        }
        if (!schema_check(b, part))
            return NULL;
        if ((list = json_object_get(part, "$ref"))) {
            const json_t *target = build_resolve(b, list);

            json_array_append(parts, (json_t *)target);
        }
        json_array_extend(parts, json_object_get(part, "allOf"));
        for (int k = 0; k < 2; k++) {
            list = json_object_get(part, k ? "oneOf" : "anyOf");
            if (list && k)
                json_array_append(ones, (json_t *)list);
            if (list && !*ways)
                *ways = list;
            else if (list)
                json_array_append_new(rest, json_pack("{s:O}", "anyOf", list));
        }
        if (!merge(b, acc, part))
            return json_false();
    }
    return acc;
}

const json_t *schema_combine(struct build *b, const json_t *schema)
{
    json_t *parts = json_pack("[O]", schema), *rest = json_array();
    json_t *ones = json_array(), *result;
    json_t *acc = keep(b, json_object());
    const json_t *ways = NULL;

    result = acc ? collect(b, parts, acc, rest, ones, &ways) : NULL;
    for (size_t i = 0; i < json_array_size(ones) && result == acc; i++)
        schema_check_one(b, json_array_get(ones, i), allowed_types(b, acc));
    if (ways && result == acc && !b->a->st) {
        json_t *list = json_array();

        for (size_t i = 0; i < json_array_size(ways); i++) {
            json_t *all = json_pack("[O,O]", json_array_get(ways, i), acc);

            json_array_extend(all, rest);
            json_array_append_new(list, json_pack("{s:o}", "allOf", all));
        }
        result = keep(b, json_pack("{s:o}", "anyOf", list));
    }
    json_decref(parts);
    json_decref(rest);
    json_decref(ones);
    return b->a->st ? NULL : result;
}

/* ---- schemas without a common value ---------------------------------------------- */

static bool apart(struct build *b, const json_t *x, const json_t *y, unsigned types,
                  int depth);

static const json_t *follow(struct build *b, const json_t *schema)
{
    for (int i = 0; i < 16 && json_is_object(schema) && !b->a->st; i++) {
        const json_t *ref = json_object_get(schema, "$ref");

        if (!ref)
            break;
        schema = build_resolve(b, ref);
    }
    return schema;
}

static bool requires(const json_t *schema, const char *name)
{
    const json_t *list = json_object_get(schema, "required");

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_text(json_array_get(list, i));

        if (text && !strcmp(text, name))
            return true;
    }
    return false;
}

/* A member that both have must differ, or one has what the other forbids. */
static bool objects_apart(struct build *b, const json_t *x, const json_t *y, int depth)
{
    const json_t *mine = json_object_get(x, "properties");
    const json_t *other = json_object_get(y, "properties");
    const json_t *required = json_object_get(y, "required");
    const char *name;
    json_t *schema;

    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *text = json_text(json_array_get(required, i));

        if (text && json_is_false(json_object_get(x, "additionalProperties")) &&
            !json_object_get(mine, text))
            return true;
    }
    json_object_foreach((json_t *)mine, name, schema)
    {
        const json_t *twin = json_object_get(other, name);

        if (!may_compare(b, json_array_size(required) +
                                json_array_size(json_object_get(x, "required"))))
            return false;
        if (twin && requires(x, name) && requires(y, name) &&
            apart(b, schema, twin, TYPE_ANY, depth - 1))
            return true;
    }
    return false;
}

static bool apart_from_each(struct build *b, const json_t *ways, const json_t *y,
                            unsigned types, int depth)
{
    for (size_t i = 0; i < json_array_size(ways); i++) {
        if (!apart(b, json_array_get(ways, i), y, types, depth - 1))
            return false;
    }
    return json_array_size(ways) > 0;
}

static bool values_apart(struct build *b, json_t *values, const json_t *y)
{
    json_t *other = listed(y);
    bool is = true;

    for (size_t i = 0;
         i < json_array_size(values) && is && may_compare(b, json_array_size(other));
         i++) {
        const json_t *v = json_array_get(values, i);

        is = other ? !contains(other, v) : !(allowed_types(b, y) & schema_type_of(v));
    }
    json_decref(other);
    return is;
}

/* Whether it is certain that no value of these types is valid under both. */
static bool apart(struct build *b, const json_t *x, const json_t *y, unsigned types,
                  int depth)
{
    json_t *values;
    bool is = false;

    x = follow(b, x);
    y = follow(b, y);
    if (depth < 0 || !may_compare(b, 16))
        return false;
    if (json_is_false(x) || json_is_false(y))
        return true;
    if (!json_is_object(x) || !json_is_object(y))
        return false;
    for (int k = 0; k < 2; k++) {
        const char *key = k ? "oneOf" : "anyOf";

        if (apart_from_each(b, json_object_get(x, key), y, types, depth) ||
            apart_from_each(b, json_object_get(y, key), x, types, depth))
            return true;
    }
    if (json_object_get(x, "allOf") || json_object_get(y, "allOf") ||
        json_object_get(x, "anyOf") || json_object_get(y, "anyOf") ||
        json_object_get(x, "oneOf") || json_object_get(y, "oneOf"))
        return false;
    values = listed(x);
    if (values)
        is = values_apart(b, values, y);
    json_decref(values);
    values = listed(y);
    if (values && !is)
        is = values_apart(b, values, x);
    json_decref(values);
    types &= allowed_types(b, x) & allowed_types(b, y);
    if (is || !types)
        return true;
    return types == TYPE_OBJECT &&
           (objects_apart(b, x, y, depth) || objects_apart(b, y, x, depth));
}

void schema_check_one(struct build *b, const json_t *list, unsigned types)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        for (size_t k = 0; k < i && !b->a->st; k++) {
            if (!apart(b, json_array_get(list, k), json_array_get(list, i), types, 4))
                build_refuse(b,
                             "alternatives %zu and %zu of oneOf may both be valid, "
                             "which is not supported; give them different types, or a "
                             "required member with different values, or write anyOf",
                             k, i);
        }
    }
}
