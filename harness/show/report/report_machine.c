/* SPDX-License-Identifier: MIT
 *
 * report_machine.c - a machine as it matters for running a model, in sections
 */
#include "harness/show/report/report.h"

#include <stdarg.h>
#include <string.h>

#include "harness/base/format.h"
#include "kernels/isa.h"
#include "kernels/units.h"

#define LABEL_WIDTH 16
#define LINE_WIDTH  79

static void section(const char *title)
{
    puts(title);
}

/* "  label           value", the value's further lines below its first. */
__attribute__((format(printf, 2, 3))) static void line(const char *label,
                                                       const char *fmt, ...)
{
    char text[1000];
    va_list ap;

    printf("  %-*s ", LABEL_WIDTH, label);
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    text_wrap(stdout, text, LABEL_WIDTH + 3, LABEL_WIDTH + 3, LINE_WIDTH, false);
}

/* text in lines of LINE_WIDTH, the first with a bullet, the rest indented like it. */
static void bullet(const char *text)
{
    fputs("  - ", stdout);
    text_wrap(stdout, text, 4, 4, LINE_WIDTH, false);
}

/* The CPUs (all, or the allowed ones) as a list "0-3,8", into buf. */
static const char *cpu_list(const struct topology *t, bool allowed_only, char *buf,
                            size_t cap)
{
    int cpus[TOPO_MAX_CPUS], n = 0;

    for (int i = 0; i < t->n_cpus; i++)
        if (!allowed_only || t->cpu[i].allowed)
            cpus[n++] = t->cpu[i].os_id;
    format_cpus(buf, cap, cpus, n);
    return buf;
}

static void print_cpu(const struct topology *t)
{
    static const char *const smt[] = {
        [TOPO_SMT_NONE] = "one CPU each",
        [TOPO_SMT_SHOWN] = "with hyperthreads",
        [TOPO_SMT_HIDDEN] = "as shown; they may be hyperthreads (virtual machine)",
    };
    char list[4096];

    section("CPU");
    line("model", "%s", t->cpu_model);
    if (t->cpu_vendor[0])
        line("vendor", "%s", t->cpu_vendor);
    line("hypervisor", "%s", t->hypervisor[0] ? t->hypervisor : "none");
    line("kernel", "%s", t->kernel[0] ? t->kernel : "unknown");
    line("sockets", "%d", t->n_packages);
    line("cores", "%d, %s%s", t->n_cores, smt[t->smt],
         t->smt_measured[0] && t->smt != TOPO_SMT_HIDDEN ? " (measured)" : "");
    if (t->n_kinds > 1) {
        topology_kinds_text(t, list, sizeof list);
        line("kinds of core", "%s", list);
    }
    if (t->n_offline)
        line("CPUs", "%d (%s), %d more switched off", t->n_cpus,
             cpu_list(t, false, list, sizeof list), t->n_offline);
    else
        line("CPUs", "%d (%s)", t->n_cpus, cpu_list(t, false, list, sizeof list));
    line("steal", "%.2f %% of the CPU time since boot", 100 * t->steal_share);
}

/* "0+4": the CPUs of the core that cpu[i] is the first of. */
static void core_text(const struct topology *t, int i, char *buf, size_t cap)
{
    snprintf(buf, cap, "%d", t->cpu[i].os_id);
    for (int j = i + 1; j < t->n_cpus; j++)
        if (t->cpu[j].core == t->cpu[i].core)
            text_append(buf, cap, "+%d", t->cpu[j].os_id);
}

/* One wrapped list of cores per socket and NUMA node. */
static void print_node_cores(const struct topology *t, int package, int node)
{
    int column = 0;

    for (int i = 0; i < t->n_cpus; i++) {
        const struct topo_cpu *c = &t->cpu[i];
        char label[48], core[64];

        if (c->package != package || c->node != node || c->sibling)
            continue;
        core_text(t, i, core, sizeof core);
        if (column == 0 || column + 1 + (int)strlen(core) > LINE_WIDTH) {
            snprintf(label, sizeof label, "socket %d node %d", package, node);
            printf("%s  %-*s", column ? "\n" : "", LABEL_WIDTH, column ? "" : label);
            column = LABEL_WIDTH + 2;
        }
        column += printf(" %s", core);
    }
    if (column)
        putchar('\n');
}

static void print_cores(const struct topology *t)
{
    section("Cores and siblings (a+b: hyperthreads of one core)");
    for (int p = 0; p < t->n_packages; p++)
        for (int n = 0; n < (t->n_nodes > 0 ? t->n_nodes : 1); n++)
            print_node_cores(t, p, n);
}

static void print_caches(const struct topology *t)
{
    section("Caches");
    for (int i = 0; i < t->n_caches; i++) {
        const struct topo_cache *c = &t->cache[i];
        char label[40];

        snprintf(label, sizeof label, "L%d %s", c->level, c->type);
        line(label, "%d x %s", c->n_instances, bytes_text(c->bytes).text);
    }
    if (!t->n_caches)
        line("unknown", "not reported by this machine");
    if (t->n_caches || t->llc_all.bytes) {
        char label[16], text[200];

        snprintf(label, sizeof label, "L%d",
                 t->n_caches ? t->cache[t->n_caches - 1].level : 0);
        line(t->n_caches ? label : "last level", "%s",
             topology_cache_text(t, text, sizeof text));
    }
}

static void print_isa(const struct topology *t)
{
    char units[UNITS_TEXT_MAX];

    section("ISA levels");
    for (int i = 0; i < KERN_N_ISA; i++) {
        const enum kern_isa isa = (enum kern_isa)i;

        if (t->isa_mask >> i & 1u)
            line(isa_name(isa), "usable: %s", isa_extensions(isa));
        else if (strncmp(t->isa_missing[i], "for ", 4) != 0) /* another architecture */
            line(isa_name(isa), "not usable: %s", t->isa_missing[i]);
    }
    if (t->unused_units)
        line("others", "not used by any kernel here: %s",
             units_text(t->unused_units, units, sizeof units));
}

static void print_memory(const struct topology *t)
{
    section("Memory");
    line("total", "%s", bytes_text(t->mem_total).text);
    line("available", "%s", bytes_text(t->mem_available).text);
    line("NUMA nodes", "%d, with %s", t->n_nodes, bytes_text(t->mem_hwloc).text);
    line("swap", "%s", t->swap_total ? bytes_text(t->swap_total).text : "none");
    line("huge pages", "transparent: %s; reserved: %llu of 2 MiB, %llu free", t->thp,
         (unsigned long long)t->huge_2m_total, (unsigned long long)t->huge_2m_free);
}

static void print_limits(const struct topology *t)
{
    char list[4096];

    section("Limits of this process");
    line("CPUs allowed", "%d (%s) on %d core%s", t->n_allowed,
         cpu_list(t, true, list, sizeof list), t->n_allowed_cores,
         t->n_allowed_cores == 1 ? "" : "s");
    if (t->quota_cpus > 0)
        line("CPU quota", "%.4g CPUs (%s)", t->quota_cpus, t->quota_source);
    else
        line("CPU quota", "none");
    if (t->mem_limit)
        line("memory limit", "%s (%s)", bytes_text(t->mem_limit).text,
             t->mem_limit_source);
    else
        line("memory limit", "none");
    if (t->mem_left)
        line("left of it", "%s (%s)", bytes_text(t->mem_left).text, t->mem_left_source);
    if (t->cgroup_version)
        line("cgroups", "version %d", t->cgroup_version);
    else
        line("cgroups", "none with a memory or CPU controller");
}

static void print_advice(const struct topology *t)
{
    struct topo_advice advice[TOPO_MAX_ADVICE];
    const int n = topology_advice(t, advice);

    section("What follows");
    for (int i = 0; i < n; i++)
        bullet(advice[i].text);
}

static void print_all(const struct topology *t)
{
    static void (*const parts[])(const struct topology *) = {
        print_cpu,    print_cores,  print_caches, print_isa,
        print_memory, print_limits, print_advice,
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (i)
            putchar('\n');
        parts[i](t);
    }
}

/* The result of each test, if there are several: the advice has that of two CPUs. */
static void print_pairs(const struct cores_map *map)
{
    char text[200];

    if (map->n_cpus == 2)
        return;
    putchar('\n');
    section("Cores, measured");
    if (map->n_group)
        line("all at once", "the slowest of %d kept %.0f %% of its speed", map->n_group,
             100 * map->min_share);
    for (int i = 0; i < map->n_pairs; i++) {
        cores_pair_text(&map->pair[i], text, sizeof text);
        bullet(text);
    }
}

void report_machine(const struct topology *t, const struct cores_map *map,
                    bool measured, const char *dir)
{
    print_all(t);
    if (map) {
        print_pairs(map);
    } else if (measured) {
        putchar('\n');
        section("Cores, measured");
        bullet("This process may run on one CPU: there are no two to compare.");
    }
    if (*dir)
        printf("\nThe bandwidth by working set is in %s: cache.csv and its chart\n",
               format_path(dir).text);
}
