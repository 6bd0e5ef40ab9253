/* SPDX-License-Identifier: MIT
 *
 * gate_settings.c - tables of keys, a YAML file, options on top
 */
#include "harness/decide/gate/gate_settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/random.h"
#include "harness/base/program.h"
#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/base/yamlfile.h"
#include "harness/decide/gate/gate_options.h"
#include "harness/rows/settings/setting.h"

/* ---- keys of a gate alone -------------------------------------------------------- */

static const struct gate_key {
    const char *name;
    enum { /* the last two are lists */
           KEY_NAME,
           KEY_FLAG,
           KEY_COUNT,
           KEY_SHARE,
           KEY_SECONDS,
           KEY_KERNELS,
           KEY_CODES
    } type;
    size_t offset;   /* of the field in struct gate_settings */
    double min, max; /* of a number */
    bool no_file;    /* an option's alone */
} keys[] = {
/* clang-format off */
#define AT(field) offsetof(struct gate_settings, field)
    {"model",           KEY_NAME,    AT(model_text),      0, 0, false},
    {"kernels",         KEY_KERNELS, AT(kernels),         0, 0, false},
    {"budget",          KEY_SECONDS, AT(budget_s),        1, GATE_MAX_BUDGET_S, false},
    {"timeout",         KEY_SECONDS, AT(timeout_s),       1, GATE_MAX_BUDGET_S, false},
    {"rounds",          KEY_COUNT,   AT(n_rounds),        1, GATE_MAX_ROUNDS / 2, false},
    {"margin",          KEY_SHARE,   AT(rule.margin),     0.001, 0.5, false},
    {"alpha_fail",      KEY_SHARE,   AT(rule.alpha_fail), 1e-5, 0.2, false},
    {"alpha_pass",      KEY_SHARE,   AT(rule.alpha_pass), 1e-5, 0.2, false},
    {"memory",          KEY_FLAG,    AT(memory),          0, 0, false},
    {"margin_memory",   KEY_SHARE,   AT(margin_memory),   0.001, 0.9, false},
    {"load",            KEY_FLAG,    AT(load),            0, 0, false},
    {"margin_load",     KEY_SHARE,   AT(margin_load),     0.001, 0.9, false},
    {"inject_slowdown", KEY_SHARE,   AT(slower),          0, 0.95, true},
    {"exit_codes",      KEY_CODES,   AT(exit_code),       0, 0, false},
    /* clang-format on */
};
#define N_KEYS (sizeof keys / sizeof keys[0])

static enum status set_name(char *field, const char *text, const char *what,
                            struct err *err)
{
    const size_t cap = sizeof((struct gate_settings *)NULL)->model_text;

    if (strlen(text) >= cap)
        return err_set(err, ST_USAGE, "%s: %.40s... is too long a name", what, text);
    snprintf(field, cap, "%s", text);
    return ST_OK;
}

static enum status set_kernels(struct gate_kernels *field, const char *text,
                               const char *what, struct err *err)
{
    struct parse_list names = {.what = what, .text = text};
    struct gate_kernels list = {.n = 0};
    enum status st = ST_OK;

    while (strcmp(text, "none") && parse_item(&names, &st, err)) {
        const enum kern_format format = kern_format_by_name(names.item);

        if (list.n == GATE_MAX_METRICS)
            return err_set(err, ST_USAGE, "%s: more than %d weight formats", what,
                           GATE_MAX_METRICS);
        if (format == KERN_N_FMT)
            return err_set(
                err, ST_USAGE,
                "%s: '%.31s' is no weight format; `bench kernels --list` knows "
                "them",
                what, names.item);
        list.v[list.n++] = format;
    }
    if (st)
        return st;
    *field = list;
    return ST_OK;
}

enum status gate_exit_codes_parse(const char *text, const char *what, int out[3],
                                  struct err *err)
{
    const char *at = text;
    int code[3];

    for (int i = 0; i < 3; i++) {
        char *end;
        const long v = strtol(at, &end, 10);

        if (end == at || *end != (i < 2 ? ',' : '\0'))
            return err_set(err, ST_USAGE,
                           "%s: '%s' is not three numbers for pass, fail and "
                           "inconclusive; the default is 0,1,4",
                           what, text);
        if (v < 0 || v > 125)
            return err_set(err, ST_USAGE, "%s: %ld is outside 0..125", what, v);
        code[i] = (int)v;
        at = end + 1;
    }
    memcpy(out, code, sizeof code);
    return ST_OK;
}

static enum status set_key(const struct gate_key *key, void *field, const char *text,
                           const char *what, struct err *err)
{
    long long v = 0;

    switch (key->type) {
    case KEY_NAME:
        return set_name(field, text, what, err);
    case KEY_FLAG:
        if (strcasecmp(text, "true") && strcasecmp(text, "false"))
            return err_set(err, ST_USAGE, "%s: '%s' is neither true nor false", what,
                           text);
        *(bool *)field = !strcasecmp(text, "true");
        return ST_OK;
    case KEY_COUNT:
        if (parse_count(text, what, "", (long long)key->min, (long long)key->max, &v,
                        err) == ST_OK)
            *(int *)field = (int)v;
        return err->code;
    case KEY_SHARE:
        return parse_percent(text, what, key->min, key->max, field, err);
    case KEY_SECONDS:
        return parse_duration(text, what, key->min, key->max, field, err);
    case KEY_KERNELS:
        return set_kernels(field, text, what, err);
    default:
        return gate_exit_codes_parse(text, what, field, err);
    }
}

/* ---- keys of settings.def -------------------------------------------------------- */

static enum status set_list(struct int_list *list, enum setting_id id, const char *text,
                            const struct topology *topo, const char *what,
                            struct err *err)
{
    const bool threads = id == SETTING_threads;
    char own[16];
    enum status st;

    snprintf(own, sizeof own, "%d", topo->threads_default);
    st = setting_take_list(list, (int)id, threads && !strcmp(text, "auto") ? own : text,
                           what, err);
    if (st == ST_OK && threads && !list->n)
        st = err_set(err, ST_USAGE, "%s: at least one thread is needed", what);
    return st;
}

static enum status set_setting(struct gate_settings *s, enum setting_id id,
                               const char *text, const struct topology *topo,
                               const char *what, struct err *err)
{
    enum status st;

    if (setting_row(id)->swept == SETTING_LIST)
        return set_list(id == SETTING_threads   ? &s->threads
                        : id == SETTING_prefill ? &s->prefill
                                                : &s->ctx,
                        id, text, topo, what, err);
    st = model_setup_set(&s->setup, id, text, what, err);
    if (st == ST_OK && id == SETTING_weights &&
        (s->setup.residency == WEIGHTS_AUTO || s->setup.residency == WEIGHTS_MEMORY))
        st = err_set(err, ST_USAGE, "%s: a gate's weights are mmap, packed or stream",
                     what);
    return st;
}

enum status gate_settings_set(struct gate_settings *s, const char *key,
                              const char *text, const struct topology *topo,
                              const char *what, struct err *err)
{
    const enum setting_id id = setting_find(key, SETTING_GATE);

    if (id != SETTING_N)
        return set_setting(s, id, text, topo, what, err);
    for (size_t i = 0; i < N_KEYS; i++)
        if (!strcmp(key, keys[i].name))
            return set_key(&keys[i], (char *)s + keys[i].offset, text, what, err);
    return err_set(err, ST_USAGE, "%s: there is no such key", what);
}

/* ---- a file ---------------------------------------------------------------------- */

struct origin {
    struct gate_settings *s;
    const struct topology *topo;
};

static enum status take_key(void *arg, const char *key, const char *text,
                            const char *const *words, size_t n, const char *what,
                            struct err *err)
{
    const struct origin *from = arg;

    (void)words;
    (void)n;
    return gate_settings_set(from->s, key, text, from->topo, what, err);
}

static enum status load_file(struct origin *from, const char *path, struct err *err)
{
    struct yaml_key file[SETTING_N + N_KEYS];
    size_t n = 0;

    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (setting_row(id)->in & SETTING_GATE)
            file[n++] =
                (struct yaml_key){.name = setting_row(id)->name,
                                  .is_list = setting_row(id)->swept == SETTING_LIST};
    for (size_t i = 0; i < N_KEYS; i++)
        if (!keys[i].no_file)
            file[n++] = (struct yaml_key){.name = keys[i].name,
                                          .is_list = keys[i].type >= KEY_KERNELS};
    if (!data_file_is_there(path))
        return err_set_errno(err, ST_IO,
                             "cannot open the configuration %s; name a YAML file, or "
                             "one in configs/gates such as quick",
                             path);
    return yaml_load_keys(path, file, n, take_key, from, err);
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
        s->setup.seed = o->seed;
    return set_given(s, given, sizeof given / sizeof given[0], topo, err);
}

static void set_defaults(struct gate_settings *s)
{
    static const int exit_code[3] = {0, 1, 4};

    *s = (struct gate_settings){
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
    model_setup_init(&s->setup);
    s->setup.residency = WEIGHTS_MMAP;
    s->setup.seed = 0;
}

/* Defaults, then the file. */
static enum status load_config(struct gate_settings *s, const char *config,
                               const struct topology *topo, struct err *err)
{
    char buf[8192];
    struct origin from = {s, topo};

    set_defaults(s);
    return load_file(
        &from, data_config_find(buf, sizeof buf, "gates", config ? config : "default"),
        err);
}

enum status gate_settings_make(struct gate_settings *s, const struct gate_options *o,
                               const struct topology *topo, struct err *err)
{
    enum status st = load_config(s, o->config, topo, err);

    if (st == ST_OK)
        st = set_options(s, o, topo, err);
    if (!s->setup.seed)
        s->setup.seed = random_seed();
    if (st == ST_OK && !*s->model_text)
        st = err_set(err, ST_USAGE,
                     "name the model: -m FILE.gguf, -m SHAPE:QUANT, or a configuration "
                     "that names one");
    if (st == ST_OK)
        st = modelref_parse(&s->setup.model, s->model_text, NULL, err);
    s->has_b_model = o->b_model != NULL;
    s->of_command = o->model     ? "--model"
                    : o->threads ? "--threads"
                    : o->weights ? "--weights"
                                 : NULL;
    if (st == ST_OK && o->max_kl)
        st = o->b_model
                 ? parse_double(o->max_kl, "--max-kl", 1e-9, 100, &s->max_kl, err)
                 : err_set(err, ST_USAGE,
                           "--max-kl judges the answers of two models: name B's "
                           "with --b-model");
    if (st == ST_OK && o->b_model)
        st = modelref_parse(&s->b_model, o->b_model, NULL, err);
    return st;
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

enum status gate_options_check_outputs(const struct gate_options *o,
                                       const struct modelref *model, struct err *err)
{
    const char *const read[] = {o->a, o->b, o->config, o->add_to};
    struct path_list inputs = {0};
    enum status st = modelref_files(model, &inputs, err);

    for (size_t i = 0; i < sizeof read / sizeof *read && st == ST_OK; i++)
        st = path_list_add(&inputs, read[i], err);
    if (st == ST_OK)
        st = gate_outputs_check(&o->outputs, o->out, &inputs, err);
    path_list_free(&inputs);
    return st;
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
    char how[160];

    model_setup_text(&s->setup, how, sizeof how);
    if (s->setup.mem_limit)
        snprintf(buf, cap, "%s, both within %s", how,
                 bytes_text(s->setup.mem_limit).text);
    else
        snprintf(buf, cap, "%s", how);
    return buf;
}
