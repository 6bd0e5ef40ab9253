/* SPDX-License-Identifier: MIT
 *
 * setting.c - the table of settings, and their values as text
 */
#include "harness/rows/settings/setting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/base/format.h"
#include "harness/machine/sandbox/sandbox.h"

_Static_assert(SETTING_MAX(threads) == SETTING_MAX(threads_prefill),
               "a model starts the larger of both counts");
_Static_assert(SETTING_N <= 64, "a set of settings does not fit into a uint64_t");

static const struct setting table[SETTING_N] = {
#define SETTING(name_, type_, owner, field, least, most, value_, ...) \
    [SETTING_##name_] = {.name = #name_,                              \
                         .type = SETTING_TYPE_##type_,                \
                         .min = (double)(least),                      \
                         .max = (double)(most),                       \
                         .value = (double)(value_),                   \
                         __VA_ARGS__},
#include "harness/rows/settings/settings.def"
};

static const char *tuned_name(int state)
{
    static const char *const names[] = {"default", "tuned", "missing", "stale",
                                        "slower"};

    return names[state];
}

static const char *sums_name(int sums)
{
    static const char *const names[SLM_N_SUMS] = {"exact", "int8"};

    return names[sums];
}

const struct choices choices_prefill_sums = {"sums are", sums_name, SLM_N_SUMS};
const struct choices choices_tuned = {"states are", tuned_name, TUNED_SLOWER + 1};

const struct setting *setting_row(enum setting_id id)
{
    return &table[id];
}

static const char *unit_of(const struct setting *s)
{
    return s->unit ? s->unit : "";
}

/* A flag as text. */
static const char *word(const struct setting *s, bool v)
{
    return s->words[v] ? s->words[v] : v ? "true" : "false";
}

/* ---- a field --------------------------------------------------------------------- */

void setting_default(enum setting_id id, void *field, size_t size)
{
    const struct setting *s = &table[id];

    memset(field, 0, size);
    switch (s->type) {
    case SETTING_TYPE_COUNT:
    case SETTING_TYPE_HUNDREDTHS:
    case SETTING_TYPE_CHOICE:
        *(int *)field = (int)s->value;
        break;
    case SETTING_TYPE_REAL:
        *(double *)field = s->value;
        break;
    case SETTING_TYPE_SIZE:
    case SETTING_TYPE_SEED:
        *(uint64_t *)field = (uint64_t)s->value;
        break;
    case SETTING_TYPE_MASK:
        *(uint32_t *)field = (uint32_t)s->value;
        break;
    case SETTING_TYPE_FLAG:
    case SETTING_TYPE_TEXT:
        break; /* false, and empty */
    }
}

bool setting_is_default(enum setting_id id, const void *field)
{
    const struct setting *s = &table[id];

    switch (s->type) {
    case SETTING_TYPE_COUNT:
    case SETTING_TYPE_HUNDREDTHS:
    case SETTING_TYPE_CHOICE:
        return *(const int *)field == (int)s->value;
    case SETTING_TYPE_REAL:
        return !(*(const double *)field < s->value ||
                 *(const double *)field > s->value);
    case SETTING_TYPE_SIZE:
    case SETTING_TYPE_SEED:
        return *(const uint64_t *)field == (uint64_t)s->value;
    case SETTING_TYPE_MASK:
        return *(const uint32_t *)field == (uint32_t)s->value;
    case SETTING_TYPE_FLAG:
        return !*(const bool *)field;
    case SETTING_TYPE_TEXT:
        return !*(const char *)field;
    }
    return true;
}

static void isa_text(char *buf, size_t cap, uint32_t mask)
{
    *buf = '\0';
    for (int i = 1; i < KERN_N_ISA; i++)
        if (mask >> i & 1)
            text_append(buf, cap, "%s%s", *buf ? "," : "", isa_name((enum kern_isa)i));
}

const char *setting_text(enum setting_id id, const void *field, char *buf, size_t cap)
{
    const struct setting *s = &table[id];

    switch (s->type) {
    case SETTING_TYPE_COUNT:
        snprintf(buf, cap, "%d", *(const int *)field);
        break;
    case SETTING_TYPE_HUNDREDTHS:
        if (*(const int *)field)
            snprintf(buf, cap, "%g", *(const int *)field / 100.0);
        else
            snprintf(buf, cap, "none");
        break;
    case SETTING_TYPE_CHOICE:
        snprintf(buf, cap, "%s", s->choices->name(*(const int *)field));
        break;
    case SETTING_TYPE_REAL:
        snprintf(buf, cap, "%g", *(const double *)field);
        break;
    case SETTING_TYPE_SIZE:
        if (*(const uint64_t *)field)
            format_size(buf, cap, *(const uint64_t *)field);
        else
            snprintf(buf, cap, "none");
        break;
    case SETTING_TYPE_SEED:
        snprintf(buf, cap, "%llu", (unsigned long long)*(const uint64_t *)field);
        break;
    case SETTING_TYPE_MASK:
        isa_text(buf, cap, *(const uint32_t *)field);
        break;
    case SETTING_TYPE_FLAG:
        snprintf(buf, cap, "%s", word(s, *(const bool *)field));
        break;
    case SETTING_TYPE_TEXT:
        snprintf(buf, cap, "%s", (const char *)field);
        break;
    }
    return buf;
}

/* ---- from text ------------------------------------------------------------------- */

static enum status setting_parse_int(enum setting_id id, const char *text,
                                     const char *what, int *out, struct err *err)
{
    long long v;

    if (parse_count(text, what, unit_of(&table[id]), (long long)table[id].min,
                    (long long)table[id].max, &v, err))
        return ST_USAGE;
    *out = (int)v;
    return ST_OK;
}

static enum status parse_real(const struct setting *s, const char *text,
                              const char *what, double *out, struct err *err)
{
    const size_t len = strlen(text);
    char number[40];
    double v;

    if (!strcmp(unit_of(s), "%") && len > 1 && len <= sizeof number &&
        text[len - 1] == '%') {
        snprintf(number, sizeof number, "%.*s", (int)len - 1, text);
        text = number;
    }
    if (!strcmp(unit_of(s), "seconds")
            ? parse_duration(text, what, -HUGE_VAL, HUGE_VAL, &v, err)
            : parse_double(text, what, -HUGE_VAL, HUGE_VAL, &v, err))
        return ST_USAGE;
    if (v < s->min || v > s->max)
        return err_set(err, ST_USAGE, "%s: %g %s are outside %g..%g", what, v, s->unit,
                       s->min, s->max);
    *out = v;
    return ST_OK;
}

static enum status parse_hundredths(const struct setting *s, const char *text,
                                    const char *what, int *out, struct err *err)
{
    double v;

    if (!strcmp(text, "none")) {
        *out = (int)s->value;
        return ST_OK;
    }
    if (parse_double(text, what, -HUGE_VAL, HUGE_VAL, &v, err))
        return ST_USAGE;
    if (100 * v < s->min - 1e-6 || 100 * v > s->max + 1e-6)
        return err_set(err, ST_USAGE, "%s: %g %s are outside %g..%g", what, v,
                       unit_of(s), s->min / 100, s->max / 100);
    if (fabs(100 * v - round(100 * v)) > 1e-6)
        return err_set(err, ST_USAGE, "%s: %s has more than two decimals", what, text);
    *out = (int)lround(100 * v);
    return ST_OK;
}

static enum status parse_flag(const struct setting *s, const char *text,
                              const char *what, bool *out, struct err *err)
{
    for (int i = 0; i < 2; i++)
        if (!strcasecmp(text, word(s, i))) {
            *out = i;
            return ST_OK;
        }
    return err_set(err, ST_USAGE, "%s: '%s' is neither %s nor %s", what, text,
                   word(s, false), word(s, true));
}

static enum status parse_mask(const char *text, const char *what, uint32_t *out,
                              struct err *err)
{
    const char *bad;
    int len;

    if (isa_parse_list(text, out, &bad, &len))
        return err_set(err, ST_USAGE, "%s: there is no ISA level '%.*s'", what, len,
                       bad);
    return ST_OK;
}

static enum status parse_text(const char *text, const char *what, char *out, size_t cap,
                              struct err *err)
{
    if (!*text || strlen(text) >= cap)
        return err_set(err, ST_USAGE,
                       "%s: %.40s%s is not a name of 1 to %zu characters", what,
                       *text ? text : "an empty text", *text ? "..." : "", cap - 1);
    snprintf(out, cap, "%s", strcmp(text, "none") ? text : "");
    return ST_OK;
}

enum status setting_parse(enum setting_id id, const char *text, const char *what,
                          void *field, size_t size, struct err *err)
{
    const struct setting *s = &table[id];

    switch (s->type) {
    case SETTING_TYPE_COUNT:
        return setting_parse_int(id, text, what, field, err);
    case SETTING_TYPE_HUNDREDTHS:
        return parse_hundredths(s, text, what, field, err);
    case SETTING_TYPE_CHOICE:
        return choice_parse(s->choices, text, what, field, err);
    case SETTING_TYPE_REAL:
        return parse_real(s, text, what, field, err);
    case SETTING_TYPE_SIZE:
        return id == SETTING_mem && !strcmp(text, "container")
                   ? sandbox_own_limit("", field, err)
                   : parse_bytes(text, what, field, err);
    case SETTING_TYPE_SEED:
        return parse_u64(text, what, field, err);
    case SETTING_TYPE_MASK:
        return parse_mask(text, what, field, err);
    case SETTING_TYPE_FLAG:
        return parse_flag(s, text, what, field, err);
    case SETTING_TYPE_TEXT:
        return parse_text(text, what, field, size, err);
    }
    return err_set(err, ST_USAGE, "%s is of no known type", what);
}

/* ---- lists ----------------------------------------------------------------------- */

/* Choices or hundredths in the order given, each once. */
static enum status parse_values(const struct setting *s, const char *text,
                                const char *what, struct int_list *fresh,
                                struct err *err)
{
    const bool is_choice = s->type == SETTING_TYPE_CHOICE;
    const int most = !is_choice   ? SETTING_MAX_LIST
                     : s->n_swept ? s->n_swept
                                  : s->choices->n;
    struct parse_list words = {.what = what, .text = text};
    enum status st = ST_OK;
    char known[100] = "";

    fresh->v = malloc((size_t)most * sizeof *fresh->v);
    if (!fresh->v)
        return err_set(err, ST_NO_MEMORY, "no memory for a list");
    if (is_choice)
        choice_list(s->choices, most, known, sizeof known);
    while (parse_item(&words, &st, err)) {
        int v = 0;
        size_t i = 0;

        if (is_choice && words.n > most)
            st = err_set(err, ST_USAGE, "%s: '%s' names more than %s", what, text,
                         known);
        else
            st = is_choice ? choice_parse(s->choices, words.item, what, &v, err)
                           : parse_hundredths(s, words.item, what, &v, err);
        if (st == ST_OK && is_choice && v >= most)
            st = err_set(
                err, ST_USAGE,
                "%s: a sweep does not take '%s', only %s; bench decode takes it", what,
                words.item, known);
        while (i < fresh->n && fresh->v[i] != v)
            i++;
        if (st == ST_OK && i == (size_t)most)
            st = err_set(err, ST_USAGE, "%s: more than %d values", what, most);
        if (st == ST_OK && i == fresh->n)
            fresh->v[fresh->n++] = v;
    }
    return st;
}

enum status setting_take_list(void *list, int id, const char *text, const char *what,
                              struct err *err)
{
    const struct setting *s = &table[id];
    struct int_list fresh = {NULL, 0};
    enum status st = ST_OK;

    if (s->type == SETTING_TYPE_CHOICE || s->type == SETTING_TYPE_HUNDREDTHS)
        st = parse_values(s, text, what, &fresh, err);
    else if (strcmp(text, "none") || s->swept == SETTING_EACH)
        st =
            parse_counts(text, what, unit_of(s), (int)s->min, (int)s->max, &fresh, err);
    if (st == ST_OK && fresh.n > SETTING_MAX_LIST)
        st = err_set(err, ST_USAGE, "%s: a list of %zu; at most %d are possible", what,
                     fresh.n, SETTING_MAX_LIST);
    if (st) {
        free(fresh.v);
        return st;
    }
    free(((struct int_list *)list)->v);
    *(struct int_list *)list = fresh;
    return ST_OK;
}
