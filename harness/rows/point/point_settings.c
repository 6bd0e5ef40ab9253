/* SPDX-License-Identifier: MIT
 *
 * point_settings.c - a point as an identity, as a command line and as JSON
 */
#include "engine/base/utf8.h"
#include "harness/base/format.h"
#include "harness/rows/point/point.h"

#include <stdio.h>
#include <string.h>

#include "harness/model/test_prompt.h"
#include "harness/rows/settings/setting.h"

#define ID_MODEL_MAX 48 /* leaves half of the point column to the settings */
#define ID_KIND_AT   2  /* before the threads */

#define SETTING SETTING_PLACE
#define SETTING_PLACE_MODEL(...)
#define SETTING_PLACE_POINT(...) SETTING_AT(struct point, __VA_ARGS__)
#define SETTING_PLACE_SWEEP(...)
#define SETTING_PLACE_NONE(...)
static const struct setting_place places[SETTING_N] = {
/* but for the model's */
#include "harness/rows/settings/settings.def"
};

void *point_field(struct point *p, enum setting_id id, size_t *size)
{
    if (!places[id].key)
        return model_setup_field(&p->setup, id, size);
    if (size)
        *size = places[id].size;
    return (char *)p + places[id].offset;
}

static const void *field_of(const struct point *p, enum setting_id id)
{
    return point_field((struct point *)(uintptr_t)p, id, NULL); /* read */
}

void point_fill_columns(const struct point *p, unsigned is, struct row *row)
{
    char text[ROW_CELL_MAX];

    for (const struct field *f = row_fields(NULL); f->name; f++)
        if ((f->is & is) == is && f->is_set && field_is_text(f))
            row_set_text(
                row, f,
                setting_text(f->setting, field_of(p, f->setting), text, sizeof text));
}

enum status point_check_sequences(const struct point *p, struct err *err)
{
    if (p->n_sequences > 1 && (p->kind != POINT_DECODE || *p->engine))
        return err_set(err, ST_USAGE,
                       "--sequences %d: this program decodes them together; leave out "
                       "--prefill, --speculate and --engine",
                       p->n_sequences);
    if (p->n_chunk && (p->kind != POINT_DECODE || *p->engine))
        return err_set(err, ST_USAGE,
                       "--chunk %d: this program reads a prompt while it decodes "
                       "sequences; leave out --prefill, --speculate and --engine",
                       p->n_chunk);
    if (p->n_chunk && p->n_sequences == SLM_MAX_SEQUENCES)
        return err_set(
            err, ST_USAGE,
            "--chunk %d: of %d sequences, the most, one reads the prompt; at "
            "most %d can be decoded at the same time",
            p->n_chunk, SLM_MAX_SEQUENCES, SLM_MAX_SEQUENCES - 1);
    if (p->n_shared > p->ctx || (p->n_shared && p->n_sequences == 1))
        return err_set(err, ST_USAGE,
                       "--shared %d: at most the tokens of --ctx (%d) can be what "
                       "several --sequences (%d) begin with",
                       p->n_shared, p->ctx, p->n_sequences);
    return ST_OK;
}

void point_init(struct point *p)
{
    memset(p, 0, sizeof *p);
    p->kind = POINT_DECODE;
    model_setup_init(&p->setup);
    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (places[id].key)
            setting_default(id, point_field(p, id, NULL), places[id].size);
}

int point_depth(const struct point *p)
{
    if (p->kind == POINT_PREFILL)
        return 0;
    return p->kind == POINT_SPECULATE && p->n_prompt > p->ctx ? p->n_prompt : p->ctx;
}

int point_step_threads(const struct point *p)
{
    return p->n_chunk && p->setup.n_threads_prefill ? p->setup.n_threads_prefill
                                                    : p->setup.n_threads;
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
    char *dot;

    snprintf(buf, cap, "%s", basename(p->text));
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

/* At most n bytes of text, of whole characters. */
static void put_start(char *buf, size_t cap, const char *text, size_t n)
{
    const size_t len = strlen(text);
    size_t end = 0;

    while (end < len) {
        const int size = utf8_char_len(text + end, len - end);
        const size_t next = end + (size > 0 ? (size_t)size : 1);

        if (next > n)
            break;
        end = next;
    }
    text_append(buf, cap, "%.*s", (int)end, text);
}

static void id_model(const struct point *p, char *buf, size_t cap)
{
    char name[sizeof p->setup.model.name + 32];

    if (p->setup.model.synthetic || p->setup.model.at_load)
        snprintf(name, sizeof name, "%s:%s", p->setup.model.name,
                 quantmix_name(p->setup.model.mix));
    else
        snprintf(name, sizeof name, "%s", p->setup.model.name);
    if (strlen(name) <= ID_MODEL_MAX)
        snprintf(buf, cap, "%.*s", ID_MODEL_MAX, name);
    else {
        buf[0] = '\0';
        put_start(buf, cap, name, ID_MODEL_MAX - 9);
        text_append(buf, cap, "~%08x", text_hash(p->setup.model.path));
    }
}

/* A text of our own by its name, one of the user's by a part of it and a hash. */
static void id_text(const struct point *p, char *buf, size_t cap)
{
    const char *name = basename(p->text);
    char shown[64];

    text_append(buf, cap, "text-");
    put_start(buf, cap, text_harmless(shown, sizeof shown, name), 12);
    if (name != p->text || strlen(name) > 12)
        text_append(buf, cap, "~%08x", text_hash(p->text));
}

static void id_cpus(const struct point *p, char *buf, size_t cap)
{
    char text[8 * TOPO_MAX_CPUS];

    format_cpus(text, sizeof text, p->setup.cpus, model_setup_threads(&p->setup));
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

/* Whether this kind of point has a setting with a value that its identity or command
 * names. */
static bool is_shown(const struct point *p, enum setting_id id)
{
    const struct setting *s = setting_row(id);

    if (!field_of(p, id) || (s->kinds && !(s->kinds >> p->kind & 1)))
        return false;
    return s->shown == SETTING_SHOWN || (s->shown == SETTING_SHOWN_IF_SET &&
                                         !setting_is_default(id, field_of(p, id)));
}

static void id_part(const struct point *p, enum setting_id id, char *buf, size_t cap)
{
    const struct setting *s = setting_row(id);
    const bool has_value = s->type != SETTING_TYPE_FLAG && s->type != SETTING_TYPE_TEXT;
    char text[40] = "";

    if (id == SETTING_engines)
        snprintf(text, sizeof text, "%.*s", (int)strcspn(p->engine, "="), p->engine);
    text_append(buf, cap, "%s%s", s->id,
                has_value ? setting_text(id, field_of(p, id), text, sizeof text)
                          : text);
}

/* The setting that comes at a place of identities; SETTING_N: no setting. */
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
        /* a text has a depth of its own; without a limit nothing is named */
        const bool is_depth = id == SETTING_ctx || id == SETTING_ctx_fill;
        const bool is_unset = (is_depth && p->kind == POINT_SPECULATE && !p->ctx) ||
                              (id == SETTING_mem && !p->setup.mem_limit);

        if (order == ID_KIND_AT)
            id_kind(p, buf, cap);
        if (id == SETTING_placement && p->setup.explicit_cpus)
            id_cpus(p, buf, cap);
        else if (is_shown(p, id) && !is_unset)
            id_part(p, id, buf, cap);
    }
}

/* " --ctx 1024", " -t 2", " --force". */
static void append_option(const struct point *p, enum setting_id id, char *buf,
                          size_t cap)
{
    const struct setting *s = setting_row(id);
    char text[sizeof p->setup.model.text];

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
    shell_word_append(buf, cap, p->setup.model.text);
    for (enum setting_id id = 0; id < SETTING_N; id++) {
        if (id == SETTING_placement && p->setup.explicit_cpus) {
            format_cpus(text, sizeof text, p->setup.cpus,
                        model_setup_threads(&p->setup));
            text_append(buf, cap, " --cpus %s", text);
        } else if (setting_row(id)->in & SETTING_DECODE && is_shown(p, id)) {
            append_option(p, id, buf, cap);
        }
    }
    if (p->setup.isa_disabled)
        text_append(buf, cap, " --isa-disable=%s",
                    setting_text(SETTING_isa_disabled, &p->setup.isa_disabled, text,
                                 sizeof text));
    if (strlen(buf) + 1 >= cap) /* half a command does something else */
        buf[0] = '\0';
}

/* ---- to the worker, and back ----------------------------------------------------- */

json_t *point_json(const struct point *p)
{
    json_t *object = model_setup_json(&p->setup, MODEL_SETUP_FIELDS);

    if (!object)
        return NULL;
    json_object_set_new(object, "kind", json_integer(p->kind));
    json_object_set_new(object, "explicit_cpus", json_boolean(p->setup.explicit_cpus));
    json_object_set_new(object, "synthetic", json_boolean(p->setup.model.synthetic));
    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (places[id].key)
            json_object_set_new(object, places[id].key,
                                setting_json(id, field_of(p, id)));
    return object;
}

_Static_assert(sizeof(enum point_kind) == sizeof(int), "an enumeration is no int");

static enum status read_settings(struct point *p, const json_t *object, struct err *err)
{
    const json_t *explicit_cpus = json_object_get(object, "explicit_cpus");
    int kind = POINT_DECODE;
    enum status st = setting_json_int_in(json_object_get(object, "kind"), "kind",
                                         POINT_DECODE, POINT_SPECULATE, &kind, err);

    p->kind = (enum point_kind)kind;
    for (enum setting_id id = 0; id < SETTING_N && st == ST_OK; id++)
        if (places[id].key)
            st = setting_from_json(id, json_object_get(object, places[id].key),
                                   places[id].key, point_field(p, id, NULL),
                                   places[id].size, err);
    if (st == ST_OK && !json_is_boolean(explicit_cpus))
        st = err_set(err, ST_USAGE, "explicit_cpus is true or false");
    p->setup.explicit_cpus = json_is_true(explicit_cpus);
    p->setup.model.synthetic = json_is_true(json_object_get(object, "synthetic"));
    return st;
}

enum status point_from_json(struct point *p, const json_t *object, struct err *err)
{
    struct err why = ERR_INIT;
    struct point out;

    point_init(&out);
    if (model_setup_from_json(&out.setup, object, MODEL_SETUP_FIELDS, &why) ||
        read_settings(&out, object, &why) ||
        model_setup_read_cpus(&out.setup, object, &why))
        return err_set(err, ST_USAGE, "the point's settings are not as expected: %s",
                       why.msg);
    *p = out;
    return ST_OK;
}
