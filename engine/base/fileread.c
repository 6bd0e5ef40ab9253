/* SPDX-License-Identifier: MIT
 *
 * fileread.c - pread() until all bytes are there, and posix_fadvise() that allows for
 * folios and readahead
 */
#include "engine/base/fileread.h"

#include <errno.h>
#include <fcntl.h>
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

#define FOLIO ((uint64_t)2 << 20)  /* the largest; folios begin at their multiples */
#define SWEEP ((uint64_t)32 << 20) /* more than the distance between two threads */

void pagecache_drop(int fd, uint64_t begin, uint64_t end)
{
    const uint64_t block = end / SWEEP;
    const uint64_t sweep = block > 2 ? (block - 2) * SWEEP : 0;

    if (begin / SWEEP != block && sweep < begin)
        begin = sweep;
    begin -= begin % FOLIO;
    if (end > begin) /* a length of 0 would mean to the end of the file */
        (void)posix_fadvise(fd, (off_t)begin, (off_t)(end - begin),
                            POSIX_FADV_DONTNEED);
}
