/* SPDX-License-Identifier: MIT
 *
 * outfile.h - a large file that appears when it is complete, or not at all
 *
 * It is written as <path>.part, locked so that two processes never make the same one;
 * outfile_commit() puts it on the disk and renames it. What a killed run has left as
 * <path>.part is taken over by the next. Space is checked and reserved before the
 * first byte. Pages are written back as we go and dropped (or O_DIRECT avoids them),
 * because gigabytes of dirty pages would stall this program and push everything else
 * out of the page cache.
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

/* direct: every write is of whole OUTFILE_DIRECT_UNITs from an address that is one;
 * where the file system cannot do that it makes no difference. way_out ends the
 * sentence for too small a disk: "choose a smaller shape". Errors: ST_USAGE (path is
 * no regular file), ST_IO, ST_PERMISSION, ST_NO_MEMORY (disk space). */
enum status outfile_open(struct outfile **f, const char *path, uint64_t bytes,
                         bool direct, const char *way_out, struct err *err);

/* n bytes to offset at. Errors: ST_NO_MEMORY (the disk is full in spite of the check:
 * others write to it, too), ST_IO. */
enum status outfile_write(struct outfile *f, const void *data, size_t n, uint64_t at,
                          struct err *err);

/* The file is complete with this many bytes: onto the disk, under its name. Ends f,
 * also on failure, which leaves nothing. Errors: as above. */
enum status outfile_commit(struct outfile *f, uint64_t bytes, struct err *err);

/* Leaves nothing; NULL is fine. */
void outfile_abort(struct outfile *f);

/* What the file is called until it is complete. */
const char *outfile_part(const struct outfile *f);

#endif
