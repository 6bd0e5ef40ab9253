/* SPDX-License-Identifier: MIT
 *
 * sweep_config.c - settings of a sweep from YAML
 *
 * libcyaml checks keys and shapes against the table below; every value arrives
 * as text and goes through the same parsers as the options do.
 */
#include "harness/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "harness/base/parse.h"
#include "harness/base/textfile.h"
#include "harness/base/yamlfile.h"
#include "harness/settings/setting.h"

#define MAX_LIST 256

/* The file as libcyaml fills it; NULL where a key is absent. */
struct raw {
    char **models, **threads, **threads_prefill, **ctx, **prefill, **placement,
        **weights, **kv_type, **speculate;
    unsigned models_count, threads_count, threads_prefill_count, ctx_count,
        prefill_count, placement_count, weights_count, kv_type_count, speculate_count;
    char *mem, *tokens, *passes, *batch, *ctx_fill, *budget, *timeout, *repeats, *seed,
        *keep_models, *tuned, *quality;
};

static const cyaml_schema_value_t text_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, 4096)};

#define LIST(name)                                                                    \
    CYAML_FIELD_SEQUENCE(#name, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw, \
                         name, &text_value, 1, MAX_LIST)
#define TEXT(name)                                                          \
    CYAML_FIELD_STRING_PTR(#name, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, \
                           struct raw, name, 0, 4096)

static const cyaml_schema_field_t fields[] = {
    LIST(models),    LIST(threads),   LIST(threads_prefill), LIST(ctx),
    LIST(prefill),   LIST(placement), LIST(weights),         LIST(kv_type),
    LIST(speculate), TEXT(mem),       TEXT(tokens),          TEXT(passes),
    TEXT(batch),     TEXT(ctx_fill),  TEXT(budget),          TEXT(timeout),
    TEXT(repeats),   TEXT(seed),      TEXT(keep_models),     TEXT(tuned),
    TEXT(quality),   CYAML_FIELD_END};

static const cyaml_schema_value_t schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw, fields)};

/* "sweeps/mine.yaml: ctx" into buf: what messages call a key. */
static const char *key_name(char *buf, size_t cap, const char *path, const char *key)
{
    snprintf(buf, cap, "%.400s: %.80s", path, key);
    return buf;
}

static enum status apply_lists(struct sweep_settings *s, const struct raw *raw,
                               const char *path, const struct topology *topo,
                               struct err *err)
{
    char *threads =
        raw->threads ? yaml_list_text(raw->threads, raw->threads_count) : NULL;
    char *threads_prefill =
        raw->threads_prefill
            ? yaml_list_text(raw->threads_prefill, raw->threads_prefill_count)
            : NULL;
    char *ctx = raw->ctx ? yaml_list_text(raw->ctx, raw->ctx_count) : NULL;
    char *prefill =
        raw->prefill ? yaml_list_text(raw->prefill, raw->prefill_count) : NULL;
    char *placement =
        raw->placement ? yaml_list_text(raw->placement, raw->placement_count) : NULL;
    char *weights =
        raw->weights ? yaml_list_text(raw->weights, raw->weights_count) : NULL;
    char *kv_type =
        raw->kv_type ? yaml_list_text(raw->kv_type, raw->kv_type_count) : NULL;
    char *texts =
        raw->speculate ? yaml_list_text(raw->speculate, raw->speculate_count) : NULL;
    char key[512];
    enum status status = ST_OK;

    if (raw->models)
        status =
            sweep_set_models(s, (const char *const *)raw->models, raw->models_count,
                             key_name(key, sizeof key, path, "models"), err);
    if (status == ST_OK && threads)
        status = sweep_set_threads(s, threads, topo,
                                   key_name(key, sizeof key, path, "threads"), err);
    if (status == ST_OK && threads_prefill)
        status = sweep_set_threads_prefill(
            s, threads_prefill, topo,
            key_name(key, sizeof key, path, "threads_prefill"), err);
    if (status == ST_OK && ctx)
        status = setting_parse_list(
            SETTING_ctx, ctx, key_name(key, sizeof key, path, "ctx"), &s->ctx, err);
    if (status == ST_OK && prefill)
        status = setting_parse_list(SETTING_prefill, prefill,
                                    key_name(key, sizeof key, path, "prefill"),
                                    &s->prefill, err);
    if (status == ST_OK && placement)
        status = sweep_set_placements(
            s, placement, key_name(key, sizeof key, path, "placement"), err);
    if (status == ST_OK && weights)
        status = sweep_set_residencies(s, weights,
                                       key_name(key, sizeof key, path, "weights"), err);
    if (status == ST_OK && kv_type)
        status = sweep_set_kv_types(s, kv_type,
                                    key_name(key, sizeof key, path, "kv_type"), err);
    if (status == ST_OK && texts)
        status = sweep_set_texts(s, texts, key_name(key, sizeof key, path, "speculate"),
                                 err);
    free(texts);
    free(threads);
    free(threads_prefill);
    free(ctx);
    free(prefill);
    free(placement);
    free(weights);
    free(kv_type);
    return status;
}

static enum status set_int(int *out, const char *text, enum setting_id id,
                           const char *path, const char *key, struct err *err)
{
    char what[512];

    return text ? setting_parse_int(id, text, key_name(what, sizeof what, path, key),
                                    out, err)
                : ST_OK;
}

static enum status set_real(double *out, const char *text, enum setting_id id,
                            const char *path, const char *key, struct err *err)
{
    char what[512];

    return text ? setting_parse_real(id, text, key_name(what, sizeof what, path, key),
                                     out, err)
                : ST_OK;
}

/* A key with two words: *out is whether it is the second. */
static enum status set_choice(bool *out, const char *text, const char *no,
                              const char *yes, const char *path, const char *key,
                              struct err *err)
{
    if (!text)
        return ST_OK;
    if (strcasecmp(text, no) && strcasecmp(text, yes))
        return err_set(err, ST_USAGE, "%s: %s: '%s' is neither %s nor %s", path, key,
                       text, no, yes);
    *out = !strcasecmp(text, yes);
    return ST_OK;
}

static enum status apply_scalars(struct sweep_settings *s, const struct raw *raw,
                                 const char *path, struct err *err)
{
    enum status status = ST_OK;
    char what[512];

    if (raw->mem && parse_bytes(raw->mem, key_name(what, sizeof what, path, "mem"),
                                &s->mem_limit, err))
        return ST_USAGE;
    if (raw->seed &&
        parse_u64(raw->seed, key_name(what, sizeof what, path, "seed"), &s->seed, err))
        return ST_USAGE;
    if (raw->tuned)
        status = sweep_set_tuned(s, raw->tuned,
                                 key_name(what, sizeof what, path, "tuned"), err);
    if (status == ST_OK && raw->quality)
        status = sweep_set_quality(s, raw->quality,
                                   key_name(what, sizeof what, path, "quality"), err);
    if (status)
        return status;
    if (set_int(&s->n_tokens, raw->tokens, SETTING_tokens, path, "tokens", err) ||
        set_int(&s->n_passes, raw->passes, SETTING_passes, path, "passes", err) ||
        set_int(&s->n_batch, raw->batch, SETTING_batch, path, "batch", err) ||
        set_int(&s->n_repeats, raw->repeats, SETTING_repeats, path, "repeats", err) ||
        set_real(&s->budget_s, raw->budget, SETTING_budget, path, "budget", err) ||
        set_real(&s->load_budget_s, raw->timeout, SETTING_timeout, path, "timeout",
                 err) ||
        set_choice(&s->keep_models, raw->keep_models, "false", "true", path,
                   "keep_models", err) ||
        set_choice(&s->ctx_prefill, raw->ctx_fill, "synthetic", "prefill", path,
                   "ctx_fill", err))
        return ST_USAGE;
    return ST_OK;
}

enum status sweep_config_load(struct sweep_settings *s, const char *name,
                              const struct topology *topo, struct err *err)
{
    char buf[8192];
    const char *path = textfile_config(buf, sizeof buf, "sweeps", name);
    void *data = NULL;
    enum status status;

    if (access(path, R_OK))
        return err_set_errno(err, ST_IO,
                             "cannot open the configuration %s; name a YAML file, or "
                             "one in configs/sweeps such as quick",
                             path);
    status = yaml_load_file(path, &schema, &data, err);
    if (status)
        return status;
    status = apply_lists(s, data, path, topo, err);
    if (status == ST_OK)
        status = apply_scalars(s, data, path, err);
    yaml_free_data(&schema, data);
    return status;
}
