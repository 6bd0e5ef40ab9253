/* SPDX-License-Identifier: MIT
 *
 * keeper.h - a process between this one and a child, which ends with all that it has
 * started
 *
 * Model of the world: a signal to a process group does not reach what has left it by
 * setsid() or setpgid(), and when a program ends its orphans become children of init,
 * where nobody knows whose they were. So a program that is measured, ours or of
 * others, is the child of a keeper, which adopts those orphans
 * (PR_SET_CHILD_SUBREAPER): all that the program has started is below the keeper, and
 * nothing else is. When the program has ended the keeper kills what is still there, and
 * ends as the program did. That takes no cgroup, and holds when this program is killed
 * itself.
 *
 * Threading: one thread in a process of its own, after fork(); async-signal-safe calls
 * only.
 */
#ifndef SLM_HARNESS_MACHINE_KEEPER_H
#define SLM_HARNESS_MACHINE_KEEPER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define KEEPER_REQUEST SIGTERM /* passed on to the program, or its process group */
#define KEEPER_END     SIGQUIT /* ends the program and all that it has started */

/* In the keeper, which was forked with all signals blocked: starts the program by
 * become(arg), which does not return, in a child, writes its number (a pid_t) to fd,
 * closes all descriptors but this, whose end is its own, and keeps the program. parent
 * is this program, whose end is KEEPER_END. leads: the program leads a process group,
 * and the keeper has left ours, with the signals of its terminal. */
_Noreturn void keeper_run(pid_t parent, int fd, bool leads,
                          void (*become)(const void *arg), const void *arg);

#endif
