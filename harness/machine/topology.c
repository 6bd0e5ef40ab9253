/* SPDX-License-Identifier: MIT
 *
 * topology.c - put the machine together from hwloc, /proc, /sys and cgroups
 */
#include "harness/machine/topology.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <hwloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/sysfile.h"
#include "harness/machine/sandbox/cgroup.h"
#include "harness/machine/topology_internal.h"

/* ---- sockets, cores, caches: hwloc ----------------------------------------------- */

static hwloc_topology_t load_hwloc(void)
{
    hwloc_topology_t hw = NULL;

    if (hwloc_topology_init(&hw))
        return NULL;
    /* The x86 component would bind this thread to every CPU in turn, and knows nothing
     * of a recorded tree. A hwloc that was built for another CPU does not have it, and
     * refuses to leave it out. */
    hwloc_topology_set_components(hw, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    if (hwloc_topology_set_icache_types_filter(hw, HWLOC_TYPE_FILTER_KEEP_ALL) ||
        hwloc_topology_set_flags(hw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) ||
        hwloc_topology_load(hw)) {
        hwloc_topology_destroy(hw);
        return NULL;
    }
    return hw;
}

/* Logical index of the ancestor of that type; -1: no ancestor. */
static int ancestor_index(hwloc_topology_t hw, hwloc_obj_t pu, hwloc_obj_type_t type)
{
    hwloc_obj_t a = hwloc_get_ancestor_obj_by_type(hw, type, pu);

    return a ? (int)a->logical_index : -1;
}

static int node_of(hwloc_topology_t hw, hwloc_obj_t pu)
{
    for (hwloc_obj_t n = NULL;
         (n = hwloc_get_next_obj_by_type(hw, HWLOC_OBJ_NUMANODE, n));) {
        if (hwloc_bitmap_isincluded(pu->cpuset, n->cpuset))
            return (int)n->logical_index;
    }
    return 0;
}

/* The outermost data or unified cache around a CPU, if any. */
static hwloc_obj_t last_cache(hwloc_obj_t pu)
{
    hwloc_obj_t last = NULL;

    for (hwloc_obj_t a = pu->parent; a; a = a->parent)
        if (hwloc_obj_type_is_dcache(a->type))
            last = a;
    return last;
}

static int by_os_id(const void *a, const void *b)
{
    const struct topo_cpu *x = a, *y = b;

    return (x->os_id > y->os_id) - (x->os_id < y->os_id);
}

static void read_cpus(struct topology *t, hwloc_topology_t hw)
{
    const int n = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_PU);

    for (int i = 0; i < n && t->n_cpus < TOPO_MAX_CPUS; i++) {
        hwloc_obj_t pu = hwloc_get_obj_by_type(hw, HWLOC_OBJ_PU, (unsigned)i);
        hwloc_obj_t cache = last_cache(pu);
        const int core = ancestor_index(hw, pu, HWLOC_OBJ_CORE);
        const int package = ancestor_index(hw, pu, HWLOC_OBJ_PACKAGE);
        struct topo_cpu *cpu = &t->cpu[t->n_cpus++];

        cpu->os_id = (int)pu->os_index;
        cpu->core = core >= 0 ? core : i; /* nothing known: a core for each CPU */
        cpu->package = package >= 0 ? package : 0;
        cpu->node = node_of(hw, pu);
        cpu->llc = cache ? (int)cache->logical_index : cpu->package;
    }
    qsort(t->cpu, (size_t)t->n_cpus, sizeof t->cpu[0], by_os_id);

    const int n_cores = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_CORE);
    const int n_packages = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_PACKAGE);
    const int known = hwloc_bitmap_weight(hwloc_topology_get_complete_cpuset(hw));

    t->n_cores = n_cores > 0 ? n_cores : t->n_cpus;
    t->n_packages = n_packages > 0 ? n_packages : 1;
    t->n_nodes = hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_NUMANODE);
    t->n_offline = known > n ? known - n : 0;
    t->mem_hwloc = hwloc_get_root_obj(hw)->total_memory;
}

/* Number the CPUs of each core, in os_id order; two on one core: SMT. */
static void number_siblings(struct topology *t)
{
    t->smt = TOPO_SMT_NONE;
    for (int i = 0; i < t->n_cpus; i++) {
        t->cpu[i].sibling = 0;
        for (int j = 0; j < i; j++)
            t->cpu[i].sibling += t->cpu[j].core == t->cpu[i].core;
        if (t->cpu[i].sibling)
            t->smt = TOPO_SMT_SHOWN;
    }
}

static void add_cache(struct topology *t, hwloc_obj_t c)
{
    struct topo_cache *cache = NULL;
    const char *type = c->attr->cache.type == HWLOC_OBJ_CACHE_DATA ? "data"
                       : c->attr->cache.type == HWLOC_OBJ_CACHE_INSTRUCTION
                           ? "instruction"
                           : "unified";

    for (int i = 0; i < t->n_caches; i++)
        if (t->cache[i].level == (int)c->attr->cache.depth &&
            !strcmp(t->cache[i].type, type) && t->cache[i].bytes == c->attr->cache.size)
            cache = &t->cache[i];
    if (!cache) {
        if (t->n_caches == TOPO_MAX_CACHES)
            return;
        cache = &t->cache[t->n_caches++];
        cache->level = (int)c->attr->cache.depth;
        snprintf(cache->type, sizeof cache->type, "%s", type);
        cache->bytes = c->attr->cache.size;
        cache->line_bytes = (int)c->attr->cache.linesize;
    }
    cache->n_instances++;
}

static int by_level(const void *a, const void *b)
{
    const struct topo_cache *x = a, *y = b;

    return x->level != y->level ? x->level - y->level : strcmp(x->type, y->type);
}

static void read_caches(struct topology *t, hwloc_topology_t hw)
{
    static const hwloc_obj_type_t types[] = {
        HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2CACHE,
        HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE,  HWLOC_OBJ_L5CACHE,
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (hwloc_obj_t c = NULL; (c = hwloc_get_next_obj_by_type(hw, types[i], c));)
            add_cache(t, c);
    qsort(t->cache, (size_t)t->n_caches, sizeof t->cache[0], by_level);
}

/* Ask hwloc in a child process and fill in t; false: hwloc knows nothing usable. Where
 * /sys of this machine cannot be read, hwloc makes up CPUs that share no core. */
static bool read_hwloc(struct topology *t, bool here)
{
    hwloc_topology_t hw = load_hwloc();

    if (!hw || (here && hwloc_get_nbobjs_by_type(hw, HWLOC_OBJ_CORE) <= 0))
        return false;
    read_cpus(t, hw);
    read_caches(t, hw);
    return t->n_cpus > 0;
}

struct answer {
    struct topology t;
    bool is_known;
};

static void end_child(int sig)
{
    (void)sig;
    _exit(1);
}

/* It leaves no core file and prints nothing, however hwloc ends it. */
__attribute__((noreturn)) static void child(struct answer *a, const char *root)
{
    static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], end_child);
    if (null_fd < 0 || dup2(null_fd, STDERR_FILENO) < 0)
        close(STDERR_FILENO);
    setenv("HWLOC_HIDE_ERRORS", "2", 1);
    if (root[0]) {
        setenv("HWLOC_FSROOT", root, 1);
        setenv("HWLOC_THISSYSTEM", "0", 1);
    }
    a->is_known = read_hwloc(&a->t, !root[0]);
    _exit(0);
}

/* hwloc runs in a child: some versions end the process by an assertion where /sys
 * is not what they expect. False: it knows nothing, and t is as before. */
static bool query_hwloc(struct topology *t, const char *root)
{
    struct answer *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool known = false;

    if (a == MAP_FAILED)
        return false;
    a->t = *t;
    const pid_t pid = fork();
    if (pid == 0)
        child(a, root);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (pid > 0 && a->is_known) {
        *t = a->t;
        known = true;
    }
    munmap(a, sizeof *a);
    return known;
}

/* ---- CPUs and caches, whoever knows them ----------------------------------------- */

/* The CPUs of this process's affinity mask, mine[TOPO_MAX_CPUS]; returns how many. The
 * mask is large enough for any machine: the kernel refuses one that is smaller than its
 * own. */
static int affinity_list(int *mine)
{
    const int most = 65536;
    cpu_set_t *set = CPU_ALLOC(most);
    const size_t bytes = CPU_ALLOC_SIZE(most);
    int n = 0;

    if (set && !sched_getaffinity(0, bytes, set))
        for (int i = 0; i < most && n < TOPO_MAX_CPUS; i++)
            if (CPU_ISSET_S(i, bytes, set))
                mine[n++] = i;
    CPU_FREE(set);
    return n;
}

static void sum_last_level(struct topology *t)
{
    for (int i = 0; i < t->n_caches; i++) {
        const struct topo_cache *c = &t->cache[i];

        if (c->level == t->cache[t->n_caches - 1].level &&
            strcmp(c->type, "instruction"))
            t->llc_bytes += c->bytes * (uint64_t)c->n_instances;
    }
}

/* The machine without hwloc, and why. */
static void do_without_hwloc(struct topology *t)
{
    static const char folder[] = "/sys/devices/system/cpu";
    char *cpuinfo = sysfile_read_all("", "/proc/cpuinfo");
    int mine[TOPO_MAX_CPUS];
    DIR *dir = opendir(folder);

    if (dir)
        snprintf(t->shape_doubt, sizeof t->shape_doubt, "hwloc cannot read %s", folder);
    else
        snprintf(t->shape_doubt, sizeof t->shape_doubt, "%s cannot be read (%s)",
                 folder, strerror(errno));
    if (dir)
        closedir(dir);
    topology_read_plain(t, cpuinfo ? cpuinfo : "", mine, affinity_list(mine));
    free(cpuinfo);
}

static enum status read_shape(struct topology *t, const char *root, struct err *err)
{
    char online[SYSFILE_PATH_MAX];

    /* hwloc would make up a machine of one CPU where a tree has none. */
    if (root[0] &&
        sysfile_read(root, "/sys/devices/system/cpu/online", online, sizeof online) < 0)
        return err_set_errno(err, ST_INPUT,
                             "cannot read %s/sys/devices/system/cpu/online", root);
    if (!query_hwloc(t, root)) {
        if (root[0])
            return err_set(err, ST_INPUT,
                           "hwloc finds no CPU in %s: is sys/devices/system/cpu in it?",
                           root);
        do_without_hwloc(t);
    }
    sum_last_level(t);
    return ST_OK;
}

/* ---- which CPUs are ours --------------------------------------------------------- */

static struct topo_cpu *find_cpu(struct topology *t, int os_id)
{
    struct topo_cpu key = {.os_id = os_id};

    return bsearch(&key, t->cpu, (size_t)t->n_cpus, sizeof t->cpu[0], by_os_id);
}

static void allow_cpu(void *arg, int os_id)
{
    struct topo_cpu *cpu = find_cpu(arg, os_id);

    if (cpu)
        cpu->allowed = true;
}

struct allowing {
    struct topology *t;
    const char *root;
    int core; /* of the last sibling that is known; -1: none */
};

static void sibling(void *arg, int os_id)
{
    struct allowing *a = arg;
    const struct topo_cpu *cpu = find_cpu(a->t, os_id);

    if (cpu)
        a->core = cpu->core;
}

/* A CPU that the mask allows and the list of CPUs that are online lacks: containers
 * with a /sys of their own (lxcfs) renumber them, and the kernel uses the mask. */
static void add_cpu(struct allowing *a, int os_id)
{
    struct topology *t = a->t;
    char path[96], list[SYSFILE_PATH_MAX];

    if (t->n_cpus == TOPO_MAX_CPUS)
        return;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", os_id,
             "thread_siblings_list");
    a->core = -1;
    if (sysfile_read(a->root, path, list, sizeof list) >= 0)
        text_cpu_list(list, sibling, a);
    t->cpu[t->n_cpus++] = (struct topo_cpu){
        .os_id = os_id, .core = a->core >= 0 ? a->core : t->n_cores++, .allowed = true};
    t->n_offline -= t->n_offline > 0;
    qsort(t->cpu, (size_t)t->n_cpus, sizeof t->cpu[0], by_os_id);
}

static void allow_by_mask(void *arg, int os_id)
{
    struct allowing *a = arg;

    if (find_cpu(a->t, os_id))
        allow_cpu(a->t, os_id);
    else
        add_cpu(a, os_id);
}

static bool allow_by_affinity(struct allowing *a)
{
    int mine[TOPO_MAX_CPUS];
    const int n = affinity_list(mine);

    for (int i = 0; i < n; i++)
        allow_by_mask(a, mine[i]);
    return n > 0;
}

/* "Cpus_allowed_list:\t0-3" of a recorded /proc/self/status. */
static bool allow_by_status(struct allowing *a)
{
    char *text = sysfile_read_all(a->root, "/proc/self/status");
    const char *line = text ? strstr(text, "\nCpus_allowed_list:") : NULL;
    const bool ok =
        line && text_cpu_list(line + strlen("\nCpus_allowed_list:"), allow_by_mask, a);

    free(text);
    return ok;
}

bool topology_leads_core(const struct topology *t, int i)
{
    bool first = t->cpu[i].allowed;

    for (int j = 0; j < i && first; j++)
        first = !(t->cpu[j].allowed && t->cpu[j].core == t->cpu[i].core);
    return first;
}

static void count_allowed_cores(struct topology *t)
{
    t->n_allowed_cores = 0;
    for (int i = 0; i < t->n_cpus; i++)
        t->n_allowed_cores += topology_leads_core(t, i);
    topology_count_fast(t);
}

static void read_allowed(struct topology *t, const char *root, const char *cpuset)
{
    struct allowing who = {.t = t, .root = root};
    const bool known = root[0] ? allow_by_status(&who) : allow_by_affinity(&who);
    bool before[TOPO_MAX_CPUS];
    int n_both = 0;

    for (int i = 0; i < t->n_cpus; i++) {
        before[i] = known ? t->cpu[i].allowed : true;
        t->cpu[i].allowed = false;
    }
    /* The kernel has the cpuset in the mask already; a recorded tree may not. */
    if (cpuset[0] && text_cpu_list(cpuset, allow_cpu, t))
        for (int i = 0; i < t->n_cpus; i++)
            n_both += t->cpu[i].allowed &= before[i];
    for (int i = 0; i < t->n_cpus && !n_both; i++)
        t->cpu[i].allowed = before[i];
    for (int i = 0; i < t->n_cpus; i++)
        t->n_allowed += t->cpu[i].allowed;
    number_siblings(t);
    /* Arm's server cores have one thread each; there is nothing to hide. */
    if (t->smt == TOPO_SMT_NONE && t->hypervisor[0] &&
        strcmp(t->cpu_vendor, "Arm") != 0)
        t->smt = TOPO_SMT_HIDDEN;
    topology_read_kinds(t, root);
    count_allowed_cores(t);
}

/* ---- advice ---------------------------------------------------------------------- */

static void choose_threads(struct topology *t)
{
    int n = t->n_fast_cores;
    char quota[64] = "no quota", of[32] = "";

    if (t->quota_cpus > 0) {
        snprintf(quota, sizeof quota, "a quota of %.4g CPUs", t->quota_cpus);
        /* 2.0 may come as 1.9999: 199999 us of 100000 */
        if (t->quota_cpus < n)
            n = (int)floor(t->quota_cpus + 1e-3);
    }
    t->threads_default = n < 1 ? 1 : n;
    if (t->n_fast_cores < t->n_allowed_cores)
        snprintf(of, sizeof of, "%d fast of ", t->n_fast_cores);
    snprintf(t->threads_why, sizeof t->threads_why,
             "%d: %s%d %s core%s, %s, %d allowed CPU%s", t->threads_default, of,
             t->n_allowed_cores,
             t->shape_doubt[0]           ? "presumed"
             : t->smt == TOPO_SMT_HIDDEN ? "visible"
                                         : "physical",
             plural(t->n_allowed_cores, "s"), quota, t->n_allowed,
             plural(t->n_allowed, "s"));
}

void topology_set_quota(struct topology *t, double cpus)
{
    if (!(cpus > 0) || (t->quota_cpus > 0 && t->quota_cpus <= cpus))
        return;
    t->quota_cpus = cpus;
    snprintf(t->quota_source, sizeof t->quota_source, "--cpus-quota");
    choose_threads(t);
}

void topology_count_cores(struct topology *t)
{
    number_siblings(t);
    t->n_cores = 0;
    for (int i = 0; i < t->n_cpus; i++)
        t->n_cores += t->cpu[i].sibling == 0;
    count_allowed_cores(t);
    choose_threads(t);
}

static void take_memory_limit(struct topology *t, const struct cgroup_memory *m)
{
    t->mem_limit = m->limit;
    t->mem_left = !m->limit ? 0 : m->left ? m->left : 1;
    snprintf(t->mem_limit_source, sizeof t->mem_limit_source, "%.*s",
             (int)sizeof t->mem_limit_source - 1, m->limit_source);
    snprintf(t->mem_left_source, sizeof t->mem_left_source, "%.*s",
             (int)sizeof t->mem_left_source - 1, m->left_source);
}

enum status topology_refresh_memory(struct topology *t, const char *root,
                                    struct err *err)
{
    struct cgroup_limits limits;

    if (topology_read_memory(t, root, err))
        return err->code;
    cgroup_limits_read(&limits, root);
    take_memory_limit(t, &limits.memory);
    return ST_OK;
}

enum status topology_open(struct topology **out, const char *root, struct err *err)
{
    struct cgroup_limits limits;
    struct topology *t = calloc(1, sizeof *t);
    enum status st = ST_OK;

    *out = NULL;
    if (!t)
        return err_set(err, ST_NO_MEMORY,
                       "no memory for the description of the machine");
    if (topology_read_cpuinfo(t, root, err) || read_shape(t, root, err) ||
        topology_read_memory(t, root, err))
        st = err->code;
    if (st == ST_OK) {
        cgroup_limits_read(&limits, root);
        t->cgroup_version = limits.version;
        t->quota_cpus = limits.quota_cpus;
        snprintf(t->quota_source, sizeof t->quota_source, "%.*s",
                 (int)sizeof t->quota_source - 1, limits.quota_source);
        take_memory_limit(t, &limits.memory);
        read_allowed(t, root, limits.cpus);
        topology_read_kernel(t, root);
        choose_threads(t);
        *out = t;
    } else {
        free(t);
    }
    return st;
}

enum status topology_read(struct topology *out, const char *root, struct err *err)
{
    struct topology *t;
    const enum status st = topology_open(&t, root, err);

    if (st == ST_OK)
        *out = *t;
    free(t);
    return st;
}
