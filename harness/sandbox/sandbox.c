/* SPDX-License-Identifier: MIT
 *
 * sandbox.c - a memory cgroup around a child process, version 2 or 1
 */
#include "harness/sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/sysfile.h"
#include "harness/sandbox/cgroup.h"
#include "harness/sandbox/sandbox_group.h"

/* Below this the program itself does not start well. */
#define LIMIT_MIN (UINT64_C(16) << 20)

struct sandbox {
    char root[SYSFILE_PATH_MAX];
    struct cgroup_place place;
    char dir[CGROUP_PATH_MAX];
    bool adopted;                /* our own group: dir is not ours to change */
    struct sandbox_usage before; /* its counters when it was adopted */
    uint64_t peak_seen;          /* for kernels without memory.peak */
};

/* State of the process: undone with the last sandbox. */
static struct {
    struct group_parent parent;
    int n_live;
    unsigned serial;
} shared;

static void gib(char *buf, size_t cap, uint64_t bytes)
{
    if (bytes >= UINT64_C(1) << 30)
        snprintf(buf, cap, "%.4g GiB", (double)bytes / (double)(UINT64_C(1) << 30));
    else
        snprintf(buf, cap, "%.4g MiB", (double)bytes / (double)(UINT64_C(1) << 20));
}

/* ---- making one ---------------------------------------------------------------- */

static enum status check_limit(const char *root, uint64_t limit, struct err *err)
{
    char *text = sysfile_read_all(root, "/proc/meminfo");
    char asked[32], has[32];
    uint64_t kb = 0;

    if (text)
        text_key_u64(text, "MemTotal", &kb);
    free(text);
    gib(asked, sizeof asked, limit);
    gib(has, sizeof has, kb * 1024);
    if (limit < LIMIT_MIN)
        return err_set(err, ST_USAGE,
                       "a memory limit of %s is below 16 MiB, where nothing can run",
                       asked);
    if (kb && limit / 1024 > kb)
        return err_set(err, ST_USAGE,
                       "a memory limit of %s is above the %s this machine has; set "
                       "less, or none (--mem none)",
                       asked, has);
    return ST_OK;
}

static enum status find_place(struct cgroup_place *place, const char *root,
                              struct err *err)
{
    cgroup_find(place, root, CGROUP_MEMORY);
    if (place->version)
        return ST_OK;
    return err_set(err, ST_UNSUPPORTED,
                   "no memory controller, neither of cgroup version 1 nor 2, is "
                   "mounted here (looked in %s/proc/self/cgroup and "
                   "%s/proc/self/mountinfo); run without a limit (--mem none)",
                   root, root);
}

/* A group of its own number below shared.parent. */
static enum status make_dir(struct sandbox *s, struct err *err)
{
    struct maker me;
    char name[96], serial[16];

    maker_self(&me, s->root);
    for (int attempt = 0; attempt < 1000; attempt++) {
        snprintf(serial, sizeof serial, "%u", ++shared.serial);
        group_name(&me, serial, name, sizeof name);
        if (snprintf(s->dir, sizeof s->dir, "%s/%s", shared.parent.dir, name) >=
            (int)sizeof s->dir) {
            errno = ENAMETOOLONG;
            break;
        }
        if (!group_mkdir(s->root, s->dir))
            return ST_OK;
        if (errno != EEXIST)
            break;
    }
    const bool forbidden = errno == EACCES || errno == EPERM || errno == EROFS;
    s->dir[0] = '\0';
    return err_set_errno(err, forbidden ? ST_PERMISSION : ST_IO,
                         "cannot make a memory cgroup in %.200s%s", shared.parent.dir,
                         forbidden ? " (run as root, or with --mem none)" : "");
}

/* Version 1 limits memory, then memory and swap together (which may not be below
 * it); with swappiness 0 the group does not swap even where swap is not counted. */
static int write_limit(const struct sandbox *s, const char *text)
{
    if (s->place.version == 2) {
        if (group_write(s->root, s->dir, "memory.max", text, false))
            return -1;
        /* absent where the kernel has no swap accounting, or no swap */
        if (group_write(s->root, s->dir, "memory.swap.max", "0", false) &&
            errno != ENOENT)
            return -1;
        return 0;
    }
    group_write(s->root, s->dir, "memory.use_hierarchy", "1", false);
    if (group_write(s->root, s->dir, "memory.limit_in_bytes", text, false))
        return -1;
    group_write(s->root, s->dir, "memory.swappiness", "0", false);
    if (group_write(s->root, s->dir, "memory.memsw.limit_in_bytes", text, false) &&
        errno != ENOENT && errno != EOPNOTSUPP)
        return -1;
    return 0;
}

/* 0: none. */
static uint64_t read_limit(const struct sandbox *s, char *source, size_t cap)
{
    struct cgroup_memory m;

    cgroup_memory_read(&m, &s->place, s->root, s->dir);
    snprintf(source, cap, "%s", m.limit_source);
    return m.limit;
}

static enum status refuse_limit(const char *asked, const char *is, const char *source,
                                struct err *err)
{
    return err_set(err, ST_USAGE,
                   "a memory limit of %s is above the %s that %.200s allows; name "
                   "less, or that one (--mem container), or none (--mem none)",
                   asked, is, source);
}

/* Set the limit and use the value that the kernel reports. */
static enum status enforce(const struct sandbox *s, uint64_t limit, struct err *err)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char source[CGROUP_PATH_MAX + 64], asked[32], is[32], text[32];

    snprintf(text, sizeof text, "%" PRIu64, limit);
    if (write_limit(s, text))
        return err_set_errno(err, errno == EACCES ? ST_PERMISSION : ST_IO,
                             "cannot set a memory limit of %s bytes in %.200s", text,
                             s->dir);
    const uint64_t got = read_limit(s, source, sizeof source);
    gib(asked, sizeof asked, limit);
    gib(is, sizeof is, got);
    if (got && got + page <= limit)
        return refuse_limit(asked, is, source, err);
    if (got > limit || !got)
        return err_set(err, ST_IO,
                       "requested a memory limit of %s, the kernel has %s in %.200s",
                       asked, got ? is : "none", s->dir);
    return ST_OK;
}

static void unmake(struct sandbox *s)
{
    if (s->dir[0])
        group_remove(s->root, s->dir, s->place.version);
    s->dir[0] = '\0';
    if (--shared.n_live == 0) {
        group_release_parent(&shared.parent, s->root);
        memset(&shared.parent, 0, sizeof shared.parent);
    }
}

/* The nearest group from ours upwards that is accounted for; version 2 may not have
 * passed the controller on to ours. */
static bool find_accounted(struct sandbox *s)
{
    char file[CGROUP_PATH_MAX + 64], text[16];

    snprintf(s->dir, sizeof s->dir, "%s", s->place.dir);
    do {
        snprintf(file, sizeof file, "%s/memory.stat", s->dir);
        if (sysfile_read(s->root, file, text, sizeof text) >= 0)
            return true;
    } while (cgroup_parent(&s->place, s->dir));
    return false;
}

static enum status adopt(struct sandbox *s, struct err *err)
{
    s->adopted = true;
    if (!find_accounted(s))
        return err_set(err, ST_IO, "cannot read memory.stat in %.200s or above it",
                       s->place.dir);
    return sandbox_read(s, &s->before, err);
}

enum status sandbox_adopt(struct sandbox **out, const char *root, struct err *err)
{
    struct sandbox *s = calloc(1, sizeof *s);
    enum status st;

    if (!s)
        return err_set(err, ST_NO_MEMORY, "no memory for a sandbox");
    snprintf(s->root, sizeof s->root, "%s", root);
    st = find_place(&s->place, root, err);
    if (st == ST_OK)
        st = adopt(s, err);
    if (st == ST_OK)
        *out = s;
    else
        free(s);
    return st;
}

enum status sandbox_own_limit(const char *root, uint64_t *limit_bytes, struct err *err)
{
    struct cgroup_limits limits;

    cgroup_limits_read(&limits, root);
    if (!limits.memory.limit)
        return err_set(err, ST_UNSUPPORTED,
                       "no memory limit is in force here (`bench topo` shows limits); "
                       "name one, as 6G, or none");
    *limit_bytes = limits.memory.limit;
    return ST_OK;
}

/* No group may be made, for the reason in *err: our own will do if it has the limit. A
 * page apart is the same, since kernels round. */
static enum status adopt_instead(struct sandbox *s, uint64_t limit, struct err *err)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char source[CGROUP_PATH_MAX + 64], asked[32], is[32];
    uint64_t got;

    snprintf(s->dir, sizeof s->dir, "%s", s->place.dir);
    got = read_limit(s, source, sizeof source);
    s->dir[0] = '\0';
    if (!got || got >= limit + page)
        return ST_PERMISSION;
    err_clear(err);
    gib(asked, sizeof asked, limit);
    gib(is, sizeof is, got);
    if (got + page <= limit)
        return refuse_limit(asked, is, source, err);
    return adopt(s, err);
}

static enum status make(struct sandbox *s, uint64_t limit_bytes, struct err *err)
{
    enum status st = ST_OK;

    if (shared.n_live == 0)
        st = group_find_parent(&shared.parent, &s->place, s->root, err);
    if (st)
        return st;
    shared.n_live++;
    st = make_dir(s, err);
    if (st == ST_OK)
        st = enforce(s, limit_bytes, err);
    if (st != ST_OK)
        unmake(s);
    return st;
}

enum status sandbox_create(struct sandbox **out, const char *root, uint64_t limit_bytes,
                           struct err *err)
{
    struct sandbox *s = calloc(1, sizeof *s);
    enum status st;

    if (!s)
        return err_set(err, ST_NO_MEMORY, "no memory for a sandbox");
    snprintf(s->root, sizeof s->root, "%s", root);
    st = check_limit(root, limit_bytes, err);
    if (st == ST_OK)
        st = find_place(&s->place, root, err);
    if (st == ST_OK)
        st = make(s, limit_bytes, err);
    if (st == ST_PERMISSION)
        st = adopt_instead(s, limit_bytes, err);
    if (st == ST_OK)
        *out = s;
    else
        free(s);
    return st;
}

enum status sandbox_add(struct sandbox *s, pid_t pid, struct err *err)
{
    char text[32];

    if (s->adopted)
        return ST_OK;
    snprintf(text, sizeof text, "%d\n", (int)pid);
    if (group_write(s->root, s->dir, "cgroup.procs", text, true))
        return err_set_errno(
            err, errno == EACCES || errno == EPERM ? ST_PERMISSION : ST_IO,
            "cannot put process %d into the memory cgroup %.200s", (int)pid, s->dir);
    return ST_OK;
}

void sandbox_destroy(struct sandbox *s)
{
    if (!s)
        return;
    if (!s->adopted)
        unmake(s);
    free(s);
}

const char *sandbox_path(const struct sandbox *s)
{
    return s->dir;
}

bool sandbox_is_adopted(const struct sandbox *s)
{
    return s->adopted;
}

enum status sandbox_check(const char *root, uint64_t limit_bytes, struct err *err)
{
    struct sandbox *s = NULL;
    enum status st = sandbox_create(&s, root, LIMIT_MIN, err);

    if (st == ST_PERMISSION && limit_bytes) {
        err_clear(err);
        st = sandbox_create(&s, root, limit_bytes, err);
    }
    if (st == ST_OK)
        sandbox_destroy(s);
    return st;
}

/* ---- reading one ---------------------------------------------------------------- */

static uint64_t read_number(const struct sandbox *s, const char *file)
{
    char path[CGROUP_PATH_MAX + 64];
    uint64_t v = 0;

    snprintf(path, sizeof path, "%s/%s", s->dir, file);
    return sysfile_u64(s->root, path, &v) ? v : 0;
}

static char *read_text(const struct sandbox *s, const char *file)
{
    char path[CGROUP_PATH_MAX + 64];

    snprintf(path, sizeof path, "%s/%s", s->dir, file);
    return sysfile_read_all(s->root, path);
}

/* The value of the first of two keys that exists; 0 if none does. */
static uint64_t either_key(const char *text, const char *a, const char *b)
{
    uint64_t v = 0;

    if (text && !text_key_u64(text, a, &v) && b)
        text_key_u64(text, b, &v);
    return v;
}

/* "kernel" has all of them (Linux 5.18). */
static uint64_t kernel_v2(const char *stat)
{
    const uint64_t all = either_key(stat, "kernel", NULL);
    const uint64_t freed = either_key(stat, "slab_reclaimable", NULL);

    if (!all)
        return either_key(stat, "kernel_stack", NULL) +
               either_key(stat, "pagetables", NULL) + either_key(stat, "percpu", NULL) +
               either_key(stat, "slab_unreclaimable", NULL);
    return all > freed ? all - freed : 0;
}

static void read_v2(const struct sandbox *s, struct sandbox_usage *u, const char *stat)
{
    char *events = read_text(s, "memory.events");

    /* the root of the hierarchy has none, but is all of the machine */
    if (!events && s->adopted)
        events = sysfile_read_all(s->root, "/proc/vmstat");
    u->current_bytes = read_number(s, "memory.current");
    u->peak_bytes = read_number(s, "memory.peak");
    u->file_bytes = either_key(stat, "file", NULL);
    u->anon_bytes = either_key(stat, "anon", NULL);
    u->shmem_bytes = either_key(stat, "shmem", NULL);
    u->kernel_bytes = kernel_v2(stat);
    u->n_major_faults = either_key(stat, "pgmajfault", NULL);
    u->n_oom_kills = either_key(events, "oom_kill", NULL);
    free(events);
}

static void read_v1(const struct sandbox *s, struct sandbox_usage *u, const char *stat)
{
    char *oom = read_text(s, "memory.oom_control");

    u->current_bytes = read_number(s, "memory.usage_in_bytes");
    u->peak_bytes = read_number(s, "memory.max_usage_in_bytes");
    u->file_bytes = either_key(stat, "total_cache", "cache");
    u->anon_bytes = either_key(stat, "total_rss", "rss"); /* huge pages included */
    u->shmem_bytes = either_key(stat, "total_shmem", "shmem");
    u->kernel_bytes = read_number(s, "memory.kmem.usage_in_bytes");
    u->n_major_faults = either_key(stat, "total_pgmajfault", "pgmajfault");
    if (!oom || !text_key_u64(oom, "oom_kill", &u->n_oom_kills)) /* Linux 4.13 */
        u->n_oom_kills = read_number(s, "memory.failcnt");
    free(oom);
}

/* What an adopted group counts since then; its peak may be older. */
static void count_from(struct sandbox_usage *u, const struct sandbox_usage *before)
{
    if (u->peak_bytes <= before->peak_bytes)
        u->peak_bytes = 0;
    u->n_oom_kills -= before->n_oom_kills;
    u->n_major_faults -= before->n_major_faults;
    u->n_refaults -= before->n_refaults;
}

enum status sandbox_read(struct sandbox *s, struct sandbox_usage *out, struct err *err)
{
    struct sandbox_usage u = {0};
    char source[CGROUP_PATH_MAX + 64];
    char *stat = read_text(s, "memory.stat");

    if (!stat)
        return err_set_errno(err, ST_IO, "cannot read memory.stat in %.200s", s->dir);
    if (s->place.version == 2)
        read_v2(s, &u, stat);
    else
        read_v1(s, &u, stat);
    u.n_refaults = either_key(stat, "workingset_refault_file", "workingset_refault") +
                   either_key(stat, "workingset_refault_anon", NULL);
    u.limit_bytes = read_limit(s, source, sizeof source);
    if (s->adopted)
        count_from(&u, &s->before);
    if (u.current_bytes > s->peak_seen)
        s->peak_seen = u.current_bytes;
    if (u.peak_bytes < s->peak_seen)
        u.peak_bytes = s->peak_seen;
    free(stat);
    *out = u;
    return ST_OK;
}

/* ---- leftovers ------------------------------------------------------------------- */

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
    struct cgroup_place place;
    struct cleaning c = {.root = root};

    cgroup_find(&place, root, CGROUP_MEMORY);
    c.version = place.version;
    if (place.version)
        clean_below(&c, place.mount, 0);
    return c.n_removed;
}
