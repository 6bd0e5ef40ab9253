/* SPDX-License-Identifier: MIT
 *
 * pagecache.h - bytes of a file that nobody needs again leave memory
 *
 * Threading: any thread.
 */
#ifndef SLM_ENGINE_PAGECACHE_H
#define SLM_ENGINE_PAGECACHE_H

#include <stdint.h>

/* Drop bytes begin to end (exclusive) of fd from the page cache, and what lies in front
 * of begin in the same large folio. The kernel keeps files in folios of up to 2 MiB and
 * drops one only as a whole: whoever goes through a file in steps, and drops each, so
 * drops every folio with the step that comes to its end. A hint; failure is silent. */
void pagecache_drop(int fd, uint64_t begin, uint64_t end);

#endif
