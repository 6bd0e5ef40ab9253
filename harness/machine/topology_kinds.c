/* SPDX-License-Identifier: MIT
 *
 * topology_kinds.c - fast and slow cores: Arm's big.LITTLE, Intel's P- and E-cores
 *
 * How fast a CPU is, the kernel says in one of two ways: cpu_capacity, which is of
 * instructions and frequency; or the highest frequency together with the lists cpu_core
 * and cpu_atom of Intel's two kinds, which do not do the same in a cycle.
 */
#include "harness/machine/topology_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/base/format.h"
#include "harness/base/sysfile.h"

#define CPU_DIR "/sys/devices/system/cpu"

/* Work of an E-core in a cycle, a P-core's being 1: its vector units are half as wide,
 * but for code that waits for memory it is as good. */
#define E_CORE_WORK 0.6

/* Cores within this of the fastest of their kind are of one kind: each may have a
 * highest frequency of its own. */
#define SAME_KIND 0.8

struct speeds {
    struct topology *t;
    double of[TOPO_MAX_CPUS];
};

/* All CPUs have the file, or it says nothing of any. */
static bool read_all(struct speeds *s, const char *root, const char *file)
{
    for (int i = 0; i < s->t->n_cpus; i++) {
        char path[96];
        uint64_t value;

        snprintf(path, sizeof path, CPU_DIR "/cpu%d/%s", s->t->cpu[i].os_id, file);
        if (!sysfile_u64(root, path, &value) || !value)
            return false;
        s->of[i] = (double)value;
    }
    return true;
}

static void slow_down(void *arg, int os_id)
{
    struct speeds *s = arg;

    for (int i = 0; i < s->t->n_cpus; i++)
        if (s->t->cpu[i].os_id == os_id)
            s->of[i] *= E_CORE_WORK;
}

static void read_speeds(struct speeds *s, const char *root)
{
    char list[SYSFILE_PATH_MAX];

    if (read_all(s, root, "cpu_capacity"))
        return;
    if (!read_all(s, root, "cpufreq/cpuinfo_max_freq")) {
        for (int i = 0; i < s->t->n_cpus; i++)
            s->of[i] = 1;
    }
    if (sysfile_read(root, "/sys/devices/cpu_core/cpus", list, sizeof list) >= 0 &&
        sysfile_read(root, "/sys/devices/cpu_atom/cpus", list, sizeof list) >= 0)
        text_cpu_list(list, slow_down, s);
}

void topology_read_kinds(struct topology *t, const char *root)
{
    struct speeds s = {.t = t};
    double first = 0, below = 0; /* the fastest of all, and of what has no kind yet */

    /* a described machine is not the one that /sys is of */
    if (!root[0] && (getenv("HWLOC_SYNTHETIC") || getenv("HWLOC_XMLFILE")))
        for (int i = 0; i < t->n_cpus; i++)
            s.of[i] = 1;
    else
        read_speeds(&s, root);
    for (int i = 0; i < t->n_cpus; i++) {
        t->cpu[i].kind = -1;
        first = s.of[i] > first ? s.of[i] : first;
    }
    for (t->n_kinds = 0, below = first; below > 0; t->n_kinds++) {
        const double fastest = below;

        below = 0;
        for (int i = 0; i < t->n_cpus; i++) {
            if (t->cpu[i].kind >= 0)
                continue;
            if (s.of[i] >= SAME_KIND * fastest) {
                t->cpu[i].kind = t->n_kinds;
                t->cpu[i].speed = s.of[i] / first;
            } else if (s.of[i] > below) {
                below = s.of[i];
            }
        }
    }
}

void topology_count_fast(struct topology *t)
{
    double most = 0, slowest = 1;
    int n = 0;

    t->n_fast_cores = t->n_allowed_cores;
    for (int kind = 0; kind < t->n_kinds; kind++) {
        for (int i = 0; i < t->n_cpus; i++) {
            const struct topo_cpu *c = &t->cpu[i];

            if (!c->allowed || c->kind != kind || !topology_leads_core(t, i))
                continue;
            n++;
            slowest = c->speed < slowest ? c->speed : slowest;
        }
        if (n * slowest > most) {
            most = n * slowest;
            t->n_fast_cores = n;
        }
    }
}

void topology_kinds_text(const struct topology *t, char *buf, size_t cap)
{
    buf[0] = '\0';
    for (int kind = 0; kind < t->n_kinds; kind++) {
        int cpus[TOPO_MAX_CPUS], n = 0, n_cores = 0;
        double slowest = 1;
        char list[256];

        for (int i = 0; i < t->n_cpus; i++) {
            if (t->cpu[i].kind != kind)
                continue;
            cpus[n++] = t->cpu[i].os_id;
            n_cores += t->cpu[i].sibling == 0;
            slowest = t->cpu[i].speed < slowest ? t->cpu[i].speed : slowest;
        }
        format_cpus(list, sizeof list, cpus, n);
        text_append(buf, cap, "%s%d %s (CPUs %s", kind ? ", " : "", n_cores,
                    kind ? "slower" : "fast", list);
        text_append(buf, cap, kind ? ": about %.0f %% of their speed)" : ")",
                    100 * slowest);
    }
}
