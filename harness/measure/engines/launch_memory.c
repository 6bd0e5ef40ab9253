/* SPDX-License-Identifier: MIT
 *
 * launch_memory.c - peak memory of a group of processes without their programs' files
 */
#include "harness/measure/engines/launch.h"

#include <dirent.h>
#include <stdio.h>

#include "harness/base/sysfile.h"

#define MAX_FILES 256 /* of a process's program and libraries */

struct programs {
    unsigned long inode[MAX_FILES];
    size_t n;
};

static FILE *open_of(const char *root, const char *pid, const char *name)
{
    char path[SYSFILE_PATH_MAX], within[64];

    snprintf(within, sizeof within, "/proc/%.20s/%s", pid, name);
    return sysfile_path(path, sizeof path, root, within) ? fopen(path, "re") : NULL;
}

static bool is_program(const struct programs *p, unsigned long inode)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->inode[i] == inode)
            return true;
    return false;
}

/* A line that begins a mapping; its file's inode, 0: none. */
static bool read_mapping(const char *line, char perms[5], unsigned long *inode)
{
    return sscanf(line, "%*x-%*x %4s %*x %*x:%*x %lu", perms, inode) == 2;
}

/* The files that may be executed in part. */
static void find_programs(struct programs *p, const char *root, const char *pid)
{
    FILE *f = open_of(root, pid, "maps");
    char line[512], perms[5];
    unsigned long inode;

    p->n = 0;
    while (f && fgets(line, sizeof line, f))
        if (read_mapping(line, perms, &inode) && perms[2] == 'x' && inode &&
            p->n < MAX_FILES && !is_program(p, inode))
            p->inode[p->n++] = inode;
    if (f)
        fclose(f);
}

/* KiB of these files that the process has mapped and touched; what it has written to,
 * as its variables, is its own. */
static uint64_t program_kib(const struct programs *p, const char *root, const char *pid)
{
    FILE *f = open_of(root, pid, "smaps");
    unsigned long long rss = 0, anonymous, sum = 0;
    char line[512], perms[5];
    bool counts = false;
    unsigned long inode;

    while (f && fgets(line, sizeof line, f)) {
        if (read_mapping(line, perms, &inode))
            counts = is_program(p, inode);
        else if (counts && sscanf(line, "Rss: %llu kB", &rss) == 1)
            sum += rss;
        else if (counts && sscanf(line, "Anonymous: %llu kB", &anonymous) == 1)
            sum -= anonymous < rss ? anonymous : rss;
    }
    if (f)
        fclose(f);
    return sum;
}

static uint64_t peak_kib(const char *root, const char *pid)
{
    FILE *f = open_of(root, pid, "status");
    unsigned long long kib = 0;
    char line[256];

    while (f && fgets(line, sizeof line, f) &&
           sscanf(line, "VmHWM: %llu kB", &kib) != 1)
        continue;
    if (f)
        fclose(f);
    return kib;
}

static bool is_of_group(const char *root, const char *pid, pid_t group)
{
    char text[1024];
    const char *stat = sysfile_stat(root, pid, text, sizeof text);
    int own;

    return stat && sscanf(stat, " %*c %*d %d", &own) == 1 && own == group;
}

uint64_t launch_memory(const char *root, pid_t group)
{
    char path[SYSFILE_PATH_MAX];
    struct programs programs;
    uint64_t kib = 0;
    DIR *d = sysfile_path(path, sizeof path, root, "/proc") ? opendir(path) : NULL;

    for (struct dirent *e; d && (e = readdir(d));) {
        uint64_t peak, code;

        if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
            !is_of_group(root, e->d_name, group))
            continue;
        find_programs(&programs, root, e->d_name);
        peak = peak_kib(root, e->d_name);
        code = program_kib(&programs, root, e->d_name);
        kib += peak > code ? peak - code : 0;
    }
    if (d)
        closedir(d);
    return kib << 10;
}
