/* SPDX-License-Identifier: MIT
 *
 * sweep_stored.c - settings of a sweep as JSON, and back from a file that anyone may
 * have written
 */
#include "harness/measure/sweep/sweep.h"

#include <string.h>

#include "engine/base/json_read.h"

static const char *key_of(enum setting_id id)
{
    const struct setting *row = setting_row(id);

    return row->stored ? row->stored : row->name;
}

static bool is_text_list(enum setting_id id)
{
    return id == SETTING_models || id == SETTING_speculate || id == SETTING_engines;
}

/* ---- to JSON --------------------------------------------------------------------- */

static json_t *text_list_json(const struct sweep_settings *s, enum setting_id id)
{
    const size_t n = id == SETTING_models      ? s->n_models
                     : id == SETTING_speculate ? (size_t)s->n_texts
                                               : (size_t)s->n_engines;
    json_t *array = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(array,
                              json_string(id == SETTING_models      ? s->models[i]
                                          : id == SETTING_speculate ? s->texts[i]
                                                                    : s->engines[i]));
    return array;
}

json_t *sweep_settings_json(const struct sweep_settings *s)
{
    struct sweep_settings *fields = (struct sweep_settings *)(uintptr_t)s; /* read */
    json_t *object = json_object();

    for (enum setting_id id = 0; id < SETTING_N; id++) {
        if (!(setting_row(id)->in & SETTING_STORED))
            continue;
        json_object_set_new(object, key_of(id),
                            is_text_list(id)    ? text_list_json(s, id)
                            : id == SETTING_mem ? sweep_limits_json(s)
                            : setting_row(id)->swept
                                ? setting_list_json(id, &s->list[id])
                                : setting_json(id, sweep_field(fields, id, NULL)));
    }
    return object;
}

/* ---- from JSON ------------------------------------------------------------------- */

/* The words of an array, at most max of them. Error: ST_USAGE. */
static enum status read_words(const json_t *array, const char *what, size_t min,
                              size_t max, const char **words, size_t *n,
                              struct err *err)
{
    if (!json_is_array(array))
        return err_set(err, ST_USAGE, "%s is not a list of texts", what);
    *n = json_array_size(array);
    if (*n < min || *n > max)
        return err_set(err, ST_USAGE, "%s: a list of %zu; %zu to %zu are possible",
                       what, *n, min, max);
    for (size_t i = 0; i < *n; i++) {
        words[i] = json_text(json_array_get(array, i));
        if (!words[i] || !*words[i])
            return err_set(err, ST_USAGE, "%s: entry %zu is not a text", what, i + 1);
    }
    return ST_OK;
}

static enum status models_from_json(struct sweep_settings *s, const json_t *array,
                                    struct err *err)
{
    const char *words[SWEEP_MAX_MODELS];
    size_t n = 0;

    if (read_words(array, "models", 1, SWEEP_MAX_MODELS, words, &n, err))
        return ST_USAGE;
    return sweep_set_models(s, words, n, "models", err);
}

static enum status texts_from_json(struct sweep_settings *s, const json_t *array,
                                   struct err *err)
{
    const char *words[SWEEP_MAX_TEXTS];
    size_t n = 0;

    s->n_texts = 0;
    if (read_words(array, "speculate", 0, SWEEP_MAX_TEXTS, words, &n, err))
        return ST_USAGE;
    for (size_t i = 0; i < n; i++)
        if (sweep_add_text(s, words[i], "speculate", err))
            return ST_USAGE;
    return ST_OK;
}

static enum status engines_from_json(struct sweep_settings *s, const json_t *array,
                                     struct err *err)
{
    const char *words[SWEEP_MAX_ENGINES];
    size_t n = 0;

    if (read_words(array, "engines", 0, SWEEP_MAX_ENGINES, words, &n, err))
        return ST_USAGE;
    return sweep_set_engines(s, words, n, "engines", err);
}

/* The value that sweeps were measured with before there was the setting. */
static enum status take_before(struct sweep_settings *s, enum setting_id id,
                               const char *before, struct err *err)
{
    const struct setting *row = setting_row(id);
    size_t size;
    void *field = sweep_field(s, id, &size);

    if (is_text_list(id) || row->type == SETTING_TYPE_TEXT)
        return ST_OK;
    return row->swept
               ? setting_take_list(&s->list[id], (int)id, before, key_of(id), err)
               : setting_parse(id, before, key_of(id), field, size, err);
}

static enum status take(struct sweep_settings *s, enum setting_id id,
                        const json_t *value, struct err *err)
{
    const struct setting *row = setting_row(id);
    size_t size;
    void *field = sweep_field(s, id, &size);

    if (!value && row->before)
        return take_before(s, id, row->before, err);
    if (id == SETTING_models)
        return models_from_json(s, value, err);
    if (id == SETTING_speculate)
        return texts_from_json(s, value, err);
    if (id == SETTING_engines)
        return engines_from_json(s, value, err);
    if (id == SETTING_mem)
        return sweep_limits_from_json(s, value, key_of(id), err);
    if (row->swept)
        return setting_list_from_json(id, value, key_of(id), &s->list[id], err);
    return setting_from_json(id, value, key_of(id), field, size, err);
}

/* Earlier versions stored here which profile of `bench tune` a sweep used, "" without
 * one. */
static bool is_untuned(const json_t *object)
{
    const char *tuned = json_text(json_object_get(object, "tuned"));

    return !tuned || !*tuned;
}

enum status sweep_settings_from_json(struct sweep_settings *s, const json_t *object,
                                     struct err *err)
{
    struct sweep_settings out;
    struct err why = ERR_INIT;
    enum status st = ST_OK;

    memset(&out, 0, sizeof out);
    point_init(&out.base);
    if (!json_is_object(object))
        return err_set(err, ST_INPUT, "there are no stored settings");
    if (!is_untuned(object))
        return err_set(err, ST_INPUT,
                       "tuned: this version has no profiles of `bench tune`");
    for (enum setting_id id = 0; id < SETTING_N && st == ST_OK; id++)
        if (setting_row(id)->in & SETTING_STORED)
            st = take(&out, id, json_object_get(object, key_of(id)), &why);
    if (st) { /* what is wrong usage on a command line is wrong input here */
        sweep_settings_free(&out);
        return err_set(err, st == ST_NO_MEMORY ? st : ST_INPUT, "%s", why.msg);
    }
    *s = out;
    return ST_OK;
}
