/* SPDX-License-Identifier: MIT
 *
 * sandbox.h - cgroups around a child process, version 2 or 1: memory limit, CPU quota
 *
 * Model of the world: below the cgroup this process is in, so that all limits of its
 * unit or container stay, a group slmbench.<pid>.<serial>.<start>.<pidns> is made,
 * given a memory limit (swap included, so that the limit cannot be walked around), the
 * limit is read back, a child is put into it, and the group is always removed again.
 * Groups left behind by a killed run carry its pid, start time and pid namespace in
 * their name and are removed by sandbox_clean_leftovers(), which the first sandbox of a
 * process calls, once that process is gone - and not when another process has its
 * number now, or when it lives in another container, whose processes cannot be seen
 * from here.
 *
 * Version 2 gives no limits to groups below one that has processes itself: those of
 * our group (this one, and a shell it was started from) are moved into a leaf
 * slmbench.<pid>.self.<start>.<pidns> first, and back again with the last sandbox.
 *
 * In a container no group may be made, as a rule, but the container is one itself, with
 * a limit: where that is the requested limit, our own group is taken as it is. It holds
 * all processes of the container, so what it was charged counts theirs, too.
 *
 * A CPU quota limits the child's CPU time in every 100 ms, as `docker run --cpus`
 * does: its threads run until that is used up, and are then stopped together for the
 * rest. In version 2 the same group has it; in version 1 one of the CPU controller's
 * hierarchy, below the group this process is in there. It is read back, too.
 *
 * In a recorded tree (root not "") files are plain files and nothing is killed.
 *
 * Threading: one thread makes and destroys sandboxes; reading is free.
 */
#ifndef SLM_HARNESS_MACHINE_SANDBOX_SANDBOX_H
#define SLM_HARNESS_MACHINE_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/base/status.h"

struct sandbox;

struct sandbox_usage {
    uint64_t limit_bytes; /* as the kernel reports it; 0: none */
    uint64_t peak_bytes;  /* largest amount charged: memory.peak (Linux 5.19), or
                             memory.max_usage_in_bytes; without either the largest
                             that sandbox_read() has seen */
    uint64_t current_bytes;
    uint64_t file_bytes; /* page cache charged now */
    uint64_t anon_bytes;
    uint64_t shmem_bytes;
    uint64_t kernel_bytes;   /* page tables, stacks, slabs; in version 2 without those
                                that   can be reclaimed; 0 where the kernel does not
                                account   for   them */
    uint64_t n_oom_kills;    /* since the sandbox was made, like all counters; where the
                                kernel counts none (version 1 before Linux 4.13) charges
                                that failed at the limit */
    uint64_t n_major_faults; /* pgmajfault of the group */
    uint64_t n_refaults;     /* workingset_refault(_file) */
};

/* root "" for the real machine. Where no group may be made, but the limit of our own is
 * limit_bytes, it is sandbox_adopt()'s. Errors: ST_PERMISSION with the reason (whose
 * group it is, a controller that it is not given, a read-only mount) and the way out,
 * ST_UNSUPPORTED (no memory controller; names where it looked), ST_USAGE (a limit
 * larger than the machine's own or than a group's around it, or below 16 MiB). */
enum status sandbox_create(struct sandbox **s, const char *root, uint64_t limit_bytes,
                           struct err *err);

struct sandbox_limits {
    uint64_t memory_bytes; /* 0: none */
    double quota_cpus;     /* CPU time per time; 0: none */
};

/* With a limit, a quota or both. Without a limit what is read is that of our own group,
 * and sandbox_is_adopted(). Where no group may be made, a quota that our own group has
 * will do. Errors: the above; ST_UNSUPPORTED (no CPU controller), ST_USAGE (a quota
 * above that of a group around it, or below 0.01). */
enum status sandbox_create_with(struct sandbox **s, const char *root,
                                const struct sandbox_limits *limits, struct err *err);

/* Our own group as it is: nothing is made or limited, and children are in it anyway.
 * Its peak is a new maximum of the group, or the largest that sandbox_read() has seen.
 * Errors: ST_UNSUPPORTED (no memory controller), ST_IO. */
enum status sandbox_adopt(struct sandbox **s, const char *root, struct err *err);

/* Put a process (the caller's child, stopped before it allocates) inside. */
enum status sandbox_add(struct sandbox *s, pid_t pid, struct err *err);

enum status sandbox_read(struct sandbox *s, struct sandbox_usage *u, struct err *err);

/* The part of the charged memory that cannot be given back: anonymous (huge pages
 * included), shared and kernel memory. The page cache can. */
static inline uint64_t sandbox_resident_bytes(const struct sandbox_usage *u)
{
    return u->anon_bytes + u->shmem_bytes + u->kernel_bytes;
}

const char *sandbox_path(const struct sandbox *s);

/* Path of the group with the quota; "": there is no such group, or it is our own. */
const char *sandbox_quota_path(const struct sandbox *s);

/* Whether it is our own group, with all processes of the container in it. */
bool sandbox_is_adopted(const struct sandbox *s);

/* Kills what is still inside and removes the group, unless it is our own; frees s. NULL
 * is fine. */
void sandbox_destroy(struct sandbox *s);

/* Whether sandbox_create() would work here, without keeping anything. limit_bytes: 0:
 * with whatever limit. Errors: sandbox_create()'s. */
enum status sandbox_check(const char *root, uint64_t limit_bytes, struct err *err);

/* Checks these limits. */
enum status sandbox_check_with(const char *root, const struct sandbox_limits *limits,
                               struct err *err);

/* The limit that our own group, or one around it, has already. Errors: ST_UNSUPPORTED
 * (none has one). */
enum status sandbox_own_limit(const char *root, uint64_t *limit_bytes, struct err *err);

/* Remove groups of runs that are no longer alive (killing what is still inside);
 * returns how many. */
int sandbox_clean_leftovers(const char *root);

/* Drop a file's pages from the page cache, so that whoever reads it next is
 * charged for them; *stayed_bytes are those that stayed (mapped or in use elsewhere;
 * the whole file on a file system in memory, and where the kernel does not tell us
 * because the file is not ours). Errors: ST_INPUT (no regular file), ST_IO. */
enum status file_evict(const char *path, uint64_t *stayed_bytes, struct err *err);

#endif
