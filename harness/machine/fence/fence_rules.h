/* SPDX-License-Identifier: MIT
 *
 * fence_rules.h - the parts of a fence that are lists: paths (Landlock) and system
 * calls (seccomp)
 *
 * Threading: as fence.h.
 */
#ifndef SLM_HARNESS_MACHINE_FENCE_RULES_H
#define SLM_HARNESS_MACHINE_FENCE_RULES_H

#include "harness/machine/fence/fence.h"

/* The kernel's Landlock; 0: none. */
int fence_rules_version(void);

/* Rules for the fence's files. *ruleset is a descriptor, or -1 where the kernel has no
 * Landlock; *version is the kernel's, 0 then. Error: ST_IO. */
enum status fence_rules_make(const struct fence *fence, int *ruleset, int *version,
                             struct err *err);

/* 0, or -1 and errno. */
int fence_rules_enforce(int ruleset);

/* For a process that keeps its files: it leaves other processes alone, and runs no
 * file. *version as above; without Landlock nothing changes. Error: ST_IO. */
enum status fence_rules_enter_apart(int *version, struct err *err);

/* Whether this kernel has filters of system calls. */
bool fence_filter_known(void);

/* Whether system calls are filtered from now on, by the whole filter. */
bool fence_filter_enter(const struct fence *fence);

/* Its parts that are no lists of calls (fence_args.c). What looks at arguments is put
 * up before the list. What answers calls of later kernels is put up behind it: where
 * two filters refuse a call, the later one's error counts, and this has ENOSYS. */
bool fence_args_enter(const struct fence *fence);
bool fence_later_enter(void);

#endif
