/* SPDX-License-Identifier: MIT
 *
 * mapguard.h - files that become shorter or unreadable while they are mapped
 *
 * Access to a mapped page that the file has no longer, or that the disk cannot read,
 * raises SIGBUS. For a guarded mapping the signal's handler puts zeros in the place of
 * what is missing and notes the loss; the computation continues, on zeros, to the next
 * mapguard_check(), which is the error. Any other SIGBUS has the effect that it had
 * before the first mapping was guarded: by default it ends the process.
 *
 * Threading: any thread; the handler itself takes no lock and calls only what a signal
 * handler may call.
 */
#ifndef SLM_ENGINE_GGUF_MAPGUARD_H
#define SLM_ENGINE_GGUF_MAPGUARD_H

#include <stddef.h>

#include "engine/base/status.h"

struct mapguard;

/* Guard the mapping of bytes of fd at image; path is for messages and is copied. fd is
 * open and the mapping there until mapguard_remove(), which takes NULL, too.
 * Error: ST_NO_MEMORY. */
enum status mapguard_add(struct mapguard **guard, const void *image, size_t bytes,
                         int fd, const char *path, struct err *err);
void mapguard_remove(struct mapguard *guard);

/* ST_IO where something read from the mapping was missing. */
enum status mapguard_check(const struct mapguard *guard, struct err *err);

/* ST_IO where something read from any mapping of this process was missing, those that
 * are guarded no longer included: before a program reports success. */
enum status mapguard_check_all(struct err *err);

#endif
