/* SPDX-License-Identifier: MIT
 *
 * gate_json.c - a gate's result as JSON, there and back
 *
 * Reader and writer go through the same tables, so that neither knows a member that the
 * other does not.
 */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/jsonfile.h"
#include "engine/base/utf8.h"
#include "harness/base/format.h"
#include "harness/base/json_number.h"
#include "harness/decide/gate/gate_report.h"

#define FORMAT "slmbench gate"
/* twice as many rounds as there can be, and the rest */
#define MAX_VALUES (2 * (GATE_MAX_METRICS * GATE_MAX_LAUNCHES * GATE_MAX_ROUNDS + 8192))
#define COUNT(a)   (sizeof(a) / sizeof(a)[0])

enum kind { TEXT, NUMBER, SIZE, BOOL, WORD };

struct member {
    const char *key;
    enum kind kind;
    size_t offset, cap;       /* cap: a TEXT's capacity; words: a WORD's */
    const char *const *words; /* by the enum's value */
};

static const char *const verdict_words[] = {"open", "pass", "fail", "inconclusive"};
static const char *const mode_words[] = {"ab", "baseline"};

#define MEMBER_TEXT(type, name)                                                     \
    {                                                                               \
#name, TEXT, offsetof(struct type, name), sizeof(((struct type *)0)->name), \
            NULL                                                                    \
    }
#define MEMBER(kind, type, name)                          \
    {                                                     \
#name, kind, offsetof(struct type, name), 0, NULL \
    }
#define MEMBER_WORD(type, name, words)                                \
    {                                                                 \
#name, WORD, offsetof(struct type, name), COUNT(words), words \
    }

static const struct member result_members[] = {
    MEMBER_WORD(gate_result, mode, mode_words),
    MEMBER_WORD(gate_result, verdict, verdict_words),
    MEMBER_WORD(gate_result, end, gate_end_words),
    MEMBER_TEXT(gate_result, when),
    MEMBER_TEXT(gate_result, cpu),
    MEMBER_TEXT(gate_result, model),
    MEMBER_TEXT(gate_result, settings),
    MEMBER(SIZE, gate_result, n_launches),
    MEMBER(SIZE, gate_result, n_rounds),
    /* the name that older files have */
    {"n_looks", SIZE, offsetof(struct gate_result, n_interim), 0, NULL},
    MEMBER(SIZE, gate_result, n_disturbed),
    MEMBER_TEXT(gate_result, disturbed),
    MEMBER(NUMBER, gate_result, seconds),
    MEMBER(NUMBER, gate_result, budget_s),
    MEMBER(NUMBER, gate_result, injected),
    MEMBER_TEXT(gate_result, notes),
    MEMBER_TEXT(gate_result, advice),
};

static const struct member given_members[] = {
    MEMBER_TEXT(gate_given, config),  MEMBER_TEXT(gate_given, threads),
    MEMBER_TEXT(gate_given, prefill), MEMBER_TEXT(gate_given, ctx),
    MEMBER_TEXT(gate_given, weights), MEMBER_TEXT(gate_given, mem),
};

/* Older files have none of these. */
static const struct member newer_members[] = {
    MEMBER_TEXT(gate_result, sides),
    MEMBER(SIZE, gate_result, n_again),
};

static const struct member divergence_members[] = {
    MEMBER(NUMBER, gate_divergence, max),
    MEMBER(NUMBER, gate_divergence, kl),
    MEMBER(NUMBER, gate_divergence, se),
    MEMBER(NUMBER, gate_divergence, top1_pct),
    MEMBER(SIZE, gate_divergence, n_tokens),
    MEMBER_WORD(gate_divergence, verdict, verdict_words),
};

static const struct member rule_members[] = {
    MEMBER(NUMBER, gate_rule, margin),
    MEMBER(NUMBER, gate_rule, alpha_fail),
    MEMBER(NUMBER, gate_rule, alpha_pass),
};

static const struct member side_members[] = {
    MEMBER_TEXT(gate_side, name),
    MEMBER_TEXT(gate_side, version),
    MEMBER_TEXT(gate_side, commit),
    MEMBER_TEXT(gate_side, compiler),
};

static const struct member metric_members[] = {
    MEMBER_TEXT(gate_metric, name),
    MEMBER_TEXT(gate_metric, unit),
    MEMBER(BOOL, gate_metric, less_is_better),
    MEMBER(NUMBER, gate_metric, margin),
    MEMBER(NUMBER, gate_metric, a),
    MEMBER(NUMBER, gate_metric, b),
    MEMBER_WORD(gate_metric, verdict, verdict_words),
    MEMBER(SIZE, gate_metric, n_launches),
    MEMBER(SIZE, gate_metric, n_rounds),
};

static const struct member effect_members[] = {
    MEMBER(NUMBER, gate_effect, ratio),  MEMBER(NUMBER, gate_effect, lo),
    MEMBER(NUMBER, gate_effect, hi),     MEMBER(NUMBER, gate_effect, p_fail),
    MEMBER(NUMBER, gate_effect, p_pass),
};

/* Objects of the result. */
static const struct part {
    const char *key;
    const struct member *members;
    size_t n, offset;
    bool is_optional; /* older files, or gates that did not judge it */
} parts[] = {
#define PART(key, members, field) \
    key, members, COUNT(members), offsetof(struct gate_result, field)
    {PART("divergence", divergence_members, divergence), true},
    {PART("options", given_members, given), true},
    {PART("rule", rule_members, rule), false},
    {PART("a", side_members, side[0]), false},
    {PART("b", side_members, side[1]), false},
};

/* ---- writing --------------------------------------------------------------------- */

/* Any bytes: what is no UTF-8 is written as \xNN. */
static json_t *text_json(const char *s)
{
    json_t *j = json_string(s);
    char shown[2048];

    return j ? j : json_string(utf8_printable(shown, sizeof shown, s, strlen(s)));
}

static json_t *member_json(const struct member *m, const void *base)
{
    const void *at = (const char *)base + m->offset;
    int word;

    switch (m->kind) {
    case TEXT:
        return text_json(at);
    case NUMBER:
        return json_number(*(const double *)at);
    case SIZE:
        return json_integer((json_int_t) * (const size_t *)at);
    case BOOL:
        return json_boolean(*(const bool *)at);
    default: /* WORD */
        memcpy(&word, at, sizeof word);
        return json_string(m->words[word]);
    }
}

/* jansson takes NULL for an object, a list or a value and reports it, so that one look
 * at the end finds what had no memory: the object, or NULL. */
static json_t *if_whole(json_t *object, int failed)
{
    if (!failed)
        return object;
    json_decref(object);
    return NULL;
}

/* Appends to object; not 0: no memory. */
static int write_members(json_t *object, const struct member *m, size_t n,
                         const void *base)
{
    int failed = 0;

    for (size_t i = 0; i < n; i++)
        failed |= json_object_set_new(object, m[i].key, member_json(&m[i], base));
    return failed;
}

static int write_object(json_t *object, const char *key, const struct member *m,
                        size_t n, const void *base)
{
    json_t *members = json_object();
    const int failed = write_members(members, m, n, base);

    return json_object_set_new(object, key, members) | failed;
}

static json_t *series_json(const struct gate_series *s)
{
    json_t *launches = json_array();
    int failed = 0;

    for (size_t i = 0; i < s->n_launches; i++) {
        json_t *rounds = json_array();

        for (size_t k = 0; k < s->n_rounds[i]; k++)
            failed |= json_array_append_new(rounds, json_number(s->v[i][k]));
        failed |= json_array_append_new(launches, rounds);
    }
    return if_whole(launches, failed);
}

static json_t *metric_json(const struct gate_metric *m)
{
    json_t *object = json_object();
    int failed = write_members(object, metric_members, COUNT(metric_members), m);

    failed |= write_object(object, "effect", effect_members, COUNT(effect_members),
                           &m->effect);
    failed |= json_object_set_new(object, "log_ratios", series_json(&m->series));
    return if_whole(object, failed);
}

json_t *gate_json(const struct gate_result *r)
{
    const size_t no_sides = !*r->sides; /* the first of the newer members */
    json_t *object = json_object(), *metrics = json_array();
    char sentence[1024];
    int failed = json_object_set_new(object, "format", json_string(FORMAT));

    failed |= json_object_set_new(object, "version", json_integer(GATE_JSON_VERSION));
    failed |= json_object_set_new(
        object, "sentence", text_json(gate_sentence(r, sentence, sizeof sentence)));
    failed |= write_members(object, result_members, COUNT(result_members), r);
    if (r->has_machine) {
        failed |= json_object_set_new(object, "host", text_json(r->host));
        failed |= json_object_set_new(object, "machine", machine_key_json(&r->machine));
    }
    failed |= write_members(object, newer_members + no_sides,
                            COUNT(newer_members) - no_sides, r);
    for (size_t i = r->divergence.max > 0 ? 0 : 1; i < COUNT(parts); i++)
        failed |= write_object(object, parts[i].key, parts[i].members, parts[i].n,
                               (const char *)r + parts[i].offset);
    for (size_t i = 0; i < r->n_metrics; i++)
        failed |= json_array_append_new(metrics, metric_json(&r->metric[i]));
    failed |= json_object_set_new(object, "metrics", metrics);
    return if_whole(object, failed);
}

/* ---- reading --------------------------------------------------------------------- */

struct reader {
    const char *where; /* "results/x/gate.json" */
    struct err *err;
};

static enum status wrong(const struct reader *in, const char *key, const char *what)
{
    return err_set(in->err, ST_INPUT, "%.300s: \"%.60s\" is %.80s", in->where, key,
                   what);
}

static enum status read_number(const struct reader *in, const char *key,
                               const json_t *j, double *v)
{
    if (json_is_null(j))
        *v = NAN;
    else if (json_is_number(j))
        *v = json_number_value(j);
    else
        return wrong(in, key, "not a number");
    return ST_OK;
}

static enum status read_word(const struct reader *in, const struct member *m,
                             const json_t *j, void *at)
{
    const char *word = json_text(j);

    for (int i = 0; word && i < (int)m->cap; i++)
        if (!strcmp(word, m->words[i])) {
            memcpy(at, &i, sizeof i);
            return ST_OK;
        }
    return wrong(in, m->key, "none of its possible values");
}

static enum status read_member(const struct reader *in, const struct member *m,
                               const json_t *j, void *at)
{
    switch (m->kind) {
    case TEXT:
        if (!json_text(j))
            return wrong(in, m->key, "not a text");
        snprintf(at, m->cap, "%s", json_text(j));
        return ST_OK;
    case NUMBER:
        return read_number(in, m->key, j, at);
    case SIZE:
        if (!json_is_integer(j) || json_integer_value(j) < 0)
            return wrong(in, m->key, "not a count");
        *(size_t *)at = (size_t)json_integer_value(j);
        return ST_OK;
    case BOOL:
        if (!json_is_boolean(j))
            return wrong(in, m->key, "neither true nor false");
        *(bool *)at = json_is_true(j);
        return ST_OK;
    default: /* WORD */
        return read_word(in, m, j, at);
    }
}

static enum status read_object(const struct reader *in, const json_t *object,
                               const char *name, const struct member *m, size_t n,
                               void *base)
{
    if (!json_is_object(object))
        return wrong(in, name, "not there, or not an object");
    for (size_t i = 0; i < n; i++) {
        const json_t *j = json_object_get(object, m[i].key);

        if (!j)
            return err_set(in->err, ST_INPUT,
                           "%.300s: \"%s\" lacks \"%s\"; was the file cut short?",
                           in->where, name, m[i].key);
        if (read_member(in, &m[i], j, (char *)base + m[i].offset))
            return in->err->code;
    }
    return ST_OK;
}

static enum status read_array(const struct reader *in, const json_t *array,
                              const char *name, size_t most, size_t *n)
{
    if (!json_is_array(array))
        return wrong(in, name, "not there, or not a list");
    if (json_array_size(array) > most)
        return err_set(in->err, ST_INPUT,
                       "%.300s: \"%s\" has %zu elements, more than the %zu there may "
                       "be",
                       in->where, name, json_array_size(array), most);
    *n = json_array_size(array);
    return ST_OK;
}

static enum status read_series(const struct reader *in, const json_t *launches,
                               struct gate_series *s)
{
    static const char key[] = "log_ratios";

    if (read_array(in, launches, key, GATE_MAX_LAUNCHES, &s->n_launches))
        return in->err->code;
    for (size_t i = 0; i < s->n_launches; i++) {
        const json_t *rounds = json_array_get(launches, i);

        if (read_array(in, rounds, key, GATE_MAX_ROUNDS, &s->n_rounds[i]))
            return in->err->code;
        for (size_t k = 0; k < s->n_rounds[i]; k++)
            if (read_number(in, key, json_array_get(rounds, k), &s->v[i][k]))
                return in->err->code;
    }
    return ST_OK;
}

static enum status read_metrics(const struct reader *in, const json_t *metrics,
                                struct gate_result *r)
{
    if (read_array(in, metrics, "metrics", GATE_MAX_METRICS, &r->n_metrics))
        return in->err->code;
    for (size_t i = 0; i < r->n_metrics; i++) {
        const json_t *j = json_array_get(metrics, i);
        struct gate_metric *m = &r->metric[i];

        if (read_object(in, j, "metrics", metric_members, COUNT(metric_members), m) ||
            read_object(in, json_object_get(j, "effect"), "effect", effect_members,
                        COUNT(effect_members), &m->effect) ||
            read_series(in, json_object_get(j, "log_ratios"), &m->series))
            return in->err->code;
    }
    return ST_OK;
}

/* Older files have none. */
static enum status read_machine(const struct reader *in, const json_t *object,
                                struct gate_result *r)
{
    const json_t *machine = json_object_get(object, "machine");
    const char *host = json_text(json_object_get(object, "host"));

    if (!machine)
        return ST_OK;
    if (!machine_key_from_json(&r->machine, machine) || !host)
        return wrong(in, "machine", "no profile with the name of a host");
    text_harmless(r->host, sizeof r->host, host);
    r->has_machine = true;
    return ST_OK;
}

static enum status check_format(const struct reader *in, const json_t *object)
{
    const char *format = json_text(json_object_get(object, "format"));
    const json_int_t version = json_integer_value(json_object_get(object, "version"));

    if (!format || strcmp(format, FORMAT) != 0)
        return err_set(in->err, ST_INPUT,
                       "%.300s is not the result of a gate (no \"format\": \"%s\")",
                       in->where, FORMAT);
    if (version != GATE_JSON_VERSION)
        return err_set(in->err, ST_INPUT,
                       "%.300s is of version %lld, and this program reads version %d; "
                       "use the bench that wrote it",
                       in->where, (long long)version, GATE_JSON_VERSION);
    return ST_OK;
}

enum status gate_json_parse(struct gate_result *r, const json_t *object,
                            const char *where, struct err *err)
{
    const struct reader in = {where, err};
    struct gate_result *read = calloc(1, sizeof *read);
    enum status st;

    if (!read)
        return err_set(err, ST_NO_MEMORY, "no memory for a gate's result");
    st = check_format(&in, object);
    if (st == ST_OK)
        st = read_object(&in, object, "the result", result_members,
                         COUNT(result_members), read);
    if (st == ST_OK)
        st = read_machine(&in, object, read);
    for (size_t i = 0; st == ST_OK && i < COUNT(newer_members); i++) {
        const struct member *m = &newer_members[i];
        const json_t *j = json_object_get(object, m->key);

        st = j ? read_member(&in, m, j, (char *)read + m->offset) : ST_OK;
    }
    for (size_t i = 0; st == ST_OK && i < COUNT(parts); i++) {
        const struct part *p = &parts[i];
        const json_t *j = json_object_get(object, p->key);

        if (j || !p->is_optional)
            st =
                read_object(&in, j, p->key, p->members, p->n, (char *)read + p->offset);
    }
    if (st == ST_OK)
        st = read_metrics(&in, json_object_get(object, "metrics"), read);
    if (st == ST_OK)
        *r = *read;
    free(read);
    return st;
}

static const struct json_limit max_file = {16u << 20, MAX_VALUES};

enum status gate_json_read(struct gate_result *r, const char *path, struct err *err)
{
    struct jsonfile f;
    enum status st = jsonfile_read(&f, path, max_file, err);

    if (st)
        return st;
    st = gate_json_parse(r, f.root, path, err);
    jsonfile_free(&f);
    return st;
}
