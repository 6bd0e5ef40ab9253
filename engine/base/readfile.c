/* SPDX-License-Identifier: MIT
 *
 * readfile.c - pread() until all bytes are there
 */
#include "engine/base/readfile.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

enum status readfile_at(int fd, const char *path, void *dst, size_t n, uint64_t offset,
                        struct err *err)
{
    char *to = dst;

    while (n) {
        const ssize_t got = pread(fd, to, n, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_errno(err, ST_IO, "cannot read %s", path);
        if (got == 0)
            return err_set(err, ST_IO,
                           "cannot read %s: it ends at byte %" PRIu64
                           " (did it shrink?)",
                           path, offset);
        to += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return ST_OK;
}
