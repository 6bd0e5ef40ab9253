/* SPDX-License-Identifier: MIT
 *
 * infile.h - small files that nobody has vouched for, read whole
 *
 * What a folder calls config.json may be a pipe that never speaks, or a link to
 * /dev/zero. The type is asked of the opened descriptor, and opening does not wait.
 *
 * Threading: no shared state.
 */
#ifndef SLM_ENGINE_BASE_INFILE_H
#define SLM_ENGINE_BASE_INFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "engine/base/status.h"

/* A regular file of at most max bytes for reading, and its size. Errors: ST_IO (cannot
 * be opened), ST_INPUT (a folder, a pipe or a device; larger than max). */
enum status infile_open(FILE **f, uint64_t *bytes, const char *path, uint64_t max,
                        struct err *err);

/* Its text, malloc'ed, with a zero behind it. Errors: the same, ST_NO_MEMORY. */
enum status infile_read(char **text, size_t *len, const char *path, size_t max,
                        struct err *err);

/* Whether both are of one file. */
static inline bool infile_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether there is something at path. Error: ST_IO, where that cannot be found out:
 * what may be there must not be overwritten. */
enum status infile_exists(bool *exists, const char *path, struct err *err);

#endif
