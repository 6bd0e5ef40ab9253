/* SPDX-License-Identifier: MIT
 *
 * disturbances.c - counting disturbed rounds by what disturbed them
 */
#include "harness/stats/stats.h"

#include <stdio.h>
#include <string.h>

static void count_one(struct disturbances *d, const char *name, size_t len)
{
    for (size_t i = 0; i < DISTURBANCES_MAX; i++) {
        if (!d->n[i])
            snprintf(d->name[i], sizeof d->name[i], "%.*s", (int)len, name);
        if (strlen(d->name[i]) == len && !strncmp(d->name[i], name, len)) {
            d->n[i]++;
            return;
        }
    }
}

void disturbances_add(struct disturbances *d, const char *why, bool counted)
{
    d->n_rounds++;
    d->n_counted += counted;
    while (*why) {
        const size_t all = strcspn(why, ",");
        size_t len = strcspn(why, ",0123456789");

        while (len && why[len - 1] == ' ')
            len--;
        count_one(d, why, len);
        why += all;
        why += strspn(why, ", ");
    }
}

const char *disturbances_text(const struct disturbances *d, char *buf, size_t cap)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < DISTURBANCES_MAX && d->n[i] && used < cap; i++)
        used += (size_t)snprintf(buf + used, cap - used, "%s%s in %zu", i ? ", " : "",
                                 d->name[i], d->n[i]);
    if (d->n_counted && used < cap)
        snprintf(buf + used, cap - used,
                 "; %zu of these rounds were counted, since quiet ones were rare",
                 d->n_counted);
    return buf;
}
