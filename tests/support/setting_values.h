/* SPDX-License-Identifier: MIT
 *
 * setting_values.h - bad and extreme values for every member of an object of settings
 *
 * check_all() puts each value into a member and gives the object to a reader. What is
 * in range must be taken; what is not must be refused with exit code 2 and a message
 * that names the member.
 */
#ifndef SLM_TESTS_SUPPORT_SETTING_VALUES_H
#define SLM_TESTS_SUPPORT_SETTING_VALUES_H

#include "tests/support/test.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <jansson.h>

#include "engine/base/status.h"

#define LONG_TEXT 10240
#define LONG_LIST 100000

enum kind { WHOLE, REAL, LIST, ONE_OR_LIST, WORD, WORDS, YES_NO };

struct member {
    const char *key;
    enum kind kind;
    double min, max; /* of a number; min > max: any */
    const char *good;
    bool may_be_empty; /* a list; a text of WORD */
};

#define ANY 1, 0

/* ---- values ---------------------------------------------------------------------- */

/* clang-format off */
static const char *const numbers[] = {
    "0", "-1", "1", "2", "99", "100", "101", "1000", "1001", "1023", "1024", "1025", "5000", "65535",
    "65536", "65537", "86400", "86401", "999999", "1000000", "1000001", "16777215",
    "16777216", "16777217", "536870911", "2147483646", "2147483647", "2147483648",
    "4294967295", "4294967296", "4294967297", "-4294967295", "9007199254740992",
    "1152921504606846976", "1152921504606846977", "9223372036854775807",
    "-9223372036854775808", "0.005", "0.01", "0.5", "1.0", "-0.5", "86400.5", "1e300",
    "-1e300", "1.7e308"
};

static const char *const odd[] = {
    "null", "true", "\"\"", "\"x\"", "\"1\"", "{}", "[]", "[[]]", "[[1]]", "[\"1\"]",
    "[null]", "[true]", "[1.5]", "{\"a\": [1]}", "[{}]", "[1, 2, 2147483648]", "[1, -1]"
};
/* clang-format on */

static json_t *value_of(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    assert_non_null(v);
    return v;
}

static json_t *long_text(void)
{
    char *text = malloc(LONG_TEXT + 1);

    assert_non_null(text);
    memset(text, 'a', LONG_TEXT);
    text[LONG_TEXT] = '\0';
    json_t *v = json_string(text);
    free(text);
    return v;
}

/* Its elements are one value, since reading it anew for each takes longer than all that
 * is done with the list. */
static json_t *long_list(const char *item)
{
    json_t *list = json_array(), *value = value_of(item);

    for (int i = 0; i < LONG_LIST; i++)
        json_array_append(list, value);
    json_decref(value);
    return list;
}

static bool in_range(const struct member *m, const json_t *v)
{
    if (m->min > m->max)
        return true;
    const double d = json_number_value(v);
    /* beyond 2^53 a double does not tell neighbours apart */
    if (json_is_integer(v) && m->max == 0x1p60)
        return json_integer_value(v) >= (json_int_t)m->min &&
               json_integer_value(v) <= (json_int_t)1 << 60;
    return d >= m->min && d <= m->max;
}

/* Whether the member may have that value, its place being its own. */
static bool is_right(const struct member *m, const json_t *v)
{
    switch (m->kind) {
    case WHOLE:
        return json_is_integer(v) && in_range(m, v);
    case ONE_OR_LIST: {
        const size_t n = json_is_array(v) ? json_array_size(v) : 1;

        if (n < 1 || n > 32)
            return false;
        for (size_t i = 0; i < n; i++) {
            const json_t *one = json_is_array(v) ? json_array_get(v, i) : v;

            if (!json_is_integer(one) || !in_range(m, one))
                return false;
        }
        return true;
    }
    case REAL:
        return json_is_number(v) && in_range(m, v);
    case YES_NO:
        return json_is_boolean(v);
    case WORD:
        return json_is_string(v) && (m->may_be_empty || json_string_length(v)) &&
               json_string_length(v) < 255;
    case LIST:
        if (!json_is_array(v) || (!json_array_size(v) && !m->may_be_empty) ||
            json_array_size(v) > 1024)
            return false;
        for (size_t i = 0; i < json_array_size(v); i++)
            if (!json_is_integer(json_array_get(v, i)) ||
                !in_range(m, json_array_get(v, i)))
                return false;
        return true;
    case WORDS:
        if (json_is_array(v) && !json_array_size(v))
            return m->may_be_empty;
        /* any name may be a model's; the plan looks for it */
        return json_is_array(v) && json_array_size(v) == 1 &&
               !strcmp(m->key, "models") && json_is_string(json_array_get(v, 0)) &&
               json_string_length(json_array_get(v, 0)) < 256;
    }
    return false;
}

/* ---- all values for all members -------------------------------------------------- */

typedef enum status take_fn(const json_t *object, struct err *err);

static const char *text_of(const json_t *v)
{
    return json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
}

/* Takes v. */
static void check(const json_t *base, const struct member *m, json_t *v, take_fn *take)
{
    json_t *object = json_deep_copy(base);
    struct err err = ERR_INIT;
    const bool right = is_right(m, v);

    json_object_set_new(object, m->key, v);
    const enum status st = take(object, &err);
    if (right && st)
        fail_msg("%s: %.60s was refused: %s", m->key, text_of(v), err.msg);
    if (!right && (status_exit_code(st) != 2 || !strstr(err.msg, m->key)))
        fail_msg("%s: %.60s was taken, or says: %s", m->key, text_of(v), err.msg);
    json_decref(object);
}

static void check_all(const json_t *base, const struct member *m, take_fn *take)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        check(base, m, value_of(numbers[i]), take);
        check(base, m, json_pack("[o]", value_of(numbers[i])), take);
    }
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        if (m->kind != WORD || strcmp(odd[i], "\"x\"") || !strstr(m->good, "word"))
            check(base, m, value_of(odd[i]), take);
    check(base, m, long_text(), take);
    check(base, m, json_pack("[o]", long_text()), take);
    check(base, m, long_list("1"), take);
    check(base, m, long_list("\"nano:Q4_0\""), take);
    if (*m->good)
        check(base, m, value_of(m->good), take);
}

#endif
