/* SPDX-License-Identifier: MIT
 *
 * cpus.c - reading and finding CPUs
 */
#include "harness/decide/predict/cpus.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/base/yamlfile.h"

/* Up to this number of cores a few can read all that the memory gives; in a larger CPU
 * half of the cores can. */
#define DESKTOP_CORES 16

/* ---- reading --------------------------------------------------------------------- */

#define TEXT_BYTES 32

struct cpu_text {
    char name[64], also[128], memory[64], source[200], date[16];
    char cores[TEXT_BYTES], peak_gbps[TEXT_BYTES], core_gbps[TEXT_BYTES],
        gops[TEXT_BYTES], llc[TEXT_BYTES];
};

#define TEXT(name) \
    CYAML_FIELD_STRING(#name, CYAML_FLAG_DEFAULT, struct cpu_text, name, 0)
#define MAYBE(name) \
    CYAML_FIELD_STRING(#name, CYAML_FLAG_OPTIONAL, struct cpu_text, name, 0)
static const cyaml_schema_field_t cpu_fields[] = {
    TEXT(name),      MAYBE(also),      TEXT(memory),   TEXT(cores),
    TEXT(peak_gbps), MAYBE(core_gbps), MAYBE(gops),    MAYBE(llc),
    TEXT(source),    TEXT(date),       CYAML_FIELD_END};

static enum status to_speed(const char *text, const char *what, double most,
                            double *out, struct err *err)
{
    return text[0] ? parse_double(text, what, 1e-3, most, out, err) : ST_OK;
}

static enum status convert(void *to, const void *from, const char *what,
                           struct err *err)
{
    const struct cpu_text *text = from;
    struct cpu *c = to;
    long long n_cores = 0;

    text_harmless(c->name, sizeof c->name, text->name);
    text_harmless(c->also, sizeof c->also, text->also);
    text_harmless(c->memory, sizeof c->memory, text->memory);
    text_harmless(c->source, sizeof c->source, text->source);
    text_harmless(c->date, sizeof c->date, text->date);
    if (!c->name[0])
        return err_set(err, ST_USAGE, "%s has no name", what);
    if (parse_count(text->cores, what, "", 1, 4096, &n_cores, err) ||
        parse_double(text->peak_gbps, what, 1e-3, 1e6, &c->peak_gbps, err) ||
        to_speed(text->core_gbps, what, 1e6, &c->core_gbps, err) ||
        to_speed(text->gops, what, 1e9, &c->gops, err))
        return err->code;
    c->n_cores = (int)n_cores;
    return text->llc[0] ? parse_bytes(text->llc, what, &c->llc_bytes, err) : ST_OK;
}

enum status cpus_load(struct cpus *cpus, const char *path, struct err *err)
{
    static const struct yaml_list list = {.key = "cpus",
                                          .entry = "CPU",
                                          .most = CPUS_MAX,
                                          .fields = cpu_fields,
                                          .text_bytes = sizeof(struct cpu_text),
                                          .bytes = sizeof(struct cpu),
                                          .convert = convert};
    void *v;
    const enum status st = yaml_load_list(&v, &cpus->n, path, &list, err);

    if (st == ST_OK)
        cpus->v = v;
    return st;
}

void cpus_free(struct cpus *cpus)
{
    free(cpus->v);
    *cpus = (struct cpus){NULL, 0};
}

/* ---- finding --------------------------------------------------------------------- */

/* Whether text holds the word [len], not as a part of a longer number or word. */
static bool has_word(const char *text, const char *word, size_t len)
{
    for (const char *at = text; *at; at++) {
        const bool begins = at == text || !isalnum((unsigned char)at[-1]);

        if (begins && !strncasecmp(at, word, len) && !isalnum((unsigned char)at[len]))
            return true;
    }
    return false;
}

/* Whether every word of wanted is one of the CPU's. */
static bool matches(const struct cpu *c, const char *wanted)
{
    int n = 0;

    for (size_t len; *wanted; wanted += len) {
        wanted += strcspn(wanted, "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
        len = 0;
        while (isalnum((unsigned char)wanted[len]))
            len++;
        if (!len)
            break;
        if (!has_word(c->name, wanted, len) && !has_word(c->also, wanted, len))
            return false;
        n++;
    }
    return n > 0;
}

static void append_name(char *list, size_t cap, const char *name)
{
    if (strlen(list) + strlen(name) + 8 < cap)
        text_append(list, cap, "%s%s", list[0] ? ", " : "", name);
    else if (strcmp(list + strlen(list) - 3, "...")) /* one name always fits */
        text_append(list, cap, ", ...");
}

enum status cpus_find(const struct cpus *cpus, const char *name,
                      const struct cpu **found, struct err *err)
{
    const struct cpu *one = NULL;
    char list[320] = "", all[320] = "";
    int n = 0;

    for (size_t i = 0; i < cpus->n; i++) {
        append_name(all, sizeof all, cpus->v[i].name);
        if (!matches(&cpus->v[i], name))
            continue;
        one = &cpus->v[i];
        append_name(list, sizeof list, one->name);
        n++;
    }
    if (n > 1)
        return err_set(err, ST_USAGE, "'%.60s' may be any of %s; give more of its name",
                       name, list);
    if (!one)
        return err_set(err, ST_USAGE,
                       "no CPU is known as '%.60s'; give its bandwidth, as --gbps 38. "
                       "Known are %s",
                       name, all);
    *found = one;
    return ST_OK;
}

/* ---- what it reads --------------------------------------------------------------- */

double cpu_read_gbps(const struct cpu *cpu, int n_threads)
{
    const double most = CPU_USUAL_SHARE * cpu->peak_gbps;
    const int n = n_threads && n_threads < cpu->n_cores ? n_threads : cpu->n_cores;

    if (cpu->core_gbps > 0)
        return n * cpu->core_gbps < most ? n * cpu->core_gbps : most;
    return 2 * n >= cpu->n_cores || cpu->n_cores <= DESKTOP_CORES ? most : 0;
}
