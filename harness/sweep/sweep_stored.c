/* SPDX-License-Identifier: MIT
 *
 * sweep_stored.c - settings of a sweep as JSON, and back from a file that anyone may
 * have written
 */
#include "harness/sweep/sweep.h"

#include <string.h>

#include "harness/base/parse.h"
#include "harness/settings/setting.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* ---- to JSON ------------------------------------------------------------------- */

static json_t *ints_json(const struct int_list *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->n; i++)
        json_array_append_new(array, json_integer(list->v[i]));
    return array;
}

json_t *sweep_settings_json(const struct sweep_settings *s)
{
    json_t *models = json_array(), *placements = json_array();
    json_t *weights = json_array(), *kv_types = json_array();

    for (size_t i = 0; i < s->n_models; i++)
        json_array_append_new(models, json_string(s->models[i]));
    for (int i = 0; i < s->n_placements; i++)
        json_array_append_new(placements,
                              json_string(placement_name(s->placements[i])));
    for (int i = 0; i < s->n_residencies; i++)
        json_array_append_new(weights,
                              json_string(weights_residency_name(s->residencies[i])));
    for (int i = 0; i < s->n_kv_types; i++)
        json_array_append_new(kv_types, json_string(kv_type_name(s->kv_types[i])));
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:i, s:i, s:i, s:b, s:f,"
        " s:f, s:i, s:I, s:b, s:s, s:s, s:I}",
        "models", models, "threads", ints_json(&s->threads), "threads_prefill",
        ints_json(&s->threads_prefill), "ctx", ints_json(&s->ctx), "prefill",
        ints_json(&s->prefill), "placements", placements, "weights", weights, "kv_type",
        kv_types, "speculate", sweep_texts_json(s), "mem_limit",
        (json_int_t)s->mem_limit, "tokens", s->n_tokens, "passes", s->n_passes, "batch",
        s->n_batch, "ctx_prefill", (int)s->ctx_prefill, "budget_s", s->budget_s,
        "load_budget_s", s->load_budget_s, "repeats", s->n_repeats, "seed",
        (json_int_t)s->seed, "keep_models", (int)s->keep_models, "cache_dir",
        s->cache_dir, "tuned", s->tuned, "isa_disabled", (json_int_t)s->isa_disabled);
}

/* ---- from JSON ----------------------------------------------------------------- */

#define FIELD(key, form, name, field) \
    SETTING_FIELD(key, form, name, struct sweep_settings, field)
#define PLAIN(key, form, field) SETTING_PLAIN(key, form, struct sweep_settings, field)

static const struct setting_member members[] = {
    FIELD("threads", FULL_LIST, threads, threads),
    FIELD("threads_prefill", LIST, threads_prefill, threads_prefill),
    FIELD("ctx", LIST, ctx, ctx),
    FIELD("prefill", LIST, prefill, prefill),
    FIELD("mem_limit", SIZE, mem, mem_limit),
    FIELD("tokens", INT, tokens, n_tokens),
    FIELD("passes", INT, passes, n_passes),
    FIELD("batch", INT, batch, n_batch),
    PLAIN("ctx_prefill", BOOL, ctx_prefill),
    FIELD("budget_s", REAL, budget, budget_s),
    FIELD("load_budget_s", REAL, timeout, load_budget_s),
    FIELD("repeats", INT, repeats, n_repeats),
    PLAIN("seed", U64, seed),
    PLAIN("keep_models", BOOL, keep_models),
    SETTING_CHARS("cache_dir", struct sweep_settings, cache_dir),
    FIELD("isa_disabled", U32, isa_disabled, isa_disabled),
};

/* Sweeps from before there were profiles have none. */
static const struct setting_member tuned[] = {
    SETTING_CHARS("tuned", struct sweep_settings, tuned)};

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
        words[i] = json_string_value(json_array_get(array, i));
        if (!words[i] || !*words[i])
            return err_set(err, ST_USAGE, "%s: entry %zu is not a text", what, i + 1);
    }
    return ST_OK;
}

/* The words of an array with commas between them, as options name them; unset where
 * the array is missing, as in sweeps from before there was that choice. */
static enum status join_words(const json_t *array, const char *what, size_t max,
                              const char *unset, char *text, size_t cap,
                              struct err *err)
{
    const char *words[SWEEP_MAX_MODELS];
    size_t n = 0, used = 0;

    snprintf(text, cap, "%s", unset);
    if (!array)
        return ST_OK;
    if (read_words(array, what, 1, max, words, &n, err))
        return ST_USAGE;
    for (size_t i = 0; i < n; i++) {
        if (used + strlen(words[i]) + 2 > cap || strpbrk(words[i], ", "))
            return err_set(err, ST_USAGE, "%s: '%.40s' is not one of its words", what,
                           words[i]);
        used +=
            (size_t)snprintf(text + used, cap - used, "%s%s", i ? "," : "", words[i]);
    }
    return ST_OK;
}

static enum status choices_from_json(struct sweep_settings *s, const json_t *object,
                                     struct err *err)
{
    const json_t *placements = json_object_get(object, "placements");
    struct err why = ERR_INIT;
    char text[128];

    if (!placements)
        return err_set(err, ST_USAGE, "placements is missing; it is a list of texts");
    if (join_words(placements, "placements", LENGTH(s->placements), "", text,
                   sizeof text, err))
        return ST_USAGE;
    if (sweep_set_placements(s, text, "placements", &why))
        return err_set(err, ST_USAGE, "placements: %s", why.msg);
    /* without a choice models were mapped, keys and values F16 */
    if (join_words(json_object_get(object, "weights"), "weights", SWEEP_MAX_RESIDENCIES,
                   "mmap", text, sizeof text, err) ||
        sweep_set_residencies(s, text, "weights", err))
        return ST_USAGE;
    if (join_words(json_object_get(object, "kv_type"), "kv_type", KERN_N_KV, "f16",
                   text, sizeof text, err) ||
        sweep_set_kv_types(s, text, "kv_type", err))
        return ST_USAGE;
    return ST_OK;
}

static enum status models_from_json(struct sweep_settings *s, const json_t *object,
                                    struct err *err)
{
    const char *words[SWEEP_MAX_MODELS];
    const size_t most = sizeof((struct modelref *)NULL)->text;
    size_t n = 0;

    if (read_words(json_object_get(object, "models"), "models", 1, SWEEP_MAX_MODELS,
                   words, &n, err))
        return ST_USAGE;
    for (size_t i = 0; i < n; i++)
        if (strlen(words[i]) >= most)
            return err_set(err, ST_USAGE,
                           "models: a name of %zu characters; %zu are the most",
                           strlen(words[i]), most - 1);
    return sweep_set_models(s, words, n, "models", err);
}

static enum status texts_from_json(struct sweep_settings *s, const json_t *object,
                                   struct err *err)
{
    const json_t *array = json_object_get(object, "speculate");
    const char *words[SWEEP_MAX_TEXTS];
    size_t n = 0;

    s->n_texts = 0;
    if (array && read_words(array, "speculate", 0, SWEEP_MAX_TEXTS, words, &n, err))
        return ST_USAGE;
    for (size_t i = 0; i < n; i++)
        if (sweep_add_text(s, words[i], "speculate", err))
            return ST_USAGE;
    return ST_OK;
}

enum status sweep_settings_from_json(struct sweep_settings *s, const json_t *object,
                                     struct err *err)
{
    struct sweep_settings out;
    enum status st;

    memset(&out, 0, sizeof out);
    if (!json_is_object(object))
        return err_set(err, ST_INPUT, "there are no stored settings");
    st = setting_read_members(&out, members, LENGTH(members), object, err);
    if (st == ST_OK && json_object_get(object, tuned[0].key))
        st = setting_read_members(&out, tuned, LENGTH(tuned), object, err);
    if (st == ST_OK)
        st = choices_from_json(&out, object, err);
    if (st == ST_OK)
        st = texts_from_json(&out, object, err);
    if (st == ST_OK)
        st = models_from_json(&out, object, err);
    if (st) {
        sweep_settings_free(&out);
        return st == ST_NO_MEMORY ? st : ST_INPUT;
    }
    *s = out;
    return ST_OK;
}
