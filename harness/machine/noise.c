/* SPDX-License-Identifier: MIT
 *
 * noise.c - counters of the kernel and of the hypervisor, and their meaning
 *
 * Other processes' CPU time is the machine's busy time less our own. Our own is
 * that of this process and of children it has waited for; a child still running
 * counts as another process, so a measuring process has none.
 */
#include "harness/machine/noise.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/base/sysfile.h"
#include "harness/machine/sandbox/cgroup.h"

#define NS_PER_S 1000000000u

/* ---- thresholds ------------------------------------------------------------------ */

/* Threads of a pool wait for the slowest, so a stolen slice of one costs all of
 * them: 2 % of all CPUs' time is 4 % of the run on two CPUs. Below that a median
 * over samples does not move. */
#define MAX_STEAL 0.02
/* Others on idle CPUs still use memory bandwidth and cache. */
#define MAX_OTHERS 0.05
/* Where we were also switched out, the others ran on our CPUs. */
#define MAX_OTHERS_ON_OURS 0.02
#define MAX_SWITCHES_HZ    50.0 /* per CPU; timers and kernel threads cause a few */
/* A thread waits while another program has its CPU, and all others of its thread pool
 * wait for it: their waiting is added up. Timers and kernel threads cost less than a
 * hundredth, but do so in each thread. */
#define MAX_WAIT      0.05
#define MAX_WAIT_EACH 0.005
#define MAX_THROTTLED 0.01 /* of the wall time */
/* Waiting for memory without paging of this process: a shortage of others. */
#define MAX_PRESSURE 0.05
/* A trend that the interval of the median does not show. */
#define MAX_DRIFT 0.05
/* /proc/stat counts in ticks of 10 ms and by sampling: less than this says
 * nothing. */
#define MIN_CPU_NS 50000000u
/* Waking up takes the machine longer than this, reading two clocks less. */
#define MIN_SUSPENDED_NS 100000000u

/* ---- reading --------------------------------------------------------------------- */

/* "cpuN user nice system idle iowait irq softirq steal ...", in ticks; user includes
 * guests. Adds to both. */
static bool add_cpu(const char *line, uint64_t *busy_ns, uint64_t *steal_ns)
{
    const uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    unsigned long long t[8] = {0};

    line += strcspn(line, " ");
    if (sscanf(line, "%llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2],
               &t[3], &t[4], &t[5], &t[6], &t[7]) < 4)
        return false;
    *busy_ns += (t[0] + t[1] + t[2] + t[5] + t[6]) * tick_ns;
    *steal_ns += t[7] * tick_ns;
    return true;
}

/* The CPUs of n->our_cpus, and all. */
static void read_stat(struct noise *n, const char *root)
{
    char *text = sysfile_read_all(root, "/proc/stat");
    int cpu;

    if (!text)
        return;
    add_cpu(text, &n->busy_ns, &n->steal_ns);
    for (const char *p = text; (p = strstr(p, "\ncpu")) != NULL; p += 4) {
        if (sscanf(p, "\ncpu%d", &cpu) != 1)
            continue;
        n->n_cpus++;
        if (cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &n->our_cpus))
            n->n_our_cpus += add_cpu(p + 1, &n->our_busy_ns, &n->our_steal_ns);
    }
    free(text);
}

/* The counters of one group, 0 if it has none. */
static void read_throttling_of(const char *root, const char *dir, uint64_t *ns,
                               uint64_t *count)
{
    char path[CGROUP_PATH_MAX + 16], text[1024];

    *ns = *count = 0;
    snprintf(path, sizeof path, "%s/cpu.stat", dir);
    if (sysfile_read(root, path, text, sizeof text) < 0)
        return;
    if (text_key_u64(text, "throttled_usec", ns))
        *ns *= 1000;
    else
        text_key_u64(text, "throttled_time", ns);
    text_key_u64(text, "nr_throttled", count);
}

/* The group that was throttled longest is the one that stopped us. */
static void take_longest(struct noise *n)
{
    for (int i = 0; i < n->n_groups; i++) {
        if (n->group_throttled_ns[i] <= n->throttled_ns)
            continue;
        n->throttled_ns = n->group_throttled_ns[i];
        n->n_throttled = n->group_n_throttled[i];
    }
}

/* A group further up may be the one with the quota, and only its own counters show that
 * it throttled. From the top, so that the same place means the same group in a later
 * reading even if we have moved further down. */
static void read_throttling(struct noise *n, const char *root)
{
    struct cgroup_place place;
    char dir[NOISE_MAX_GROUPS][CGROUP_PATH_MAX];
    int depth = 0;

    cgroup_find(&place, root, CGROUP_CPU);
    if (place.version == 0)
        return;
    do
        snprintf(dir[depth++], sizeof dir[0], "%s", place.dir);
    while (depth < NOISE_MAX_GROUPS && cgroup_parent(&place, place.dir));
    n->n_groups = depth;
    for (int i = 0; i < depth; i++)
        read_throttling_of(root, dir[depth - 1 - i], &n->group_throttled_ns[i],
                           &n->group_n_throttled[i]);
    take_longest(n);
}

static bool find_refaults(const char *text, uint64_t *n)
{
    /* with and below the group in version 1; split by kind since Linux 5.9 */
    static const char *const keys[] = {"total_workingset_refault_file",
                                       "total_workingset_refault",
                                       "workingset_refault_file", "workingset_refault"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (text_key_u64(text, keys[i], n))
            return true;
    return false;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=6567317", in microseconds */
static bool find_pressure(const char *text, uint64_t *ns)
{
    const char *total = strstr(text, "total=");
    unsigned long long us;

    if (strncmp(text, "some ", 5) || !total || sscanf(total, "total=%llu", &us) != 1)
        return false;
    *ns = us * 1000;
    return true;
}

void noise_read_memory(struct noise *n, const char *root)
{
    struct cgroup_place place;
    char path[CGROUP_PATH_MAX + 24], text[16384];
    bool has_refaults = false, has_pressure = false;

    cgroup_find(&place, root, CGROUP_MEMORY);
    if (place.version) {
        snprintf(path, sizeof path, "%s/memory.stat", place.dir);
        if (sysfile_read(root, path, text, sizeof text) >= 0)
            has_refaults = find_refaults(text, &n->n_refaults);
        snprintf(path, sizeof path, "%s/memory.pressure", place.dir);
        if (sysfile_read(root, path, text, sizeof text) >= 0)
            has_pressure = find_pressure(text, &n->pressure_ns);
    }
    if (!has_refaults && sysfile_read(root, "/proc/vmstat", text, sizeof text) >= 0)
        find_refaults(text, &n->n_refaults);
    if (!has_pressure &&
        sysfile_read(root, "/proc/pressure/memory", text, sizeof text) >= 0)
        n->pressure_of_machine = find_pressure(text, &n->pressure_ns);
}

static uint64_t cpu_ns(const struct rusage *u)
{
    return (uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * NS_PER_S +
           (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1000;
}

static void read_self(struct noise *n)
{
    static const int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};

    for (size_t i = 0; i < sizeof who / sizeof who[0]; i++) {
        struct rusage u;

        if (getrusage(who[i], &u))
            continue;
        n->self_ns += cpu_ns(&u);
        n->n_involuntary += (uint64_t)u.ru_nivcsw;
        n->n_major_faults += (uint64_t)u.ru_majflt;
        n->n_minor_faults += (uint64_t)u.ru_minflt;
    }
}

/* "time on a CPU, time waiting for one, slices", in nanoseconds */
static uint64_t waited_ns(const char *task)
{
    char path[320], text[96];
    unsigned long long on, waiting;

    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task);
    return sysfile_read("", path, text, sizeof text) > 0 &&
                   sscanf(text, "%llu %llu", &on, &waiting) == 2
               ? waiting
               : 0;
}

/* What our threads have waited, and into *cpus where they may run. */
static void read_threads(struct noise *n, cpu_set_t *cpus)
{
    DIR *dir = opendir("/proc/self/task");
    const struct dirent *entry;

    CPU_ZERO(cpus);
    while (dir && (entry = readdir(dir)) != NULL) {
        cpu_set_t of_thread;

        if (entry->d_name[0] == '.')
            continue;
        n->n_threads++;
        n->wait_ns += waited_ns(entry->d_name);
        if (!sched_getaffinity((pid_t)atoi(entry->d_name), sizeof of_thread,
                               &of_thread))
            CPU_OR(cpus, cpus, &of_thread);
    }
    if (dir)
        closedir(dir);
}

static void add_to_set(void *arg, int cpu)
{
    if (cpu < CPU_SETSIZE)
        CPU_SET(cpu, (cpu_set_t *)arg);
}

static void read_recorded_cpus(const char *root, cpu_set_t *cpus)
{
    static const char key[] = "Cpus_allowed_list:";
    char *text = sysfile_read_all(root, "/proc/self/status");
    const char *list = text ? strstr(text, key) : NULL;

    CPU_ZERO(cpus);
    if (list)
        text_cpu_list(list + sizeof key - 1, add_to_set, cpus);
    free(text);
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec t = {0};

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

/* How the clocks differ: only suspending sets those apart that count from
 * boot, and only somebody who sets it the time of day. */
static void read_clocks(struct noise *n)
{
    n->wall_ns = clock_ns();

    const int64_t since_boot = read_clock(CLOCK_BOOTTIME);

    n->suspended_ns = (uint64_t)since_boot - n->wall_ns;
    n->boot_utc_ns = read_clock(CLOCK_REALTIME) - since_boot;
}

/* cpus: those to count on; NULL: where our threads may run now. */
static void read_all(struct noise *n, const char *root, const cpu_set_t *cpus)
{
    memset(n, 0, sizeof *n);
    if (root[0]) {
        char text[64];

        /* a recorded tree has its own clock, and not this process */
        if (sysfile_read(root, "/proc/uptime", text, sizeof text) > 0)
            n->wall_ns = (uint64_t)(strtod(text, NULL) * NS_PER_S);
        read_recorded_cpus(root, &n->our_cpus);
    } else {
        read_clocks(n);
        read_self(n);
        read_threads(n, &n->our_cpus);
    }
    if (cpus)
        n->our_cpus = *cpus;
    read_stat(n, root);
    read_throttling(n, root);
    noise_read_memory(n, root);
}

void noise_read(struct noise *n, const char *root)
{
    read_all(n, root, NULL);
}

void noise_since(struct noise *d, const struct noise *a, const char *root)
{
    struct noise now;

    read_all(&now, root, &a->our_cpus);
    noise_diff(d, a, &now);
}

/* ---- interpretation -------------------------------------------------------------- */

/* Counters can step back: steal after a live migration, a group that was moved. */
static uint64_t minus(uint64_t b, uint64_t a)
{
    return b > a ? b - a : 0;
}

static void diff_throttling(struct noise *d, const struct noise *a,
                            const struct noise *b)
{
    d->n_groups = a->n_groups < b->n_groups ? a->n_groups : b->n_groups;
    for (int i = 0; i < d->n_groups; i++) {
        d->group_throttled_ns[i] =
            minus(b->group_throttled_ns[i], a->group_throttled_ns[i]);
        d->group_n_throttled[i] =
            minus(b->group_n_throttled[i], a->group_n_throttled[i]);
    }
    take_longest(d);
}

/* The two clocks are read one after the other, so they differ by a little always. */
static uint64_t slept(const struct noise *a, const struct noise *b)
{
    const uint64_t ns = minus(b->suspended_ns, a->suspended_ns);

    return ns > MIN_SUSPENDED_NS ? ns : 0;
}

void noise_diff(struct noise *out, const struct noise *a, const struct noise *b)
{
    const bool same = CPU_EQUAL(&a->our_cpus, &b->our_cpus);
    const double set_ns = (double)(b->boot_utc_ns - a->boot_utc_ns);
    struct noise d = {
        .wall_ns = minus(b->wall_ns, a->wall_ns),
        .steal_ns = minus(b->steal_ns, a->steal_ns),
        .busy_ns = minus(b->busy_ns, a->busy_ns),
        .self_ns = minus(b->self_ns, a->self_ns),
        .wait_ns = minus(b->wait_ns, a->wait_ns),
        .n_involuntary = minus(b->n_involuntary, a->n_involuntary),
        .n_major_faults = minus(b->n_major_faults, a->n_major_faults),
        .n_minor_faults = minus(b->n_minor_faults, a->n_minor_faults),
        .n_refaults = minus(b->n_refaults, a->n_refaults),
        .pressure_ns = minus(b->pressure_ns, a->pressure_ns),
        .suspended_ns = slept(a, b),
        .clock_set_s = (int)fmax(INT_MIN, fmin(INT_MAX, round(set_ns / NS_PER_S))),
        .n_cpus = b->n_cpus,
        .our_steal_ns = minus(b->our_steal_ns, a->our_steal_ns),
        .our_busy_ns = minus(b->our_busy_ns, a->our_busy_ns),
        .n_our_cpus = same ? b->n_our_cpus : 0,
        .n_threads = b->n_threads,
        .our_cpus = b->our_cpus,
    };

    diff_throttling(&d, a, b);
    *out = d;
}

/* Share of n CPUs' time, at most 1. */
static double cpu_share(const struct noise *d, int n, uint64_t ns)
{
    const double all = (double)d->wall_ns * n;

    return all > 0 ? fmin(1, (double)ns / all) : 0;
}

static double wall_share(const struct noise *d, uint64_t ns)
{
    return d->wall_ns ? (double)ns / (double)d->wall_ns : 0;
}

double noise_steal_share(const struct noise *d)
{
    return fmax(cpu_share(d, d->n_cpus, d->steal_ns),
                cpu_share(d, d->n_our_cpus, d->our_steal_ns));
}

/* All of our own time was spent on our CPUs. */
double noise_others_share(const struct noise *d)
{
    return fmax(cpu_share(d, d->n_cpus, minus(d->busy_ns, d->self_ns)),
                cpu_share(d, d->n_our_cpus, minus(d->our_busy_ns, d->self_ns)));
}

double noise_wait_share(const struct noise *d)
{
    return wall_share(d, d->wait_ns);
}

static double switches_hz(const struct noise *d)
{
    const int n = d->n_our_cpus ? d->n_our_cpus : d->n_cpus;

    return n && d->wall_ns
               ? (double)d->n_involuntary / n * NS_PER_S / (double)d->wall_ns
               : 0;
}

/* The kernel adds up the CPUs on which a group's threads are stopped: no more of them
 * than threads, and than CPUs that these may run on. */
double noise_throttled_share(const struct noise *d)
{
    const int n = d->n_threads < d->n_our_cpus ? d->n_threads : d->n_our_cpus;

    return fmin(1, wall_share(d, d->throttled_ns) / (n > 1 ? n : 1));
}

/* Threads also wait for each other where they are more than their CPUs, and while a
 * quota stops them. */
static bool waits_for_others(const struct noise *d)
{
    return noise_wait_share(d) > fmax(MAX_WAIT, MAX_WAIT_EACH * d->n_threads) &&
           d->n_threads <= d->n_our_cpus && noise_throttled_share(d) <= MAX_THROTTLED;
}

struct verdict {
    char *buf;
    int cap, used;
};

__attribute__((format(printf, 2, 3))) static void add_cause(struct verdict *v,
                                                            const char *fmt, ...)
{
    const char *lead = v->used ? ", " : "disturbed: ";
    char part[64];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(part, sizeof part, fmt, ap);
    va_end(ap);
    /* a part that does not fit is left out whole; the first always fits */
    if (v->used + (int)(strlen(lead) + strlen(part)) < v->cap)
        v->used +=
            snprintf(v->buf + v->used, (size_t)(v->cap - v->used), "%s%s", lead, part);
}

bool noise_verdict(const struct noise *d, double drift, char *buf, int cap)
{
    const double others = noise_others_share(d), steal = noise_steal_share(d);
    const double throttled = noise_throttled_share(d);
    const double pressure = wall_share(d, d->pressure_ns);
    const bool on_ours = switches_hz(d) > MAX_SWITCHES_HZ;
    struct verdict v = {buf, cap, 0};

    snprintf(buf, (size_t)cap, "valid");
    if (d->suspended_ns)
        add_cause(&v, "slept %.3g s", (double)d->suspended_ns / NS_PER_S);
    if (steal > MAX_STEAL && d->steal_ns > MIN_CPU_NS)
        add_cause(&v, "steal %.0f %%", steal * 100);
    if (others > (on_ours ? MAX_OTHERS_ON_OURS : MAX_OTHERS) &&
        minus(d->busy_ns, d->self_ns) > MIN_CPU_NS)
        add_cause(&v, "others %.0f %%", others * 100);
    if (waits_for_others(d))
        add_cause(&v, "waiting %.0f %%", fmin(1, noise_wait_share(d)) * 100);
    if (throttled > MAX_THROTTLED && !d->expects_throttling)
        add_cause(&v, "throttled %.0f %%", throttled * 100);
    if (pressure > MAX_PRESSURE && d->n_refaults == 0 && d->n_major_faults == 0)
        add_cause(&v, "memory pressure %.0f %%", pressure * 100);
    if (fabs(drift) > MAX_DRIFT)
        add_cause(&v, "drift %+.0f %%", drift * 100);
    return v.used == 0;
}

bool noise_disturbed(const struct noise *d, char *why, size_t cap)
{
    static const char lead[] = "disturbed: ";
    char text[200];
    const bool valid = noise_verdict(d, 0, text, sizeof text);

    snprintf(why, cap, "%s", valid ? "" : text + sizeof lead - 1);
    return !valid;
}

void noise_remark(const struct noise *d, char *text, size_t cap)
{
    if (d->clock_set_s)
        text_append(text, cap,
                    "%sthe machine's clock was set by %+d s during it: times of rows "
                    "before and after are of two clocks",
                    *text ? "; " : "", d->clock_set_s);
}
