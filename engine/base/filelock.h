/* SPDX-License-Identifier: MIT
 *
 * filelock.h - one process at a time: the lock of an open file, taken without waiting
 *
 * It is held until the file is closed, in all processes that have it open.
 *
 * Threading: no shared state.
 */
#ifndef SLM_ENGINE_BASE_FILELOCK_H
#define SLM_ENGINE_BASE_FILELOCK_H

#include "engine/base/status.h"

/* 0; EWOULDBLOCK: another process holds it; or why it cannot be taken, such as ENOLCK
 * on a file system without locks. */
int filelock_try(int fd);

/* For a process that writes to path; who is its kind in the message. Errors: ST_USAGE
 * (another holds it), ST_IO. */
enum status filelock_take(int fd, const char *who, const char *path, struct err *err);

#endif
