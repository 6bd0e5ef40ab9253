/* SPDX-License-Identifier: MIT
 *
 * tuned_kernels.c - choices of kernels to and from YAML
 */
#include "harness/measure/tune/tuned_kernels.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/hash.h"
#include "harness/base/newfile.h"
#include "harness/base/yamlfile.h"
#include "harness/model/modelref.h"
#include "harness/measure/tune/prefetch.h"
#include "harness/measure/tune/tuned.h"
#include "harness/measure/tune/tuned_format.h"

#define VERSION "1"

/* The part of a profile's key that kernels depend on. */
static const enum tuned_field fields_of_cpu[] = {TUNED_CPU, TUNED_ISA, TUNED_TOPOLOGY};

#define N_FIELDS (sizeof fields_of_cpu / sizeof fields_of_cpu[0])

enum status tuned_kernels_path(char *out, size_t cap, const struct topology *topo,
                               struct err *err)
{
    struct tuned_key key;
    uint64_t h = HASH_BEGIN;
    char file[64];

    tuned_key_machine(&key, topo, 0);
    for (size_t i = 0; i < N_FIELDS; i++)
        h = hash_add(h, key.text[fields_of_cpu[i]],
                     strlen(key.text[fields_of_cpu[i]]) + 1);
    snprintf(file, sizeof file, "tuned/kernels-%016llx.yaml", (unsigned long long)h);
    return modelref_cache_path(out, cap, NULL, file, err);
}

/* ---- writing ------------------------------------------------------------------- */

static void write_choice(FILE *f, const struct kernel_choice *c)
{
    char text[32], line[64];

    fprintf(f, "  - name: %s\n", kern_format_info(c->fmt)->name);
    fprintf(f, "    level: %s\n", isa_name(c->isa));
    snprintf(line, sizeof line, "    prefetch: %s",
             prefetch_text(c->prefetch, text, sizeof text));
    fprintf(f, "%-32s # %.1f GB/s", line, c->gbps);
    if (c->is_default)
        fprintf(f, ", the default\n");
    else
        fprintf(f, "; the default %.1f\n", c->default_gbps);
    fprintf(f, "    panels: %u\n", (unsigned)kern_panels_interleaved(c->prefetch));
}

enum status tuned_kernels_save(const char *path, const struct topology *topo,
                               const struct kernel_choices *choices, struct err *err)
{
    const time_t now = time(NULL);
    struct tuned_key key;
    struct newfile n;
    char made[32];
    struct tm utc;
    enum status st = tuned_make_place(path, err);

    if (st == ST_OK)
        st = newfile_replace(&n, path, err);
    if (st)
        return st;
    gmtime_r(&now, &utc);
    strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", &utc);
    tuned_key_machine(&key, topo, 0);
    fprintf(
        n.f,
        "# How `bench tune --kernels` read weights in panels fastest, %d thread%s,\n"
        "# roof %.1f GB/s. `bench tune` of a model starts from it where it lies in\n"
        "# the cache directory.\n"
        "version: " VERSION "\nmade: %s\ncpu: \"%s\"\nisa: \"%s\"\n"
        "topology: \"%s\"\nformats:\n",
        choices->n_threads, choices->n_threads == 1 ? "" : "s", choices->read_gbps,
        made, key.text[TUNED_CPU], key.text[TUNED_ISA], key.text[TUNED_TOPOLOGY]);
    for (int i = 0; i < choices->n; i++)
        write_choice(n.f, &choices->v[i]);
    return newfile_commit(&n, path, err);
}

/* ---- reading ------------------------------------------------------------------- */

struct raw {
    char *version, *made, *cpu, *isa, *topology;
    struct tuned_format *formats;
    unsigned formats_count;
};

#define TEXT(name) \
    CYAML_FIELD_STRING_PTR(#name, CYAML_FLAG_POINTER, struct raw, name, 0, 1024)

static const cyaml_schema_field_t fields[] = {
    TEXT(version),
    TEXT(made),
    TEXT(cpu),
    TEXT(isa),
    TEXT(topology),
    CYAML_FIELD_SEQUENCE("formats", CYAML_FLAG_POINTER, struct raw, formats,
                         &tuned_format_schema, 0, KERN_N_FMT),
    CYAML_FIELD_END};

static const cyaml_schema_value_t schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct raw, fields)};

static bool fits(const struct raw *raw, const struct topology *topo)
{
    const char *const there[N_FIELDS] = {raw->cpu, raw->isa, raw->topology};
    struct tuned_key key;

    tuned_key_machine(&key, topo, 0);
    for (size_t i = 0; i < N_FIELDS; i++)
        if (strcmp(there[i], key.text[fields_of_cpu[i]]) != 0)
            return false;
    return true;
}

static enum status read_formats(const struct raw *raw, const char *path,
                                struct slm_tuning *t, struct err *err)
{
    bool seen[KERN_N_FMT] = {false};
    struct slm_tuning new = *t;
    enum status st = ST_OK;

    for (unsigned i = 0; i < raw->formats_count && st == ST_OK; i++)
        st = tuned_format_read(&raw->formats[i], path, seen, &new, err);
    if (st == ST_OK)
        *t = new;
    return st;
}

enum status tuned_kernels_load(struct slm_tuning *t, const char *path,
                               const struct topology *topo, char *note, size_t cap,
                               struct err *err)
{
    void *data = NULL;
    enum status st = yaml_load_file(path, &schema, &data, err);

    if (note)
        *note = '\0';
    if (st)
        return st;
    const struct raw *raw = data;
    if (strcmp(raw->version, VERSION) != 0)
        st = err_set(err, ST_INPUT,
                     "%s: version '%.20s'; this bench reads version " VERSION
                     ": run bench tune --kernels again",
                     path, raw->version);
    else if (fits(raw, topo))
        st = read_formats(raw, path, t, err);
    else if (note)
        snprintf(note, cap, "%s is for another CPU, and not used",
                 format_path(path).text);
    yaml_free_data(&schema, data);
    return st;
}

enum status tuned_kernels_start(struct slm_tuning *t, const struct topology *topo,
                                char *note, size_t cap, struct err *err)
{
    char path[4096];
    struct err no_place = ERR_INIT; /* then there is no file either */

    if (note)
        *note = '\0';
    if (tuned_kernels_path(path, sizeof path, topo, &no_place) || access(path, F_OK))
        return ST_OK;
    return tuned_kernels_load(t, path, topo, note, cap, err);
}
