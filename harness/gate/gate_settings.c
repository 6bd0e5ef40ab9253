/* SPDX-License-Identifier: MIT
 *
 * gate_settings.c - keys and their parsers, a YAML file, options on top
 */
#include "harness/gate/gate_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/datafile.h"
#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/base/yamlfile.h"
#include "harness/gate/gate_options.h"
#include "harness/settings/setting.h"
#include "harness/sweep/sweep.h"

#define MAX_LIST 64

/* ---- one key ----------------------------------------------------------------------
 */

static enum status set_bool(bool *out, const char *text, const char *what,
                            struct err *err)
{
    if (strcasecmp(text, "true") && strcasecmp(text, "false"))
        return err_set(err, ST_USAGE, "%s: '%s' is neither true nor false", what, text);
    *out = !strcasecmp(text, "true");
    return ST_OK;
}

static enum status set_int(int *out, const char *text, const char *what, int min,
                           int max, struct err *err)
{
    long long v;

    if (parse_integer(text, what, min, max, &v, err))
        return ST_USAGE;
    *out = (int)v;
    return ST_OK;
}

static enum status set_threads(struct gate_settings *s, const char *text,
                               const char *what, const struct topology *topo,
                               struct err *err)
{
    char own[16];
    enum status st;

    snprintf(own, sizeof own, "%d", topo->threads_default);
    st = setting_parse_list(SETTING_threads, strcmp(text, "auto") ? text : own, what,
                            &s->threads, err);
    if (st == ST_OK && !s->threads.n)
        st = err_set(err, ST_USAGE, "%s: at least one thread is needed", what);
    return st;
}

static enum status set_kernels(struct gate_settings *s, const char *text,
                               const char *what, struct err *err)
{
    enum kern_format list[GATE_MAX_METRICS];
    size_t n = 0;

    for (const char *at = text; strcmp(text, "none") && *at;) {
        const size_t len = strcspn(at, ",");
        char name[32];

        snprintf(name, sizeof name, "%.*s", (int)(len < 31 ? len : 31), at);
        if (n == GATE_MAX_METRICS || kern_format_by_name(name) == KERN_N_FMT)
            return err_set(err, ST_USAGE,
                           "%s: '%s' is no weight format; `bench kernels --list` knows "
                           "them",
                           what, name);
        list[n++] = kern_format_by_name(name);
        at += len;
        at += *at == ',';
    }
    memcpy(s->kernel, list, n * sizeof *list);
    s->n_kernels = n;
    return ST_OK;
}

static enum status set_weights(struct gate_settings *s, const char *text,
                               const char *what, struct err *err)
{
    enum weights_residency r;

    if (choice_parse(&choices_residency, text, what, &r, err))
        return ST_USAGE;
    if (r != WEIGHTS_MMAP && r != WEIGHTS_PACKED)
        return err_set(err, ST_USAGE, "%s: a gate's weights are mmap or packed", what);
    s->residency = r;
    return ST_OK;
}

enum status gate_exit_codes_parse(const char *text, const char *what, int out[3],
                                  struct err *err)
{
    int code[3], end = 0;

    if (sscanf(text, "%d,%d,%d%n", &code[0], &code[1], &code[2], &end) != 3 ||
        text[end])
        return err_set(err, ST_USAGE,
                       "%s: '%s' is not three numbers; pass, fail, inconclusive are "
                       "0,1,4 unless said otherwise",
                       what, text);
    for (int i = 0; i < 3; i++)
        if (code[i] < 0 || code[i] > 125)
            return err_set(err, ST_USAGE, "%s: %d is outside 0..125", what, code[i]);
    memcpy(out, code, sizeof code);
    return ST_OK;
}

static enum status set_text(struct gate_settings *s, const char *text, const char *what,
                            struct err *err)
{
    if (strlen(text) >= sizeof s->model_text)
        return err_set(err, ST_USAGE, "%s: %.40s... is too long a name", what, text);
    snprintf(s->model_text, sizeof s->model_text, "%s", text);
    return ST_OK;
}

enum status gate_settings_set(struct gate_settings *s, const char *key,
                              const char *text, const struct topology *topo,
                              const char *what, struct err *err)
{
#define KEY(name) (!strcmp(key, name))
    if (KEY("model"))
        return set_text(s, text, what, err);
    if (KEY("threads"))
        return set_threads(s, text, what, topo, err);
    if (KEY("prefill"))
        return setting_parse_list(SETTING_prefill, text, what, &s->prefill, err);
    if (KEY("ctx"))
        return setting_parse_list(SETTING_ctx, text, what, &s->ctx, err);
    if (KEY("kernels"))
        return set_kernels(s, text, what, err);
    if (KEY("weights"))
        return set_weights(s, text, what, err);
    if (KEY("kv_type"))
        return choice_parse(&choices_kv, text, what, &s->kv_type, err);
    if (KEY("placement"))
        return choice_parse(&choices_placement, text, what, &s->placement, err);
    if (KEY("batch"))
        return setting_parse_int(SETTING_batch, text, what, &s->n_batch, err);
    if (KEY("mem"))
        return parse_bytes(text, what, &s->mem_limit, err);
    if (KEY("budget"))
        return parse_duration(text, what, 1, GATE_MAX_BUDGET_S, &s->budget_s, err);
    if (KEY("timeout"))
        return parse_duration(text, what, 1, GATE_MAX_BUDGET_S, &s->timeout_s, err);
    if (KEY("rounds"))
        return set_int(&s->n_rounds, text, what, 1, GATE_MAX_ROUNDS / 2, err);
    if (KEY("margin"))
        return parse_percent(text, what, 0.001, 0.5, &s->rule.margin, err);
    if (KEY("alpha_fail"))
        return parse_percent(text, what, 1e-5, 0.2, &s->rule.alpha_fail, err);
    if (KEY("alpha_pass"))
        return parse_percent(text, what, 1e-5, 0.2, &s->rule.alpha_pass, err);
    if (KEY("memory"))
        return set_bool(&s->memory, text, what, err);
    if (KEY("load"))
        return set_bool(&s->load, text, what, err);
    if (KEY("margin_memory"))
        return parse_percent(text, what, 0.001, 0.9, &s->margin_memory, err);
    if (KEY("margin_load"))
        return parse_percent(text, what, 0.001, 0.9, &s->margin_load, err);
    if (KEY("inject_slowdown"))
        return parse_percent(text, what, 0, 0.95, &s->slower, err);
    if (KEY("seed"))
        return parse_u64(text, what, &s->seed, err);
    if (KEY("exit_codes"))
        return gate_exit_codes_parse(text, what, s->exit_code, err);
#undef KEY
    return err_set(err, ST_USAGE, "%s: there is no such key", what);
}

/* ---- a file ---------------------------------------------------------------------- */

/* The file as libcyaml fills it; NULL where a key is absent. */
struct raw {
    char **threads, **prefill, **ctx, **kernels, **exit_codes;
    unsigned threads_count, prefill_count, ctx_count, kernels_count, exit_codes_count;
    char *model, *weights, *kv_type, *placement, *batch, *mem, *budget, *timeout,
        *rounds, *margin, *alpha_fail, *alpha_pass, *memory, *load, *margin_memory,
        *margin_load, *seed;
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
    LIST(threads),       LIST(prefill), LIST(ctx),      LIST(exit_codes),
    LIST(kernels),       TEXT(model),   TEXT(weights),  TEXT(kv_type),
    TEXT(placement),     TEXT(batch),   TEXT(mem),      TEXT(budget),
    TEXT(timeout),       TEXT(rounds),  TEXT(margin),   TEXT(alpha_fail),
    TEXT(alpha_pass),    TEXT(memory),  TEXT(load),     TEXT(margin_load),
    TEXT(margin_memory), TEXT(seed),    CYAML_FIELD_END};

static const cyaml_schema_value_t schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw, fields)};

struct origin {
    struct gate_settings *s;
    const struct topology *topo;
    const char *path; /* of the file */
};

static enum status set_from_file(const struct origin *from, const char *key,
                                 const char *text, struct err *err)
{
    char what[512];

    if (!text)
        return ST_OK;
    snprintf(what, sizeof what, "%.400s: %.80s", from->path, key);
    return gate_settings_set(from->s, key, text, from->topo, what, err);
}

/* The value of a field of the table above; malloc'ed, or NULL where it is absent. */
static char *field_text(const void *raw, const cyaml_schema_field_t *f)
{
    const char *base = raw;
    char *const *at = (char *const *)(const void *)(base + f->data_offset);

    if (f->value.type != CYAML_SEQUENCE)
        return *at ? strdup(*at) : NULL;
    return *at ? yaml_list_text(
                     (char *const *)(void *)*at,
                     *(const unsigned *)(const void *)(base + f->count_offset))
               : NULL;
}

static enum status load_file(const struct origin *from, struct err *err)
{
    void *data = NULL;
    enum status st;

    if (access(from->path, R_OK))
        return err_set_errno(err, ST_IO,
                             "cannot open the configuration %s; name a YAML file, or "
                             "one in configs/gates such as quick",
                             from->path);
    st = yaml_load_file(from->path, &schema, &data, err);
    if (st)
        return st;
    for (const cyaml_schema_field_t *f = fields; f->key && st == ST_OK; f++) {
        char *text = field_text(data, f);

        st = set_from_file(from, f->key, text, err);
        free(text);
    }
    yaml_free_data(&schema, data);
    return st;
}

/* ---- all ------------------------------------------------------------------------- */

/* An option of the command line, as the key that it stands for. */
struct given {
    const char *key, *text, *what;
};

static enum status set_given(struct gate_settings *s, const struct given *given,
                             size_t n, const struct topology *topo, struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < n; i++)
        if (given[i].text)
            st = gate_settings_set(s, given[i].key, given[i].text, topo, given[i].what,
                                   err);
    return st;
}

static enum status set_options(struct gate_settings *s, const struct gate_options *o,
                               const struct topology *topo, struct err *err)
{
    const struct given given[] = {
        {"model", o->model, "--model"},
        {"threads", o->threads, "--threads"},
        {"prefill", o->prefill, "--prefill"},
        {"ctx", o->ctx, "--ctx"},
        {"weights", o->weights, "--weights"},
        {"mem", o->mem, "--mem"},
        {"budget", o->budget, "--budget"},
        {"margin", o->margin, "--margin"},
        {"inject_slowdown", o->inject, "--inject-slowdown"},
        {"exit_codes", o->exit_codes, "--exit-codes"},
    };

    if (o->seed)
        s->seed = o->seed;
    return set_given(s, given, sizeof given / sizeof given[0], topo, err);
}

static void set_defaults(struct gate_settings *s)
{
    static const int exit_code[3] = {0, 1, 4};

    *s = (struct gate_settings){
        .residency = WEIGHTS_MMAP,
        .kv_type = KERN_KV_f16,
        .placement = PLACEMENT_SPREAD,
        .n_batch = SLM_DEFAULT_BATCH,
        .budget_s = 600,
        .timeout_s = 120,
        .n_rounds = 4,
        .rule = gate_rule_default(),
        .memory = true,
        .load = true,
        .margin_memory = 0.05,
        .margin_load = 0.2,
    };
    memcpy(s->exit_code, exit_code, sizeof exit_code);
}

/* Defaults, then the file. */
static enum status load_config(struct gate_settings *s, const char *config,
                               const struct topology *topo, struct err *err)
{
    char buf[8192];
    const struct origin from = {
        s, topo,
        data_config_find(buf, sizeof buf, "gates", config ? config : "default")};

    set_defaults(s);
    return load_file(&from, err);
}

enum status gate_settings_make(struct gate_settings *s, const struct gate_options *o,
                               const struct topology *topo, struct err *err)
{
    enum status st = load_config(s, o->config, topo, err);

    if (st == ST_OK)
        st = set_options(s, o, topo, err);
    if (!s->seed)
        s->seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    if (st == ST_OK && !*s->model_text)
        st = err_set(err, ST_USAGE,
                     "which model? -m FILE.gguf, -m SHAPE:QUANT, or a configuration "
                     "that names one");
    return st ? st : modelref_parse(&s->model, s->model_text, NULL, err);
}

enum status gate_settings_make_rule(struct gate_settings *s, const char *config,
                                    const char *margin, const char *exit_codes,
                                    const struct topology *topo, struct err *err)
{
    const struct given given[] = {{"margin", margin, "--margin"},
                                  {"exit_codes", exit_codes, "--exit-codes"}};
    const enum status st = load_config(s, config, topo, err);

    return st ? st : set_given(s, given, sizeof given / sizeof given[0], topo, err);
}

void gate_settings_free(struct gate_settings *s)
{
    free(s->threads.v);
    free(s->prefill.v);
    free(s->ctx.v);
    memset(s, 0, sizeof *s);
}

const char *gate_settings_text(const struct gate_settings *s, char *buf, size_t cap)
{
    char limit[24] = "";

    if (s->mem_limit)
        format_bytes(limit, sizeof limit, s->mem_limit);
    snprintf(buf, cap, "weights %s, KV cache %s, placement %s, batch %d%s%s",
             weights_residency_name(s->residency), choices_kv.name((int)s->kv_type),
             placement_name(s->placement), s->n_batch, *limit ? ", both within " : "",
             limit);
    return buf;
}
