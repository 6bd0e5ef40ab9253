/* SPDX-License-Identifier: MIT
 *
 * setting.c - the table of settings, and values that are held against it
 */
#include "harness/settings/setting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(SETTING_MAX(threads) == SETTING_MAX(threads_prefill),
               "a point starts the larger of both counts");

static const struct setting table[SETTING_N] = {
#define SETTING_COUNT(name, unit, least, most, value) \
    [SETTING_##name] = {#name, unit, SETTING_KIND_COUNT, (least), (most), (value)},
#define SETTING_REAL(name, unit, least, most, value) \
    [SETTING_##name] = {#name, unit, SETTING_KIND_REAL, (least), (most), (value)},
#define SETTING_SIZE(name, unit, least, most, value) \
    [SETTING_##                                      \
        name] = {#name, unit, SETTING_KIND_SIZE, (least), (double)(most), (value)},
#include "harness/settings/settings.def"
};

const struct setting *setting_row(enum setting_id id)
{
    return &table[id];
}

/* ---- values -------------------------------------------------------------------- */

static enum status outside(const char *what, long long v, const char *unit,
                           long long min, long long max, struct err *err)
{
    return err_set(err, ST_USAGE, "%s: %lld %s%s outside %lld..%lld", what, v, unit,
                   *unit ? " are" : "is", min, max);
}

enum status setting_check_int(enum setting_id id, long long v, const char *what,
                              struct err *err)
{
    const struct setting *s = &table[id];

    if (v >= (long long)s->min && v <= (long long)s->max)
        return ST_OK;
    return outside(what, v, s->unit, (long long)s->min, (long long)s->max, err);
}

static enum status check_real(enum setting_id id, double v, const char *what,
                              struct err *err)
{
    const struct setting *s = &table[id];

    if (v >= s->min && v <= s->max)
        return ST_OK;
    return err_set(err, ST_USAGE, "%s: %g %s are outside %g..%g", what, v, s->unit,
                   s->min, s->max);
}

/* ---- from text ----------------------------------------------------------------- */

enum status setting_parse_int(enum setting_id id, const char *text, const char *what,
                              int *out, struct err *err)
{
    long long v;

    if (parse_count(text, what, table[id].unit, (long long)table[id].min,
                    (long long)table[id].max, &v, err))
        return ST_USAGE;
    *out = (int)v;
    return ST_OK;
}

enum status setting_parse_real(enum setting_id id, const char *text, const char *what,
                               double *out, struct err *err)
{
    double v;

    if (parse_double(text, what, -HUGE_VAL, HUGE_VAL, &v, err) ||
        check_real(id, v, what, err))
        return ST_USAGE;
    *out = v;
    return ST_OK;
}

enum status setting_parse_list(enum setting_id id, const char *text, const char *what,
                               struct int_list *list, struct err *err)
{
    struct int_list fresh = {NULL, 0};
    enum status st = ST_OK;

    if (strcmp(text, "none"))
        st = parse_counts(text, what, table[id].unit, (int)table[id].min,
                          (int)table[id].max, &fresh, err);
    if (st == ST_OK && fresh.n > SETTING_MAX_LIST)
        st = err_set(err, ST_USAGE, "%s: a list of %zu; %d are the most", what, fresh.n,
                     SETTING_MAX_LIST);
    if (st) {
        free(fresh.v);
        return st;
    }
    free(list->v);
    *list = fresh;
    return ST_OK;
}

/* ---- from JSON ----------------------------------------------------------------- */

static enum status wrong_type(const json_t *value, const char *what, const char *wanted,
                              struct err *err)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",
        [JSON_STRING] = "a text",    [JSON_INTEGER] = "a whole number",
        [JSON_REAL] = "a fraction",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };

    if (!value)
        return err_set(err, ST_USAGE, "%s is missing; it is %s", what, wanted);
    return err_set(err, ST_USAGE, "%s is %s, not %s", what, wanted,
                   names[json_typeof(value)]);
}

enum status setting_json_int_in(const json_t *value, const char *what, long long min,
                                long long max, int *out, struct err *err)
{
    if (!json_is_integer(value))
        return wrong_type(value, what, "a whole number", err);
    if (json_integer_value(value) < min || json_integer_value(value) > max)
        return outside(what, json_integer_value(value), "", min, max, err);
    *out = (int)json_integer_value(value);
    return ST_OK;
}

enum status setting_json_int(enum setting_id id, const json_t *value, const char *what,
                             int *out, struct err *err)
{
    if (!json_is_integer(value))
        return wrong_type(value, what, "a whole number", err);
    if (setting_check_int(id, json_integer_value(value), what, err))
        return ST_USAGE;
    *out = (int)json_integer_value(value);
    return ST_OK;
}

static enum status read_real(enum setting_id id, const json_t *value, const char *what,
                             double *out, struct err *err)
{
    if (!json_is_number(value))
        return wrong_type(value, what, "a number", err);
    if (check_real(id, json_number_value(value), what, err))
        return ST_USAGE;
    *out = json_number_value(value);
    return ST_OK;
}

static enum status read_list(enum setting_id id, const json_t *value, bool full,
                             const char *what, struct int_list *list, struct err *err)
{
    const size_t n = json_array_size(value);
    int *v;

    if (!json_is_array(value) && (value || full))
        return wrong_type(value, what, "a list of whole numbers", err);
    if (n > SETTING_MAX_LIST || n < full)
        return err_set(err, ST_USAGE, "%s: a list of %zu; %d to %d are possible", what,
                       n, (int)full, SETTING_MAX_LIST);
    v = malloc((n ? n : 1) * sizeof *v);
    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu numbers", n);
    for (size_t i = 0; i < n; i++)
        if (setting_json_int(id, json_array_get(value, i), what, &v[i], err)) {
            free(v);
            return ST_USAGE;
        }
    free(list->v);
    *list = (struct int_list){v, n};
    return ST_OK;
}

static enum status read_text(const json_t *value, const char *what, size_t cap,
                             char *out, struct err *err)
{
    if (!json_is_string(value))
        return wrong_type(value, what, "a text", err);
    if (json_string_length(value) >= cap)
        return err_set(err, ST_USAGE, "%s: a text of %zu characters; %zu are the most",
                       what, json_string_length(value), cap - 1);
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return ST_OK;
}

static enum status read_member(void *field, const struct setting_member *m,
                               const json_t *value, struct err *err)
{
    const bool is_0 = json_is_integer(value) && !json_integer_value(value);

    switch (m->form) {
    case SETTING_FORM_INT:
        return setting_json_int(m->id, value, m->key, field, err);
    case SETTING_FORM_INT_OR_0:
        if (!is_0)
            return setting_json_int(m->id, value, m->key, field, err);
        *(int *)field = 0;
        return ST_OK;
    case SETTING_FORM_INT_IN:
        return setting_json_int_in(value, m->key, m->min, m->max, field, err);
    case SETTING_FORM_REAL:
        return read_real(m->id, value, m->key, field, err);
    case SETTING_FORM_TEXT:
        return read_text(value, m->key, (size_t)m->max, field, err);
    case SETTING_FORM_LIST:
    case SETTING_FORM_FULL_LIST:
        return read_list(m->id, value, m->form == SETTING_FORM_FULL_LIST, m->key, field,
                         err);
    case SETTING_FORM_BOOL:
        if (!json_is_boolean(value))
            return wrong_type(value, m->key, "true or false", err);
        *(bool *)field = json_is_true(value);
        return ST_OK;
    case SETTING_FORM_SIZE:
    case SETTING_FORM_U32:
    case SETTING_FORM_U64:
        if (!json_is_integer(value))
            return wrong_type(value, m->key, "a whole number", err);
        if (m->form != SETTING_FORM_U64 &&
            setting_check_int(m->id, json_integer_value(value), m->key, err))
            return ST_USAGE;
        if (m->form == SETTING_FORM_U32)
            *(uint32_t *)field = (uint32_t)json_integer_value(value);
        else
            *(uint64_t *)field = (uint64_t)json_integer_value(value);
        return ST_OK;
    }
    return err_set(err, ST_USAGE, "%s is of no known form", m->key);
}

enum status setting_read_members(void *out, const struct setting_member *members,
                                 size_t n, const json_t *object, struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = read_member((char *)out + members[i].offset, &members[i],
                         json_object_get(object, members[i].key), err);
    return st;
}
