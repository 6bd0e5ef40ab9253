/* SPDX-License-Identifier: MIT
 *
 * newfile.h - a small file that appears when it is complete, or not at all
 *
 * Model of the world: results lie in folders that others may have prepared, with links
 * of the names that are going to be written. So a file is made without a name in the
 * folder's own descriptor (O_TMPFILE; where the file system has no such files, under a
 * name that nobody else has: O_EXCL, O_NOFOLLOW), synced, and then given the name that
 * it is to have: a link there is replaced, never followed. A process that is killed
 * before that leaves nothing but where there is no O_TMPFILE. It belongs to
 * whoever called sudo (invoker.h). Files of gigabytes are engine/base/outfile.h's.
 *
 * A path that names a device, a pipe or standard output ("-", /dev/stdout, what a shell
 * makes of >(command)) is written to as it is where a user may name it, unless it is
 * another user's in a folder where others may make files; in a folder of results it is
 * replaced, too.
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_BASE_NEWFILE_H
#define SLM_HARNESS_BASE_NEWFILE_H

#include <stdio.h>

#include "engine/base/status.h"

struct newfile {
    FILE *f;       /* to write to */
    int dir;       /* the folder; -1: it is written in place */
    char *name;    /* in the folder */
    char part[24]; /* its name until it has that; "": none yet */
};

/* A path that a user has named. *n is for newfile_commit() or newfile_abort() when it
 * succeeds. Errors: ST_IO, ST_PERMISSION, ST_USAGE (path is a folder, or another
 * user's). */
enum status newfile_open(struct newfile *n, const char *path, struct err *err);

/* Opens a new file in a folder of results: any file with that name is replaced. */
enum status newfile_replace(struct newfile *n, const char *path, struct err *err);

/* Removes what has the name and is neither a file nor a folder, so that a file of that
 * name in a folder of results is no pipe that somebody has left there. */
void newfile_clear(const char *path);

/* Gives the file its name. Frees n, also on failure, which leaves no file. Error: ST_IO
 * (the disk is full, ...). path: as opened, for the message. */
enum status newfile_commit(struct newfile *n, const char *path, struct err *err);

/* Removes it. */
void newfile_abort(struct newfile *n);

#endif
