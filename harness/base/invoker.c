/* SPDX-License-Identifier: MIT
 *
 * invoker.c - who has started the program, where it is root only by sudo
 */
#include "harness/base/invoker.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* A number as sudo writes it. */
static bool environment_id(const char *name, unsigned *id)
{
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long value;

    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    value = strtoul(text, &end, 10);
    if (errno || *end || value >= UINT_MAX) /* which is -1: no user */
        return false;
    *id = (unsigned)value;
    return true;
}

bool invoker_get(uid_t *uid, gid_t *gid)
{
    unsigned u, g;

    if (geteuid() || !environment_id("SUDO_UID", &u) ||
        !environment_id("SUDO_GID", &g) || !u)
        return false;
    *uid = u;
    *gid = g;
    return true;
}

void invoker_own(int fd)
{
    uid_t uid;
    gid_t gid;

    if (invoker_get(&uid, &gid) && fchown(fd, uid, gid))
        return;
}
