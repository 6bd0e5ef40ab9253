/* SPDX-License-Identifier: MIT
 *
 * stderr_tail.h - the end of what a child writes to its standard error
 *
 * A thread reads the pipe all the time, so that the child never waits for a reader, and
 * keeps the last STDERR_TAIL_BYTES: a program that prints errors without end fills no
 * memory.
 *
 * Threading: one thread per tail, besides its own.
 */
#ifndef SLM_HARNESS_MACHINE_STDERR_TAIL_H
#define SLM_HARNESS_MACHINE_STDERR_TAIL_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

#define STDERR_TAIL_BYTES 4096

struct stderr_tail;

/* *fd is the child's end, the caller's to close. passes_on: nothing is kept, but
 * written to this process's standard error by whole lines, harmless for a terminal.
 * Errors: ST_IO, ST_NO_MEMORY. */
enum status stderr_tail_start(struct stderr_tail **t, int *fd, bool passes_on,
                              struct err *err);

/* Reads what is in the pipe, and nothing from then on. Again, and of NULL: nothing. */
void stderr_tail_stop(struct stderr_tail *t);

/* At most its last cap - 1 bytes, ended by a zero; how many. Of NULL: 0. */
size_t stderr_tail_read(struct stderr_tail *t, char *buf, size_t cap);

/* Stops it first. */
void stderr_tail_free(struct stderr_tail *t);

#endif
