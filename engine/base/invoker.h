/* SPDX-License-Identifier: MIT
 *
 * invoker.h - who has started the program, where it is root only by sudo
 *
 * What root writes for somebody is to be theirs: they read it, delete it, and give it
 * away. And where others may make files, as in /tmp, one of them may have made the file
 * that root is going to write: they would read what is written, change it and own the
 * result. So a file that is there is written only if it belongs to the program's user,
 * to the invoker or to the owner of its folder, or if nobody else could have put it
 * there: in the folder of a user, which they name, a job of root's may add to that
 * user's files.
 *
 * Threading: none; reads the environment.
 */
#ifndef SLM_ENGINE_BASE_INVOKER_H
#define SLM_ENGINE_BASE_INVOKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "engine/base/status.h"

/* User and group by SUDO_UID and SUDO_GID; false: not root, or not by sudo. */
bool invoker_get(uid_t *uid, gid_t *gid);

/* Gives the open file or folder, which this program has made, to them; where that fails
 * it stays root's. */
void invoker_own(int fd);

/* open() of a file that is written in place or locked, in a folder that others may have
 * prepared: it is made where there is none (and is the invoker's then), and never
 * followed elsewhere. flags: O_RDWR or O_WRONLY, O_APPEND, O_TRUNC, O_DIRECT, O_EXCL
 * (there must be none). Returns the descriptor, or -1 with errno; ELOOP: it is a link,
 * EMLINK: it is a file that has other names, too, ENODEV: it is no regular file,
 * EUSERS: it is a file of another user, in a folder where others may make files (root:
 * by its mode; others: by its sticky bit, too, as fs.protected_regular has it). */
int invoker_open(const char *path, int flags);

/* Whether a library may open that path to write, or make a file there: 0, EUSERS, or
 * another errno. A link is judged by its own owner. */
int invoker_check(const char *path);

/* What the user is to do about the path after those four; NULL: another error. */
const char *invoker_open_advice(int error);

/* Puts that into err (ST_USAGE), or that the path cannot be opened (ST_IO). */
enum status invoker_fail(const char *path, int error, struct err *err);

#endif
