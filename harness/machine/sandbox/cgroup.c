/* SPDX-License-Identifier: MIT
 *
 * cgroup.c - the control groups of this process, and their limits
 */
#include "harness/machine/sandbox/cgroup.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/sysfile.h"

static const char *const controller_names[CGROUP_N] = {"memory", "cpu", "cpuset"};

static bool is_dir(const char *root, const char *path)
{
    char full[SYSFILE_PATH_MAX];
    struct stat st;

    return sysfile_path(full, sizeof full, root, path) && !stat(full, &st) &&
           S_ISDIR(st.st_mode);
}

/* Our path in the hierarchy of a v1 controller, or (controller NULL) of version
 * 2, from the text of /proc/self/cgroup: lines "4:cpu,cpuacct:/path", "0::/path". */
static bool own_path(const char *text, const char *controller, char *path, size_t cap)
{
    for (const char *line = text; line && *line;
         line = (line = strchr(line, '\n')) ? line + 1 : NULL) {
        const char *end = strchrnul(line, '\n');
        const char *list = memchr(line, ':', (size_t)(end - line));
        const char *tail =
            list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
        char names[256];

        if (!tail || (size_t)(tail - list - 1) >= sizeof names ||
            (size_t)(end - tail - 1) >= cap)
            continue;
        memcpy(names, list + 1, (size_t)(tail - list - 1));
        names[tail - list - 1] = '\0';
        if (controller ? text_has_word(names, controller) : names[0] == '\0') {
            memcpy(path, tail + 1, (size_t)(end - tail - 1));
            path[end - tail - 1] = '\0';
            return path[0] == '/';
        }
    }
    return false;
}

/* One field of a mountinfo line into out: octal escapes (\040 for a blank)
 * decoded. Returns what follows the field, or NULL at the end of the line. */
static const char *mount_field(const char *p, char *out, size_t cap)
{
    size_t n = 0;

    while (*p == ' ')
        p++;
    if (!*p || *p == '\n')
        return NULL;
    while (*p && *p != ' ' && *p != '\n') {
        char c = *p++;

        if (c == '\\' && p[0] >= '0' && p[0] <= '3' && isdigit((unsigned char)p[1]) &&
            isdigit((unsigned char)p[2])) {
            c = (char)((p[0] - '0') << 6 | (p[1] - '0') << 3 | (p[2] - '0'));
            p += 3;
        }
        if (n + 1 < cap)
            out[n++] = c;
    }
    out[n] = '\0';
    return p;
}

struct mount {
    char root[CGROUP_PATH_MAX];  /* the subtree of the hierarchy that shows ... */
    char point[CGROUP_PATH_MAX]; /* ... here */
    char type[32];
    char options[256]; /* of the hierarchy: names its v1 controllers */
};

/* "31 23 0:28 /root /point rw,relatime shared:1 - cgroup source rw,memory" */
static bool parse_mount(const char *line, struct mount *m)
{
    char skip[CGROUP_PATH_MAX];
    const char *p = line;

    for (int i = 0; i < 3 && p; i++)
        p = mount_field(p, skip, sizeof skip);
    p = p ? mount_field(p, m->root, sizeof m->root) : NULL;
    p = p ? mount_field(p, m->point, sizeof m->point) : NULL;
    do
        p = p ? mount_field(p, skip, sizeof skip) : NULL;
    while (p && strcmp(skip, "-") != 0);
    p = p ? mount_field(p, m->type, sizeof m->type) : NULL;
    p = p ? mount_field(p, skip, sizeof skip) : NULL;
    p = p ? mount_field(p, m->options, sizeof m->options) : NULL;
    return p != NULL;
}

/* Does path begin with the directory prefix? Returns the rest, "" or "/...". */
static const char *below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);

    while (n && prefix[n - 1] == '/')
        n--;
    if (strncmp(path, prefix, n) != 0 || (path[n] && path[n] != '/'))
        return NULL;
    return path[n] == '/' && !path[n + 1] ? "" : path + n;
}

/* Our directory, given a mount of our hierarchy: where our path lies below what
 * is mounted, there; else the path taken from the mount (a namespace hides the
 * prefix); else the mount itself. */
static void place_in_mount(struct cgroup_place *place, const char *root,
                           const struct mount *m, const char *path)
{
    const char *rest = below(path, m->root);

    snprintf(place->mount, sizeof place->mount, "%s", m->point);
    place->exact = false;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (attempt)
            rest = below(path, "/");
        if (!rest || strstr(rest, "/..")) /* "/../x": outside our namespace */
            continue;
        const int n = snprintf(place->dir, sizeof place->dir, "%s%s", m->point, rest);
        if (n > 0 && (size_t)n < sizeof place->dir && is_dir(root, place->dir)) {
            place->exact = attempt == 0 || !*rest;
            return;
        }
    }
    snprintf(place->dir, sizeof place->dir, "%s", m->point);
}

/* The first mount of the hierarchy that shows our directory, else the first. */
static bool find_mount(struct cgroup_place *place, const char *root, const char *mounts,
                       const char *type, const char *controller, const char *path)
{
    bool found = false;

    for (const char *line = mounts; line && *line;
         line = (line = strchr(line, '\n')) ? line + 1 : NULL) {
        struct cgroup_place here = {.version = controller ? 1 : 2};
        struct mount m;

        if (!parse_mount(line, &m) || strcmp(m.type, type) != 0 ||
            (controller && !text_has_word(m.options, controller)) ||
            !is_dir(root, m.point))
            continue;
        place_in_mount(&here, root, &m, path);
        if (!found || (here.exact && !place->exact))
            *place = here;
        found = true;
    }
    return found;
}

bool cgroup_parent(const struct cgroup_place *place, char *dir)
{
    char *slash = strrchr(dir, '/');

    if (!slash || !strcmp(dir, place->mount) || !below(dir, place->mount))
        return false;
    *slash = '\0';
    return true;
}

/* Is the controller offered by version 2 to our group or one above it? (Files of
 * limits exist there even if it was not passed on to us.) */
static bool offered_v2(const struct cgroup_place *place, const char *root,
                       const char *name)
{
    char dir[CGROUP_PATH_MAX], file[SYSFILE_PATH_MAX], list[512];

    memcpy(dir, place->dir, sizeof dir);
    do {
        snprintf(file, sizeof file, "%s/cgroup.controllers", dir);
        if (sysfile_read(root, file, list, sizeof list) > 0 &&
            text_has_word(list, name))
            return true;
    } while (cgroup_parent(place, dir));
    return false;
}

void cgroup_find(struct cgroup_place *place, const char *root, enum cgroup_controller c)
{
    const char *name = controller_names[c];
    char *groups = sysfile_read_all(root, "/proc/self/cgroup");
    char *mounts = sysfile_read_all(root, "/proc/self/mountinfo");
    char path[CGROUP_PATH_MAX];

    memset(place, 0, sizeof *place);
    if (groups && mounts) {
        if (own_path(groups, name, path, sizeof path)) {
            if (!find_mount(place, root, mounts, "cgroup", name, path))
                place->version = 0;
        } else if (own_path(groups, NULL, path, sizeof path)) {
            if (!find_mount(place, root, mounts, "cgroup2", NULL, path) ||
                !offered_v2(place, root, name))
                memset(place, 0, sizeof *place);
        }
    }
    free(groups);
    free(mounts);
}

/* Quota of one directory in CPUs, 0: none. */
static double quota_of(const char *root, const char *dir, int version, char *file,
                       size_t cap)
{
    char text[64];
    double quota, period = 0;

    snprintf(file, cap, "%s/%s", dir, version == 2 ? "cpu.max" : "cpu.cfs_quota_us");
    if (sysfile_read(root, file, text, sizeof text) <= 0)
        return 0;
    if (version == 2) {
        if (sscanf(text, "%lf %lf", &quota, &period) < 1) /* "max 100000" */
            return 0;
        if (!(period > 0))
            period = 100000; /* the kernel's default */
    } else {
        char other[SYSFILE_PATH_MAX];
        uint64_t us = 0;

        snprintf(other, sizeof other, "%s/cpu.cfs_period_us", dir);
        if (sscanf(text, "%lf", &quota) != 1 || !sysfile_u64(root, other, &us))
            return 0;
        period = (double)us;
    }
    return quota > 0 && period > 0 ? quota / period : 0; /* -1: none */
}

double cgroup_quota_read(const struct cgroup_place *place, const char *root,
                         const char *start, char *source, size_t cap)
{
    char dir[CGROUP_PATH_MAX], file[CGROUP_PATH_MAX + 64];
    double least = 0;

    snprintf(dir, sizeof dir, "%s", start);
    snprintf(source, cap, "%s", "");
    do {
        const double q = quota_of(root, dir, place->version, file, sizeof file);

        if (q > 0 && (!(least > 0) || q < least)) {
            least = q;
            snprintf(source, cap, "%s", file);
        }
    } while (cgroup_parent(place, dir));
    return least;
}

/* The effective set; an empty one in an own group means the parent's. */
static void read_cpuset(struct cgroup_limits *l, const struct cgroup_place *place,
                        const char *root)
{
    static const char *const names[] = {"cpuset.cpus.effective",
                                        "cpuset.effective_cpus", "cpuset.cpus"};
    char dir[CGROUP_PATH_MAX], file[CGROUP_PATH_MAX + 64];

    memcpy(dir, place->dir, sizeof dir);
    do {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            snprintf(file, sizeof file, "%s/%s", dir, names[i]);
            if (sysfile_read(root, file, l->cpus, sizeof l->cpus) > 0)
                return;
        }
    } while (cgroup_parent(place, dir));
}

void cgroup_limits_read(struct cgroup_limits *l, const char *root)
{
    struct cgroup_place place;

    memset(l, 0, sizeof *l);
    cgroup_find(&place, root, CGROUP_CPUSET);
    if (place.version)
        read_cpuset(l, &place, root);
    cgroup_find(&place, root, CGROUP_CPU);
    if (place.version) {
        l->version = place.version;
        l->quota_cpus = cgroup_quota_read(&place, root, place.dir, l->quota_source,
                                          sizeof l->quota_source);
    }
    cgroup_find(&place, root, CGROUP_MEMORY);
    if (place.version) {
        l->version = place.version;
        cgroup_memory_read(&l->memory, &place, root, place.dir);
    }
}
