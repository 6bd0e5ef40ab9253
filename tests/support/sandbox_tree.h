/* SPDX-License-Identifier: MIT
 *
 * sandbox_tree.h - groups as recorded trees, to make sandboxes in
 */
#ifndef SLM_TESTS_SANDBOX_TREE_H
#define SLM_TESTS_SANDBOX_TREE_H

#include "tests/support/tree_root.h"

#include "harness/machine/sandbox/cgroup.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/machine/sandbox/sandbox_group.h"

#define MIB UINT64_C(1048576)

static inline int setup(void **state)
{
    make_root(state);
    tree_put(root, "/proc/meminfo",
             "MemTotal: 16777216 kB\nMemAvailable: 8000000 kB\n");
    return 0;
}

/* A v2 hierarchy in which we are in /user/me, with the files the kernel makes. */
static inline void v2_group(const char *dir, const char *controllers,
                            const char *passed_on, const char *procs)
{
    char path[512];

    snprintf(path, sizeof path, "%s/cgroup.controllers", dir);
    tree_put(root, path, controllers);
    snprintf(path, sizeof path, "%s/cgroup.subtree_control", dir);
    tree_put(root, path, passed_on);
    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    tree_put(root, path, procs);
    snprintf(path, sizeof path, "%s/cgroup.type", dir);
    if (strcmp(dir, "/sys/fs/cgroup") != 0)
        tree_put(root, path, "domain\n");
}

static inline void v2_tree(void)
{
    tree_put(root, "/proc/self/cgroup", "0::/user/me\n");
    tree_put(root, "/proc/self/mountinfo",
             "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    v2_group("/sys/fs/cgroup", "cpu memory pids\n", "cpu memory pids\n", "1\n2\n");
    v2_group("/sys/fs/cgroup/user", "cpu memory pids\n", "cpu memory\n", "");
    v2_group("/sys/fs/cgroup/user/me", "cpu memory\n", "", "4321\n4322\n");
}

static inline void v1_tree(void)
{
    tree_put(root, "/proc/self/cgroup", "4:memory:/jobs/mine\n0::/\n");
    tree_put(root, "/proc/self/mountinfo",
             "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    tree_put(root, "/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes",
             "9223372036854771712\n");
    tree_mkdir(root, "/sys/fs/cgroup/memory/jobs/mine");
}

static inline const char *in_group(const struct sandbox *s, const char *file)
{
    static char buf[256];
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", sandbox_path(s), file);
    return tree_get(root, path, buf, sizeof buf);
}

#endif
