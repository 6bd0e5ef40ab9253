/* SPDX-License-Identifier: MIT
 *
 * topology_plain.c - CPUs and caches if hwloc and /sys cannot be read
 */
#include "harness/machine/topology_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- CPUs ------------------------------------------------------------------------ */

/* One CPU as /proc/cpuinfo has it; -1: not given. */
struct plain_cpu {
    int os_id, package, core;
};

/* The number of a line "key\t: 12". */
static bool take_number(const char *line, const char *key, int *v)
{
    const size_t len = strlen(key);
    int n;

    if (strncmp(line, key, len) || sscanf(line + len, " : %d", &n) != 1 || n < 0)
        return false;
    *v = n;
    return true;
}

/* The CPUs of the text, in its order. */
static int parse(const char *text, struct plain_cpu cpu[TOPO_MAX_CPUS])
{
    int n = 0, id;

    for (const char *line = text; line && *line;
         line = (line = strchr(line, '\n')) ? line + 1 : NULL) {
        if (take_number(line, "processor", &id)) {
            if (n == TOPO_MAX_CPUS)
                break;
            cpu[n++] = (struct plain_cpu){.os_id = id, .package = -1, .core = -1};
        } else if (n) {
            take_number(line, "physical id", &cpu[n - 1].package);
            take_number(line, "core id", &cpu[n - 1].core);
        }
    }
    return n;
}

static bool has(const struct plain_cpu *cpu, int n, int os_id)
{
    for (int i = 0; i < n; i++)
        if (cpu[i].os_id == os_id)
            return true;
    return false;
}

static int by_os_id(const void *a, const void *b)
{
    const struct plain_cpu *x = a, *y = b;

    return (x->os_id > y->os_id) - (x->os_id < y->os_id);
}

/* The index of the first CPU of the same core (or package) as cpu[i]. Without cores
 * each CPU is one. */
static int first_of_core(const struct plain_cpu *cpu, int i)
{
    int j = 0;

    while (j < i && (cpu[i].core < 0 || cpu[j].core != cpu[i].core ||
                     cpu[j].package != cpu[i].package))
        j++;
    return j;
}

static int first_of_package(const struct plain_cpu *cpu, int i)
{
    int j = 0;

    while (cpu[j].package != cpu[i].package)
        j++;
    return j;
}

static void place(struct topology *t, const struct plain_cpu *cpu, int n)
{
    t->n_cpus = n;
    t->n_cores = t->n_packages = 0;
    for (int i = 0; i < n; i++) {
        const int core = first_of_core(cpu, i), package = first_of_package(cpu, i);
        struct topo_cpu *c = &t->cpu[i];

        *c = (struct topo_cpu){.os_id = cpu[i].os_id};
        c->core = core == i ? t->n_cores++ : t->cpu[core].core;
        c->package = package == i ? t->n_packages++ : t->cpu[package].package;
        c->llc = c->package;
    }
}

/* ---- caches ---------------------------------------------------------------------- */

static void add_caches(struct topology *t)
{
    static const struct {
        int level;
        const char *type;
        int bytes, line; /* names of sysconf() */
    } known[] = {
        {1, "data", _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL1_DCACHE_LINESIZE},
        {1, "instruction", _SC_LEVEL1_ICACHE_SIZE, _SC_LEVEL1_ICACHE_LINESIZE},
        {2, "unified", _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL2_CACHE_LINESIZE},
        {3, "unified", _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL3_CACHE_LINESIZE},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const long bytes = sysconf(known[i].bytes), line = sysconf(known[i].line);
        struct topo_cache *c = &t->cache[t->n_caches];

        if (bytes <= 0)
            continue;
        *c = (struct topo_cache){.level = known[i].level, .bytes = (uint64_t)bytes};
        snprintf(c->type, sizeof c->type, "%s", known[i].type);
        c->n_instances = known[i].level < 3 ? t->n_cores : t->n_packages;
        c->line_bytes = line > 0 ? (int)line : 0;
        t->n_caches++;
    }
}

void topology_read_plain(struct topology *t, const char *cpuinfo, const int *mine,
                         int n_mine)
{
    struct plain_cpu cpu[TOPO_MAX_CPUS];
    int n = parse(cpuinfo, cpu);
    bool whole = n > 0;

    for (int i = 0; i < n_mine; i++)
        whole &= has(cpu, n, mine[i]);
    if (!whole) {
        n = n_mine;
        for (int i = 0; i < n; i++)
            cpu[i] = (struct plain_cpu){.os_id = mine[i], .package = -1, .core = -1};
    }
    if (n == 0) /* not even an affinity mask */
        cpu[n++] = (struct plain_cpu){.package = -1, .core = -1};
    qsort(cpu, (size_t)n, sizeof cpu[0], by_os_id);
    place(t, cpu, n);
    t->n_nodes = 1;
    t->n_offline = 0;
    t->mem_hwloc = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    t->n_caches = 0;
    add_caches(t);
}
