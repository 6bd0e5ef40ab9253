/* SPDX-License-Identifier: MIT
 *
 * point_settings.c - a point as an identity, as a command line and as JSON
 */
#include "harness/base/format.h"
#include "harness/point/point.h"
#include "harness/point/point_tuned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/parse.h"
#include "harness/base/shellword.h"
#include "harness/model/test_prompt.h"
#include "harness/settings/setting.h"

#define ID_MODEL_MAX 48 /* leaves half of the point column to the settings */

void point_init(struct point *p)
{
    memset(p, 0, sizeof *p);
    p->kind = POINT_DECODE;
    p->n_threads = SETTING_DEFAULT(threads);
    p->placement = PLACEMENT_SPREAD;
    p->n_tokens = SETTING_DEFAULT(tokens);
    p->n_batch = SETTING_DEFAULT(batch);
    p->budget_s = setting_row(SETTING_budget)->value;
    p->load_budget_s = setting_row(SETTING_timeout)->value;
    p->seed = 1;
}

int point_max_threads(const struct point *p)
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
    if (test_prompt_find(text, path, sizeof path, err))
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
        format_cpus(text, sizeof text, p->cpus, point_max_threads(p));
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
        format_cpus(text, sizeof text, p->cpus, point_max_threads(p));
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

    for (int i = 0; p->explicit_cpus && i < point_max_threads(p); i++)
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

#define FIELD(key, form, name, field) \
    SETTING_FIELD(key, form, name, struct point, field)
#define PLAIN(key, form, field) SETTING_PLAIN(key, form, struct point, field)
#define CHOICE(key, least, most, field) \
    SETTING_CHOICE(key, least, most, struct point, field)

static const struct setting_member members[] = {
    CHOICE("kind", POINT_DECODE, POINT_SPECULATE, kind),
    SETTING_CHARS("model", struct point, model.text),
    SETTING_CHARS("path", struct point, model.path),
    CHOICE("residency", WEIGHTS_AUTO, WEIGHTS_MEMORY, residency),
    FIELD("n_threads", INT, threads, n_threads),
    FIELD("n_threads_prefill", INT_OR_0, threads_prefill, n_threads_prefill),
    CHOICE("placement", PLACEMENT_SPREAD, PLACEMENT_NONE, placement),
    PLAIN("explicit_cpus", BOOL, explicit_cpus),
    FIELD("ctx", INT, ctx, ctx),
    PLAIN("ctx_prefill", BOOL, ctx_prefill),
    FIELD("n_prompt", INT_OR_0, prefill, n_prompt),
    FIELD("n_answer", INT_OR_0, answer, n_answer),
    FIELD("n_tokens", INT, tokens, n_tokens),
    FIELD("n_batch", INT, batch, n_batch),
    FIELD("budget_s", REAL, budget, budget_s),
    FIELD("load_budget_s", REAL, timeout, load_budget_s),
    FIELD("mem_limit", SIZE, mem, mem_limit),
    PLAIN("seed", U64, seed),
    FIELD("isa_disabled", U32, isa_disabled, isa_disabled),
    PLAIN("force", BOOL, force),
    PLAIN("profile", BOOL, profile),
    CHOICE("kv_type", 0, KERN_N_KV - 1, kv_type),
    SETTING_CHARS("text", struct point, text),
};

/* Settings are stored as int, and a thread count is an index. */
_Static_assert(sizeof(enum point_kind) == sizeof(int) &&
                   sizeof(enum weights_residency) == sizeof(int) &&
                   sizeof(enum placement) == sizeof(int) &&
                   sizeof(enum kern_kv) == sizeof(int),
               "an enumeration is no int");
_Static_assert(sizeof((struct point *)NULL)->cpus / sizeof(int) >= SETTING_MAX(threads),
               "a point has fewer CPUs than threads");

static enum status read_cpus(struct point *p, const json_t *cpus, struct err *err)
{
    const int n = p->explicit_cpus ? point_max_threads(p) : 0;

    if (n && json_array_size(cpus) != (size_t)n)
        return err_set(err, ST_USAGE,
                       "the point's settings name %zu CPUs for %d threads",
                       json_array_size(cpus), n);
    for (int i = 0; i < n; i++)
        if (setting_json_int(SETTING_cpu, json_array_get(cpus, (size_t)i),
                             "a CPU of the point", &p->cpus[i], err))
            return ST_USAGE;
    return ST_OK;
}

enum status point_from_json(struct point *p, const json_t *object, struct err *err)
{
    const json_t *quant = json_object_get(object, "quant");
    struct err why = ERR_INIT;
    struct point out;

    point_init(&out);
    if (setting_read_members(&out, members, sizeof members / sizeof members[0], object,
                             &why) ||
        point_tuning_from_json(&out.tuning, json_object_get(object, "tuning"), &why) ||
        read_cpus(&out, json_object_get(object, "cpus"), &why))
        return err_set(err, ST_USAGE, "the point's settings are not as expected: %s",
                       why.msg);
    out.model.at_load = json_is_string(quant);
    if (out.model.at_load && mix_parse(&out.model.mix, json_string_value(quant), err))
        return ST_USAGE;
    *p = out;
    return ST_OK;
}
