/* SPDX-License-Identifier: MIT
 *
 * sandbox_leftovers.c - groups of runs that were killed
 */
#include "harness/machine/sandbox/sandbox.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/sysfile.h"
#include "harness/machine/sandbox/sandbox_group.h"

/* Groups deeper than this, or beyond this many, are not ours. */
#define CLEAN_DEPTH_MAX  12
#define CLEAN_GROUPS_MAX 20000

struct cleaning {
    const char *root;
    int version, n_seen, n_removed;
};

static void clean_group(struct cleaning *c, const char *dir, const char *name)
{
    struct maker maker;
    bool is_self;

    if (!group_parse(name, &maker, &is_self) || maker_may_live(&maker, c->root))
        return;
    /* In the leaf "self" are processes the run was started from: never to be killed.
     * While one lives there the leaf stays. */
    if (!(is_self ? group_rmdir(c->root, dir) : group_remove(c->root, dir, c->version)))
        c->n_removed++;
}

/* All of the hierarchy, since a new run may stand elsewhere than the killed one. */
static void clean_below(struct cleaning *c, const char *dir, int depth)
{
    char path[SYSFILE_PATH_MAX], sub[CGROUP_PATH_MAX];
    DIR *d = sysfile_path(path, sizeof path, c->root, dir) ? opendir(path) : NULL;

    for (struct dirent *e; d && (e = readdir(d)) && c->n_seen < CLEAN_GROUPS_MAX;) {
        if (e->d_type != DT_DIR || e->d_name[0] == '.' ||
            snprintf(sub, sizeof sub, "%s/%s", dir, e->d_name) >= (int)sizeof sub)
            continue;
        c->n_seen++;
        if (!strncmp(e->d_name, "slmbench.", 9))
            clean_group(c, sub, e->d_name);
        else if (depth < CLEAN_DEPTH_MAX)
            clean_below(c, sub, depth + 1);
    }
    if (d)
        closedir(d);
}

int sandbox_clean_leftovers(const char *root)
{
    struct cgroup_place memory, cpu;
    struct cleaning c = {.root = root};

    cgroup_find(&memory, root, CGROUP_MEMORY);
    cgroup_find(&cpu, root, CGROUP_CPU);
    c.version = memory.version;
    if (memory.version)
        clean_below(&c, memory.mount, 0);
    c.version = cpu.version;
    if (cpu.version && strcmp(cpu.mount, memory.mount) != 0)
        clean_below(&c, cpu.mount, 0);
    return c.n_removed;
}
