/* SPDX-License-Identifier: MIT
 *
 * worker_open.c - what a gate and a worker send each other, as JSON
 */
#include "harness/measure/worker/worker_open.h"

#include "harness/base/format.h"
#include "harness/rows/settings/setting.h"

int worker_n_threads(const struct worker_open *o)
{
    int most = 1;

    for (int i = 0; i < o->n_steps; i++)
        if (o->step[i].n_threads > most)
            most = o->step[i].n_threads;
    return most;
}

int worker_n_ctx(const struct worker_open *o)
{
    int most = 1;

    for (int i = 0; i < o->n_steps; i++) {
        const struct worker_step *s = &o->step[i];
        const int n = s->kind == WORKER_DECODE ? s->n + 1 + WORKER_DECODE_SPAN : s->n;

        if (n > most)
            most = n;
    }
    return most + 1;
}

json_t *worker_open_json(const struct worker_open *o)
{
    json_t *object = model_setup_json(&o->setup, MODEL_SETUP_OPENED);
    json_t *steps = json_array();

    for (int i = 0; i < o->n_steps; i++) {
        const struct worker_step *s = &o->step[i];

        json_array_append_new(steps, json_pack("[i, i, i, s]", (int)s->kind,
                                               s->n_threads, s->n,
                                               s->kind == WORKER_KERNEL
                                                   ? kern_format_info(s->format)->name
                                                   : ""));
    }
    json_object_set_new(object, "slower", json_real(o->slower));
    json_object_set_new(object, "n_loads", json_integer(o->n_loads));
    json_object_set_new(object, "steps", steps);
    if (o->topo)
        json_object_set_new(object, "cache", topology_cache_json(o->topo));
    return object;
}

/* What n is of a kind of step: an index into it is enum worker_step_kind. */
static const enum setting_id step_size[] = {
    [WORKER_DECODE] = SETTING_ctx,
    [WORKER_PREFILL] = SETTING_prefill,
    [WORKER_KERNEL] = SETTING_ctx, /* not used */
};

_Static_assert(SETTING_MAX(ctx) < INT_MAX - WORKER_DECODE_SPAN - 2 &&
                   SETTING_MAX(prefill) < INT_MAX - 1,
               "the positions of a step do not fit into an int");
static enum status read_step(struct worker_step *s, const json_t *step, struct err *err)
{
    const char *format = json_string_value(json_array_get(step, 3));
    int kind;

    if (json_array_size(step) != 4 || !format)
        return err_set(err, ST_USAGE,
                       "it is not a list of kind, threads, size, format");
    if (setting_json_int_in(json_array_get(step, 0), "kind", WORKER_DECODE,
                            WORKER_KERNEL, &kind, err) ||
        setting_json_int(SETTING_threads, json_array_get(step, 1), "threads",
                         &s->n_threads, err) ||
        setting_json_int(step_size[kind], json_array_get(step, 2), "size", &s->n, err))
        return ST_USAGE;
    s->kind = (enum worker_step_kind)kind;
    s->format = kern_format_by_name(format);
    if (s->kind == WORKER_KERNEL && s->format == KERN_N_FMT)
        return err_set(err, ST_USAGE, "this program knows no format %.20s", format);
    return ST_OK;
}

static enum status read_steps(struct worker_open *o, const json_t *steps,
                              struct err *err)
{
    const size_t n = json_array_size(steps);

    if (n < 1 || n > WORKER_MAX_STEPS)
        return err_set(err, ST_USAGE, "%zu steps: 1 to %d are possible", n,
                       WORKER_MAX_STEPS);
    o->n_steps = (int)n;
    for (size_t i = 0; i < n; i++) {
        struct err why = ERR_INIT;

        if (read_step(&o->step[i], json_array_get(steps, i), &why))
            return err_set(err, ST_USAGE, "step %zu: %s", i, why.msg);
    }
    return ST_OK;
}

enum status worker_open_from_json(struct worker_open *o, const json_t *object,
                                  struct err *err)
{
    const json_t *slower = json_object_get(object, "slower");
    const json_t *cpus = json_object_get(object, "cpus");
    struct worker_open out = {.n_loads = 0};
    struct err why = ERR_INIT;

    model_setup_init(&out.setup);
    if (model_setup_from_json(&out.setup, object, MODEL_SETUP_OPENED, &why) ||
        setting_json_int_in(json_object_get(object, "n_loads"), "n_loads", 1,
                            WORKER_MAX_LOADS, &out.n_loads, &why))
        return err_set(err, ST_USAGE,
                       "the request to open a model is not as expected: %s", why.msg);
    if (out.setup.residency == WEIGHTS_MEMORY)
        return err_set(err, ST_USAGE, "residency: a worker opens a file's weights");
    out.slower = json_number_value(slower);
    if (!json_is_number(slower) || !(out.slower >= 0 && out.slower < 1))
        return err_set(err, ST_USAGE,
                       "the request to open a model has a slowdown outside 0..1");
    if (!json_is_array(cpus))
        return err_set(err, ST_USAGE, "the CPUs of the model are no list");
    if (read_steps(&out, json_object_get(object, "steps"), err))
        return ST_USAGE;
    out.setup.n_threads = worker_n_threads(&out);
    out.setup.explicit_cpus = json_array_size(cpus) > 0;
    if (model_setup_read_cpus(&out.setup, object, err))
        return ST_USAGE;
    *o = out;
    return ST_OK;
}

json_t *worker_ready_json(const struct worker_ready *r)
{
    json_t *loads = json_array();

    for (int i = 0; i < r->n_loads; i++)
        json_array_append_new(loads, json_real(r->load_s[i]));
    return json_pack("{s:o, s:s, s:s, s:s, s:I}", "load_s", loads, "quant", r->quant,
                     "isa", r->isa, "residency", r->residency, "weight_bytes",
                     (json_int_t)r->weight_bytes);
}

enum status worker_ready_from_json(struct worker_ready *r, const json_t *object,
                                   struct err *err)
{
    struct worker_ready out = {0};
    const char *quant, *isa, *residency;
    json_int_t weight_bytes;
    json_t *loads;

    if (json_unpack((json_t *)(uintptr_t)object, "{s:o, s:s, s:s, s:s, s:I}", "load_s",
                    &loads, "quant", &quant, "isa", &isa, "residency", &residency,
                    "weight_bytes", &weight_bytes) ||
        json_array_size(loads) < 1 || json_array_size(loads) > WORKER_MAX_LOADS)
        return err_set(err, ST_USAGE,
                       "the answer about the opened model is not as expected");
    out.n_loads = (int)json_array_size(loads);
    for (int i = 0; i < out.n_loads; i++) {
        out.load_s[i] = json_number_value(json_array_get(loads, (size_t)i));
        if (!(out.load_s[i] > 0))
            return err_set(err, ST_USAGE, "a load time that is not above 0");
    }
    out.weight_bytes = (uint64_t)weight_bytes;
    text_harmless(out.quant, sizeof out.quant, quant);
    text_harmless(out.isa, sizeof out.isa, isa);
    text_harmless(out.residency, sizeof out.residency, residency);
    *r = out;
    return ST_OK;
}
