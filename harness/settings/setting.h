/* SPDX-License-Identifier: MIT
 *
 * setting.h - the ranges of settings, and reading them from text and from JSON
 *
 * Model of the world: settings.def has one row for each number that a measurement is
 * set by. All readers of settings go through this table, so that a value that has been
 * taken once - typed, in YAML, stored by an earlier run, told to a child - is in range
 * everywhere, and arithmetic on it cannot overflow.
 *
 * what names the option, key or member in messages: "WHAT: 5000 threads are outside
 * 1..1024". Errors are ST_USAGE, but for ST_NO_MEMORY; *out is untouched then.
 *
 * Threading: the table is constant.
 */
#ifndef SLM_HARNESS_SETTINGS_SETTING_H
#define SLM_HARNESS_SETTINGS_SETTING_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "engine/forward/forward.h"
#include "engine/forward/tuning.h"
#include "harness/base/options.h"
#include "harness/base/parse.h"
#include "harness/machine/topology.h"
#include "kernels/isa.h"

/* SETTING_threads and so on: rows of the table. */
enum setting_id {
#define SETTING_COUNT(name, unit, least, most, value) SETTING_##name,
#define SETTING_REAL                                  SETTING_COUNT
#define SETTING_SIZE                                  SETTING_COUNT
#include "harness/settings/settings.def"
    SETTING_N
};

/* Ranges and defaults of counts, as constants: SETTING_MAX(threads). */
enum {
#define SETTING_COUNT(name, unit, least, most, value) \
    SETTING_MIN_##name = (least), SETTING_MAX_##name = (most),
#include "harness/settings/settings.def"
};
enum {
#define SETTING_COUNT(name, unit, least, most, value) SETTING_DEFAULT_##name = (value),
#include "harness/settings/settings.def"
};
#define SETTING_MIN(name)     SETTING_MIN_##name
#define SETTING_MAX(name)     SETTING_MAX_##name
#define SETTING_DEFAULT(name) SETTING_DEFAULT_##name

/* Entries of a list of counts; more than anyone measures. */
#define SETTING_MAX_LIST 1024

enum setting_kind { SETTING_KIND_COUNT, SETTING_KIND_REAL, SETTING_KIND_SIZE };

struct setting {
    const char *name, *unit;
    enum setting_kind kind;
    double min, max, value; /* value: the default. Exact: no bound needs more bits */
};

/* The table's row. */
const struct setting *setting_row(enum setting_id id);

/* ---- values -------------------------------------------------------------------- */

enum status setting_check_int(enum setting_id id, long long v, const char *what,
                              struct err *err);

/* ---- from text ----------------------------------------------------------------- */

enum status setting_parse_int(enum setting_id id, const char *text, const char *what,
                              int *out, struct err *err);
enum status setting_parse_real(enum setting_id id, const char *text, const char *what,
                               double *out, struct err *err);

/* "1,2,4", "1-4" or "none" for an empty list, which replaces *list. */
enum status setting_parse_list(enum setting_id id, const char *text, const char *what,
                               struct int_list *list, struct err *err);

/* ---- from JSON ----------------------------------------------------------------- */

/* How a member is read: one row for each that an object must have. */
enum setting_form {
    SETTING_FORM_INT,       /* int, in the range of id */
    SETTING_FORM_INT_OR_0,  /* likewise; 0: not set */
    SETTING_FORM_INT_IN,    /* int, min..max of the member: an enumeration */
    SETTING_FORM_REAL,      /* double, in the range of id */
    SETTING_FORM_SIZE,      /* uint64_t, in the range of id */
    SETTING_FORM_U32,       /* uint32_t, in the range of id */
    SETTING_FORM_U64,       /* uint64_t, any */
    SETTING_FORM_BOOL,      /* bool */
    SETTING_FORM_TEXT,      /* char[max]: shorter than that */
    SETTING_FORM_LIST,      /* struct int_list of ints in the range of id, or absent */
    SETTING_FORM_FULL_LIST, /* likewise, of at least one */
};

struct setting_member {
    const char *key;
    enum setting_form form;
    enum setting_id id; /* 0 where the form has no use for it */
    size_t offset;      /* of the field in the struct that is filled */
    long long min, max; /* SETTING_FORM_INT_IN; of SETTING_FORM_TEXT max */
};

/* Rows of tables of struct setting_member. */
#define SETTING_FIELD(key, form, name, type, field)                           \
    {                                                                         \
        key, SETTING_FORM_##form, SETTING_##name, offsetof(type, field), 0, 0 \
    }
#define SETTING_PLAIN(key, form, type, field)                                     \
    {                                                                             \
        key, SETTING_FORM_##form, (enum setting_id)0, offsetof(type, field), 0, 0 \
    }
#define SETTING_CHOICE(key, least, most, type, field)                               \
    {                                                                               \
        key, SETTING_FORM_INT_IN, (enum setting_id)0, offsetof(type, field), least, \
            most                                                                    \
    }
#define SETTING_CHARS(key, type, field)                                       \
    {                                                                         \
        key, SETTING_FORM_TEXT, (enum setting_id)0, offsetof(type, field), 0, \
            (long long)sizeof(((type *)NULL)->field)                          \
    }

/* Fill the fields of *out from the members of object. Fields of lists must be valid
 * before; they are then malloc'ed, also on failure, where some fields may be filled. */
enum status setting_read_members(void *out, const struct setting_member *members,
                                 size_t n, const json_t *object, struct err *err);

/* One integer, as of SETTING_FORM_INT; value NULL: missing. */
enum status setting_json_int(enum setting_id id, const json_t *value, const char *what,
                             int *out, struct err *err);

/* An integer that has a range of its own: an enumeration. */
enum status setting_json_int_in(const json_t *value, const char *what, long long min,
                                long long max, int *out, struct err *err);

#endif
