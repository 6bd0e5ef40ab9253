/* SPDX-License-Identifier: MIT
 *
 * turn_wire.c - what both sides of a turn tell each other, as JSON
 */
#include "harness/point/turn.h"

#include <stdio.h>
#include <string.h>

#include "engine/engine.h"

int turn_n_threads(const struct turn_open *o)
{
    int most = 1;

    for (int i = 0; i < o->n_steps; i++)
        if (o->step[i].n_threads > most)
            most = o->step[i].n_threads;
    return most;
}

int turn_n_ctx(const struct turn_open *o)
{
    int most = 1;

    for (int i = 0; i < o->n_steps; i++) {
        const struct turn_step *s = &o->step[i];
        const int n = s->kind == TURN_DECODE ? s->n + 1 + TURN_DECODE_SPAN : s->n;

        if (n > most)
            most = n;
    }
    return most + 1;
}

json_t *turn_open_json(const struct turn_open *o)
{
    json_t *cpus = json_array(), *steps = json_array();

    for (int i = 0; i < o->n_cpus; i++)
        json_array_append_new(cpus, json_integer(o->cpus[i]));
    for (int i = 0; i < o->n_steps; i++) {
        const struct turn_step *s = &o->step[i];

        json_array_append_new(
            steps,
            json_pack("[i, i, i, s]", (int)s->kind, s->n_threads, s->n,
                      s->kind == TURN_KERNEL ? kern_format_info(s->format)->name : ""));
    }
    return json_pack(
        "{s:s, s:s, s:s*, s:i, s:i, s:i, s:o, s:I, s:I, s:I, s:f, s:i, s:o}", "model",
        o->model.text, "path", o->model.path, "quant", modelref_quant(&o->model),
        "residency", (int)o->residency, "kv_type", (int)o->kv_type, "n_batch",
        o->n_batch, "cpus", cpus, "memory_bytes", (json_int_t)o->memory_bytes,
        "isa_disabled", (json_int_t)o->isa_disabled, "seed", (json_int_t)o->seed,
        "slower", o->slower, "n_loads", o->n_loads, "steps", steps);
}

static enum status read_steps(struct turn_open *o, const json_t *steps, struct err *err)
{
    if (json_array_size(steps) < 1 || json_array_size(steps) > TURN_MAX_STEPS)
        return err_set(err, ST_USAGE, "a turn of %zu steps: 1 to %d are possible",
                       json_array_size(steps), TURN_MAX_STEPS);
    o->n_steps = (int)json_array_size(steps);
    for (int i = 0; i < o->n_steps; i++) {
        struct turn_step *s = &o->step[i];
        const char *format;
        int kind;

        if (json_unpack(json_array_get(steps, (size_t)i), "[i, i, i, s]", &kind,
                        &s->n_threads, &s->n, &format) ||
            kind < TURN_DECODE || kind > TURN_KERNEL || s->n_threads < 1 ||
            s->n_threads > TOPO_MAX_CPUS || s->n < (kind == TURN_PREFILL) ||
            s->n > 1 << 24)
            return err_set(err, ST_USAGE, "step %d of a turn is out of range", i);
        s->kind = kind;
        s->format = kern_format_by_name(format);
        if (kind == TURN_KERNEL && s->format == KERN_N_FMT)
            return err_set(err, ST_USAGE, "this program knows no format %.20s", format);
    }
    return ST_OK;
}

static enum status read_cpus(struct turn_open *o, const json_t *cpus, struct err *err)
{
    const size_t n = json_array_size(cpus);

    if (n && n != (size_t)turn_n_threads(o))
        return err_set(err, ST_USAGE, "%zu CPUs for the %d threads of a turn", n,
                       turn_n_threads(o));
    o->n_cpus = (int)n;
    for (size_t i = 0; i < n; i++)
        o->cpus[i] = (int)json_integer_value(json_array_get(cpus, i));
    return ST_OK;
}

enum status turn_open_from_json(struct turn_open *o, const json_t *object,
                                struct err *err)
{
    struct turn_open out = {0};
    json_int_t memory, isa, seed;
    const char *model, *path, *quant = NULL;
    json_t *cpus, *steps;
    json_error_t why;
    int residency, kv;

    if (json_unpack_ex(
            (json_t *)(uintptr_t)object, &why, 0,
            "{s:s, s:s, s?s, s:i, s:i, s:i, s:o, s:I, s:I, s:I, s:F, s:i, s:o}",
            "model", &model, "path", &path, "quant", &quant, "residency", &residency,
            "kv_type", &kv, "n_batch", &out.n_batch, "cpus", &cpus, "memory_bytes",
            &memory, "isa_disabled", &isa, "seed", &seed, "slower", &out.slower,
            "n_loads", &out.n_loads, "steps", &steps))
        return err_set(err, ST_USAGE, "what to open is not as expected: %s", why.text);
    if (residency < WEIGHTS_AUTO || residency > WEIGHTS_PACKED || kv < 0 ||
        kv >= KERN_N_KV || out.n_batch < 1 || !(out.slower >= 0 && out.slower < 1) ||
        out.n_loads < 1 || out.n_loads > TURN_MAX_LOADS)
        return err_set(err, ST_USAGE, "what to open holds a value out of range");
    snprintf(out.model.text, sizeof out.model.text, "%s", model);
    snprintf(out.model.path, sizeof out.model.path, "%s", path);
    out.model.at_load = quant != NULL;
    if (quant && mix_parse(&out.model.mix, quant, err))
        return ST_USAGE;
    out.residency = residency;
    out.kv_type = (enum kern_kv)kv;
    out.memory_bytes = (uint64_t)memory;
    out.isa_disabled = (uint32_t)isa;
    out.seed = (uint64_t)seed;
    if (read_steps(&out, steps, err) || read_cpus(&out, cpus, err))
        return ST_USAGE;
    *o = out;
    return ST_OK;
}

json_t *turn_ready_json(const struct turn_ready *r)
{
    json_t *loads = json_array();

    for (int i = 0; i < r->n_loads; i++)
        json_array_append_new(loads, json_real(r->load_s[i]));
    return json_pack("{s:o, s:s, s:s, s:s, s:I}", "load_s", loads, "quant", r->quant,
                     "isa", r->isa, "residency", r->residency, "weight_bytes",
                     (json_int_t)r->weight_bytes);
}

enum status turn_ready_from_json(struct turn_ready *r, const json_t *object,
                                 struct err *err)
{
    struct turn_ready out = {0};
    const char *quant, *isa, *residency;
    json_int_t weight_bytes;
    json_t *loads;

    if (json_unpack((json_t *)(uintptr_t)object, "{s:o, s:s, s:s, s:s, s:I}", "load_s",
                    &loads, "quant", &quant, "isa", &isa, "residency", &residency,
                    "weight_bytes", &weight_bytes) ||
        json_array_size(loads) < 1 || json_array_size(loads) > TURN_MAX_LOADS)
        return err_set(err, ST_USAGE, "what was opened is not as expected");
    out.n_loads = (int)json_array_size(loads);
    for (int i = 0; i < out.n_loads; i++) {
        out.load_s[i] = json_number_value(json_array_get(loads, (size_t)i));
        if (!(out.load_s[i] > 0))
            return err_set(err, ST_USAGE, "a load of no time at all");
    }
    out.weight_bytes = (uint64_t)weight_bytes;
    snprintf(out.quant, sizeof out.quant, "%s", quant);
    snprintf(out.isa, sizeof out.isa, "%s", isa);
    snprintf(out.residency, sizeof out.residency, "%s", residency);
    *r = out;
    return ST_OK;
}
