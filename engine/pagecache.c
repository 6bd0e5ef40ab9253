/* SPDX-License-Identifier: MIT
 *
 * pagecache.c - posix_fadvise() with folios in mind
 */
#include "engine/pagecache.h"

#include <fcntl.h>

#define MAX_FOLIO ((uint64_t)2 << 20) /* a huge page; folios begin at their multiples \
                                       */

void pagecache_drop(int fd, uint64_t begin, uint64_t end)
{
    begin -= begin % MAX_FOLIO;
    if (end > begin) /* a length of 0 would mean all the rest */
        (void)posix_fadvise(fd, (off_t)begin, (off_t)(end - begin),
                            POSIX_FADV_DONTNEED);
}
