/* SPDX-License-Identifier: MIT
 *
 * invoker.h - who has started the program, where it is root only by sudo
 *
 * What root writes for somebody is to be theirs: they read it, delete it, and give it
 * away.
 *
 * Threading: none; reads the environment.
 */
#ifndef SLM_HARNESS_BASE_INVOKER_H
#define SLM_HARNESS_BASE_INVOKER_H

#include <stdbool.h>
#include <sys/types.h>

/* User and group by SUDO_UID and SUDO_GID; false: not root, or not by sudo. */
bool invoker_get(uid_t *uid, gid_t *gid);

/* Gives the open file or folder to them; where that fails it stays root's. */
void invoker_own(int fd);

#endif
