/* SPDX-License-Identifier: MIT
 *
 * point_settings.c - a point as an identity, as a command line and as JSON
 */
#include "harness/base/format.h"
#include "harness/point/point.h"
#include "harness/point/point_tuned.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "harness/base/parse.h"
#include "harness/base/shellword.h"
#include "harness/model/script.h"

#define ID_MODEL_MAX 48 /* leaves half of the point column to the settings */

void point_init(struct point *p)
{
    memset(p, 0, sizeof *p);
    p->kind = POINT_DECODE;
    p->n_threads = 1;
    p->placement = PLACEMENT_SPREAD;
    p->n_tokens = 64;
    p->n_batch = SLM_DEFAULT_BATCH;
    p->budget_s = 10;
    p->load_budget_s = 120;
    p->seed = 1;
}

int point_n_members(const struct point *p)
{
    return p->n_threads > p->n_threads_prefill ? p->n_threads : p->n_threads_prefill;
}

int point_depth(const struct point *p)
{
    if (p->kind == POINT_PREFILL)
        return 0;
    return p->kind == POINT_SPECULATE && p->n_prompt > p->ctx ? p->n_prompt : p->ctx;
}

const char *point_kind_name(enum point_kind kind)
{
    return kind == POINT_PREFILL     ? "prefill"
           : kind == POINT_SPECULATE ? "speculate"
                                     : "decode";
}

enum status point_set_text(struct point *p, const char *text, struct err *err)
{
    char path[4096];

    if (strlen(text) >= sizeof p->text)
        return err_set(err, ST_USAGE, "%.60s...: too long a name for a text", text);
    if (script_find(text, path, sizeof path, err))
        return ST_USAGE;
    p->kind = POINT_SPECULATE;
    snprintf(p->text, sizeof p->text, "%s", text);
    return ST_OK;
}

void point_text_name(const struct point *p, char *buf, size_t cap)
{
    const char *slash = strrchr(p->text, '/');
    char *dot;

    snprintf(buf, cap, "%s", slash ? slash + 1 : p->text);
    dot = strrchr(buf, '.');
    if (dot && dot > buf)
        *dot = '\0';
}

/* FNV-1a: keeps identities apart where a long name has to be cut. */
static uint32_t text_hash(const char *text)
{
    uint32_t h = 2166136261u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

static void id_model(const struct point *p, char *buf, size_t cap)
{
    char name[512];

    if (p->model.synthetic || p->model.at_load)
        snprintf(name, sizeof name, "%s:%s", p->model.name,
                 quantmix_name(p->model.mix));
    else
        snprintf(name, sizeof name, "%s", p->model.name);
    if (strlen(name) <= ID_MODEL_MAX)
        snprintf(buf, cap, "%.*s", ID_MODEL_MAX, name);
    else
        snprintf(buf, cap, "%.*s~%08x", ID_MODEL_MAX - 9, name,
                 text_hash(p->model.path));
}

/* A text of our own by its name, one of the user's by a part of it and a hash. */
static void id_text(const struct point *p, char *buf, size_t cap)
{
    const char *slash = strrchr(p->text, '/');
    const char *name = slash ? slash + 1 : p->text;

    text_append(buf, cap, "text-%.12s", name);
    if (slash || strlen(name) > 12)
        text_append(buf, cap, "~%08x", text_hash(p->text));
}

void point_id(const struct point *p, char *buf, size_t cap)
{
    char model[64], text[8 * TOPO_MAX_CPUS];

    id_model(p, model, sizeof model);
    snprintf(buf, cap, "%s", model);
    if (p->residency != WEIGHTS_AUTO)
        text_append(buf, cap, "/%s", weights_residency_name(p->residency));
    text_append(buf, cap, "/");
    if (p->kind == POINT_PREFILL)
        text_append(buf, cap, "prefill%d", p->n_prompt);
    else if (p->kind == POINT_SPECULATE)
        id_text(p, buf, cap);
    else
        text_append(buf, cap, "decode");
    text_append(buf, cap, "/t%d", p->n_threads);
    if (p->n_threads_prefill)
        text_append(buf, cap, "p%d", p->n_threads_prefill);
    if (p->explicit_cpus) {
        format_cpus(text, sizeof text, p->cpus, point_n_members(p));
        if (strlen(text) > 12)
            text_append(buf, cap, "/cpus~%08x", text_hash(text));
        else
            text_append(buf, cap, "/cpus%s", text);
    } else {
        text_append(buf, cap, "/%s", placement_name(p->placement));
    }
    if (p->kind == POINT_DECODE || (p->kind == POINT_SPECULATE && p->ctx))
        text_append(buf, cap, "/ctx%d%s", p->ctx, p->ctx_prefill ? "p" : "");
    if (p->kv_type != KERN_KV_f16)
        text_append(buf, cap, "/kv-%s", kv_type_name(p->kv_type));
    if (p->mem_limit) {
        format_size(text, sizeof text, p->mem_limit);
        text_append(buf, cap, "/%s", text);
    }
    if (*p->tuned)
        text_append(buf, cap, "/tuned");
}

static void append_isa(char *buf, size_t cap, uint32_t disabled)
{
    const char *sep = " --isa-disable=";

    for (int i = 1; i < KERN_N_ISA; i++) {
        if (disabled >> i & 1) {
            text_append(buf, cap, "%s%s", sep, isa_name(i));
            sep = ",";
        }
    }
}

void point_command(const struct point *p, char *buf, size_t cap)
{
    char text[8 * TOPO_MAX_CPUS];

    snprintf(buf, cap, "bench decode -m");
    shell_word_append(buf, cap, p->model.text);
    text_append(buf, cap, " -t %d", p->n_threads);
    if (p->n_threads_prefill)
        text_append(buf, cap, " --threads-prefill %d", p->n_threads_prefill);
    if (p->explicit_cpus) {
        format_cpus(text, sizeof text, p->cpus, point_n_members(p));
        text_append(buf, cap, " --cpus %s", text);
    } else {
        text_append(buf, cap, " --placement %s", placement_name(p->placement));
    }
    if (p->kind == POINT_PREFILL)
        text_append(buf, cap, " --prefill %d", p->n_prompt);
    else
        text_append(buf, cap, " --ctx %d%s", p->ctx,
                    p->ctx_prefill ? " --ctx-prefill" : "");
    if (p->kind == POINT_SPECULATE) {
        text_append(buf, cap, " --speculate");
        shell_word_append(buf, cap, p->text);
    }
    text_append(buf, cap, " -n %d --batch %d", p->n_tokens, p->n_batch);
    if (p->mem_limit)
        format_size(text, sizeof text, p->mem_limit);
    text_append(buf, cap, " --mem %s --budget %g --seed %llu",
                p->mem_limit ? text : "none", p->budget_s, (unsigned long long)p->seed);
    if (p->residency != WEIGHTS_AUTO)
        text_append(buf, cap, " --weights %s", weights_residency_name(p->residency));
    if (p->kv_type != KERN_KV_f16)
        text_append(buf, cap, " --kv-type %s", kv_type_name(p->kv_type));
    if (p->force)
        text_append(buf, cap, " --force");
    if (p->profile)
        text_append(buf, cap, " --profile");
    if (*p->tuned) {
        text_append(buf, cap, " --tuned");
        shell_word_append(buf, cap, p->tuned);
    }
    append_isa(buf, cap, p->isa_disabled);
}

json_t *point_json(const struct point *p)
{
    json_t *cpus = json_array();

    for (int i = 0; p->explicit_cpus && i < point_n_members(p); i++)
        json_array_append_new(cpus, json_integer(p->cpus[i]));
    return json_pack(
        "{s:i, s:s, s:s, s:i, s:i, s:i, s:i, s:o, s:b, s:i, s:b, s:i, s:i, s:i,"
        " s:f, s:f, s:I, s:I, s:I, s:b, s:b, s:i, s:o, s:i, s:s, s:s?}",
        "kind", (int)p->kind, "model", p->model.text, "path", p->model.path,
        "residency", (int)p->residency, "n_threads", p->n_threads, "n_threads_prefill",
        p->n_threads_prefill, "placement", (int)p->placement, "cpus", cpus,
        "explicit_cpus", (int)p->explicit_cpus, "ctx", p->ctx, "ctx_prefill",
        (int)p->ctx_prefill, "n_prompt", p->n_prompt, "n_tokens", p->n_tokens,
        "n_batch", p->n_batch, "budget_s", p->budget_s, "load_budget_s",
        p->load_budget_s, "mem_limit", (json_int_t)p->mem_limit, "seed",
        (json_int_t)p->seed, "isa_disabled", (json_int_t)p->isa_disabled, "force",
        (int)p->force, "profile", (int)p->profile, "kv_type", (int)p->kv_type, "tuning",
        point_tuning_json(&p->tuning), "n_answer", p->n_answer, "text", p->text,
        "quant", modelref_quant(&p->model));
}

static enum status check_ranges(const struct point *p, int kind, int placement,
                                int residency, int kv_type, size_t n_cpus,
                                struct err *err)
{
    if (kind < POINT_DECODE || kind > POINT_SPECULATE || placement < PLACEMENT_SPREAD ||
        placement > PLACEMENT_NONE || residency < WEIGHTS_AUTO ||
        residency > WEIGHTS_MEMORY || kv_type < 0 || kv_type >= KERN_N_KV ||
        p->n_threads < 1 || p->n_threads > TOPO_MAX_CPUS || p->n_threads_prefill < 0 ||
        p->n_threads_prefill > TOPO_MAX_CPUS || p->ctx < 0 || p->n_prompt < 0 ||
        p->n_answer < 0 || p->n_answer > INT_MAX / 4 || p->n_prompt > INT_MAX / 4 ||
        p->n_tokens < 1 || p->n_batch < 1 || !(p->budget_s > 0) ||
        !(p->load_budget_s > 0))
        return err_set(err, ST_USAGE, "the point's settings hold a value out of range");
    if (p->explicit_cpus && n_cpus != (size_t)point_n_members(p))
        return err_set(err, ST_USAGE,
                       "the point's settings name %zu CPUs for %d threads", n_cpus,
                       point_n_members(p));
    return ST_OK;
}

enum status point_from_json(struct point *p, const json_t *object, struct err *err)
{
    struct point out;
    const char *quant = json_string_value(json_object_get(object, "quant"));
    const char *model, *path, *text;
    json_t *cpus;
    json_error_t why;
    json_int_t mem_limit, seed, isa_disabled;
    int kind, placement, residency, explicit_cpus, ctx_prefill, force, profile, kv_type;

    point_init(&out);
    if (json_unpack_ex(
            (json_t *)(uintptr_t)object, &why, 0,
            "{s:i, s:s, s:s, s:i, s:i, s:i, s:i, s:o, s:b, s:i, s:b, s:i, s:i, s:i,"
            " s:F, s:F, s:I, s:I, s:I, s:b, s:b, s:i, s:i, s:s}",
            "kind", &kind, "model", &model, "path", &path, "residency", &residency,
            "n_threads", &out.n_threads, "n_threads_prefill", &out.n_threads_prefill,
            "placement", &placement, "cpus", &cpus, "explicit_cpus", &explicit_cpus,
            "ctx", &out.ctx, "ctx_prefill", &ctx_prefill, "n_prompt", &out.n_prompt,
            "n_tokens", &out.n_tokens, "n_batch", &out.n_batch, "budget_s",
            &out.budget_s, "load_budget_s", &out.load_budget_s, "mem_limit", &mem_limit,
            "seed", &seed, "isa_disabled", &isa_disabled, "force", &force, "profile",
            &profile, "kv_type", &kv_type, "n_answer", &out.n_answer, "text", &text))
        return err_set(err, ST_USAGE, "the point's settings are not as expected: %s",
                       why.text);
    if (point_tuning_from_json(&out.tuning, json_object_get(object, "tuning"), err))
        return ST_USAGE;
    out.explicit_cpus = explicit_cpus;
    if (check_ranges(&out, kind, placement, residency, kv_type, json_array_size(cpus),
                     err))
        return ST_USAGE;
    out.kv_type = (enum kern_kv)kv_type;
    out.kind = kind;
    out.placement = placement;
    out.residency = residency;
    out.ctx_prefill = ctx_prefill;
    out.force = force;
    out.profile = profile;
    out.mem_limit = (uint64_t)mem_limit;
    out.seed = (uint64_t)seed;
    out.isa_disabled = (uint32_t)isa_disabled;
    for (int i = 0; out.explicit_cpus && i < point_n_members(&out); i++)
        out.cpus[i] = (int)json_integer_value(json_array_get(cpus, (size_t)i));
    snprintf(out.model.text, sizeof out.model.text, "%s", model);
    snprintf(out.model.path, sizeof out.model.path, "%s", path);
    snprintf(out.text, sizeof out.text, "%s", text);
    if (quant && mix_parse(&out.model.mix, quant, err))
        return ST_USAGE;
    out.model.at_load = quant != NULL;
    *p = out;
    return ST_OK;
}
