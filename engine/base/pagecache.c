/* SPDX-License-Identifier: MIT
 *
 * pagecache.c - posix_fadvise() that allows for folios and readahead
 */
#include "engine/base/pagecache.h"

#include <fcntl.h>

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
