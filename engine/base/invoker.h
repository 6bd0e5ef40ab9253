/* SPDX-License-Identifier: MIT
 *
 * invoker.h - who has started the program, where it is root only by sudo
 *
 * What root writes for somebody is to be theirs: they read it, delete it, and give it
 * away.
 *
 * Threading: none; reads the environment.
 */
#ifndef SLM_ENGINE_BASE_INVOKER_H
#define SLM_ENGINE_BASE_INVOKER_H

#include <stdbool.h>
#include <sys/types.h>

/* User and group by SUDO_UID and SUDO_GID; false: not root, or not by sudo. */
bool invoker_get(uid_t *uid, gid_t *gid);

/* Gives the open file or folder, which this program has made, to them; where that fails
 * it stays root's. */
void invoker_own(int fd);

/* open() of a file that is written in place or locked, in a folder that others may have
 * prepared: it is made where there is none (and is the invoker's then), and never
 * followed elsewhere. flags: O_RDWR or O_WRONLY, O_APPEND, O_TRUNC, O_DIRECT, O_EXCL
 * (there must be none). Returns the descriptor, or -1 with errno; ELOOP: it is a link,
 * EMLINK: it is a file that has other names, too, ENODEV: it is no regular file. */
int invoker_open(const char *path, int flags);

/* What to say of the path for those three; NULL: another error. */
const char *invoker_open_advice(int error);

#endif
