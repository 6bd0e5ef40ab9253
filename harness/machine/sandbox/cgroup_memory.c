/* SPDX-License-Identifier: MIT
 *
 * cgroup_memory.c - the memory limits of a group and of those around it, and how much
 * of them is left
 */
#include "harness/machine/sandbox/cgroup.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/base/sysfile.h"

/* Version 1 has no word for "no limit": it is LONG_MAX rounded down to a page,
 * and page sizes differ. No machine has 2^60 bytes. */
#define NO_LIMIT_V1 (UINT64_C(1) << 60)

/* Above memory.high the kernel stops a group until it has reclaimed: a limit, too. */
static const char *const limit_files[3][2] = {
    [1] = {"memory.limit_in_bytes", NULL},
    [2] = {"memory.max", "memory.high"},
};

static uint64_t number_in(const char *root, const char *dir, const char *name)
{
    char file[CGROUP_PATH_MAX + 64];
    uint64_t v = 0;

    snprintf(file, sizeof file, "%s/%s", dir, name);
    return sysfile_u64(root, file, &v) ? v : 0;
}

static char *stat_of(const char *root, const char *dir)
{
    char file[CGROUP_PATH_MAX + 64];

    snprintf(file, sizeof file, "%s/memory.stat", dir);
    return sysfile_read_all(root, file);
}

/* What a group and those below it use, less what the kernel takes back when it needs
 * it: as MemAvailable counts, file pages that are not locked (of version 2 also caches
 * of the kernel). Shared memory is no file page of these lists. */
static uint64_t used_bytes(const char *root, const char *dir, int version,
                           const char *stat)
{
    static const char *const keys[3][3] = {
        [1] = {"total_active_file", "total_inactive_file", NULL},
        [2] = {"active_file", "inactive_file", "slab_reclaimable"},
    };
    const uint64_t used =
        number_in(root, dir, version == 2 ? "memory.current" : "memory.usage_in_bytes");
    uint64_t freed = 0, v;

    for (int i = 0; i < 3; i++)
        if (stat && keys[version][i] && text_key_u64(stat, keys[version][i], &v))
            freed += v;
    return used > freed ? used - freed : 0;
}

static void take(struct cgroup_memory *m, uint64_t limit, uint64_t used,
                 const char *dir, const char *name)
{
    const uint64_t left = limit > used ? limit - used : 0;

    if (!m->limit || limit < m->limit) {
        m->limit = limit;
        snprintf(m->limit_source, sizeof m->limit_source, "%s/%s", dir, name);
    }
    if (used > limit && used - limit > m->over)
        m->over = used - limit;
    if (left < m->left) {
        m->left = left;
        snprintf(m->left_source, sizeof m->left_source, "%s/%s", dir, name);
    }
}

/* A limit that counts: not "max", not 1's "no limit", not unreadable. */
static void read_group(struct cgroup_memory *m, int version, const char *root,
                       const char *dir)
{
    char *stat = stat_of(root, dir);
    const uint64_t used = used_bytes(root, dir, version, stat);

    for (int i = 0; i < 2; i++) {
        const char *name = limit_files[version][i];
        char file[CGROUP_PATH_MAX + 64];
        uint64_t limit;

        if (!name)
            continue;
        snprintf(file, sizeof file, "%s/%s", dir, name);
        if (sysfile_u64(root, file, &limit) && limit < NO_LIMIT_V1)
            take(m, limit, used, dir, name);
    }
    free(stat);
}

/* The only trace of limits above the mount, in a container: what is used there is
 * known of our own group only. */
static void read_hierarchical(struct cgroup_memory *m, const char *root,
                              const char *dir)
{
    char *stat = stat_of(root, dir);
    uint64_t limit;

    if (stat && text_key_u64(stat, "hierarchical_memory_limit", &limit) &&
        limit < NO_LIMIT_V1 && (!m->limit || limit < m->limit))
        take(m, limit, used_bytes(root, dir, 1, stat), dir, "memory.stat");
    free(stat);
}

void cgroup_memory_read(struct cgroup_memory *m, const struct cgroup_place *place,
                        const char *root, const char *start)
{
    char dir[CGROUP_PATH_MAX];

    *m = (struct cgroup_memory){.left = UINT64_MAX};
    snprintf(dir, sizeof dir, "%s", start);
    do
        read_group(m, place->version, root, dir);
    while (cgroup_parent(place, dir));
    if (place->version == 1)
        read_hierarchical(m, root, start);
}
