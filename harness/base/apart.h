/* SPDX-License-Identifier: MIT
 *
 * apart.h - a part of a command's work in a process of its own
 *
 * Model of the world: what reads a model gives up programs and the network for good
 * (harness/machine/fence/fence.h). A command that starts programs afterwards does such work
 * apart: in a child that is a copy of this process, whose result comes back in memory
 * that both have. The child ends with its parent, and gets the interrupts that its
 * parent gets.
 *
 * Threading: before the process starts a thread.
 */
#ifndef SLM_HARNESS_BASE_APART_H
#define SLM_HARNESS_BASE_APART_H

#include <stddef.h>

#include "engine/base/status.h"

/* What is to be done; result points to zeroed bytes that hold no pointers of the
 * child's. */
typedef enum status apart_fn(void *result, const void *arg, struct err *err);

/* Run it in a child and copy its result[bytes], also of one that failed. Errors: fn's,
 * ST_IO (no child could be made, or a signal has ended it), ST_NO_MEMORY. */
enum status apart_run(apart_fn *fn, void *result, size_t bytes, const void *arg,
                      struct err *err);

#endif
