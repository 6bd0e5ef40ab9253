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
#define ID_KIND_AT   2  /* before the threads */

#define SETTING                          SETTING_PLACE
#define SETTING_PLACE_POINT(name, field) SETTING_AT(name, struct point, field)
#define SETTING_PLACE_SWEEP(name, field)
#define SETTING_PLACE_NONE(name, field)
const struct setting_place point_places[SETTING_N] = {
#include "harness/settings/settings.def"
};

void *point_field(struct point *p, enum setting_id id)
{
    return point_places[id].key ? (char *)p + point_places[id].offset : NULL;
}

static const void *field_of(const struct point *p, enum setting_id id)
{
    return point_places[id].key ? (const char *)p + point_places[id].offset : NULL;
}

void point_init(struct point *p)
{
    memset(p, 0, sizeof *p);
    p->kind = POINT_DECODE;
    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (point_places[id].key)
            setting_default(id, point_field(p, id), point_places[id].size);
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

static const char *kind_name(int kind)
{
    static const char *const names[] = {"decode", "prefill", "speculate"};

    return names[kind];
}

const struct choices choices_point_kind = {"points are", kind_name,
                                           POINT_SPECULATE + 1};

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

static void id_cpus(const struct point *p, char *buf, size_t cap)
{
    char text[8 * TOPO_MAX_CPUS];

    format_cpus(text, sizeof text, p->cpus, point_max_threads(p));
    if (strlen(text) > 12)
        text_append(buf, cap, "/cpus~%08x", text_hash(text));
    else
        text_append(buf, cap, "/cpus%s", text);
}

static void id_kind(const struct point *p, char *buf, size_t cap)
{
    text_append(buf, cap, "/");
    if (p->kind == POINT_PREFILL)
        text_append(buf, cap, "prefill%d", p->n_prompt);
    else if (p->kind == POINT_SPECULATE)
        id_text(p, buf, cap);
    else
        text_append(buf, cap, "decode");
}

/* Whether this kind of point has a setting, and its value is one to be named. */
static bool is_said(const struct point *p, enum setting_id id)
{
    const struct setting *s = setting_row(id);

    if (!point_places[id].key || (s->kinds && !(s->kinds >> p->kind & 1)))
        return false;
    return s->said == SETTING_SAID ||
           (s->said == SETTING_SAID_IF_SET && !setting_is_default(id, field_of(p, id)));
}

static void id_part(const struct point *p, enum setting_id id, char *buf, size_t cap)
{
    const struct setting *s = setting_row(id);
    const bool has_value = s->type != SETTING_TYPE_FLAG && s->type != SETTING_TYPE_TEXT;
    char text[40];

    text_append(buf, cap, "%s%s", s->id,
                has_value ? setting_text(id, field_of(p, id), text, sizeof text) : "");
}

/* The setting that comes at a place of identities; SETTING_N: there is none. */
static enum setting_id id_at(int order)
{
    enum setting_id id = 0;

    while (id < SETTING_N &&
           (!setting_row(id)->id || setting_row(id)->id_order != order))
        id++;
    return id;
}

void point_id(const struct point *p, char *buf, size_t cap)
{
    enum setting_id id;

    id_model(p, buf, cap < 64 ? cap : 64);
    for (int order = 1; (id = id_at(order)) < SETTING_N; order++) {
        /* a text has a depth of its own; without a limit there is none to name */
        const bool is_depth = id == SETTING_ctx || id == SETTING_ctx_fill;
        const bool is_unset = (is_depth && p->kind == POINT_SPECULATE && !p->ctx) ||
                              (id == SETTING_mem && !p->mem_limit);

        if (order == ID_KIND_AT)
            id_kind(p, buf, cap);
        if (id == SETTING_placement && p->explicit_cpus)
            id_cpus(p, buf, cap);
        else if (is_said(p, id) && !is_unset)
            id_part(p, id, buf, cap);
    }
}

/* " --ctx 1024", " -t 2", " --force". */
static void append_option(const struct point *p, enum setting_id id, char *buf,
                          size_t cap)
{
    const struct setting *s = setting_row(id);
    char text[sizeof p->model.text];

    if (s->letter)
        text_append(buf, cap, " -%c", s->letter);
    else
        text_append(buf, cap, " --%s", s->option);
    if (s->type != SETTING_TYPE_FLAG)
        shell_word_append(buf, cap,
                          setting_text(id, field_of(p, id), text, sizeof text));
}

void point_command(const struct point *p, char *buf, size_t cap)
{
    char text[8 * TOPO_MAX_CPUS];

    snprintf(buf, cap, "bench decode -m");
    shell_word_append(buf, cap, p->model.text);
    for (enum setting_id id = 0; id < SETTING_N; id++) {
        if (id == SETTING_placement && p->explicit_cpus) {
            format_cpus(text, sizeof text, p->cpus, point_max_threads(p));
            text_append(buf, cap, " --cpus %s", text);
        } else if (setting_row(id)->in & SETTING_DECODE && is_said(p, id)) {
            append_option(p, id, buf, cap);
        }
    }
    if (p->isa_disabled)
        text_append(
            buf, cap, " --isa-disable=%s",
            setting_text(SETTING_isa_disabled, &p->isa_disabled, text, sizeof text));
}

/* ---- to the child, and back -------------------------------------------------------
 */

json_t *point_json(const struct point *p)
{
    json_t *cpus = json_array(), *object;

    for (int i = 0; p->explicit_cpus && i < point_max_threads(p); i++)
        json_array_append_new(cpus, json_integer(p->cpus[i]));
    object =
        json_pack("{s:i, s:s, s:s, s:b, s:o, s:o, s:s*}", "kind", (int)p->kind, "model",
                  p->model.text, "path", p->model.path, "explicit_cpus",
                  (int)p->explicit_cpus, "cpus", cpus, "tuning",
                  point_tuning_json(&p->tuning), "quant", modelref_quant(&p->model));
    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (point_places[id].key)
            json_object_set_new(object, point_places[id].key,
                                setting_json(id, field_of(p, id)));
    return object;
}

/* What is no setting. */
static const struct setting_member members[] = {
    SETTING_WHOLE("kind", POINT_DECODE, POINT_SPECULATE, struct point, kind),
    SETTING_CHARS("model", struct point, model.text),
    SETTING_CHARS("path", struct point, model.path),
};

_Static_assert(sizeof(enum point_kind) == sizeof(int) &&
                   sizeof(enum placement) == sizeof(int),
               "an enumeration is no int");
_Static_assert(sizeof((struct point *)NULL)->cpus / sizeof(int) >= SETTING_MAX(threads),
               "a point has fewer CPUs than threads");

/* A field is of the type that its row says. */
#define SIZE_OF_COUNT  sizeof(int)
#define SIZE_OF_CHOICE sizeof(int)
#define SIZE_OF_REAL   sizeof(double)
#define SIZE_OF_SIZE   sizeof(uint64_t)
#define SIZE_OF_SEED   sizeof(uint64_t)
#define SIZE_OF_MASK   sizeof(uint32_t)
#define SIZE_OF_FLAG   sizeof(bool)
#define SIZE_OF_TEXT   sizeof((struct point *)NULL)->tuned
#define CHECK_POINT(type, field)                                          \
    _Static_assert(sizeof((struct point *)NULL)->field == SIZE_OF_##type, \
                   #field " is of another type than its setting");
#define CHECK_SWEEP(type, field)
#define CHECK_NONE(type, field)
#define SETTING(name, type, owner, field, ...) CHECK_##owner(type, field)
#include "harness/settings/settings.def"

static enum status read_settings(struct point *p, const json_t *object, struct err *err)
{
    enum status st = ST_OK;

    for (enum setting_id id = 0; id < SETTING_N && st == ST_OK; id++)
        if (point_places[id].key)
            st = setting_from_json(id, json_object_get(object, point_places[id].key),
                                   point_places[id].key, point_field(p, id),
                                   point_places[id].size, err);
    return st;
}

static enum status read_cpus(struct point *p, const json_t *object, struct err *err)
{
    const json_t *cpus = json_object_get(object, "cpus");
    const int n = p->explicit_cpus ? point_max_threads(p) : 0;

    if (!json_is_boolean(json_object_get(object, "explicit_cpus")))
        return err_set(err, ST_USAGE, "explicit_cpus is true or false");
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
    out.explicit_cpus = json_is_true(json_object_get(object, "explicit_cpus"));
    if (setting_read_members(&out, members, sizeof members / sizeof members[0], object,
                             &why) ||
        read_settings(&out, object, &why) ||
        point_tuning_from_json(&out.tuning, json_object_get(object, "tuning"), &why) ||
        read_cpus(&out, object, &why))
        return err_set(err, ST_USAGE, "the point's settings are not as expected: %s",
                       why.msg);
    out.model.at_load = json_is_string(quant);
    if (out.model.at_load && mix_parse(&out.model.mix, json_string_value(quant), err))
        return ST_USAGE;
    *p = out;
    return ST_OK;
}
