/* SPDX-License-Identifier: MIT
 *
 * setting_read.c - settings as options of a command, and as keys of a YAML file
 *
 * libcyaml checks keys and shapes against a schema made of the table; every value
 * arrives as text and goes through the same parsers as the options do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/yamlfile.h"
#include "harness/settings/setting.h"

#define MAX_LIST 256 /* items of a list in YAML */

/* ---- options --------------------------------------------------------------------- */

/* " (default 512)" where that says something. */
static void append_default(enum setting_id id, char *help, size_t cap)
{
    const struct setting *s = setting_row(id);
    double field = 0; /* as large as any that is no text */
    char text[40];

    if (s->type == SETTING_TYPE_FLAG || s->type == SETTING_TYPE_TEXT)
        return;
    setting_default(id, &field, sizeof field);
    text_append(help, cap, " (default %s)",
                setting_text(id, &field, text, sizeof text));
}

static void make_help(enum setting_id id, bool sweeps, char *help, size_t cap)
{
    const struct setting *s = setting_row(id);
    const char *end = sweeps ? s->many : s->one;

    snprintf(help, cap, "%s%s", s->help, end ? end : "");
    if (!sweeps && !end)
        append_default(id, help, cap);
}

size_t setting_options(struct opt *opts, struct setting_request *r, unsigned command)
{
    const bool sweeps = command == SETTING_OPTION_SWEEP;
    size_t n = 0;

    memset(r, 0, sizeof *r);
    for (enum setting_id id = 0; id < SETTING_N; id++) {
        const struct setting *s = setting_row(id);
        const bool is_flag = s->type == SETTING_TYPE_FLAG;

        if (!(s->in & command) || !s->option)
            continue;
        make_help(id, sweeps, r->help[id], sizeof r->help[id]);
        opts[n++] = (struct opt){
            .kind = is_flag ? OPT_KIND_FLAG : OPT_KIND_STR,
            .letter = s->letter,
            .name = s->option,
            .dst = is_flag ? (void *)&r->flag[id] : (void *)&r->text[id],
            .arg = sweeps && s->swept ? "LIST" : s->arg,
            .help = r->help[id],
        };
    }
    opts[n] = (struct opt)OPT_END;
    return n;
}

struct opt setting_option(enum setting_id id, void *dst)
{
    static const enum opt_kind kinds[] = {
        [SETTING_TYPE_COUNT] = OPT_KIND_INT,  [SETTING_TYPE_REAL] = OPT_KIND_DOUBLE,
        [SETTING_TYPE_SIZE] = OPT_KIND_BYTES, [SETTING_TYPE_SEED] = OPT_KIND_U64,
        [SETTING_TYPE_MASK] = OPT_KIND_STR,   [SETTING_TYPE_CHOICE] = OPT_KIND_STR,
        [SETTING_TYPE_FLAG] = OPT_KIND_FLAG,  [SETTING_TYPE_TEXT] = OPT_KIND_STR,
    };
    static char help[SETTING_N][SETTING_MAX_HELP];
    const struct setting *s = setting_row(id);

    make_help(id, false, help[id], sizeof help[id]);
    return (struct opt){
        .kind = kinds[s->type],
        .letter = s->letter,
        .name = s->option,
        .dst = dst,
        .arg = s->arg,
        .help = help[id],
        .min = s->min,
        .max = s->max,
    };
}

const char *setting_given(const struct setting_request *r, enum setting_id id)
{
    const struct setting *s = setting_row(id);

    if (!r->flag[id])
        return r->text[id];
    return s->words[1] ? s->words[1] : "true";
}

/* ---- YAML ------------------------------------------------------------------------ */

/* A key as libcyaml fills it; NULL where it is absent. */
struct raw {
    char *text, **items;
    unsigned items_count;
};

static const cyaml_schema_value_t text_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, 4096)};

static cyaml_schema_field_t key_of(enum setting_id id)
{
    static const cyaml_schema_field_t one = CYAML_FIELD_STRING_PTR(
        "", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw, text, 0, 4096);
    static const cyaml_schema_field_t list =
        CYAML_FIELD_SEQUENCE("", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw,
                             items, &text_value, 1, MAX_LIST);
    cyaml_schema_field_t f = setting_row(id)->swept ? list : one;

    f.key = setting_row(id)->name;
    f.data_offset += (uint32_t)(id * sizeof(struct raw));
    if (setting_row(id)->swept)
        f.count_offset += (uint32_t)(id * sizeof(struct raw));
    return f;
}

static enum status take_key(const struct raw *raw, enum setting_id id, const char *path,
                            setting_take_fn *take, void *arg, struct err *err)
{
    const bool is_list = raw->items;
    char *text = is_list ? yaml_list_text(raw->items, raw->items_count) : raw->text;
    char what[512];
    enum status st;

    if (!text)
        return is_list ? err_set(err, ST_NO_MEMORY, "no memory for a list") : ST_OK;
    snprintf(what, sizeof what, "%.400s: %.80s", path, setting_row(id)->name);
    st = take(arg, id, text,
              (const char *const *)(is_list ? raw->items : (char **)&raw->text),
              is_list ? raw->items_count : 1, what, err);
    if (is_list)
        free(text);
    return st;
}

enum status setting_load_yaml(const char *path, setting_take_fn *take, void *arg,
                              struct err *err)
{
    cyaml_schema_field_t fields[SETTING_N + 1];
    cyaml_schema_value_t schema = {.type = CYAML_MAPPING,
                                   .flags = CYAML_FLAG_POINTER,
                                   .data_size = sizeof(struct raw[SETTING_N])};
    void *data = NULL;
    enum status st;
    size_t n = 0;

    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (setting_row(id)->in & SETTING_YAML)
            fields[n++] = key_of(id);
    fields[n] = (cyaml_schema_field_t)CYAML_FIELD_END;
    schema.mapping.fields = fields;
    st = yaml_load_file(path, &schema, &data, err);
    if (st)
        return st;
    for (enum setting_id id = 0; id < SETTING_N && st == ST_OK; id++)
        st = take_key((const struct raw *)data + id, id, path, take, arg, err);
    yaml_free_data(&schema, data);
    return st;
}
