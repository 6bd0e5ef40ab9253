/* SPDX-License-Identifier: MIT
 *
 * sweep_capacity.c - whether disk and memory suffice for a sweep, and for which smaller
 * model
 */
#include "harness/base/format.h"
#include "harness/measure/sweep/sweep.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define DISK_SPARE (UINT64_C(64) << 20) /* the results themselves, and a margin */

/* Free bytes where path will be: its nearest directory that exists. */
static uint64_t free_at(const char *path)
{
    char part[PATH_MAX];
    struct statvfs st;

    snprintf(part, sizeof part, "%s", path);
    for (;;) {
        char *slash = strrchr(part, '/');

        if (statvfs(*part ? part : "/", &st) == 0)
            return (uint64_t)st.f_bavail * st.f_frsize;
        if (!slash || errno != ENOENT)
            break;
        *slash = '\0';
    }
    return statvfs(".", &st) ? UINT64_MAX : (uint64_t)st.f_bavail * st.f_frsize;
}

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* The largest known shape whose file in this mix is at most max bytes:
 * " -m NAME:MIX" into buf, or nothing. */
static void smaller_shape(const struct modelref *ref, uint64_t max, char *buf,
                          size_t cap)
{
    struct err ignored = ERR_INIT;
    char **names = NULL;
    int n = 0;
    uint64_t best = 0;

    buf[0] = '\0';
    if (shape_list(&names, &n, &ignored))
        return;
    for (int i = 0; i < n; i++) {
        struct modelref other;
        struct err quiet = ERR_INIT;
        char text[256];
        uint64_t bytes;

        snprintf(text, sizeof text, "%s:%s", names[i], quantmix_name(ref->mix));
        if (modelref_parse(&other, text, NULL, &quiet) == ST_OK &&
            modelref_bytes(&other, &bytes, &quiet) == ST_OK && bytes <= max &&
            bytes > best) {
            best = bytes;
            snprintf(buf, cap, "-m %s", text);
        }
    }
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

/* Bytes of the model files that are yet to be made. */
struct to_make {
    uint64_t all, largest;
    const struct modelref *where; /* of the largest; NULL: no model */
};

static enum status add_up(struct to_make *t, const struct sweep_plan *plan,
                          struct err *err)
{
    for (size_t i = 0; i < plan->n_models; i++) {
        const struct modelref *ref = &plan->points[plan->first[i]].setup.model;
        uint64_t bytes;

        if (plan->first[i] == plan->first[i + 1] || !ref->synthetic ||
            exists(ref->path))
            continue;
        if (modelref_bytes(ref, &bytes, err))
            return err->code;
        t->all += bytes;
        if (bytes > t->largest) {
            t->largest = bytes;
            t->where = ref;
        }
    }
    return ST_OK;
}

static bool is_room(uint64_t bytes, uint64_t available)
{
    return bytes <= UINT64_MAX - DISK_SPARE && bytes + DISK_SPARE <= available;
}

static enum status check_disk(const struct sweep_settings *s,
                              const struct sweep_plan *plan, bool *one_at_a_time,
                              struct err *err)
{
    struct to_make make = {0};
    uint64_t available, need;
    char instead[300];

    if (add_up(&make, plan, err))
        return err->code;
    *one_at_a_time = false;
    if (!make.where)
        return ST_OK;
    available = free_at(make.where->path);
    if (is_room(make.all, available))
        return ST_OK;
    *one_at_a_time = !s->keep_models;
    need = s->keep_models ? make.all : make.largest;
    if (is_room(need, available))
        return ST_OK;
    smaller_shape(make.where, available > DISK_SPARE ? available - DISK_SPARE : 0,
                  instead, sizeof instead);
    return err_set(
        err, ST_NO_MEMORY,
        "needs %s free for %s at %s, %s are: try %s%s--cache-dir on another disk",
        bytes_text(need + DISK_SPARE).text, make.where->text, make.where->path,
        bytes_text(available).text, instead, *instead ? ", or " : "");
}

static enum status check_memory(const struct sweep_settings *s,
                                const struct sweep_plan *plan,
                                const struct topology *topo, struct err *err)
{
    const struct modelref *ref = &plan->points[0].setup.model;
    const uint64_t available = topology_usable_bytes(topo, 0);
    const uint64_t most = sweep_max_memory(s);
    char instead[300] = "";

    /* The limit that is in force here anyway is planned with point by point. */
    if (most <= available || most == topo->mem_limit)
        return ST_OK;
    if (ref->synthetic)
        smaller_shape(ref, available / 8 * 7, instead, sizeof instead);
    return err_set(err, ST_NO_MEMORY,
                   "a sandbox of %s does not fit into the %s of memory that are "
                   "available: try --mem %lluM %s",
                   bytes_text(most).text, bytes_text(available).text,
                   (unsigned long long)((available / 10 * 9) >> 20), instead);
}

enum status sweep_check_capacity(const struct sweep_settings *s,
                                 const struct sweep_plan *plan,
                                 const struct topology *topo, bool *one_at_a_time,
                                 struct err *err)
{
    if (check_disk(s, plan, one_at_a_time, err))
        return err->code;
    return check_memory(s, plan, topo, err);
}
