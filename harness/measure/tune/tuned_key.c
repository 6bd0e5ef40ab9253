/* SPDX-License-Identifier: MIT
 *
 * tuned_key.c - what a profile is for: machine, limits, program and model
 */
#include "harness/measure/tune/tuned.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/hash.h"
#include "harness/base/program.h"

/* ---- texts -------------------------------------------------------------------- */

/* One line of characters that need no care in YAML's quotes. */
static void put(struct tuned_key *key, enum tuned_field field, const char *text)
{
    char *out = key->text[field];
    size_t n = 0;

    for (; *text && n + 1 < sizeof key->text[field]; text++)
        out[n++] = (unsigned char)*text < ' ' || *text == '"' || *text == '\\' ||
                           (unsigned char)*text > '~'
                       ? '_'
                       : *text;
    out[n] = '\0';
}

/* ---- the machine and its limits -------------------------------------------------- */

static void put_isa(struct tuned_key *key, uint32_t mask)
{
    char text[160] = "";

    for (int i = 0; i < KERN_N_ISA; i++)
        if (mask >> i & 1) {
            const size_t used = strlen(text);

            snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "",
                     isa_name((enum kern_isa)i));
        }
    put(key, TUNED_ISA, text);
}

static void put_topology(struct tuned_key *key, const struct topology *t)
{
    int allowed[TOPO_MAX_CPUS], n = 0;
    char text[160], cpus[64];

    for (int i = 0; i < t->n_cpus; i++)
        if (t->cpu[i].allowed)
            allowed[n++] = t->cpu[i].os_id;
    format_cpus(cpus, sizeof cpus, allowed, n);
    snprintf(text, sizeof text, "packages %d, nodes %d, cores %d, CPUs %d, allowed %s",
             t->n_packages, t->n_nodes, t->n_cores, t->n_cpus, cpus);
    put(key, TUNED_TOPOLOGY, text);
}

static void put_limits(struct tuned_key *key, const struct topology *t, uint64_t limit)
{
    char text[64];

    snprintf(text, sizeof text, t->quota_cpus > 0 ? "%.2f CPUs" : "none",
             t->quota_cpus);
    put(key, TUNED_QUOTA, text);
    limit = limit ? limit : t->mem_limit;
    if (limit)
        format_size(text, sizeof text, limit);
    else
        snprintf(text, sizeof text, "none");
    put(key, TUNED_MEMORY, text);
}

/* ---- the program ----------------------------------------------------------------- */

static size_t aligned(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

/* The GNU build id among the notes of the program itself, the first object. */
static int find_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
    char *text = arg;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        const char *p = (const char *)(info->dlpi_addr + ph->p_vaddr);
        const char *end = p + ph->p_memsz;

        while (ph->p_type == PT_NOTE && p + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)p;
            const char *name = p + sizeof *note;
            const unsigned char *id = (const void *)(name + aligned(note->n_namesz));

            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                !memcmp(name, "GNU", 4))
                for (unsigned k = 0; k < note->n_descsz && k < 20; k++)
                    sprintf(text + 2 * (size_t)k, "%02x", id[k]);
            p = (const char *)id + aligned(note->n_descsz);
        }
    }
    return 1;
}

static void put_build(struct tuned_key *key)
{
    char text[48] = "";

    dl_iterate_phdr(find_build_id, text);
    put(key, TUNED_BUILD, *text ? text : build_version());
}

/* ---- the model ------------------------------------------------------------------- */

static void put_model(struct tuned_key *key, const char *name, const char *quant,
                      uint64_t bytes, const void *tables, size_t n)
{
    char text[32];

    put(key, TUNED_MODEL, name);
    put(key, TUNED_QUANT, quant);
    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    put(key, TUNED_BYTES, text);
    snprintf(text, sizeof text, "%016llx",
             (unsigned long long)hash_add(HASH_BEGIN, tables, n));
    put(key, TUNED_TABLES, text);
}

static enum status put_file(struct tuned_key *key, const struct modelref *model,
                            struct err *err)
{
    struct slm_params params = slm_params_default();
    struct slm_info info;
    struct gguf *g = NULL;
    enum status st = modelref_open(model, &g, err);

    params.n_ctx = 1;
    if (st == ST_OK)
        st = slm_plan(&info, g, &params, err);
    if (st == ST_OK)
        put_model(key, *info.name ? info.name : model->name, info.quant,
                  gguf_image_bytes(g), gguf_image(g), (size_t)gguf_data_offset(g));
    gguf_close(g);
    return st;
}

static enum status put_synthetic(struct tuned_key *key, const struct modelref *model,
                                 struct err *err)
{
    struct synth_plan *plan = NULL;
    const enum status st =
        synth_plan_make(&plan, &model->shape, model->mix, MODELREF_SEED, err);
    const void *tables;
    size_t n;

    if (st)
        return st;
    tables = synth_plan_header(plan, &n);
    put_model(key, model->shape.name, quantmix_name(model->mix), synth_plan_bytes(plan),
              tables, n);
    synth_plan_free(plan);
    return ST_OK;
}

/* ---- the key --------------------------------------------------------------------- */

void tuned_key_machine(struct tuned_key *key, const struct topology *topo,
                       uint64_t mem_limit)
{
    memset(key, 0, sizeof *key);
    put(key, TUNED_CPU, topo->cpu_model);
    put_isa(key, isa_usable());
    put_topology(key, topo);
    put_limits(key, topo, mem_limit);
    put(key, TUNED_KERNEL, topo->kernel);
    put_build(key);
}

enum status tuned_key_model(struct tuned_key *key, const struct modelref *model,
                            bool in_memory, struct err *err)
{
    return in_memory ? put_synthetic(key, model, err) : put_file(key, model, err);
}

bool tuned_key_fits(const struct tuned_key *there, const struct tuned_key *here,
                    char *why, size_t cap)
{
#define X(field, name, what) what,
    static const char *const names[] = {TUNED_FIELDS(X)};
#undef X

    for (int i = 0; i < TUNED_N_FIELDS; i++)
        if (i != TUNED_MODEL && strcmp(there->text[i], here->text[i])) {
            snprintf(why, cap, "it is stale: its %s is '%.60s', and here it is '%.60s'",
                     names[i], there->text[i], here->text[i]);
            return false;
        }
    return true;
}

enum status tuned_path(char *out, size_t cap, const struct tuned_key *key,
                       struct err *err)
{
    uint64_t h = HASH_BEGIN;
    char file[160], model[64];

    for (int i = 0; i < TUNED_N_FIELDS; i++)
        if (i != TUNED_KERNEL && i != TUNED_BUILD)
            h = hash_add(h, key->text[i], strlen(key->text[i]) + 1);
    snprintf(model, sizeof model, "%.40s-%.20s", key->text[TUNED_MODEL],
             key->text[TUNED_QUANT]);
    for (char *p = model; *p; p++)
        if (*p == '/' || *p == ' ')
            *p = '_';
    snprintf(file, sizeof file, "tuned/%s-%016llx.yaml", model, (unsigned long long)h);
    return modelref_cache_path(out, cap, NULL, file, err);
}
