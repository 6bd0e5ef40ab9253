/* SPDX-License-Identifier: MIT
 *
 * sandbox_read.c - what the kernel counts of a sandbox
 */
#include "harness/machine/sandbox/sandbox_impl.h"

#include <stdio.h>
#include <stdlib.h>

uint64_t sandbox_read_limit(const struct sandbox *s, char *source, size_t cap)
{
    struct cgroup_memory m;

    cgroup_memory_read(&m, &s->place, s->root, s->dir);
    snprintf(source, cap, "%s", m.limit_source);
    return m.limit;
}

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
    if (!events && !s->made_in)
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
    char *stat;

    if (!*s->dir)
        return err_set(err, ST_UNSUPPORTED, "no memory controller is mounted here");
    stat = read_text(s, "memory.stat");
    if (!stat)
        return err_set_errno(err, ST_IO, "cannot read memory.stat in %.200s", s->dir);
    if (s->place.version == 2)
        read_v2(s, &u, stat);
    else
        read_v1(s, &u, stat);
    u.n_refaults = either_key(stat, "workingset_refault_file", "workingset_refault") +
                   either_key(stat, "workingset_refault_anon", NULL);
    u.limit_bytes = sandbox_read_limit(s, source, sizeof source);
    if (!s->made_in)
        count_from(&u, &s->before);
    if (u.current_bytes > s->peak_seen)
        s->peak_seen = u.current_bytes;
    if (u.peak_bytes < s->peak_seen)
        u.peak_bytes = s->peak_seen;
    free(stat);
    *out = u;
    return ST_OK;
}
