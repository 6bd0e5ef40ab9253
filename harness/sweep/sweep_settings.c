/* SPDX-License-Identifier: MIT
 *
 * sweep_settings.c - defaults, lists from text, settings as JSON and back
 */
#include "harness/sweep/sweep.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

#include "harness/base/parse.h"
#include "harness/result/quality_rows.h"

#define ALL_THREADS_DENSE 8 /* up to here every count; beyond, steps of a third */

static void free_models(struct sweep_settings *s)
{
    for (size_t i = 0; i < s->n_models; i++)
        free(s->models[i]);
    s->n_models = 0;
}

void sweep_settings_free(struct sweep_settings *s)
{
    free_models(s);
    free(s->threads.v);
    free(s->threads_prefill.v);
    free(s->ctx.v);
    free(s->prefill.v);
    memset(s, 0, sizeof *s);
}

enum status sweep_settings_init(struct sweep_settings *s, const struct topology *topo,
                                struct err *err)
{
    enum status status;

    memset(s, 0, sizeof *s);
    s->n_tokens = 64;
    s->n_passes = 5;
    s->n_batch = SLM_DEFAULT_BATCH;
    s->budget_s = 10;
    s->load_budget_s = 120;
    s->n_repeats = 1;
    s->placements[0] = PLACEMENT_SPREAD;
    s->n_placements = 1;
    s->residencies[0] = WEIGHTS_AUTO;
    s->n_residencies = 1;
    s->kv_types[0] = KERN_KV_f16;
    s->n_kv_types = 1;
    status = sweep_set_threads(s, "all", topo, "threads", err);
    if (status == ST_OK)
        status = sweep_set_ints(&s->ctx, "0,1024,4096", 0, "ctx", err);
    if (status == ST_OK)
        status = sweep_set_ints(&s->prefill, "128", 1, "prefill", err);
    return status;
}

enum status sweep_set_models(struct sweep_settings *s, const char *const *texts,
                             size_t n, const char *what, struct err *err)
{
    if (!n || n > SWEEP_MAX_MODELS)
        return err_set(err, ST_USAGE, "%s: %zu models; 1 to %d are possible", what, n,
                       SWEEP_MAX_MODELS);
    free_models(s);
    for (size_t i = 0; i < n; i++) {
        s->models[i] = strdup(texts[i]);
        if (!s->models[i])
            return err_set(err, ST_NO_MEMORY, "no memory for %zu models", n);
        s->n_models++;
    }
    return ST_OK;
}

enum status sweep_set_ints(struct int_list *list, const char *text, int min,
                           const char *what, struct err *err)
{
    struct int_list fresh = {NULL, 0};

    if (strcmp(text, "none") &&
        parse_ints(text, what, min, 1 << 24, &fresh, err) != ST_OK)
        return ST_USAGE;
    free(list->v);
    *list = fresh;
    return ST_OK;
}

static enum status all_threads(struct int_list *list, int n, struct err *err)
{
    int *v = malloc((size_t)n * sizeof *v);
    size_t n_v = 0;

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %d thread counts", n);
    for (int t = 1; t < n; t += t < ALL_THREADS_DENSE ? 1 : (t + 2) / 3)
        v[n_v++] = t;
    v[n_v++] = n;
    free(list->v);
    list->v = v;
    list->n = n_v;
    return ST_OK;
}

static enum status set_counts(struct int_list *list, const char *text,
                              const struct topology *topo, const char *what,
                              struct err *err)
{
    enum status status;

    if (!strcmp(text, "all"))
        return all_threads(list, topo->threads_default, err);
    status = sweep_set_ints(list, text, 1, what, err);
    for (size_t i = 0; status == ST_OK && i < list->n; i++) {
        if (list->v[i] > TOPO_MAX_CPUS)
            status = err_set(err, ST_USAGE, "%s: %d threads; %d are the most", what,
                             list->v[i], TOPO_MAX_CPUS);
    }
    return status;
}

enum status sweep_set_threads(struct sweep_settings *s, const char *text,
                              const struct topology *topo, const char *what,
                              struct err *err)
{
    const enum status status = set_counts(&s->threads, text, topo, what, err);

    if (status == ST_OK && !s->threads.n)
        return err_set(err, ST_USAGE, "%s: at least one thread is needed", what);
    return status;
}

enum status sweep_set_threads_prefill(struct sweep_settings *s, const char *text,
                                      const struct topology *topo, const char *what,
                                      struct err *err)
{
    return set_counts(&s->threads_prefill, text, topo, what, err);
}

/* A file is named absolutely, so that --resume works from anywhere. */
enum status sweep_set_tuned(struct sweep_settings *s, const char *text,
                            const char *what, struct err *err)
{
    const bool is_word = !strcmp(text, "auto") || !strcmp(text, "none");
    struct err why = ERR_INIT;
    struct tuned ignored;
    char *path;
    int n;

    if (!is_word && tuned_load(&ignored, text, &why))
        return err_set(err, why.code, "%s: %s", what, why.msg);
    path = is_word ? strdup(strcmp(text, "none") ? text : "") : realpath(text, NULL);
    if (!path)
        return err_set_errno(err, ST_IO, "%s: cannot open %s", what, text);
    n = snprintf(s->tuned, sizeof s->tuned, "%s", path);
    free(path);
    if (n >= (int)sizeof s->tuned)
        return err_set(err, ST_USAGE, "%s: %s is too long a name", what, text);
    return ST_OK;
}

enum status sweep_set_quality(struct sweep_settings *s, const char *text,
                              const char *what, struct err *err)
{
    struct err why = ERR_INIT;

    if (strlen(text) >= sizeof s->quality)
        return err_set(err, ST_USAGE, "%s: %s is too long a name", what, text);
    if (!strcmp(text, "none"))
        text = "";
    if (*text && quality_rows_bring(text, NULL, &why))
        return err_set(err, why.code, "%s: %s", what, why.msg);
    snprintf(s->quality, sizeof s->quality, "%s", text);
    return ST_OK;
}

enum status sweep_set_placements(struct sweep_settings *s, const char *text,
                                 const char *what, struct err *err)
{
    char *copy = strdup(text), *save = NULL;
    enum placement found[PLACEMENT_NONE + 1];
    int n = 0;
    enum status status = copy ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory");

    for (char *word = copy ? strtok_r(copy, ", ", &save) : NULL;
         word && status == ST_OK; word = strtok_r(NULL, ", ", &save)) {
        if (n > PLACEMENT_NONE)
            status = err_set(err, ST_USAGE, "%s: '%s' names more placements than exist",
                             what, text);
        else
            status = placement_parse(word, &found[n++], err);
    }
    if (status == ST_OK && !n)
        status = err_set(err, ST_USAGE, "%s: at least one placement is needed", what);
    if (status == ST_OK) {
        memcpy(s->placements, found, (size_t)n * sizeof found[0]);
        s->n_placements = n;
    }
    free(copy);
    return status;
}

enum status sweep_set_residencies(struct sweep_settings *s, const char *text,
                                  const char *what, struct err *err)
{
    enum weights_residency found[SWEEP_MAX_RESIDENCIES];
    char *copy = strdup(text), *save = NULL;
    int n = 0;
    enum status status = copy ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory");

    for (char *word = copy ? strtok_r(copy, ", ", &save) : NULL;
         word && status == ST_OK; word = strtok_r(NULL, ", ", &save)) {
        enum weights_residency r = WEIGHTS_MMAP;

        if (n == SWEEP_MAX_RESIDENCIES)
            status =
                err_set(err, ST_USAGE, "%s: '%s' names more than auto, mmap and packed",
                        what, text);
        else
            status = residency_parse(word, what, &r, err);
        if (status == ST_OK && r == WEIGHTS_MEMORY)
            status =
                err_set(err, ST_USAGE,
                        "%s: weights of a sweep are auto, mmap or packed, not memory; "
                        "bench decode takes it",
                        what);
        if (status == ST_OK)
            found[n++] = r;
    }
    if (status == ST_OK && !n)
        status = err_set(err, ST_USAGE, "%s: auto, mmap or packed are needed", what);
    if (status == ST_OK) {
        memcpy(s->residencies, found, (size_t)n * sizeof found[0]);
        s->n_residencies = n;
    }
    free(copy);
    return status;
}

enum status sweep_set_kv_types(struct sweep_settings *s, const char *text,
                               const char *what, struct err *err)
{
    enum kern_kv found[KERN_N_KV];
    char *copy = strdup(text), *save = NULL;
    int n = 0;
    enum status status = copy ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory");

    for (char *word = copy ? strtok_r(copy, ", ", &save) : NULL;
         word && status == ST_OK; word = strtok_r(NULL, ", ", &save)) {
        if (n == KERN_N_KV)
            status = err_set(err, ST_USAGE, "%s: '%s' names more types than exist",
                             what, text);
        else
            status = kv_type_parse(word, what, &found[n++], err);
    }
    if (status == ST_OK && !n)
        status = err_set(err, ST_USAGE, "%s: at least one type is needed", what);
    if (status == ST_OK) {
        memcpy(s->kv_types, found, (size_t)n * sizeof found[0]);
        s->n_kv_types = n;
    }
    free(copy);
    return status;
}

/* ---- JSON ------------------------------------------------------------------- */

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

static enum status ints_from_json(struct int_list *list, const json_t *array, int min,
                                  struct err *err)
{
    const size_t n = json_array_size(array);
    int *v = calloc(n ? n : 1, sizeof *v);

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu numbers", n);
    for (size_t i = 0; i < n; i++) {
        const json_int_t value = json_integer_value(json_array_get(array, i));

        if (value < min || value > INT_MAX) {
            free(v);
            return err_set(err, ST_INPUT, "the stored settings hold %lld in a list",
                           (long long)value);
        }
        v[i] = (int)value;
    }
    free(list->v);
    list->v = v;
    list->n = n;
    return ST_OK;
}

/* The words of an array with commas between them. */
static const char *join_words(const json_t *array, char *text, size_t cap)
{
    *text = '\0';
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *name = json_string_value(json_array_get(array, i));
        const size_t used = strlen(text);

        snprintf(text + used, cap - used, "%s%s", i ? "," : "", name ? name : "?");
    }
    return text;
}

/* Sweeps from before there was a choice have mapped their models. */
static enum status residencies_from_json(struct sweep_settings *s, const json_t *array,
                                         struct err *err)
{
    char text[64];

    return sweep_set_residencies(s,
                                 array ? join_words(array, text, sizeof text) : "mmap",
                                 "the stored settings' weights", err);
}

/* Likewise they had F16 keys and values. */
static enum status kv_types_from_json(struct sweep_settings *s, const json_t *array,
                                      struct err *err)
{
    char text[64];

    return sweep_set_kv_types(s, array ? join_words(array, text, sizeof text) : "f16",
                              "the stored settings' kv_type", err);
}

static enum status lists_from_json(struct sweep_settings *s, const json_t *object,
                                   struct err *err)
{
    const json_t *models = json_object_get(object, "models");
    const json_t *placements = json_object_get(object, "placements");
    const char *texts[SWEEP_MAX_MODELS];
    const size_t n = json_array_size(models), n_p = json_array_size(placements);

    if (n < 1 || n > SWEEP_MAX_MODELS || n_p < 1 || n_p > PLACEMENT_NONE + 1)
        return err_set(err, ST_INPUT, "the stored settings have %zu models", n);
    for (size_t i = 0; i < n; i++) {
        texts[i] = json_string_value(json_array_get(models, i));
        if (!texts[i])
            return err_set(err, ST_INPUT, "the stored settings name no model %zu", i);
    }
    for (size_t i = 0; i < n_p; i++) {
        const char *name = json_string_value(json_array_get(placements, i));

        if (placement_parse(name ? name : "", &s->placements[i], err))
            return ST_INPUT;
    }
    s->n_placements = (int)n_p;
    if (residencies_from_json(s, json_object_get(object, "weights"), err) ||
        kv_types_from_json(s, json_object_get(object, "kv_type"), err) ||
        sweep_texts_from_json(s, json_object_get(object, "speculate"), err))
        return ST_INPUT;
    if (sweep_set_models(s, texts, n, "models", err))
        return ST_INPUT;
    if (ints_from_json(&s->threads, json_object_get(object, "threads"), 1, err) ||
        ints_from_json(&s->threads_prefill, json_object_get(object, "threads_prefill"),
                       1, err) ||
        ints_from_json(&s->ctx, json_object_get(object, "ctx"), 0, err))
        return ST_INPUT;
    return ints_from_json(&s->prefill, json_object_get(object, "prefill"), 1, err);
}

enum status sweep_settings_from_json(struct sweep_settings *s, const json_t *object,
                                     struct err *err)
{
    struct sweep_settings out;
    json_error_t why;
    json_int_t mem_limit, seed, isa_disabled;
    int ctx_prefill, keep_models;
    const char *cache_dir, *tuned;
    enum status status;

    memset(&out, 0, sizeof out);
    if (!object ||
        json_unpack_ex((json_t *)(uintptr_t)object, &why, 0,
                       "{s:I, s:i, s:i, s:i, s:b, s:F, s:F, s:i, s:I, s:b, s:s, s:I}",
                       "mem_limit", &mem_limit, "tokens", &out.n_tokens, "passes",
                       &out.n_passes, "batch", &out.n_batch, "ctx_prefill",
                       &ctx_prefill, "budget_s", &out.budget_s, "load_budget_s",
                       &out.load_budget_s, "repeats", &out.n_repeats, "seed", &seed,
                       "keep_models", &keep_models, "cache_dir", &cache_dir,
                       "isa_disabled", &isa_disabled))
        return err_set(err, ST_INPUT, "the stored settings are not as expected: %s",
                       object ? why.text : "there are none");
    if (mem_limit < 0 || out.n_tokens < 1 || out.n_passes < 1 || out.n_batch < 1 ||
        !(out.budget_s > 0) || !(out.load_budget_s > 0) || out.n_repeats < 0)
        return err_set(err, ST_INPUT, "the stored settings hold a value out of range");
    out.mem_limit = (uint64_t)mem_limit;
    out.seed = (uint64_t)seed;
    out.isa_disabled = (uint32_t)isa_disabled;
    out.ctx_prefill = ctx_prefill;
    out.keep_models = keep_models;
    snprintf(out.cache_dir, sizeof out.cache_dir, "%s", cache_dir);
    tuned = json_string_value(json_object_get(object, "tuned"));
    snprintf(out.tuned, sizeof out.tuned, "%s", tuned ? tuned : "");
    status = lists_from_json(&out, object, err);
    if (status)
        sweep_settings_free(&out);
    else
        *s = out;
    return status;
}
