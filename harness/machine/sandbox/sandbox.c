/* SPDX-License-Identifier: MIT
 *
 * sandbox.c - cgroups around a child process, version 2 or 1: a memory limit, a quota
 */
#include "harness/machine/sandbox/sandbox_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/format.h"

/* Below this the program itself does not start well. */
#define LIMIT_MIN (UINT64_C(16) << 20)

/* Version 1 may have a hierarchy for each controller. */
static struct hierarchy of_memory, of_cpu;

/* ---- making one ------------------------------------------------------------------ */

static enum status check_limit(const char *root, uint64_t limit, struct err *err)
{
    char *text = sysfile_read_all(root, "/proc/meminfo");
    uint64_t kb = 0;

    if (text)
        text_key_u64(text, "MemTotal", &kb);
    free(text);
    if (limit < LIMIT_MIN)
        return err_set(err, ST_USAGE,
                       "a memory limit of %s is below 16 MiB, where nothing can run",
                       bytes_text(limit).text);
    if (kb && limit / 1024 > kb)
        return err_set(err, ST_USAGE,
                       "a memory limit of %s is above the %s this machine has; set "
                       "less, or none (--mem none)",
                       bytes_text(limit).text, bytes_text(kb * 1024).text);
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

/* A group of its own number below h's parent, into dir. */
static enum status make_dir(const char *root, const struct hierarchy *h,
                            char dir[CGROUP_PATH_MAX], struct err *err)
{
    static unsigned last_serial;
    struct maker me;
    char name[96], serial[16];

    maker_self(&me, root);
    for (int attempt = 0; attempt < 1000; attempt++) {
        snprintf(serial, sizeof serial, "%u", ++last_serial);
        group_name(&me, serial, name, sizeof name);
        if (snprintf(dir, CGROUP_PATH_MAX, "%s/%s", h->parent.dir, name) >=
            CGROUP_PATH_MAX) {
            errno = ENAMETOOLONG;
            break;
        }
        if (!group_mkdir(root, dir))
            return ST_OK;
        if (errno != EEXIST)
            break;
    }
    const bool forbidden = errno == EACCES || errno == EPERM || errno == EROFS;
    dir[0] = '\0';
    return err_set_errno(err, forbidden ? ST_PERMISSION : ST_IO,
                         "cannot make a cgroup in %.200s%s", h->parent.dir,
                         forbidden ? " (run as root, or without a limit)" : "");
}

/* The last of a hierarchy's groups is gone. */
static void leave(struct hierarchy *h, const char *root)
{
    if (--h->n_live)
        return;
    group_release_parent(&h->parent, root);
    memset(&h->parent, 0, sizeof h->parent);
}

/* Whoever makes groups removes those of runs that were killed. */
static void clean_once(const char *root)
{
    static bool is_clean;

    if (is_clean || *root)
        return;
    is_clean = true;
    sandbox_clean_leftovers(root);
}

static enum status make_group(struct hierarchy *h, const struct cgroup_place *place,
                              const char *root, unsigned controllers,
                              char dir[CGROUP_PATH_MAX], struct err *err)
{
    enum status st;

    clean_once(root);
    st = h->n_live ? group_add_controllers(&h->parent, place, root, controllers, err)
                   : group_find_parent(&h->parent, place, root, controllers, err);
    if (st)
        return st;
    h->n_live++;
    st = make_dir(root, h, dir, err);
    if (st)
        leave(h, root);
    return st;
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

static enum status refuse_limit(uint64_t requested, uint64_t is, const char *source,
                                struct err *err)
{
    return err_set(err, ST_USAGE,
                   "a memory limit of %s is above the %s that %.200s allows; name "
                   "less, or that one (--mem container), or none (--mem none)",
                   bytes_text(requested).text, bytes_text(is).text, source);
}

/* Set the limit and use the value that the kernel reports. */
static enum status enforce(const struct sandbox *s, uint64_t limit, struct err *err)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char source[CGROUP_PATH_MAX + 64], text[32];

    snprintf(text, sizeof text, "%" PRIu64, limit);
    if (write_limit(s, text))
        return err_set_errno(err, errno == EACCES ? ST_PERMISSION : ST_IO,
                             "cannot set a memory limit of %s bytes in %.200s", text,
                             s->dir);
    const uint64_t got = sandbox_read_limit(s, source, sizeof source);
    if (got && got + page <= limit)
        return refuse_limit(limit, got, source, err);
    if (got > limit || !got)
        return err_set(
            err, ST_IO, "requested a memory limit of %s, the kernel has %s in %.200s",
            bytes_text(limit).text, got ? bytes_text(got).text : "none", s->dir);
    return ST_OK;
}

static void unmake_dir(const struct sandbox *s, struct hierarchy **h, char *dir,
                       int version)
{
    if (!*h)
        return;
    group_remove(s->root, dir, version);
    dir[0] = '\0';
    leave(*h, s->root);
    *h = NULL;
}

static void unmake(struct sandbox *s)
{
    unmake_dir(s, &s->cpu_made_in, s->cpu_dir, s->cpu_place.version);
    unmake_dir(s, &s->made_in, s->dir, s->place.version);
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
    char source[CGROUP_PATH_MAX + 64];
    uint64_t got;

    snprintf(s->dir, sizeof s->dir, "%s", s->place.dir);
    got = sandbox_read_limit(s, source, sizeof source);
    s->dir[0] = '\0';
    if (!got || got >= limit + page)
        return ST_PERMISSION;
    err_clear(err);
    if (got + page <= limit)
        return refuse_limit(limit, got, source, err);
    return adopt(s, err);
}

/* controllers: the group's, GROUP_MEMORY among them. */
static enum status make(struct sandbox *s, uint64_t limit_bytes, unsigned controllers,
                        struct err *err)
{
    enum status st =
        make_group(&of_memory, &s->place, s->root, controllers, s->dir, err);

    if (st)
        return st;
    s->made_in = &of_memory;
    st = enforce(s, limit_bytes, err);
    if (st)
        unmake(s);
    return st;
}

/* With a limit; the group takes the quota as well where that is of the same hierarchy.
 */
static enum status limit_memory(struct sandbox *s, uint64_t bytes, struct err *err)
{
    const unsigned cpu = sandbox_is_one_hierarchy(s) ? GROUP_CPU : 0;
    enum status st = make(s, bytes, GROUP_MEMORY | cpu, err);

    if (st == ST_PERMISSION)
        st = adopt_instead(s, bytes, err);
    return st;
}

/* Without: what can be known is that of our own group. */
static void leave_memory(struct sandbox *s)
{
    cgroup_find(&s->place, s->root, CGROUP_MEMORY);
    if (!s->place.version || adopt(s, NULL))
        s->dir[0] = '\0';
}

/* A group that has one already takes the quota, too. */
static enum status limit_cpu(struct sandbox *s, double cpus, struct err *err)
{
    struct hierarchy *h = sandbox_is_one_hierarchy(s) ? &of_memory : &of_cpu;
    struct err why = ERR_INIT;
    enum status st = ST_OK;

    if (s->made_in && sandbox_is_one_hierarchy(s)) {
        snprintf(s->cpu_dir, sizeof s->cpu_dir, "%s", s->dir);
    } else {
        st = make_group(h, &s->cpu_place, s->root, GROUP_CPU, s->cpu_dir, &why);
        if (st == ST_PERMISSION && sandbox_has_quota(s, cpus))
            return ST_OK;
        if (st)
            return err_set(err, st, "%s", why.msg);
        s->cpu_made_in = h;
    }
    return sandbox_set_quota(s, cpus, err);
}

enum status sandbox_create_with(struct sandbox **out, const char *root,
                                const struct sandbox_limits *limits, struct err *err)
{
    struct sandbox *s = calloc(1, sizeof *s);
    enum status st = ST_OK;

    if (!s)
        return err_set(err, ST_NO_MEMORY, "no memory for a sandbox");
    snprintf(s->root, sizeof s->root, "%s", root);
    if (limits->memory_bytes)
        st = check_limit(root, limits->memory_bytes, err);
    if (st == ST_OK && limits->memory_bytes)
        st = find_place(&s->place, root, err);
    if (st == ST_OK && limits->quota_cpus > 0)
        st = sandbox_check_quota(s, limits->quota_cpus, err);
    if (st == ST_OK && limits->memory_bytes)
        st = limit_memory(s, limits->memory_bytes, err);
    else if (st == ST_OK)
        leave_memory(s);
    if (st == ST_OK && limits->quota_cpus > 0)
        st = limit_cpu(s, limits->quota_cpus, err);
    if (st == ST_OK) {
        *out = s;
        return ST_OK;
    }
    unmake(s);
    free(s);
    return st;
}

enum status sandbox_create(struct sandbox **s, const char *root, uint64_t limit_bytes,
                           struct err *err)
{
    const struct sandbox_limits limits = {.memory_bytes = limit_bytes};

    if (!limit_bytes)
        return check_limit(root, 0, err);
    return sandbox_create_with(s, root, &limits, err);
}

static enum status add_to(const struct sandbox *s, const char *dir, pid_t pid,
                          struct err *err)
{
    char text[32];

    snprintf(text, sizeof text, "%d\n", (int)pid);
    if (!group_write(s->root, dir, "cgroup.procs", text, true))
        return ST_OK;
    return err_set_errno(err, errno == EACCES || errno == EPERM ? ST_PERMISSION : ST_IO,
                         "cannot put process %d into the cgroup %.200s", (int)pid, dir);
}

enum status sandbox_add(struct sandbox *s, pid_t pid, struct err *err)
{
    enum status st = s->made_in ? add_to(s, s->dir, pid, err) : ST_OK;

    return st || !s->cpu_made_in ? st : add_to(s, s->cpu_dir, pid, err);
}

void sandbox_destroy(struct sandbox *s)
{
    if (!s)
        return;
    unmake(s);
    free(s);
}

const char *sandbox_path(const struct sandbox *s)
{
    return s->dir;
}

const char *sandbox_quota_path(const struct sandbox *s)
{
    return s->cpu_dir;
}

bool sandbox_is_adopted(const struct sandbox *s)
{
    return !s->made_in;
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

enum status sandbox_check_with(const char *root, const struct sandbox_limits *limits,
                               struct err *err)
{
    struct sandbox *s = NULL;
    enum status st =
        limits->memory_bytes ? sandbox_check(root, limits->memory_bytes, err) : ST_OK;

    if (st || !(limits->quota_cpus > 0))
        return st;
    st = sandbox_create_with(&s, root, limits, err);
    if (st == ST_OK)
        sandbox_destroy(s);
    return st;
}
