/* SPDX-License-Identifier: MIT
 *
 * inherited.h - what a process gets from whoever starts it, and passes on:
 * descriptors, limits, signals
 *
 * Model of the world: a shell, a CI system or a service manager starts this program
 * with files open that are not meant for it, and with limits of its own. What is open
 * in a process can be read and written behind a fence, and by every program that it
 * starts. So this program begins with its standard input, output and error and what its
 * arguments name ("/dev/fd/63", which shells make of <(command)), and passes on no more
 * than the first three.
 *
 * Threading: the main thread, before it starts another; what a child calls between
 * fork() and exec() is async-signal-safe.
 */
#ifndef SLM_HARNESS_BASE_INHERITED_H
#define SLM_HARNESS_BASE_INHERITED_H

#include "engine/base/status.h"

/* At the start of the program: a standard descriptor that is closed fails from then on,
 * instead of being the next file that is opened; a file beyond `ulimit -f` is an error
 * of writing instead of a signal; and stacks, those of threads included, have
 * INHERITED_STACK bytes or what may be had. Errors: ST_IO, ST_UNSUPPORTED (a limit of
 * the stack that may not be raised, below INHERITED_STACK_MIN). */
enum status inherited_settle(struct err *err);

/* Closes all but the standard descriptors and those that the arguments name. Before
 * any library has opened one of its own, so before their constructors. */
void inherited_close_others(int argc, char **argv);

#define INHERITED_STACK     (8u << 20)
#define INHERITED_STACK_MIN (1u << 20)

/* In a child, before exec(): it keeps its standard descriptors and `also` (0: none),
 * and a file that is too large ends it again, as programs expect. */
void inherited_pass_on(int also);

/* In a child that executes nothing, and needs one descriptor at most (-1: none). */
void inherited_close_all(int but);

#endif
