/* SPDX-License-Identifier: MIT
 *
 * outfile.h - a large file that appears when it is complete, or not at all
 *
 * It is written as <path>.part, locked so that two processes never make the same one;
 * outfile_commit() syncs it to the disk and renames it. The next run takes over a
 * <path>.part that a killed run left. Space is checked and reserved before the first
 * byte. Pages are written back and dropped continuously (or O_DIRECT avoids them),
 * because gigabytes of dirty pages would stall this program and evict everything else
 * from the page cache.
 *
 * Threading: outfile_write() from one thread at a time.
 */
#ifndef SLM_ENGINE_BASE_OUTFILE_H
#define SLM_ENGINE_BASE_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* What O_DIRECT needs addresses and lengths to be a multiple of. */
#define OUTFILE_DIRECT_UNIT 4096u

struct outfile;

/* direct: every write is a multiple of OUTFILE_DIRECT_UNIT from an address that is a
 * multiple too; it has no effect on a file system without O_DIRECT. way_out ends the
 * message for a full disk: "choose a smaller shape". Errors: ST_USAGE (path is
 * not a regular file), ST_IO, ST_PERMISSION, ST_NO_MEMORY (disk space). */
enum status outfile_open(struct outfile **f, const char *path, uint64_t bytes,
                         bool direct, const char *way_out, struct err *err);

/* Write n bytes at offset at. Errors: ST_NO_MEMORY (the disk is full in spite of the
 * check: other programs write to it too), ST_IO. */
enum status outfile_write(struct outfile *f, const void *data, size_t n, uint64_t at,
                          struct err *err);

/* Cut the file to its final size, sync it and give it its name. Frees f, also on
 * failure, which leaves no file. Errors: as above. */
enum status outfile_commit(struct outfile *f, uint64_t bytes, struct err *err);

/* Remove the unfinished file and free f, which may be NULL. */
void outfile_abort(struct outfile *f);

/* Path of the file until it is complete. */
const char *outfile_part(const struct outfile *f);

/* Whether another process makes path: it holds the lock of the .part, and has written
 * to it within that many seconds. */
bool outfile_is_being_made(const char *path, double within_s);

/* Removes the .part of path that a killed process has left: one whose lock nobody
 * holds. */
void outfile_remove_stale(const char *path);

#endif
