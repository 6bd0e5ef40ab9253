/* SPDX-License-Identifier: MIT
 *
 * sandbox.h - a memory cgroup around a child process, version 2 or 1
 *
 * Model of the world: below the cgroup this process is in (or below a delegated
 * one) a group slmbench.<pid>.<serial> is made, given a memory limit (swap
 * included, so that the limit cannot be walked around), the limit is read back,
 * a child is put into it, and the group is removed again whatever happens.
 * Groups left behind by a killed run carry its pid in their name and are removed
 * by sandbox_clean_leftovers() once that process is gone.
 *
 * Threading: one thread per sandbox.
 */
#ifndef SLM_HARNESS_SANDBOX_H
#define SLM_HARNESS_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/status.h"

struct sandbox;

struct sandbox_usage {
    uint64_t limit_bytes;    /* as the kernel reports it: what is really enforced */
    uint64_t peak_bytes;     /* largest amount charged: memory.peak, or
                                memory.max_usage_in_bytes */
    uint64_t current_bytes;
    uint64_t file_bytes;     /* page cache charged now */
    uint64_t anon_bytes;
    uint64_t n_oom_kills;
    uint64_t n_major_faults; /* pgmajfault of the group */
    uint64_t n_refaults;     /* workingset_refault(_file) */
};

/* root "" for the real machine. Errors: ST_PERMISSION with the way out (run under
 * systemd-run --user --scope -p Delegate=yes, as root, or with --mem none),
 * ST_UNSUPPORTED (no memory controller; says where it looked), ST_USAGE (a limit
 * larger than the machine's own or below 16 MiB). */
enum status sandbox_create(struct sandbox **s, const char *root, uint64_t limit_bytes,
                           struct err *err);

/* Put a process (the caller's child, stopped before it allocates) inside. */
enum status sandbox_add(struct sandbox *s, pid_t pid, struct err *err);

enum status sandbox_read(const struct sandbox *s, struct sandbox_usage *u,
                         struct err *err);

int sandbox_version(const struct sandbox *s); /* 1 or 2 */
const char *sandbox_path(const struct sandbox *s);

/* Kills what is still inside, removes the group, frees s. NULL is fine. */
void sandbox_destroy(struct sandbox *s);

/* Whether sandbox_create() would work here, without keeping anything. */
enum status sandbox_check(const char *root, struct err *err);

/* Remove groups of runs that are no longer alive (killing what is still inside);
 * returns how many. */
int sandbox_clean_leftovers(const char *root);

/* Drop a file's pages from the page cache, so that whoever reads it next is
 * charged for them; returns the bytes that stayed (mapped or dirty elsewhere). */
enum status file_evict(const char *path, uint64_t *stayed_bytes, struct err *err);

#endif
