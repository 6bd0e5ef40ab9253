/* SPDX-License-Identifier: MIT
 *
 * fence.h - what a process gives up before it reads a file that nobody has vouched for
 *
 * Model of the world: a parser may have a bug, and `bench` often runs as root. A
 * process that is going to read a model first gives up, for good and for all threads it
 * will start:
 *
 *     privileges    no_new_privs; for root the user becomes the one that called sudo
 *                   (SUDO_UID), or nobody, where that user may read the files; and no
 *                   capability is left, whoever it is
 *     files         Landlock: nothing can be written, made or removed, and nothing
 *                   read but the files it was to read, /proc, /sys and what programs
 *                   are made of
 *     system calls  seccomp: those of fence_calls.def, for the arguments of
 *                   fence_args.c. So no network (a server's own connections apart);
 *                   no other process or program: neither signalled nor placed nor
 *                   read; no keys, mounts, modules, namespaces, System V IPC; no mode,
 *                   owner, time or attribute of a file; nothing that types into a
 *                   terminal; no io_uring, which would go round this list, but one
 *                   that was made before and can only read. Others fail with EPERM,
 *                   and calls of kernels later than this program with ENOSYS
 *
 * What a kernel does not have (Landlock before 5.13, or switched off; seccomp filters)
 * is left out, and a note on standard error names it. Descriptors that are open stay as
 * they are.
 *
 * Threading: before the process starts a thread.
 */
#ifndef SLM_HARNESS_MACHINE_FENCE_H
#define SLM_HARNESS_MACHINE_FENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "engine/base/status.h"

struct fence {
    const char *const *reads; /* [n_reads] files and folders, as they will be opened;
                                 what a folder's links lead to is not in it */
    size_t n_reads;
    bool keeps_user; /* it makes files that are to be its own */
    bool writes;     /* files of its user, at whose terminal it runs */
    bool has_ring;   /* it has made an io_uring that only reads (stream_ring.h) ... */
    int ring;        /* ... and may keep using that, by this descriptor */
    bool serves;     /* it accepts connections ... */
    int listener;    /* ... of this socket, which listens already */
};

struct fence_state {
    uid_t uid;         /* afterwards */
    bool capabilities; /* it still has some: they could not be dropped */
    bool no_new_privs;
    int landlock; /* version in force; 0: none */
    bool seccomp;
};

/* Errors: ST_IO (a part that this kernel has cannot be put up: a fence with a hole that
 * nobody knows of is none). A path that is not there is left to its reader. What the
 * kernel lacks is noted as by fence_note_missing(). */
enum status fence_enter(const struct fence *fence, struct fence_state *state,
                        struct err *err);

/* Prints what this kernel lacks for a whole fence, if anything: once for this process
 * and those that it starts, so a process whose children will enter one calls this
 * first. A child that then finds less than it fails to enter. */
void fence_note_missing(void);

/* The caller reports that by itself: neither it nor its children print it. */
void fence_note_elsewhere(void);

/* How many system calls this kernel has. Those that are later than Linux 5.0 are made
 * for it, with arguments that each of them refuses: in a child, which a filter around
 * this process may end. */
int fence_n_calls(void);

/* The part that also suits a command which reads a model and writes files of its own:
 * no_new_privs, no look into other processes (by Landlock), and the filter of system
 * calls, which lets modes and owners of files and modes of the terminal be changed.
 * ring: the descriptor of an io_uring as in struct fence, or -1. The first call counts.
 * Errors, and what is noted: as fence_enter(). */
enum status fence_enter_calls(int ring, struct err *err);

#endif
