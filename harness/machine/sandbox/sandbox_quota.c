/* SPDX-License-Identifier: MIT
 *
 * sandbox_quota.c - the CPU quota of a sandbox: a limit of CPU time in each period
 */
#include "harness/machine/sandbox/sandbox_impl.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The kernel's own default, and that of containers. */
#define PERIOD_US 100000

/* The kernel takes no quota below 1 ms. */
#define QUOTA_MIN 0.01

/* Quotas are whole microseconds. */
#define TOLERANCE 1e-4

bool sandbox_is_one_hierarchy(const struct sandbox *s)
{
    return s->place.version && s->place.version == s->cpu_place.version &&
           !strcmp(s->place.mount, s->cpu_place.mount);
}

static double own_quota(const struct sandbox *s, char *source, size_t cap)
{
    return cgroup_quota_read(&s->cpu_place, s->root, s->cpu_place.dir, source, cap);
}

bool sandbox_has_quota(const struct sandbox *s, double cpus)
{
    char source[CGROUP_PATH_MAX + 64];

    return fabs(own_quota(s, source, sizeof source) - cpus) <= TOLERANCE;
}

enum status sandbox_check_quota(struct sandbox *s, double cpus, struct err *err)
{
    char source[CGROUP_PATH_MAX + 64];
    double own;

    if (cpus < QUOTA_MIN)
        return err_set(err, ST_USAGE,
                       "a quota of %g CPUs is below %g, the kernel's minimum", cpus,
                       QUOTA_MIN);
    cgroup_find(&s->cpu_place, s->root, CGROUP_CPU);
    if (!s->cpu_place.version)
        return err_set(
            err, ST_UNSUPPORTED,
            "no CPU controller, neither of cgroup version 1 nor 2, is mounted "
            "here (looked in %s/proc/self/cgroup and "
            "%s/proc/self/mountinfo); run without a quota (--cpus-quota none)",
            s->root, s->root);
    own = own_quota(s, source, sizeof source);
    if (own > 0 && cpus > own + TOLERANCE)
        return err_set(err, ST_USAGE,
                       "a quota of %g CPUs is above the %g that %.200s allows; name "
                       "less, or none (--cpus-quota none)",
                       cpus, own, source);
    return ST_OK;
}

/* Version 1 has the period in a file of its own. */
static int write_quota(const struct sandbox *s, long quota_us)
{
    char text[64];

    if (s->cpu_place.version == 2) {
        snprintf(text, sizeof text, "%ld %d", quota_us, PERIOD_US);
        return group_write(s->root, s->cpu_dir, "cpu.max", text, false);
    }
    snprintf(text, sizeof text, "%d", PERIOD_US);
    if (group_write(s->root, s->cpu_dir, "cpu.cfs_period_us", text, false))
        return -1;
    snprintf(text, sizeof text, "%ld", quota_us);
    return group_write(s->root, s->cpu_dir, "cpu.cfs_quota_us", text, false);
}

enum status sandbox_set_quota(struct sandbox *s, double cpus, struct err *err)
{
    char source[CGROUP_PATH_MAX + 64];
    double got;

    if (write_quota(s, lround(cpus * PERIOD_US)))
        return err_set_errno(err, errno == EACCES ? ST_PERMISSION : ST_IO,
                             "cannot set a quota of %g CPUs in %.200s", cpus,
                             s->cpu_dir);
    got = cgroup_quota_read(&s->cpu_place, s->root, s->cpu_dir, source, sizeof source);
    if (fabs(got - cpus) <= TOLERANCE)
        return ST_OK;
    return err_set(err, ST_IO,
                   "requested a quota of %g CPUs, the kernel has %g in %.200s", cpus,
                   got, s->cpu_dir);
}
