/* SPDX-License-Identifier: MIT
 *
 * model_use.c - synthetic model files that several processes share
 */
#include "harness/model/modelref.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/infile.h"

#define MAX_FILES 64 /* of one process; more are used unlocked */

static struct used {
    int fd;
    struct stat st;
} used[MAX_FILES];
static size_t n_used;

/* Whether the locked file still has its name: who had the lock may have removed it. */
static bool has_name(int fd, const char *path, struct stat *mine)
{
    struct stat there;

    return !fstat(fd, mine) && !stat(path, &there) && infile_is_same(mine, &there);
}

bool model_use(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool known = false; /* locked already: behind a fence no lock is let through */
    struct stat mine;

    if (fd < 0)
        return false;
    const bool there = has_name(fd, path, &mine);
    for (size_t i = 0; there && i < n_used; i++)
        known |= infile_is_same(&used[i].st, &mine);
    if (!there || known || flock(fd, LOCK_SH | LOCK_NB) || !has_name(fd, path, &mine)) {
        close(fd);
        return known;
    }
    if (n_used == MAX_FILES)
        close(fd);
    else
        used[n_used++] = (struct used){fd, mine};
    return true;
}

static void end_use(const struct stat *st)
{
    for (size_t i = 0; i < n_used; i++)
        if (infile_is_same(&used[i].st, st)) {
            close(used[i].fd);
            used[i] = used[--n_used];
            return;
        }
}

bool model_remove_unused(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    struct stat mine;
    bool gone = fd < 0;

    if (fd < 0)
        return gone;
    if (!fstat(fd, &mine))
        end_use(&mine);
    if (!flock(fd, LOCK_EX | LOCK_NB) && has_name(fd, path, &mine))
        gone = !unlink(path);
    close(fd);
    return gone;
}
