/* SPDX-License-Identifier: MIT
 *
 * setting.h - the table of settings, and their values as text and as JSON
 *
 * Model of the world: settings.def has one row for each setting of a measurement. All
 * readers of settings use this table, so that every value that was accepted - an
 * option, in YAML, stored by an earlier run, sent to a worker - is in range everywhere,
 * and arithmetic on it cannot overflow.
 *
 * what names the option, key or member in messages: "WHAT: 5000 threads are outside
 * 1..1024". Errors are ST_USAGE, but for ST_NO_MEMORY; *out is untouched then.
 *
 * Threading: the table is constant.
 */
#ifndef SLM_HARNESS_ROWS_SETTINGS_SETTING_H
#define SLM_HARNESS_ROWS_SETTINGS_SETTING_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "engine/forward/forward.h"
#include "engine/forward/tuning.h"
#include "harness/base/choice.h"
#include "harness/base/options.h"
#include "harness/base/parse.h"
#include "harness/machine/topology.h"
#include "kernels/isa.h"

/* What is measured. POINT_SPECULATE: plain and speculative decoding of a text,
 * interleaved. */
enum point_kind { POINT_DECODE, POINT_PREFILL, POINT_SPECULATE };

/* The column `tuning`: whether a row used a profile of `bench tune`, a command of
 * earlier versions. Today's rows are TUNED_NOT. */
enum tuned_state { TUNED_NOT, TUNED_USED, TUNED_MISSING, TUNED_STALE, TUNED_SLOWER };
extern const struct choices choices_prefill_sums; /* enum slm_sums */
extern const struct choices choices_tuned;        /* "default", "tuned", ... */

/* SETTING_threads and so on: rows of the table. */
enum setting_id {
#define SETTING(name, ...) SETTING_##name,
#include "harness/rows/settings/settings.def"
    SETTING_N
};

/* A set of settings is a uint64_t. */
#define SETTING_BIT(name) (UINT64_C(1) << SETTING_##name)

/* Ranges and defaults of counts and choices, as constants: SETTING_MAX(threads). */
enum {
#define SETTING_RANGE_COUNT(name, least, most, value) \
    SETTING_MIN_##name = (least), SETTING_MAX_##name = (most),
#define SETTING_RANGE_CHOICE     SETTING_RANGE_COUNT
#define SETTING_RANGE_MASK       SETTING_RANGE_COUNT
#define SETTING_RANGE_HUNDREDTHS SETTING_RANGE_COUNT
#define SETTING_RANGE_FLAG       SETTING_RANGE_COUNT
#define SETTING_RANGE_REAL(name, least, most, value)
#define SETTING_RANGE_SIZE SETTING_RANGE_REAL
#define SETTING_RANGE_SEED SETTING_RANGE_REAL
#define SETTING_RANGE_TEXT SETTING_RANGE_REAL
#define SETTING(name, type, owner, field, least, most, value, ...) \
    SETTING_RANGE_##type(name, least, most, value)
#include "harness/rows/settings/settings.def"
};
#define SETTING_MIN(name) SETTING_MIN_##name
#define SETTING_MAX(name) SETTING_MAX_##name

/* Most entries of a list of counts. */
#define SETTING_MAX_LIST 1024

enum setting_type {
    SETTING_TYPE_COUNT,
    SETTING_TYPE_HUNDREDTHS,
    SETTING_TYPE_REAL,
    SETTING_TYPE_SIZE,
    SETTING_TYPE_SEED,
    SETTING_TYPE_MASK,
    SETTING_TYPE_CHOICE,
    SETTING_TYPE_FLAG,
    SETTING_TYPE_TEXT,
};

/* Where a setting is found. */
enum {
    SETTING_DECODE = 1,       /* an option of bench decode */
    SETTING_OPTION_SWEEP = 2, /* an option of bench sweep */
    SETTING_YAML = 4,         /* a key of configs/sweeps */
    SETTING_STORED = 8,       /* in the machine.json of a sweep */
    SETTING_GATE = 16,        /* a key of configs/gates, a list there with
                                 SETTING_LIST */
    SETTING_SWEEP = SETTING_OPTION_SWEEP | SETTING_YAML | SETTING_STORED,
    SETTING_ALL = SETTING_DECODE | SETTING_SWEEP,
};

/* SETTING_EACH: a list; every point of a sweep is measured with each of its values.
 * SETTING_LIST: a list from which the plan makes points in its own way. */
enum setting_swept { SETTING_ONE, SETTING_EACH, SETTING_LIST };

/* In the command of a point: not at all, always, or unless it is the default. */
enum setting_shown { SETTING_HIDDEN, SETTING_SHOWN, SETTING_SHOWN_IF_SET };

struct setting {
    const char *name;
    enum setting_type type;
    double min, max, value; /* value: the default, which is accepted even outside the
                               range: not set. A double is exact for all of them */
    const char *unit;       /* a plural, as messages name it; NULL: none */
    const struct choices *choices; /* CHOICE */
    const char *words[2];          /* FLAG in YAML; NULL: false, true */

    unsigned in;        /* SETTING_DECODE, ... */
    const char *option; /* --option; NULL: none */
    char letter;        /* -l; 0: none */
    const char *arg;    /* what --help calls its value */
    const char *help;   /* one clause, */
    const char *one, *many,
        *run; /* and how it continues where one value is meant, in a
                 sweep, and in a command that runs a model for a
                 person; NULL: with the default, not at all, as one */
    enum setting_swept swept;
    int n_swept;         /* choices that a sweep has, the first ones; 0: all */
    const char *initial; /* list of a sweep without a configuration; NULL: value */
    const char *stored;  /* key in machine.json; NULL: name */
    const char *opened;  /* key in what a gate's worker opens; NULL: not there */
    bool opened_if_set;  /* there only where it is not the default: the key came later
                            than the protocol, and the greetings of programs that know
                            it name it */
    const char *before;  /* in machine.json from before it was stored; NULL: none */

    unsigned kinds; /* 1u << POINT_DECODE, ...: points that have it; 0: all */
    enum setting_shown shown;
    const char
        *id;      /* in identities, before the value; NULL: not there. Values of flags
                     and texts are left out, and so are defaults that are not printed */
    int id_order; /* from 1 */
};

/* The table's row. */
const struct setting *setting_row(enum setting_id id);

/* ---- a value in a field ---------------------------------------------------------- */

/* size is that of the field; for a TEXT its capacity. */
void setting_default(enum setting_id id, void *field, size_t size);
bool setting_is_default(enum setting_id id, const void *field);

/* As an option takes it. Returns buf. */
const char *setting_text(enum setting_id id, const void *field, char *buf, size_t cap);
enum status setting_parse(enum setting_id id, const char *text, const char *what,
                          void *field, size_t size, struct err *err);

/* Choices are numbers there. value NULL: missing. */
json_t *setting_json(enum setting_id id, const void *field);
enum status setting_from_json(enum setting_id id, const json_t *value, const char *what,
                              void *field, size_t size, struct err *err);

/* ---- lists ----------------------------------------------------------------------- */

/* Counts as "1,2,4" or "1-4", hundredths as "0.5,1,none", choices as "f16,q8_0", or
 * "none" for an empty list, which one of SETTING_EACH cannot be; it replaces *list, a
 * struct int_list. An opt_take_fn. */
enum status setting_take_list(void *list, int id, const char *text, const char *what,
                              struct err *err);

/* An array; choices are texts there. */
json_t *setting_list_json(enum setting_id id, const struct int_list *list);
enum status setting_list_from_json(enum setting_id id, const json_t *value,
                                   const char *what, struct int_list *list,
                                   struct err *err);

/* ---- fields of a struct ---------------------------------------------------------- */

/* Where the settings of a struct are. A table of them, with an index of enum
 * setting_id, comes of
 *     #define SETTING SETTING_PLACE
 *     #define SETTING_PLACE_POINT(...) SETTING_AT(struct point, __VA_ARGS__)
 * and a room that has no fields of an owner defines that empty. A field of another type
 * than its row's does not compile. */
struct setting_place {
    const char *key; /* NULL: it has no such setting */
    size_t offset, size;
};
#define SETTING_PLACE(name, type, owner, field, ...) \
    SETTING_PLACE_##owner(name, type, field)
#define SETTING_AT(owner, name, type, field)            \
    [SETTING_##name] = {#field, offsetof(owner, field), \
                        SETTING_SIZE_##type(sizeof(((owner *)NULL)->field))},

/* n, the size of a field, where it is that of its type. */
#define SETTING_SIZE(n, type)      ((n) * sizeof(char[(n) == sizeof(type) ? 1 : -1]))
#define SETTING_SIZE_COUNT(n)      SETTING_SIZE(n, int)
#define SETTING_SIZE_HUNDREDTHS(n) SETTING_SIZE(n, int)
#define SETTING_SIZE_CHOICE(n)     SETTING_SIZE(n, int)
#define SETTING_SIZE_REAL(n)       SETTING_SIZE(n, double)
#define SETTING_SIZE_SIZE(n)       SETTING_SIZE(n, uint64_t)
#define SETTING_SIZE_SEED(n)       SETTING_SIZE(n, uint64_t)
#define SETTING_SIZE_MASK(n)       SETTING_SIZE(n, uint32_t)
#define SETTING_SIZE_FLAG(n)       SETTING_SIZE(n, bool)
#define SETTING_SIZE_TEXT(n)       (n)

/* ---- options --------------------------------------------------------------------- */

#define SETTING_MAX_HELP 320

struct setting_request {
    const char *text[SETTING_N]; /* as given; NULL: not given */
    bool flag[SETTING_N];
    char help[SETTING_N][SETTING_MAX_HELP];
};

/* Options of all settings that command (SETTING_DECODE or SETTING_OPTION_SWEEP) has,
 * into opts[SETTING_N + 1]: OPT_END comes last. They fill
 * *r. Returns how many. */
size_t setting_options(struct opt *opts, struct setting_request *r, unsigned command);

/* A setting that is no flag, as an option of a command that runs a model for a person:
 * take gets dst, id and the text. */
struct opt setting_option(enum setting_id id, opt_take_fn *take, void *dst);

/* Text of a setting that was given as an option, or NULL. */
const char *setting_given(const struct setting_request *r, enum setting_id id);

/* The row of that name that is found there (SETTING_YAML, ..); SETTING_N: none. */
enum setting_id setting_find(const char *name, unsigned in);

/* ---- a file ---------------------------------------------------------------------- */

/* Called for each key of a YAML file that is a setting, words being the items of its
 * list, or one. text is all of them with commas between. */
typedef enum status setting_take_fn(void *arg, enum setting_id id, const char *text,
                                    const char *const *words, size_t n,
                                    const char *what, struct err *err);

/* Settings that are SETTING_YAML. Errors: ST_IO, ST_INPUT (yamlfile.h), take's. */
enum status setting_load_yaml(const char *path, setting_take_fn *take, void *arg,
                              struct err *err);

/* ---- JSON that is no setting ----------------------------------------------------- */

/* A member of an object and the field that it is: one row for each. */
struct setting_member {
    const char *key;
    enum setting_id id;     /* SETTING_N: none */
    size_t offset, size;    /* of the field in the struct */
    int min, max;           /* without id: an int of that range, or, both 0, a text */
    enum setting_type type; /* without id: SIZE (uint64_t), REAL (double), or an int or
                               a text as above */
};

/* Rows of tables of struct setting_member. */
#define SETTING_MEMBER(key, id, type, field, ...)                                  \
    {                                                                              \
        key, id, offsetof(type, field), sizeof(((type *)NULL)->field), __VA_ARGS__ \
    }
#define SETTING_FIELD(key, name, type, field) \
    SETTING_MEMBER(key, SETTING_##name, type, field, 0, 0, SETTING_TYPE_COUNT)
#define SETTING_WHOLE(key, least, most, type, field) \
    SETTING_MEMBER(key, SETTING_N, type, field, least, most, SETTING_TYPE_COUNT)
#define SETTING_CHARS(key, type, field) SETTING_WHOLE(key, 0, 0, type, field)
#define SETTING_BYTES(key, type, field) \
    SETTING_MEMBER(key, SETTING_N, type, field, 0, 0, SETTING_TYPE_SIZE)
#define SETTING_NUMBER(key, type, field) \
    SETTING_MEMBER(key, SETTING_N, type, field, 0, 0, SETTING_TYPE_REAL)

/* An object of the fields of *from; numbers that are not finite are left out. */
json_t *setting_members_json(const void *from, const struct setting_member *members,
                             size_t n);

/* Fill the fields of *out from the members of object; on failure some may be filled. */
enum status setting_read_members(void *out, const struct setting_member *members,
                                 size_t n, const json_t *object, struct err *err);

/* The same where members may be missing or of other types: their fields stay. */
void setting_take_members(void *out, const struct setting_member *members, size_t n,
                          const json_t *object);

/* An int in the range of id; value NULL: missing. */
enum status setting_json_int(enum setting_id id, const json_t *value, const char *what,
                             int *out, struct err *err);

/* An integer that has a range of its own. */
enum status setting_json_int_in(const json_t *value, const char *what, long long min,
                                long long max, int *out, struct err *err);

#endif
