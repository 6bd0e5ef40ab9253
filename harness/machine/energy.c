/* SPDX-License-Identifier: MIT
 *
 * energy.c - energy that the processors used, as they count it themselves (RAPL)
 */
#include "harness/machine/energy.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/sysfile.h"

#define FOLDER "/sys/class/powercap"

/* "intel-rapl:0" is a package, or the platform around them; "intel-rapl:0:1" a part of
 * a package, or its memory. AMD's are called so, too. */
static int depth_of(const char *name)
{
    static const char prefix[] = "intel-rapl:";
    int n = 1;

    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return 0;
    for (name += sizeof prefix - 1; *name; name++)
        n += *name == ':';
    return n;
}

/* A package, or its memory, which is no part of it. Cores and graphics are parts, and
 * the platform has packages in it. */
static bool is_counted(const char *root, const char *dir, int depth)
{
    char file[160], name[64];

    snprintf(file, sizeof file, FOLDER "/%.80s/name", dir);
    if (sysfile_read(root, file, name, sizeof name) <= 0)
        return false;
    return depth == 1 ? !strncmp(name, "package", 7)
                      : depth == 2 && !strncmp(name, "dram", 4);
}

static void add_domain(struct energy *e, const char *root, const char *dir, int depth)
{
    struct energy_domain d = {.is_package = depth == 1};
    char range[160];

    if (e->n == ENERGY_MAX_DOMAINS || !is_counted(root, dir, depth))
        return;
    snprintf(d.file, sizeof d.file, FOLDER "/%.80s/energy_uj", dir);
    snprintf(range, sizeof range, FOLDER "/%.80s/max_energy_range_uj", dir);
    if (sysfile_u64(root, d.file, &d.mark_uj) && sysfile_u64(root, range, &d.range_uj))
        e->domain[e->n++] = d;
    else if (d.is_package)
        e->is_broken = true; /* of the others the sum would be too small */
}

void energy_open(struct energy *e, const char *root)
{
    char path[SYSFILE_PATH_MAX];
    DIR *d = sysfile_path(path, sizeof path, root, FOLDER) ? opendir(path) : NULL;

    memset(e, 0, sizeof *e);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        const int depth = depth_of(entry->d_name);

        if (depth && strlen(entry->d_name) <= 80)
            add_domain(e, root, entry->d_name, depth);
    }
    if (d)
        closedir(d);
}

void energy_mark(struct energy *e, const char *root)
{
    for (int i = 0; i < e->n; i++)
        e->is_broken |= !sysfile_u64(root, e->domain[i].file, &e->domain[i].mark_uj);
}

void energy_add(struct energy *e, const char *root)
{
    for (int i = 0; i < e->n; i++) {
        struct energy_domain *d = &e->domain[i];
        uint64_t now;

        if (!sysfile_u64(root, d->file, &now)) {
            e->is_broken = true;
            continue;
        }
        d->used_uj +=
            now >= d->mark_uj ? now - d->mark_uj : d->range_uj - d->mark_uj + now;
        d->mark_uj = now;
    }
}

double energy_joules(const struct energy *e)
{
    uint64_t sum_uj = 0;
    bool any = false;

    for (int i = 0; i < e->n; i++) {
        if (e->domain[i].is_package && !e->domain[i].used_uj)
            return NAN;
        any |= e->domain[i].is_package;
        sum_uj += e->domain[i].used_uj;
    }
    return any && !e->is_broken ? (double)sum_uj * 1e-6 : NAN;
}
