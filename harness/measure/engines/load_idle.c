/* SPDX-License-Identifier: MIT
 *
 * load_idle.c - CPU time of a server's processes
 */
#include "harness/measure/engines/launch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/array.h"
#include "harness/base/interrupt.h"
#include "harness/base/sysfile.h"
#include "harness/machine/noise.h"

#define MAX_PROCESSES 65536

struct process {
    int pid, parent, group;
    uint64_t ticks;
    bool is_ours;
};

/* Fields 4, 5 and 14 to 17 of /proc/PID/stat. */
static bool read_process(struct process *p, const char *root, const char *pid)
{
    unsigned long long user, system;
    long long user_ended, system_ended; /* of children that were waited for */
    char text[1024];
    const char *stat = sysfile_stat(root, pid, text, sizeof text);

    *p = (struct process){.pid = atoi(pid)};
    if (!stat ||
        sscanf(stat, " %*c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld",
               &p->parent, &p->group, &user, &system, &user_ended, &system_ended) != 6)
        return false;
    p->ticks = user + system + (uint64_t)user_ended + (uint64_t)system_ended;
    return true;
}

/* All processes, malloc'ed; NULL: none can be read. */
static struct process *read_all(const char *root, size_t *n)
{
    struct process *all = NULL;
    char path[SYSFILE_PATH_MAX];
    size_t cap = 0;
    DIR *d = sysfile_path(path, sizeof path, root, "/proc") ? opendir(path) : NULL;

    *n = 0;
    for (struct dirent *e; d && (e = readdir(d)) && *n < MAX_PROCESSES;) {
        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        struct process *more = array_grow(all, *n, &cap, sizeof *all);
        if (!more)
            break;
        all = more;
        *n += read_process(&all[*n], root, e->d_name);
    }
    if (d)
        closedir(d);
    return all;
}

static bool is_child_of_ours(const struct process *p, const struct process *all,
                             size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (all[i].is_ours && all[i].pid == p->parent)
            return true;
    return false;
}

uint64_t load_idle_group_ns(const char *root, pid_t group)
{
    const long per_s = sysconf(_SC_CLK_TCK);
    uint64_t ticks = 0;
    bool grows = true;
    size_t n;
    struct process *all = read_all(root, &n);

    for (size_t i = 0; i < n; i++)
        all[i].is_ours = all[i].group == group;
    while (grows) {
        grows = false;
        for (size_t i = 0; i < n; i++)
            if (!all[i].is_ours && is_child_of_ours(&all[i], all, n))
                grows = all[i].is_ours = true;
    }
    for (size_t i = 0; i < n; i++)
        ticks += all[i].is_ours ? all[i].ticks : 0;
    free(all);
    return per_s > 0 ? ticks * (UINT64_C(1000000000) / (uint64_t)per_s) : 0;
}

static uint64_t cpu_ns(pid_t group)
{
    struct noise n;

    if (group)
        return load_idle_group_ns("", group);
    noise_read(&n, "");
    return n.busy_ns > n.self_ns ? n.busy_ns - n.self_ns : 0;
}

double load_idle_cpus(pid_t group)
{
    const struct timespec window = {0, (long)(LOAD_IDLE_WINDOW_S * 1e9)};
    const uint64_t begin_ns = clock_ns(), before = cpu_ns(group);
    uint64_t after, wall_ns;

    nanosleep(&window, NULL);
    after = cpu_ns(group);
    wall_ns = clock_ns() - begin_ns;
    return after > before ? (double)(after - before) / (double)wall_ns : 0;
}

bool load_idle_wait(pid_t group, double usual, double max_s)
{
    const uint64_t begin_ns = clock_ns();

    while (!interrupted() && (double)(clock_ns() - begin_ns) * 1e-9 < max_s)
        if (load_idle_cpus(group) <= usual + LOAD_IDLE_CPUS && !interrupted())
            return true;
    return false;
}
