/* SPDX-License-Identifier: MIT
 *
 * result_run.c - what a run of a result set is: from machine.json, or by columns
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/hash.h"
#include "harness/rows/result_set_impl.h"

#define COMMIT_SHOWN 10

#define TEXT(name)                                                              \
    {                                                                           \
        offsetof(struct result_run, name), sizeof((struct result_run *)0)->name \
    }
static const struct {
    size_t offset, cap;
} texts[RESULT_RUN_COLUMNS] = {TEXT(id),      TEXT(utc),      TEXT(commit),
                               TEXT(version), TEXT(compiler), TEXT(host)};
const char *const result_run_columns[RESULT_RUN_COLUMNS] = {
    "run", "run_utc", "commit_id", "version", "compiler", "host"};

const char *result_run_text(const struct result_run *run, size_t column)
{
    return (const char *)run + texts[column].offset;
}

void result_run_set(struct result_run *run, size_t column, const char *text)
{
    text_harmless((char *)run + texts[column].offset, texts[column].cap, text);
}

struct shown_figure result_run_commit(const struct result_run *run)
{
    struct shown_figure shown;

    snprintf(shown.text, sizeof shown.text, "%.*s", COMMIT_SHOWN,
             *run->commit ? run->commit : "?");
    return shown;
}

void result_dir_name(char *name, size_t cap, const char *path)
{
    char own[4096], *slash;

    snprintf(own, sizeof own, "%s", path);
    for (size_t n = strlen(own); n > 1 && own[n - 1] == '/'; n--)
        own[n - 1] = '\0';
    slash = strrchr(own, '/');
    text_harmless(name, cap, slash && slash[1] ? slash + 1 : own);
}

/* ---- machines -------------------------------------------------------------------- */

/* More is no share: tiles reach some ten at most. */
#define MAX_PRODUCT_SHARE 100

void result_products_read(double share[KERN_N_FMT], const json_t *probe)
{
    const json_t *products = json_object_get(probe, RESULT_PRODUCTS);

    for (int i = 0; i < KERN_N_FMT; i++) {
        const char *name = kern_format_info((enum kern_format)i)->name;
        const double v = json_number_value(json_object_get(products, name));

        share[i] = v > 0 && v < MAX_PRODUCT_SHARE ? v : 0;
    }
}

/* What threads there are, of the CPUs and the quota. */
static void find_threads(struct report_machine *m)
{
    m->max_threads = m->n_cpus;
    if (m->quota_cpus > 0 &&
        m->quota_cpus < (m->n_cpus ? m->n_cpus : SETTING_MAX(threads)))
        m->max_threads = m->quota_cpus < 1 ? 1 : (int)m->quota_cpus;
}

static void name_cpu(struct report_machine *m, const char *model)
{
    text_harmless(m->cpu_model, sizeof m->cpu_model, model);
    if (!strcmp(text_squeeze(m->cpu_model), "unknown"))
        m->cpu_model[0] = '\0';
}

/* As from a machine.json, of a profile that is all there is. */
static void about_profile(struct result_run *run)
{
    static const char before[] = "allowed ";
    struct report_machine *m = &run->about;
    const char *allowed = strstr(run->machine.text[MACHINE_CPUS], before);
    const long n = allowed ? strtol(allowed + strlen(before), NULL, 10) : 0;

    snprintf(m->host, sizeof m->host, "%s", run->host);
    name_cpu(m, run->machine.text[MACHINE_CPU]);
    m->n_cpus = n > 0 && n <= SETTING_MAX(threads) ? (int)n : 0;
    m->quota_cpus = strtod(run->machine.text[MACHINE_QUOTA], NULL);
    find_threads(m);
}

bool result_run_set_machine(struct result_run *run, const char *profile)
{
    run->has_machine = machine_key_parse(&run->machine, profile);
    if (run->has_machine)
        about_profile(run);
    return run->has_machine;
}

void result_run_set_here(struct result_run *run, const struct machine_key *here)
{
    if (run->has_machine || !here)
        return;
    run->has_machine = true;
    run->machine = *here;
    about_profile(run);
}

/* ---- machine.json ---------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void about_machine(struct report_machine *m, const json_t *machine)
{
    const json_t *topo = json_object_get(machine, "topology");
    const json_t *limits = json_object_get(topo, "limits");

    text_harmless(m->host, sizeof m->host, text_of(machine, "host"));
    name_cpu(m, text_of(json_object_get(topo, "cpu"), "model"));
    if (setting_json_int(SETTING_threads, json_object_get(limits, "cpus_allowed"), "",
                         &m->n_cpus, NULL))
        m->n_cpus = 0; /* not known */
    m->quota_cpus = json_number_value(json_object_get(limits, "cpu_quota"));
    find_threads(m);
}

void result_run_describe(struct result_run *run, const json_t *machine)
{
    const json_t *versions = json_object_get(machine, "versions");
    char *command = json_dumps(json_object_get(machine, "command"), JSON_COMPACT);
    const json_int_t seed = json_integer_value(json_object_get(machine, "seed"));
    const char *const given[] = {NULL,
                                 text_of(machine, "utc"),
                                 text_of(versions, "commit"),
                                 text_of(versions, "bench"),
                                 text_of(versions, "compiler"),
                                 text_of(machine, "host")};
    uint64_t id = HASH_BEGIN;

    for (size_t k = 1; k < RESULT_RUN_COLUMNS; k++)
        result_run_set(run, k, given[k]);
    run->has_machine =
        machine_key_read(&run->machine, json_object_get(machine, "topology"));
    about_machine(&run->about, machine);
    result_products_read(run->product_share, json_object_get(machine, "probe"));
    id = hash_add(id, run->utc, strlen(run->utc) + 1);
    id = hash_add(id, run->host, strlen(run->host) + 1);
    id = hash_add(id, &seed, sizeof seed);
    if (command)
        id = hash_add(id, command, strlen(command));
    snprintf(run->id, sizeof run->id, "%016llx", (unsigned long long)id);
    free(command);
}
