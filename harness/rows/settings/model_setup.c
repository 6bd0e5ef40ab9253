/* SPDX-License-Identifier: MIT
 *
 * model_setup.c - settings of a model from text and JSON, and as the engine takes them
 */
#include "harness/rows/settings/model_setup.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/json_read.h"
#include "harness/base/format.h"
#include "harness/machine/memory_reserve.h"

#define SETTING                  SETTING_PLACE
#define SETTING_PLACE_MODEL(...) SETTING_AT(struct model_setup, __VA_ARGS__)
#define SETTING_PLACE_POINT(...)
#define SETTING_PLACE_SWEEP(...)
#define SETTING_PLACE_NONE(...)
static const struct setting_place places[SETTING_N] = {
#include "harness/rows/settings/settings.def"
};

void *model_setup_field(struct model_setup *s, enum setting_id id, size_t *size)
{
    if (size)
        *size = places[id].size;
    return places[id].key ? (char *)s + places[id].offset : NULL;
}

void model_setup_init(struct model_setup *s)
{
    memset(s, 0, sizeof *s);
    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (places[id].key)
            setting_default(id, model_setup_field(s, id, NULL), places[id].size);
}

int model_setup_threads(const struct model_setup *s)
{
    return s->n_threads > s->n_threads_prefill ? s->n_threads : s->n_threads_prefill;
}

double model_setup_quota(const struct model_setup *s)
{
    return s->quota_hundredths / 100.0;
}

enum status model_setup_set(struct model_setup *s, enum setting_id id, const char *text,
                            const char *what, struct err *err)
{
    const enum status st = setting_parse(id, text, what, model_setup_field(s, id, NULL),
                                         places[id].size, err);

    if (st == ST_OK)
        s->given |= UINT64_C(1) << id;
    return st;
}

static enum status take_option(void *dst, int id, const char *text, const char *what,
                               struct err *err)
{
    return model_setup_set(dst, (enum setting_id)id, text, what, err);
}

struct opt model_setup_option(enum setting_id id, struct model_setup *s)
{
    return setting_option(id, take_option, s);
}

struct slm_params model_setup_params(const struct model_setup *s, uint64_t memory_bytes)
{
    struct slm_params p = slm_params_default();

    if (s->residency != WEIGHTS_MEMORY) {
        p.path = s->model.path;
        p.quant = modelref_quant(&s->model);
        p.requant = s->model.requant;
        p.residency = s->residency;
    }
    p.memory_bytes = memory_bytes;
    p.spare_bytes = RESERVE_SPARE_BYTES;
    p.n_threads = s->n_threads;
    p.n_threads_prefill = s->n_threads_prefill;
    p.cpus = s->explicit_cpus ? s->cpus : NULL;
    p.n_batch = s->n_batch;
    p.kv_type = s->kv_type;
    p.kv_window = s->kv_window;
    p.prefill_sums = s->prefill_sums;
    return p;
}

const char *model_setup_text(const struct model_setup *s, char *buf, size_t cap)
{
    char window[40] = "";

    if (s->kv_window)
        snprintf(window, sizeof window, " of the last %d positions", s->kv_window);
    snprintf(buf, cap, "weights %s, KV cache %s%s, placement %s, batch %d%s",
             weights_residency_name(s->residency), choices_kv.name((int)s->kv_type),
             window, placement_name(s->placement), s->n_batch,
             s->prefill_sums == SLM_SUMS_INT8 ? ", int8 sums in prefill" : "");
    return buf;
}

/* ---- to a worker, and back ------------------------------------------------------- */

_Static_assert(sizeof(enum placement) == sizeof(int), "an enumeration is no int");
_Static_assert(sizeof((struct model_setup *)NULL)->cpus / sizeof(int) >=
                   SETTING_MAX(threads),
               "a model has fewer CPUs than threads");

static const char *key_of(enum setting_id id, enum model_setup_keys keys)
{
    return !places[id].key              ? NULL
           : keys == MODEL_SETUP_OPENED ? setting_row(id)->opened
                                        : places[id].key;
}

static bool is_optional(enum setting_id id, enum model_setup_keys keys)
{
    return keys == MODEL_SETUP_OPENED && setting_row(id)->opened_if_set;
}

json_t *model_setup_json(const struct model_setup *s, enum model_setup_keys keys)
{
    json_t *cpus = json_array(), *object;

    for (int i = 0; s->explicit_cpus && i < model_setup_threads(s); i++)
        json_array_append_new(cpus, json_integer(s->cpus[i]));
    object = json_pack("{s:s, s:s, s:s*, s:o}", "model", s->model.text, "path",
                       s->model.path, "quant", modelref_quant(&s->model), "cpus", cpus);
    for (enum setting_id id = 0; object && id < SETTING_N; id++) {
        const void *field = (const char *)s + places[id].offset;

        if (key_of(id, keys) &&
            (!is_optional(id, keys) || !setting_is_default(id, field)))
            json_object_set_new(object, key_of(id, keys), setting_json(id, field));
    }
    return object;
}

json_t *model_setup_optional_keys(void)
{
    json_t *list = json_array();

    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (is_optional(id, MODEL_SETUP_OPENED))
            json_array_append_new(list, json_string(setting_row(id)->opened));
    return list;
}

static bool has_text(const json_t *list, const char *text)
{
    const char *each;

    for (size_t i = 0; i < json_array_size(list); i++)
        if ((each = json_text(json_array_get(list, i))) && !strcmp(each, text))
            return true;
    return false;
}

const char *model_setup_unknown_key(const struct model_setup *s, const json_t *known)
{
    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (is_optional(id, MODEL_SETUP_OPENED) &&
            !setting_is_default(id, (const char *)s + places[id].offset) &&
            !has_text(known, setting_row(id)->opened))
            return setting_row(id)->opened;
    return NULL;
}

static const struct setting_member members[] = {
    SETTING_CHARS("model", struct model_setup, model.text),
    SETTING_CHARS("path", struct model_setup, model.path),
};

enum status model_setup_from_json(struct model_setup *s, const json_t *object,
                                  enum model_setup_keys keys, struct err *err)
{
    const json_t *quant = json_object_get(object, "quant");
    enum status st = setting_read_members(
        s, members, sizeof members / sizeof members[0], object, err);

    for (enum setting_id id = 0; id < SETTING_N && st == ST_OK; id++) {
        const char *key = key_of(id, keys);

        if (key && (!is_optional(id, keys) || json_object_get(object, key)))
            st =
                setting_from_json(id, json_object_get(object, key), key,
                                  model_setup_field(s, id, NULL), places[id].size, err);
    }
    s->model.at_load = json_text(quant) != NULL;
    if (st == ST_OK && s->model.at_load)
        st = mix_parse(&s->model.mix, json_text(quant), err);
    return st;
}

enum status model_setup_read_cpus(struct model_setup *s, const json_t *object,
                                  struct err *err)
{
    const json_t *cpus = json_object_get(object, "cpus");
    const size_t n = s->explicit_cpus ? (size_t)model_setup_threads(s) : 0;

    if (n && json_array_size(cpus) != n)
        return err_set(err, ST_USAGE, "%zu CPU%s for %zu thread%s",
                       json_array_size(cpus), plural(json_array_size(cpus), "s"), n,
                       plural(n, "s"));
    for (size_t i = 0; i < n; i++)
        if (setting_json_int(SETTING_cpu, json_array_get(cpus, i), "a CPU of the model",
                             &s->cpus[i], err))
            return ST_USAGE;
    return ST_OK;
}
