/* SPDX-License-Identifier: MIT
 *
 * newfile.h - a small file that appears when it is complete, or not at all
 *
 * Model of the world: results lie in folders that others may have prepared, with links
 * of the names that are going to be written. So a file is made under a name that nobody
 * else has (O_EXCL, O_NOFOLLOW, in the folder's own descriptor), synced, and renamed to
 * the name that it is to have: a link there is replaced, never followed. It belongs to
 * whoever called sudo (invoker.h). Files of gigabytes are engine/base/outfile.h's.
 *
 * A path that names a device, a pipe or standard output ("-", /dev/stdout, what a shell
 * makes of >(command)) is written to as it is.
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_BASE_NEWFILE_H
#define SLM_HARNESS_BASE_NEWFILE_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/base/status.h"

struct newfile {
    FILE *f;       /* to write to */
    int dir;       /* the folder; -1: it is written in place */
    char *name;    /* in the folder */
    char part[24]; /* its name until it is complete */
};

/* *n is for newfile_commit() or newfile_abort() when it succeeds. Errors: ST_IO,
 * ST_PERMISSION, ST_USAGE (path is a folder). */
enum status newfile_open(struct newfile *n, const char *path, struct err *err);

/* Gives the file its name. Frees n, also on failure, which leaves no file. Error: ST_IO
 * (the disk is full, ...). path: as opened, for the message. */
enum status newfile_commit(struct newfile *n, const char *path, struct err *err);

/* Removes it. */
void newfile_abort(struct newfile *n);

#endif
