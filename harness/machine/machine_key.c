/* SPDX-License-Identifier: MIT
 *
 * machine_key.c - a machine's profile from its topology, and comparing two of them
 */
#include "harness/machine/machine_key.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/jsonfile.h"
#include "harness/base/format.h"
#include "harness/base/hash.h"

#define UNKNOWN     "unknown"
#define MEMORY_SLIP 0.03

static const char *const names[MACHINE_N_FIELDS] = {
    [MACHINE_CPU] = "CPU",        [MACHINE_HYPERVISOR] = "hypervisor",
    [MACHINE_ISA] = "ISA levels", [MACHINE_CPUS] = "CPU layout",
    [MACHINE_CACHES] = "caches",  [MACHINE_QUOTA] = "CPU quota",
    [MACHINE_MEMORY] = "memory",  [MACHINE_PAGES] = "huge pages",
};

/* ---- from a topology ------------------------------------------------------------- */

/* The text ends in tables and error messages. */
static void put(struct machine_key *key, enum machine_field field, const char *text)
{
    text_harmless(key->text[field], sizeof key->text[field], text);
    text_squeeze(key->text[field]); /* as the topology has it; older files are padded */
}

static const char *text_of(const json_t *object, const char *name, const char *without)
{
    const char *text = json_text(json_object_get(object, name));

    return text && *text ? text : without;
}

static long long int_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void put_isa(struct machine_key *key, json_t *levels)
{
    char text[160] = "";
    const char *name;
    json_t *level;

    json_object_foreach(levels, name, level)
    {
        text_append(text, sizeof text, "%s%c%s", text[0] ? " " : "",
                    json_is_true(json_object_get(level, "usable")) ? '+' : '-', name);
    }
    put(key, MACHINE_ISA, *text ? text : UNKNOWN);
}

static void put_caches(struct machine_key *key, const json_t *caches)
{
    char text[160] = "", bytes[32];
    const json_t *cache;
    size_t i;

    json_array_foreach(caches, i, cache)
    {
        const char *type = text_of(cache, "type", "");

        format_size(bytes, sizeof bytes, (uint64_t)int_of(cache, "bytes"));
        text_append(text, sizeof text, "%sL%lld%s %s", text[0] ? ", " : "",
                    int_of(cache, "level"),
                    *type == 'd'   ? "d"
                    : *type == 'i' ? "i"
                                   : "",
                    bytes);
    }
    put(key, MACHINE_CACHES, *text ? text : UNKNOWN);
}

static void put_memory(struct machine_key *key, const json_t *memory,
                       const json_t *limits)
{
    const double total = (double)int_of(memory, "total_bytes");
    const double limit = (double)int_of(limits, "memory_bytes");
    char text[64] = UNKNOWN;

    if (total > 0)
        snprintf(text, sizeof text, "%.2f GiB",
                 (limit > 0 && limit < total ? limit : total) / (1 << 30));
    put(key, MACHINE_MEMORY, text);
}

bool machine_key_read(struct machine_key *key, const json_t *topology)
{
    const json_t *cpu = json_object_get(topology, "cpu");
    const json_t *limits = json_object_get(topology, "limits");
    const json_t *memory = json_object_get(topology, "memory");
    const double quota = json_number_value(json_object_get(limits, "cpu_quota"));
    char text[160];

    if (!json_is_object(cpu) || !json_is_object(limits) || !json_is_object(memory))
        return false;
    memset(key, 0, sizeof *key);
    put(key, MACHINE_CPU, text_of(cpu, "model", UNKNOWN));
    put(key, MACHINE_HYPERVISOR, text_of(cpu, "hypervisor", "none"));
    put_isa(key, json_object_get(cpu, "isa"));
    snprintf(
        text, sizeof text,
        "packages %lld, nodes %lld, cores %lld, CPUs %lld, allowed %lld, SMT %.20s",
        int_of(cpu, "packages"), int_of(cpu, "nodes"), int_of(cpu, "cores"),
        int_of(cpu, "cpus"), int_of(limits, "cpus_allowed"),
        text_of(cpu, "smt", UNKNOWN));
    put(key, MACHINE_CPUS, text);
    put_caches(key, json_object_get(cpu, "caches"));
    snprintf(text, sizeof text, quota > 0 ? "%.2f CPUs" : "none", quota);
    put(key, MACHINE_QUOTA, text);
    put_memory(key, memory, limits);
    put(key, MACHINE_PAGES, text_of(memory, "transparent_huge_pages", UNKNOWN));
    return true;
}

/* ---- as JSON --------------------------------------------------------------------- */

json_t *machine_key_json(const struct machine_key *key)
{
    json_t *object = json_object();

    for (int i = 0; i < MACHINE_N_FIELDS; i++) /* texts that put() made are UTF-8 */
        json_object_set_new(object, names[i], json_string(key->text[i]));
    return object;
}

bool machine_key_from_json(struct machine_key *key, const json_t *object)
{
    struct machine_key found;

    memset(&found, 0, sizeof found);
    for (int i = 0; i < MACHINE_N_FIELDS; i++) {
        const char *text = json_text(json_object_get(object, names[i]));

        if (!text)
            return false;
        put(&found, (enum machine_field)i, text);
    }
    *key = found;
    return true;
}

bool machine_key_parse(struct machine_key *key, const char *text)
{
    static const struct json_limit limit = {.bytes = 1u << 16, .values = 1000};
    struct err ignored = ERR_INIT;
    struct jsonfile f;

    if (!text || jsonfile_parse(&f, "a machine's profile", text, strlen(text), limit, 0,
                                &ignored))
        return false;
    const bool found = machine_key_from_json(key, f.root);

    jsonfile_free(&f);
    return found;
}

/* ---- comparing ------------------------------------------------------------------- */

static bool same_memory(const char *a, const char *b)
{
    const double x = strtod(a, NULL), y = strtod(b, NULL);

    return !strcmp(a, b) || (x > 0 && y > 0 && fabs(x - y) <= MEMORY_SLIP * fmax(x, y));
}

/* Is the level that begins at word, "+avx2", in text with the other sign? */
static bool contradicts(const char *word, size_t len, const char *text)
{
    for (const char *p = text; *p; p += strcspn(p, " "), p += *p == ' ')
        if (strcspn(p, " ") == len && !strncmp(p + 1, word + 1, len - 1))
            return *p != *word;
    return false;
}

static bool same_isa(const char *a, const char *b)
{
    for (const char *p = a; *p;) {
        const size_t len = strcspn(p, " ");

        if (len > 1 && contradicts(p, len, b))
            return false;
        p += len;
        p += *p == ' ';
    }
    return true;
}

bool machine_key_same(const struct machine_key *there, const struct machine_key *here,
                      char *why, size_t cap)
{
    for (int i = 0; i < MACHINE_N_FIELDS; i++) {
        const char *a = there->text[i], *b = here->text[i];
        const bool same = i == MACHINE_MEMORY ? same_memory(a, b)
                          : i == MACHINE_ISA  ? same_isa(a, b)
                                              : !strcmp(a, b);

        if (same)
            continue;
        if (why)
            snprintf(why, cap, "its %s is '%.100s', here '%.100s'", names[i], a, b);
        return false;
    }
    return true;
}

const char *machine_key_name(const struct machine_key *key, char *buf, size_t cap)
{
    const char *cpus = strstr(key->text[MACHINE_CPUS], "allowed ");
    const int n = cpus ? atoi(cpus + strlen("allowed ")) : 0;
    const char *hypervisor = key->text[MACHINE_HYPERVISOR];
    const bool virtual = strcmp(hypervisor, "none") != 0;

    const char *const cpu = key->text[MACHINE_CPU], *memory = key->text[MACHINE_MEMORY];

    buf[0] = '\0';
    if (strcmp(cpu, UNKNOWN) != 0)
        text_append(buf, cap, "%.80s, ", cpu);
    text_append(buf, cap, "%d CPU%s", n, n == 1 ? "" : "s");
    if (strcmp(memory, UNKNOWN) != 0)
        text_append(buf, cap, ", %.20s", memory);
    if (virtual && strcmp(hypervisor, UNKNOWN) != 0)
        text_append(buf, cap, ", %.30s", hypervisor);
    return buf;
}

uint64_t machine_key_hash(const struct machine_key *key)
{
    uint64_t h = HASH_BEGIN;

    for (int i = 0; i < MACHINE_N_FIELDS; i++)
        h = hash_add(h, key->text[i], strlen(key->text[i]) + 1);
    return h;
}
