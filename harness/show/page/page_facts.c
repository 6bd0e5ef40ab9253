/* SPDX-License-Identifier: MIT
 *
 * page_facts.c - the machine and its limits, from machine.json or the profile of a
 * database
 */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/machine/topology.h"
#include "harness/show/page/html.h"
#include "harness/show/page/page_machine.h"

#define MAX_ADVICE 16

/* The member that a path of keys, ended by NULL, leads to; NULL: no such member. */
static const json_t *find(const json_t *object, ...)
{
    va_list ap;
    const char *key;

    va_start(ap, object);
    while (object && (key = va_arg(ap, const char *)))
        object = json_object_get(object, key);
    va_end(ap);
    return object;
}

/* A text of the file, harmless; "" where it has none. */
static const char *text_of(const json_t *value, char *buf, size_t cap)
{
    return text_harmless(buf, cap, json_string_value(value));
}

static void put_fact(FILE *f, const char *name, const char *text)
{
    if (!*text)
        return;
    fprintf(f, "<dt>%s</dt><dd>", name);
    html_put(f, text);
    fputs("</dd>\n", f);
}

static void put_cpu(FILE *f, const struct page_machine *m)
{
    const json_t *cpu = find(m->facts, "topology", "cpu", NULL);
    const json_int_t n = json_integer_value(json_object_get(cpu, "cpus"));
    const json_int_t n_cores = json_integer_value(json_object_get(cpu, "cores"));
    char text[256], by[64];

    snprintf(text, sizeof text, "%s", m->machine.cpu_model);
    text_of(json_object_get(cpu, "hypervisor"), by, sizeof by);
    if (*by)
        text_append(text, sizeof text, "%son %s", *text ? ", " : "", by);
    put_fact(f, "Processor", text);
    text[0] = '\0';
    if (n > 0)
        snprintf(text, sizeof text, "%lld on %lld core%s", (long long)n,
                 (long long)n_cores, plural(n_cores, "s"));
    if (m->machine.n_cpus > 0 && m->machine.n_cpus != n)
        text_append(text, sizeof text, "%s%d allowed", *text ? ", " : "",
                    m->machine.n_cpus);
    if (m->machine.quota_cpus > 0)
        text_append(text, sizeof text, ", quota of %.3g", m->machine.quota_cpus);
    put_fact(f, "CPUs", text);
}

/* The highest level of kernels, and units that none uses. */
static void put_levels(FILE *f, const struct page_machine *m)
{
    const json_t *cpu = find(m->facts, "topology", "cpu", NULL);
    json_t *levels = json_object_get(cpu, "isa"), *level, *unit;
    char text[256] = "", name[64];
    const char *key;
    size_t i;

    json_object_foreach(levels, key,
                        level) if (json_is_true(json_object_get(level, "usable")))
        text_harmless(text, 64, key);
    json_array_foreach(json_object_get(cpu, "unused_units"), i, unit)
        text_append(text, sizeof text, "%s%s",
                    i ? ", " : "; not used: ", text_of(unit, name, sizeof name));
    put_fact(f, "Kernels", text);
}

/* The reported size, and the part that serves the machine. */
static void put_cache(FILE *f, const json_t *cpu)
{
    struct topology *topo = calloc(1, sizeof *topo);
    char text[200];

    if (!topo)
        return;
    topology_cache_from_json(topo, cpu);
    if (topology_cache(topo, 1).bytes)
        put_fact(f, "Last-level cache", topology_cache_text(topo, text, sizeof text));
    free(topo);
}

static void put_memory(FILE *f, const struct page_machine *m)
{
    const json_t *total = find(m->facts, "topology", "memory", "total_bytes", NULL);
    const json_t *cpu = find(m->facts, "topology", "cpu", NULL);
    const json_t *pages =
        find(m->facts, "topology", "memory", "transparent_huge_pages", NULL);
    char text[256] = "", size[32], mode[32];

    if (json_integer_value(total) > 0)
        format_bytes(text, sizeof text, (uint64_t)json_integer_value(total));
    else if (!m->facts && m->run->has_machine)
        snprintf(text, sizeof text, "%s", m->run->machine.text[MACHINE_MEMORY]);
    text_of(pages, mode, sizeof mode);
    if (*mode)
        text_append(text, sizeof text, "%shuge pages: %s", *text ? ", " : "", mode);
    put_fact(f, "Memory", text);
    put_cache(f, cpu);
    text[0] = '\0';
    for (size_t i = 0; i < m->picked.n; i++) {
        const int64_t limit = m->picked.v[i]->mem_limit_bytes;

        if (i && limit == m->picked.v[i - 1]->mem_limit_bytes)
            continue;
        if (limit > 0)
            format_bytes(size, sizeof size, (uint64_t)limit);
        else
            snprintf(size, sizeof size, "none");
        if (!strstr(text, size))
            text_append(text, sizeof text, "%s%s", *text ? ", " : "", size);
    }
    put_fact(f, "Memory limit", text);
}

/* The fastest reading of each number of threads, and the other probes. */
static void put_probes(FILE *f, const struct page_machine *m)
{
    const json_t *probe = json_object_get(m->facts, "probe");
    json_t *read = json_object_get(probe, "read"), *one;
    json_int_t threads = -1;
    char text[512] = "", isa[32];
    double best = 0, gops, gbps;
    size_t i;

    for (i = 0; i <= json_array_size(read) && i < 256; i++) {
        one = json_array_get(read, i);
        const json_int_t n = json_integer_value(json_object_get(one, "n_threads"));

        if (best > 0 && (!one || n != threads)) {
            text_append(text, sizeof text, "%s%.1f GB/s with %lld thread%s",
                        *text ? ", " : "", best, (long long)threads,
                        plural(threads, "s"));
            best = 0;
        }
        threads = n;
        best = fmax(best, json_number_value(find(one, "gbps", "median", NULL)));
    }
    put_fact(f, "Reading memory", text);
    gops = json_number_value(find(probe, "int8", "all_threads_gops", "median", NULL));
    text_of(find(probe, "int8", "isa", NULL), isa, sizeof isa);
    text[0] = '\0';
    if (gops > 0)
        snprintf(text, sizeof text, "%.0f GOPS in int8%s%s%s", gops, *isa ? " (" : "",
                 isa, *isa ? ")" : "");
    put_fact(f, "Arithmetic", text);
    gbps = json_number_value(find(probe, "disk", "gbps", "median", NULL));
    text[0] = '\0';
    if (gbps > 0)
        snprintf(text, sizeof text, "%.2f GB/s", gbps);
    put_fact(f, "Disk", text);
}

static void put_origin(FILE *f, const struct page_machine *m)
{
    char text[256];

    put_fact(f, "Host", m->machine.host);
    snprintf(text, sizeof text, "%s", m->run->utc);
    if (*text && m->facts)
        text_append(
            text, sizeof text, ", %.1f %% of CPU time stolen before",
            100 * json_number_value(find(m->facts, "topology", "steal_share", NULL)));
    put_fact(f, "Measured", text);
    snprintf(text, sizeof text, "%s", m->run->version);
    if (*m->run->compiler)
        text_append(text, sizeof text, "%sby %s", *text ? ", " : "", m->run->compiler);
    put_fact(f, "Program", text);
    put_fact(f, "Kernel",
             text_of(find(m->facts, "topology", "kernel", NULL), text, sizeof text));
}

static void put_advice(FILE *f, const struct page_machine *m)
{
    const json_t *advice = find(m->facts, "topology", "advice", NULL);
    char text[512];
    json_t *one;
    size_t i;

    if (!json_array_size(advice))
        return;
    fputs("<details><summary>Advice about this machine</summary>\n<ul>\n", f);
    json_array_foreach(advice, i, one) if (i < MAX_ADVICE)
    {
        html_put_in(f, "<li>", text_of(one, text, sizeof text), "</li>\n");
    }
    fputs("</ul></details>\n", f);
}

/* How far the launches can be trusted. */
static void put_trust(FILE *f, const struct page_machine *m)
{
    size_t n[ROW_GOOD + 1] = {0};
    char text[256];

    for (size_t i = 0; i < m->n_rows; i++)
        n[row_trust(&m->rows[i])]++;
    snprintf(text, sizeof text, "%zu undisturbed", n[ROW_GOOD]);
    if (n[ROW_DISTURBED])
        text_append(text, sizeof text, ", %zu disturbed", n[ROW_DISTURBED]);
    if (n[ROW_PARTIAL])
        text_append(text, sizeof text, ", %zu partial", n[ROW_PARTIAL]);
    if (n[ROW_FAILED])
        text_append(text, sizeof text, ", %zu without a figure", n[ROW_FAILED]);
    put_fact(f, "Launches", text);
}

void page_put_facts(FILE *f, const struct page_machine *m)
{
    fputs("<dl class=\"facts\">\n", f);
    put_cpu(f, m);
    put_levels(f, m);
    put_memory(f, m);
    put_probes(f, m);
    put_trust(f, m);
    put_origin(f, m);
    fputs("</dl>\n", f);
    put_advice(f, m);
}

void page_put_summary(FILE *f, const struct page_machine *m)
{
    char origin[160];

    html_printf(f, "%s, %zu launch%s of %zu point%s", m->name, m->n_rows,
                plural((long long)m->n_rows, "es"), m->picked.n,
                plural((long long)m->picked.n, "s"));
    report_origin(m->rows, m->n_rows, origin, sizeof origin);
    html_printf(f, "%s%s", *origin ? ", " : "", origin);
}
