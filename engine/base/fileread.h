/* SPDX-License-Identifier: MIT
 *
 * fileread.h - bytes at an offset of a file: reading all of them, and dropping them
 * from the page cache
 *
 * Threading: any thread.
 */
#ifndef SLM_ENGINE_BASE_FILEREAD_H
#define SLM_ENGINE_BASE_FILEREAD_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* n bytes of fd from offset on to dst; path is for messages. Error: ST_IO (also where
 * the file ends before). */
enum status readfile_at(int fd, const char *path, void *dst, size_t n, uint64_t offset,
                        struct err *err);

/* Drop bytes begin to end (exclusive) of fd from the page cache, and bytes before them
 * that may be left. A caller that reads a file in steps and drops each step leaves no
 * page cached:
 * - the kernel keeps files in folios of up to 2 MiB and drops only whole folios, which
 *   the step that reaches a folio's end does;
 * - for a thread behind another the kernel reads ahead bytes that the other has already
 *   dropped; a step into another 32 MiB drops them again.
 * A hint; failure is silent. */
void pagecache_drop(int fd, uint64_t begin, uint64_t end);

#endif
