/* SPDX-License-Identifier: MIT
 *
 * setting_json.c - values of settings as JSON, and back from untrusted JSON
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/rows/settings/setting.h"

/* ---- to JSON --------------------------------------------------------------------- */

json_t *setting_json(enum setting_id id, const void *field)
{
    switch (setting_row(id)->type) {
    case SETTING_TYPE_COUNT:
    case SETTING_TYPE_HUNDREDTHS:
    case SETTING_TYPE_CHOICE:
        return json_integer(*(const int *)field);
    case SETTING_TYPE_REAL:
        return json_real(*(const double *)field);
    case SETTING_TYPE_SIZE:
    case SETTING_TYPE_SEED:
        return json_integer((json_int_t) * (const uint64_t *)field);
    case SETTING_TYPE_MASK:
        return json_integer(*(const uint32_t *)field);
    case SETTING_TYPE_FLAG:
        return json_boolean(*(const bool *)field);
    default: /* TEXT */
        return json_string(field);
    }
}

json_t *setting_list_json(enum setting_id id, const struct int_list *list)
{
    const struct choices *choices = setting_row(id)->choices;
    json_t *array = json_array();

    for (size_t i = 0; i < list->n; i++)
        json_array_append_new(array, choices ? json_string(choices->name(list->v[i]))
                                             : json_integer(list->v[i]));
    return array;
}

/* ---- from JSON ------------------------------------------------------------------- */

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

/* A whole number of min..max. */
static enum status read_whole(const json_t *value, const char *what, const char *unit,
                              long long min, long long max, long long *out,
                              struct err *err)
{
    const long long v = json_integer_value(value);

    if (!json_is_integer(value))
        return wrong_type(value, what, "a whole number", err);
    if (v < min || v > max)
        return err_set(err, ST_USAGE, "%s: %lld %s%s outside %lld..%lld", what, v, unit,
                       *unit ? " are" : "is", min, max);
    *out = v;
    return ST_OK;
}

enum status setting_json_int_in(const json_t *value, const char *what, long long min,
                                long long max, int *out, struct err *err)
{
    long long v = 0;

    if (read_whole(value, what, "", min, max, &v, err))
        return ST_USAGE;
    *out = (int)v;
    return ST_OK;
}

static enum status read_row(const struct setting *s, const json_t *value,
                            const char *what, long long *out, struct err *err)
{
    return read_whole(value, what, s->unit ? s->unit : "", (long long)s->min,
                      (long long)s->max, out, err);
}

enum status setting_json_int(enum setting_id id, const json_t *value, const char *what,
                             int *out, struct err *err)
{
    long long v = 0;

    if (read_row(setting_row(id), value, what, &v, err))
        return ST_USAGE;
    *out = (int)v;
    return ST_OK;
}

static enum status read_real(const struct setting *s, const json_t *value,
                             const char *what, double *out, struct err *err)
{
    const double v = json_number_value(value);

    if (!json_is_number(value))
        return wrong_type(value, what, "a number", err);
    if (!(v >= s->min && v <= s->max))
        return err_set(err, ST_USAGE, "%s: %g %s are outside %g..%g", what, v, s->unit,
                       s->min, s->max);
    *out = v;
    return ST_OK;
}

static enum status read_text(const json_t *value, const char *what, size_t cap,
                             char *out, struct err *err)
{
    if (!json_is_string(value))
        return wrong_type(value, what, "a text", err);
    if (!json_text(value))
        return err_set(err, ST_USAGE, "%s: a text with a zero byte", what);
    if (json_string_length(value) >= cap)
        return err_set(err, ST_USAGE,
                       "%s: a text of %zu characters; at most %zu are possible", what,
                       json_string_length(value), cap - 1);
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return ST_OK;
}

enum status setting_from_json(enum setting_id id, const json_t *value, const char *what,
                              void *field, size_t size, struct err *err)
{
    const struct setting *s = setting_row(id);
    const bool is_unset =
        json_is_integer(value) && json_integer_value(value) == (json_int_t)s->value;
    long long v = (long long)s->value;

    switch (s->type) {
    case SETTING_TYPE_REAL:
        return read_real(s, value, what, field, err);
    case SETTING_TYPE_TEXT:
        return read_text(value, what, size, field, err);
    case SETTING_TYPE_FLAG:
        if (!json_is_boolean(value))
            return wrong_type(value, what, "true or false", err);
        *(bool *)field = json_is_true(value);
        return ST_OK;
    case SETTING_TYPE_SEED:
        if (!json_is_integer(value))
            return wrong_type(value, what, "a whole number", err);
        *(uint64_t *)field = (uint64_t)json_integer_value(value);
        return ST_OK;
    default: /* COUNT, HUNDREDTHS, CHOICE, SIZE, MASK */
        if (!is_unset && read_row(s, value, what, &v, err))
            return ST_USAGE;
        if (s->type == SETTING_TYPE_SIZE)
            *(uint64_t *)field = (uint64_t)v;
        else if (s->type == SETTING_TYPE_MASK)
            *(uint32_t *)field = (uint32_t)v;
        else
            *(int *)field = (int)v;
        return ST_OK;
    }
}

/* A choice of a list, by its name. */
static enum status read_choice(const struct setting *s, const json_t *value,
                               const char *what, int *out, struct err *err)
{
    const int most = s->n_swept ? s->n_swept : s->choices->n;
    const char *text = json_text(value);
    char known[100];
    int v = 0;

    if (!text)
        return wrong_type(value, what, "a list of texts", err);
    v = choice_find(s->choices, text);
    if (v < 0 || v >= most)
        return err_set(err, ST_USAGE, "%s: '%.40s' is not one of %s", what, text,
                       choice_list(s->choices, most, known, sizeof known));
    *out = v;
    return ST_OK;
}

enum status setting_list_from_json(enum setting_id id, const json_t *value,
                                   const char *what, struct int_list *list,
                                   struct err *err)
{
    const struct setting *s = setting_row(id);
    const size_t n = json_array_size(value);
    const size_t least = s->swept == SETTING_EACH || !s->before ? 1 : 0;
    const size_t most = !s->choices  ? SETTING_MAX_LIST
                        : s->n_swept ? (size_t)s->n_swept
                                     : (size_t)s->choices->n;
    enum status st = ST_OK;
    int *v;

    if (!json_is_array(value))
        return wrong_type(value, what, "a list", err);
    if (n > most || n < least)
        return err_set(err, ST_USAGE, "%s: a list of %zu; %zu to %zu are possible",
                       what, n, least, most);
    v = malloc((n ? n : 1) * sizeof *v);
    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu numbers", n);
    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = s->choices
                 ? read_choice(s, json_array_get(value, i), what, &v[i], err)
                 : setting_json_int(id, json_array_get(value, i), what, &v[i], err);
    if (st) {
        free(v);
        return st;
    }
    free(list->v);
    *list = (struct int_list){v, n};
    return ST_OK;
}

/* ---- members --------------------------------------------------------------------- */

json_t *setting_members_json(const void *from, const struct setting_member *members,
                             size_t n)
{
    json_t *object = json_object();

    for (const struct setting_member *m = members; m < members + n; m++) {
        const void *field = (const char *)from + m->offset;

        json_object_set_new(object, m->key,
                            m->id != SETTING_N ? setting_json(m->id, field)
                            : m->type == SETTING_TYPE_REAL
                                ? json_real(*(const double *)field)
                            : m->type == SETTING_TYPE_SIZE
                                ? json_integer((json_int_t) * (const uint64_t *)field)
                            : m->max ? json_integer(*(const int *)field)
                                     : json_string(field));
    }
    return object;
}

static enum status read_member(void *field, const struct setting_member *m,
                               const json_t *value, struct err *err)
{
    if (m->id != SETTING_N)
        return setting_from_json(m->id, value, m->key, field, m->size, err);
    if (m->max)
        return setting_json_int_in(value, m->key, m->min, m->max, field, err);
    if (m->type == SETTING_TYPE_COUNT)
        return read_text(value, m->key, m->size, field, err);
    if (m->type == SETTING_TYPE_REAL && json_is_number(value))
        *(double *)field = json_number_value(value);
    else if (m->type == SETTING_TYPE_SIZE && json_is_integer(value) &&
             json_integer_value(value) >= 0)
        *(uint64_t *)field = (uint64_t)json_integer_value(value);
    else
        return err_set(err, ST_USAGE, "%s is no %s", m->key,
                       m->type == SETTING_TYPE_REAL ? "number" : "size");
    return ST_OK;
}

enum status setting_read_members(void *out, const struct setting_member *members,
                                 size_t n, const json_t *object, struct err *err)
{
    for (const struct setting_member *m = members; m < members + n; m++)
        if (read_member((char *)out + m->offset, m, json_object_get(object, m->key),
                        err))
            return err->code;
    return ST_OK;
}

void setting_take_members(void *out, const struct setting_member *members, size_t n,
                          const json_t *object)
{
    for (const struct setting_member *m = members; m < members + n; m++)
        read_member((char *)out + m->offset, m, json_object_get(object, m->key), NULL);
}
