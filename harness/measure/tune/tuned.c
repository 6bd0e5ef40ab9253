/* SPDX-License-Identifier: MIT
 *
 * tuned.c - a profile to and from YAML
 */
#include "harness/measure/tune/tuned.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/forward/forward.h"
#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/base/newfile.h"
#include "harness/base/parse.h"
#include "harness/base/yamlfile.h"
#include "harness/rows/settings/setting.h"
#include "harness/measure/tune/tuned_format.h"

#define VERSION "1"

#define X(field, name, what) #name,
static const char *const key_names[] = {TUNED_FIELDS(X)};
#undef X

/* ---- writing ------------------------------------------------------------------- */

static void put(FILE *f, const char *indent, const char *name, const char *value,
                const char *comment)
{
    char line[64];

    snprintf(line, sizeof line, "%s%s: %s", indent, name, value);
    if (*comment)
        fprintf(f, "%-32s # %s\n", line, comment);
    else
        fprintf(f, "%s\n", line);
}

/* A choice and what it was worth. */
static void put_setting(FILE *f, const char *indent, const char *name,
                        const struct tuned *t, const struct tune_result *r,
                        enum tune_setting setting, enum kern_format fmt)
{
    const struct tune_outcome *o = tune_find(r, setting, fmt);
    char value[32], worth[256];

    tune_value_text(setting, tune_get(&t->setup, setting, fmt), value, sizeof value);
    put(f, indent, name, value, o ? tune_worth(r, o, worth, sizeof worth) : "");
}

static void put_final(FILE *f, const char *phase, const struct tune_final *final)
{
    char ratio[64];

    if (!final->changed)
        fprintf(f, "# %s: the default; nothing was faster\n", phase);
    else
        fprintf(f, "# %s: all choices together %s of the default's speed%s\n", phase,
                rank_ratio_text(&final->ratio, ratio, sizeof ratio),
                final->kept ? "" : ", so it stays with the default");
}

static void put_choices(FILE *f, const struct tuned *t, const struct tune_result *r)
{
    const struct tune_outcome *weights = tune_find(r, TUNE_WEIGHTS, KERN_N_FMT);
    char worth[256];

    fprintf(f, "choices:\n");
    put(f, "  ", "weights", weights_residency_name(t->setup.residency),
        weights ? tune_worth(r, weights, worth, sizeof worth) : "");
    put(f, "  ", "pages", mem_pages_name(t->setup.tuning.pages), "");
    put_setting(f, "  ", "threads", t, r, TUNE_THREADS, KERN_N_FMT);
    put_setting(f, "  ", "placement", t, r, TUNE_PLACEMENT, KERN_N_FMT);
    put_setting(f, "  ", "chunks", t, r, TUNE_CHUNKS, KERN_N_FMT);
    put_setting(f, "  ", "threads_prefill", t, r, TUNE_THREADS_PREFILL, KERN_N_FMT);
    put_setting(f, "  ", "chunks_prefill", t, r, TUNE_CHUNKS_PREFILL, KERN_N_FMT);
    put_setting(f, "  ", "batch", t, r, TUNE_BATCH, KERN_N_FMT);
}

static void put_formats(FILE *f, const struct tuned *t, const struct tune_result *r)
{
    bool any = false;

    for (int i = 0; i < KERN_N_FMT; i++) {
        const enum kern_format fmt = (enum kern_format)i;

        if (!tune_find(r, TUNE_PREFETCH, fmt))
            continue;
        fprintf(f, "%s  - name: %s\n", any ? "" : "formats:\n",
                kern_format_info(fmt)->name);
        put_setting(f, "    ", "level", t, r, TUNE_LEVEL, fmt);
        put_setting(f, "    ", "prefetch", t, r, TUNE_PREFETCH, fmt);
        put_setting(f, "    ", "panels", t, r, TUNE_PANELS, fmt);
        put_setting(f, "    ", "level_prefill", t, r, TUNE_LEVEL_PREFILL, fmt);
        any = true;
    }
}

static void write_all(FILE *f, const struct tuned *t, const struct tune_result *r)
{
    fprintf(f, "# What `bench tune` found for this model on this machine. Used by\n"
               "# --tuned FILE, or --tuned auto where it lies in the cache directory.\n"
               "# Comments: speed as a multiple of the default's, with a 95 %% "
               "interval.\n#\n");
    put_final(f, "decode", &r->decode);
    put_final(f, "prefill", &r->prefill);
    fprintf(f, "version: " VERSION "\nmade: \"%s\"\nkey:\n", t->made);
    for (int i = 0; i < TUNED_N_FIELDS; i++)
        fprintf(f, "  %s: \"%s\"\n", key_names[i], t->key.text[i]);
    put_choices(f, t, r);
    put_formats(f, t, r);
}

enum status tuned_make_place(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX];

    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    return dirs_make(*dir ? dir : "/", err);
}

enum status tuned_save(const char *path, const struct tuned *t,
                       const struct tune_result *result, struct err *err)
{
    struct newfile n;
    enum status st = tuned_make_place(path, err);

    if (st == ST_OK)
        st = newfile_open(&n, path, err);
    if (st)
        return st;
    write_all(n.f, t, result);
    return newfile_commit(&n, path, err);
}

/* ---- reading ------------------------------------------------------------------- */

struct raw_key {
#define X(field, name, what) char *name;
    TUNED_FIELDS(X)
#undef X
};

struct raw {
    char *version, *made;
    struct raw_key key;
    struct {
        char *weights, *pages, *threads, *threads_prefill, *placement, *chunks,
            *chunks_prefill, *batch;
    } choices;
    struct tuned_format *formats;
    unsigned formats_count;
};

#define TEXT(type, name) \
    CYAML_FIELD_STRING_PTR(#name, CYAML_FLAG_POINTER, type, name, 0, 1024)
#define IN(part, field) TEXT(__typeof__(((struct raw *)NULL)->part), field)

#define X(field, name, what) TEXT(struct raw_key, name),
static const cyaml_schema_field_t key_fields[] = {TUNED_FIELDS(X) CYAML_FIELD_END};
#undef X

static const cyaml_schema_field_t choice_fields[] = {
    IN(choices, weights),         IN(choices, pages),     IN(choices, threads),
    IN(choices, threads_prefill), IN(choices, placement), IN(choices, chunks),
    IN(choices, chunks_prefill),  IN(choices, batch),     CYAML_FIELD_END};

static const cyaml_schema_field_t fields[] = {
    TEXT(struct raw, version),
    TEXT(struct raw, made),
    CYAML_FIELD_MAPPING("key", CYAML_FLAG_DEFAULT, struct raw, key, key_fields),
    CYAML_FIELD_MAPPING("choices", CYAML_FLAG_DEFAULT, struct raw, choices,
                        choice_fields),
    CYAML_FIELD_SEQUENCE("formats", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         struct raw, formats, &tuned_format_schema, 0, KERN_N_FMT),
    CYAML_FIELD_END};

static const cyaml_schema_value_t schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw, fields)};

/* Where a value stands, for messages. */
struct place {
    const char *path;
    struct err *err;
};

static const char *name_of(const struct place *at, const char *key, char *buf,
                           size_t cap)
{
    snprintf(buf, cap, "%.400s: %.80s", at->path, key);
    return buf;
}

static bool get_int(const struct place *at, const char *key, const char *text,
                    enum setting_id id, int *out)
{
    char what[512];

    return setting_parse_int(id, text, name_of(at, key, what, sizeof what), out,
                             at->err) == ST_OK;
}

static bool get_words(const struct place *at, const struct raw *raw,
                      struct tune_setup *s)
{
    const char *pages = raw->choices.pages;

    if (choice_parse(&choices_residency, raw->choices.weights, "", &s->residency,
                     NULL) ||
        s->residency == WEIGHTS_AUTO || s->residency == WEIGHTS_STREAM) {
        err_set(at->err, ST_INPUT,
                "%s: weights: '%.40s' is not one of packed, mmap, memory", at->path,
                raw->choices.weights);
        return false;
    }
    if (strcasecmp(pages, "2m") && strcasecmp(pages, "4k")) {
        err_set(at->err, ST_INPUT, "%s: pages: '%.40s' is neither 2m nor 4k", at->path,
                pages);
        return false;
    }
    s->tuning.pages = strcasecmp(pages, "2m") ? MEM_PAGES_4K : MEM_PAGES_2M;
    if (choice_parse(&choices_placement, raw->choices.placement, "", &s->placement,
                     NULL) ||
        s->placement == PLACEMENT_NONE) {
        err_set(at->err, ST_INPUT,
                "%s: placement: '%.40s' is not one of spread, compact, smt", at->path,
                raw->choices.placement);
        return false;
    }
    return true;
}

static bool get_setup(const struct place *at, const struct raw *raw,
                      struct tune_setup *s)
{
    bool seen[KERN_N_FMT] = {false};

    s->tuning = slm_tuning_default();
    if (!get_words(at, raw, s) ||
        !get_int(at, "threads", raw->choices.threads, SETTING_threads, &s->n_threads) ||
        !get_int(at, "threads_prefill", raw->choices.threads_prefill,
                 SETTING_threads_prefill, &s->n_threads_prefill) ||
        !get_int(at, "chunks", raw->choices.chunks, SETTING_chunks,
                 &s->tuning.chunks_decode) ||
        !get_int(at, "chunks_prefill", raw->choices.chunks_prefill, SETTING_chunks,
                 &s->tuning.chunks_prefill) ||
        !get_int(at, "batch", raw->choices.batch, SETTING_batch, &s->tuning.n_batch))
        return false;
    for (unsigned i = 0; i < raw->formats_count; i++)
        if (tuned_format_read(&raw->formats[i], at->path, seen, &s->tuning, at->err))
            return false;
    return true;
}

static void get_key(const struct raw *raw, struct tuned_key *key)
{
#define X(field, name, what) raw->key.name,
    const char *const texts[] = {TUNED_FIELDS(X)};
#undef X

    for (int i = 0; i < TUNED_N_FIELDS; i++)
        text_harmless(key->text[i], sizeof key->text[i], texts[i]);
}

enum status tuned_load(struct tuned *t, const char *path, struct err *err)
{
    struct err own = ERR_INIT;
    const struct place at = {path, &own};
    struct tuned new = {.made = ""};
    const struct raw *raw;
    void *data = NULL;
    enum status st = yaml_load_file(path, &schema, &data, err);

    if (st)
        return st;
    raw = data;
    if (strcmp(raw->version, VERSION) != 0) {
        err_set(&own, ST_INPUT,
                "%s: version '%.20s' of a profile; this bench reads version " VERSION
                ": tune again",
                path, raw->version);
    } else if (get_setup(&at, raw, &new.setup)) {
        text_harmless(new.made, sizeof new.made, raw->made);
        get_key(raw, &new.key);
        *t = new;
    }
    yaml_free_data(&schema, data);
    /* What is wrong in a file is wrong input, whichever parser found it. */
    return own.code ? err_set(err, ST_INPUT, "%s", own.msg) : ST_OK;
}
