/* SPDX-License-Identifier: MIT
 *
 * sandbox_impl.h - what a sandbox is made of
 */
#ifndef SLM_HARNESS_MACHINE_SANDBOX_SANDBOX_IMPL_H
#define SLM_HARNESS_MACHINE_SANDBOX_SANDBOX_IMPL_H

#include "harness/base/sysfile.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/machine/sandbox/sandbox_group.h"

/* A hierarchy in which groups are made. State of the process, undone with the last of
 * its groups. */
struct hierarchy {
    struct group_parent parent;
    int n_live;
};

struct sandbox {
    char root[SYSFILE_PATH_MAX];
    struct cgroup_place place;   /* of the memory controller; version 0: not found */
    char dir[CGROUP_PATH_MAX];   /* "": nothing can be read of it */
    struct hierarchy *made_in;   /* dir is ours to remove; NULL: it is not */
    struct sandbox_usage before; /* its counters when it was adopted */
    uint64_t peak_seen;          /* for kernels without memory.peak */

    struct cgroup_place cpu_place; /* of the CPU controller, where there is a quota */
    char cpu_dir[CGROUP_PATH_MAX]; /* may be dir; "": no quota, or that of our own group
                                      is the one asked for */
    struct hierarchy *cpu_made_in; /* NULL: it is not ours, or it is dir */
};

/* sandbox_read.c: the memory limit in force; 0: none. */
uint64_t sandbox_read_limit(const struct sandbox *s, char *source, size_t cap);

/* ---- sandbox_quota.c ------------------------------------------------------------- */

/* Find the CPU controller: is this a quota that a group below ours can have? Errors:
 * sandbox_create_with()'s. */
enum status sandbox_check_quota(struct sandbox *s, double cpus, struct err *err);

/* Whether our own group has it already. */
bool sandbox_has_quota(const struct sandbox *s, double cpus);

/* Write the quota of cpu_dir, and read back what is in force. Errors: ST_PERMISSION,
 * ST_IO. */
enum status sandbox_set_quota(struct sandbox *s, double cpus, struct err *err);

/* Whether one group can have both a memory limit and a quota. */
bool sandbox_is_one_hierarchy(const struct sandbox *s);

#endif
