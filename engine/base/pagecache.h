/* SPDX-License-Identifier: MIT
 *
 * pagecache.h - bytes of a file that nobody needs again leave memory
 *
 * Threading: any thread.
 */
#ifndef SLM_ENGINE_BASE_PAGECACHE_H
#define SLM_ENGINE_BASE_PAGECACHE_H

#include <stdint.h>

/* Drop bytes begin to end (exclusive) of fd from the page cache, and what may be left
 * in front of them. Whoever goes through a file in steps, and drops each, so leaves
 * nothing:
 * - the kernel keeps files in folios of up to 2 MiB and drops one only as a whole,
 * which the step that comes to its end does;
 * - a thread that is behind another has the kernel read ahead what that one has dropped
 *   already, which a step into another 32 MiB drops again.
 * A hint; failure is silent. */
void pagecache_drop(int fd, uint64_t begin, uint64_t end);

#endif
