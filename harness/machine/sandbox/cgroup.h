/* SPDX-License-Identifier: MIT
 *
 * cgroup.h - the control groups of this process, and their limits
 *
 * Model of the world: a controller (memory, cpu, cpuset) lives in exactly one
 * hierarchy, of version 1 (one mount per controller or set of controllers) or
 * version 2 (one mount for all); hybrid machines have both, and every controller
 * must be looked up by itself. /proc/self/cgroup gives our path within the
 * hierarchy, /proc/self/mountinfo where the hierarchy is mounted and which of its
 * subtrees is to be seen there. In a container the two need not fit; our group is
 * then taken to be the top of the mount, which is how containers are
 * usually set up, and limits further up cannot be seen.
 *
 * A limit is the smallest on the way from our group to the top of the mount. What of a
 * group's memory is used already counts for all groups below it.
 *
 * Threading: stateless.
 */
#ifndef SLM_HARNESS_MACHINE_SANDBOX_CGROUP_H
#define SLM_HARNESS_MACHINE_SANDBOX_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH_MAX 512

enum cgroup_controller { CGROUP_MEMORY, CGROUP_CPU, CGROUP_CPUSET, CGROUP_N };

/* Paths are as on the machine itself, without the recorded tree's root in front. */
struct cgroup_place {
    int version;                 /* 1, 2; 0: this controller is not to be found */
    char mount[CGROUP_PATH_MAX]; /* top of the visible hierarchy */
    char dir[CGROUP_PATH_MAX];   /* our group's directory: mount or below it */
    bool exact; /* false: dir is a guess, our own path is not below the mount */
};

/* root: "" or the top of a recorded tree with /proc and /sys. A controller that
 * version 1 does not carry is taken to be in version 2 where that is mounted with
 * the controller available at the top or on our way down. */
void cgroup_find(struct cgroup_place *place, const char *root,
                 enum cgroup_controller c);

/* One directory up, in place; false (unchanged) at the mount. */
bool cgroup_parent(const struct cgroup_place *place, char *dir);

/* What the groups from ours to the top of the mount leave to a process. */
struct cgroup_memory {
    uint64_t limit; /* the smallest, memory.high included; bytes, 0: none */
    uint64_t left;  /* under every limit, less what the group that has it cannot give
                       back: the use of all processes below it, without page cache and
                       what else can be reclaimed. no figure where there is no limit */
    uint64_t over;  /* what is used beyond a limit that was lowered, the most of all */
    char limit_source[CGROUP_PATH_MAX + 64]; /* the file it came from, or "" */
    char left_source[CGROUP_PATH_MAX + 64];  /* the file of the limit that leaves it */
};

struct cgroup_limits {
    int version;       /* of the memory controller, else of cpu; 0: neither */
    double quota_cpus; /* CPU time per time, in CPUs; 0: none */
    char quota_source[CGROUP_PATH_MAX + 64]; /* the file it came from, or "" */
    struct cgroup_memory memory;
    char cpus[4096]; /* our cpuset as a CPU list; "": none */
};

void cgroup_limits_read(struct cgroup_limits *l, const char *root);

/* The least quota of dir (a directory of that version) and those above it, up to mount,
 * in CPUs; 0: none. source: the file it came from, or "". */
double cgroup_quota_read(const struct cgroup_place *place, const char *root,
                         const char *dir, char *source, size_t cap);

/* cgroup_memory.c: for dir (a directory of that version) and those above it, up to
 * mount. */
void cgroup_memory_read(struct cgroup_memory *m, const struct cgroup_place *place,
                        const char *root, const char *dir);

#endif
