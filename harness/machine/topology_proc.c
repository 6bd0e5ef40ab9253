/* SPDX-License-Identifier: MIT
 *
 * topology_proc.c - CPU name, ISA levels, memory, kernel and kinds of core from /proc
 * and /sys
 */
#include "harness/machine/topology_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SLM_HAVE_LIBCPUID
#include <libcpuid/libcpuid.h>
#endif

#include "harness/base/format.h"
#include "harness/base/sysfile.h"
#include "kernels/units.h"

/* ---- /proc/cpuinfo --------------------------------------------------------------- */

/* The value of the first line "key\t: value", copied; false: no such line. */
static bool cpuinfo_value(const char *text, const char *key, char *buf, size_t cap)
{
    const size_t len = strlen(key);

    for (const char *line = text; line && *line;
         line = (line = strchr(line, '\n')) ? line + 1 : NULL) {
        if (strncmp(line, key, len) != 0)
            continue;
        const char *p = line + len;
        while (*p == ' ' || *p == '\t')
            p++;
        if (*p++ != ':')
            continue;
        while (*p == ' ' || *p == '\t')
            p++;
        snprintf(buf, cap, "%.*s", (int)strcspn(p, "\n"), p);
        return true;
    }
    return false;
}

/* Arm has no names in cpuinfo, only numbers; those of cores that are rented out. */
static void name_arm_core(struct topology *t, const char *text)
{
    static const struct {
        unsigned implementer, part;
        const char *name;
    } known[] = {
        {0x41, 0xd08, "Arm Cortex-A72"},  {0x41, 0xd0b, "Arm Cortex-A76"},
        {0x41, 0xd0c, "Arm Neoverse N1"}, {0x41, 0xd40, "Arm Neoverse V1"},
        {0x41, 0xd49, "Arm Neoverse N2"}, {0x41, 0xd4f, "Arm Neoverse V2"},
        {0xc0, 0xac3, "Ampere-1"},        {0xc0, 0xac4, "Ampere-1a"},
    };
    char implementer[32] = "", part[32] = "";

    if (!cpuinfo_value(text, "CPU implementer", implementer, sizeof implementer) ||
        !cpuinfo_value(text, "CPU part", part, sizeof part))
        return;
    snprintf(t->cpu_model, sizeof t->cpu_model, "implementer %s part %s", implementer,
             part);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strtoul(implementer, NULL, 16) == known[i].implementer &&
            strtoul(part, NULL, 16) == known[i].part)
            snprintf(t->cpu_model, sizeof t->cpu_model, "%s", known[i].name);
}

/* ---- ISA levels ------------------------------------------------------------------ */

/* The kernel lists a flag only where it has the registers saved, so these stand for
 * CPUID and XCR0 together. */
static const char *const level_flags[KERN_N_ISA] = {
    [KERN_ISA_scalar] = "",
    [KERN_ISA_avx2] = "avx2 fma f16c",
    [KERN_ISA_avxvnni] = "avx2 fma f16c avx_vnni",
    [KERN_ISA_avx512] = "avx2 fma f16c avx512f avx512bw avx512dq avx512vl",
    [KERN_ISA_avx512bf16] =
        "avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512_bf16",
    [KERN_ISA_avx512vnni] =
        "avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512_vnni",
    [KERN_ISA_avx512vbmi] =
        "avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512_vnni avx512vbmi",
    [KERN_ISA_amx_int8] =
        "avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512_vnni avx512vbmi "
        "amx_tile amx_int8",
    [KERN_ISA_amx_bf16] = "avx2 fma f16c avx512f avx512bw avx512dq avx512vl "
                          "avx512_bf16 amx_tile amx_bf16",
    [KERN_ISA_neon] = "asimddp asimdhp",
    [KERN_ISA_neon_i8mm] = "asimddp asimdhp i8mm",
};

static bool is_arm_level(enum kern_isa isa)
{
    return isa == KERN_ISA_neon || isa == KERN_ISA_neon_i8mm;
}

/* The words of level_flags[isa] that flags lacks, into buf; returns how many. */
static int missing_flags(enum kern_isa isa, const char *flags, char *buf, size_t cap)
{
    char wanted[128], *save = NULL;
    int n = 0;

    buf[0] = '\0';
    snprintf(wanted, sizeof wanted, "%s", level_flags[isa]);
    for (char *w = strtok_r(wanted, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (!text_has_word(flags, w)) {
            text_append(buf, cap, "%s%s", buf[0] ? " " : "", w);
            n++;
        }
    }
    return n;
}

/* For a recorded machine, levels follow from its flags. For this one, they are those
 * that the kernels detect; the flags only explain them. */
static void read_isa(struct topology *t, const char *root, const char *flags, bool arm)
{
    for (int i = 0; i < KERN_N_ISA; i++) {
        const enum kern_isa isa = (enum kern_isa)i;
        const bool foreign = isa != KERN_ISA_scalar && is_arm_level(isa) != arm;
        char missing[80];
        const int n = missing_flags(isa, flags, missing, sizeof missing);
        char *why = t->isa_missing[i];

        if (root[0] ? !foreign && n == 0 : isa_usable() >> i & 1u) {
            t->isa_mask |= 1u << i;
            continue;
        }
        if (foreign)
            snprintf(why, sizeof t->isa_missing[i], "for %s only", arm ? "x86" : "Arm");
        else if (!root[0] && (isa_detected() >> i & 1u))
            snprintf(why, sizeof t->isa_missing[i], "switched off by --isa-disable");
        else if (n)
            snprintf(why, sizeof t->isa_missing[i], "lacks %s", missing);
        else
            snprintf(why, sizeof t->isa_missing[i],
                     "this build cannot use it, or the OS does not save its registers");
    }
}

/* ---- name and hypervisor --------------------------------------------------------- */

/* The hypervisor, from the names in its firmware. */
static void name_hypervisor(struct topology *t, const char *root)
{
    static const struct {
        const char *sign, *name;
    } signs[] = {
        {"QEMU", "kvm"},           {"KVM", "kvm"},       {"Amazon EC2", "nitro"},
        {"Google", "kvm"},         {"VMware", "vmware"}, {"Microsoft", "hyper-v"},
        {"innotek", "virtualbox"}, {"Xen", "xen"},       {"OpenStack", "kvm"},
        {"DigitalOcean", "kvm"},   {"Hetzner", "kvm"},
    };
    char text[128];

    if (sysfile_read(root, "/sys/hypervisor/type", text, sizeof text) > 0) {
        snprintf(t->hypervisor, sizeof t->hypervisor, "%.*s",
                 (int)sizeof t->hypervisor - 1, text);
        return;
    }
    snprintf(t->hypervisor, sizeof t->hypervisor, "unknown");
    if (sysfile_read(root, "/sys/class/dmi/id/sys_vendor", text, sizeof text) <= 0)
        return;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (strstr(text, signs[i].sign)) {
            snprintf(t->hypervisor, sizeof t->hypervisor, "%s", signs[i].name);
            return;
        }
    }
}

/* Arm's cpuinfo has no "hypervisor" flag; a device tree or the firmware may have it. */
static bool is_arm_guest(const char *root)
{
    char text[128];

    if (sysfile_read(root, "/proc/device-tree/hypervisor/compatible", text,
                     sizeof text) > 0)
        return true;
    if (sysfile_read(root, "/sys/class/dmi/id/product_name", text, sizeof text) > 0 &&
        strstr(text, ".metal"))
        return false;
    return sysfile_read(root, "/sys/class/dmi/id/sys_vendor", text, sizeof text) > 0 &&
           (strstr(text, "QEMU") || strstr(text, "Amazon EC2") ||
            strstr(text, "Google") || strstr(text, "Microsoft"));
}

#ifdef SLM_HAVE_LIBCPUID
static void read_libcpuid(struct topology *t)
{
    static const char *const names[NUM_HYPERVISOR_VENDORS] = {
        [HYPERVISOR_BHYVE] = "bhyve",   [HYPERVISOR_HYPERV] = "hyper-v",
        [HYPERVISOR_KVM] = "kvm",       [HYPERVISOR_PARALLELS] = "parallels",
        [HYPERVISOR_QEMU] = "qemu",     [HYPERVISOR_VIRTUALBOX] = "virtualbox",
        [HYPERVISOR_VMWARE] = "vmware", [HYPERVISOR_XEN] = "xen",
    };
    struct cpu_raw_data_t raw;
    struct cpu_id_t id;

    if (!cpuid_present() || cpuid_get_raw_data(&raw))
        return;
    /* An unknown model is an error to it, with the strings filled in all the same. */
    memset(&id, 0, sizeof id);
    cpu_identify(&raw, &id);
    if (id.brand_str[0])
        snprintf(t->cpu_model, sizeof t->cpu_model, "%s", id.brand_str);
    if (id.vendor_str[0])
        snprintf(t->cpu_vendor, sizeof t->cpu_vendor, "%s", id.vendor_str);
    const hypervisor_vendor_t hv = cpuid_get_hypervisor(&raw, &id);
    if ((int)hv > 0 && hv < NUM_HYPERVISOR_VENDORS && names[hv])
        snprintf(t->hypervisor, sizeof t->hypervisor, "%s", names[hv]);
}
#else
static void read_libcpuid(struct topology *t)
{
    (void)t;
}
#endif

enum status topology_read_cpuinfo(struct topology *t, const char *root, struct err *err)
{
    char *text = sysfile_read_all(root, "/proc/cpuinfo");
    static const size_t flags_cap = 16384;
    char *flags = calloc(1, flags_cap);
    enum status st = ST_OK;

    if (!flags) {
        st = err_set(err, ST_NO_MEMORY, "no memory for the flags of the CPU");
        goto out;
    }
    if (!text) {
        st = err_set_errno(err, root[0] ? ST_INPUT : ST_IO,
                           "cannot read %s/proc/cpuinfo", root);
        goto out;
    }
    bool arm = false;
    if (!cpuinfo_value(text, "flags", flags, flags_cap))
        arm = cpuinfo_value(text, "Features", flags, flags_cap);
    if (!cpuinfo_value(text, "model name", t->cpu_model, sizeof t->cpu_model))
        name_arm_core(t, text);
    if (!cpuinfo_value(text, "vendor_id", t->cpu_vendor, sizeof t->cpu_vendor) && arm)
        snprintf(t->cpu_vendor, sizeof t->cpu_vendor, "Arm");
    if (!root[0])
        read_libcpuid(t);
    const bool guest = arm ? is_arm_guest(root) : text_has_word(flags, "hypervisor");
    if (guest && !t->hypervisor[0])
        name_hypervisor(t, root);
    if (!*text_squeeze(t->cpu_model))
        snprintf(t->cpu_model, sizeof t->cpu_model, "unknown");
    read_isa(t, root, flags, arm);
    t->unused_units = root[0] ? units_of_flags(flags) : units_detect(flags);
out:
    free(flags);
    free(text);
    return st;
}

/* ---- memory ---------------------------------------------------------------------- */

static uint64_t meminfo_bytes(const char *text, const char *key)
{
    uint64_t kb = 0;

    text_key_u64(text, key, &kb);
    return kb < UINT64_MAX / 1024 ? kb * 1024 : 0;
}

/* The bracketed word of "always [madvise] never". */
static void read_thp(struct topology *t, const char *root)
{
    char text[128];

    if (sysfile_read(root, "/sys/kernel/mm/transparent_hugepage/enabled", text,
                     sizeof text) > 0) {
        const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

        if (close)
            snprintf(t->thp, sizeof t->thp, "%.*s", (int)(close - open - 1), open + 1);
    }
    if (!t->thp[0])
        snprintf(t->thp, sizeof t->thp, "absent"); /* a kernel built without */
}

enum status topology_read_memory(struct topology *t, const char *root, struct err *err)
{
    static const char dir[] = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    char *text = sysfile_read_all(root, "/proc/meminfo");
    char path[128];

    if (!text)
        return err_set_errno(err, root[0] ? ST_INPUT : ST_IO,
                             "cannot read %s/proc/meminfo", root);
    t->mem_total = meminfo_bytes(text, "MemTotal");
    t->mem_available = meminfo_bytes(text, "MemAvailable");
    if (!t->mem_available) /* before Linux 3.14 */
        t->mem_available =
            meminfo_bytes(text, "MemFree") + meminfo_bytes(text, "Cached");
    t->swap_total = meminfo_bytes(text, "SwapTotal");
    free(text);
    if (!t->mem_total)
        return err_set(err, ST_INPUT, "%s/proc/meminfo has no MemTotal", root);
    read_thp(t, root);
    snprintf(path, sizeof path, "%s/nr_hugepages", dir);
    sysfile_u64(root, path, &t->huge_2m_total);
    snprintf(path, sizeof path, "%s/free_hugepages", dir);
    sysfile_u64(root, path, &t->huge_2m_free);
    return ST_OK;
}

/* ---- kernel ---------------------------------------------------------------------- */

/* First line of /proc/stat: user nice system idle iowait irq softirq steal, and two
 * more that are contained in user and nice. */
static void read_steal(struct topology *t, const char *root)
{
    char text[512];
    double v[8] = {0}, sum = 0;

    if (sysfile_read(root, "/proc/stat", text, sizeof text) <= 0 ||
        sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &v[0], &v[1], &v[2], &v[3],
               &v[4], &v[5], &v[6], &v[7]) != 8)
        return;
    for (int i = 0; i < 8; i++)
        sum += v[i];
    t->steal_share = sum > 0 ? v[7] / sum : 0;
}

void topology_read_kernel(struct topology *t, const char *root)
{
    char text[512];

    read_steal(t, root);
    if (sysfile_read(root, "/proc/sys/kernel/osrelease", text, sizeof text) > 0)
        snprintf(t->kernel, sizeof t->kernel, "%.*s", (int)sizeof t->kernel - 1, text);
    else if (sysfile_read(root, "/proc/version", text, sizeof text) > 0)
        sscanf(text, "Linux version %95s", t->kernel);
}

/* ---- kinds of core ------------------------------------------------------------------
 *
 * The kernel reports how fast a CPU is in one of two ways: cpu_capacity, which is of
 * instructions and frequency; or the highest frequency together with the lists cpu_core
 * and cpu_atom of Intel's two kinds, which do not do the same in a cycle.
 */

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

/* All CPUs have the file, or it is used for none. */
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
    if (!read_all(s, root, "cpufreq/cpuinfo_max_freq"))
        for (int i = 0; i < s->t->n_cpus; i++)
            s->of[i] = 1;
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
