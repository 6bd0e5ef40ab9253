/* SPDX-License-Identifier: MIT
 *
 * fault_calls.h - the system calls that fault_runner.c makes fail, and how
 *
 * Left out are calls that cannot fail with valid arguments (getpid), whose failure no
 * program can look at (exit, close: the descriptor is gone either way; kill: there is
 * no other way to end a process) or libc aborts on (futex, brk, rt_sigprocmask).
 */
#ifndef SLM_TESTS_FAULTS_FAULT_CALLS_H
#define SLM_TESTS_FAULTS_FAULT_CALLS_H

#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* ---- calls ----------------------------------------------------------------------- */

enum kind {
    OPEN,
    READ,
    WRITE,
    FSYNC,
    RENAME,
    UNLINK,
    MKDIR,
    TRUNCATE,
    MAP,
    FORK,
    THREAD,
    EXEC,
    PIPE,
    STAT,
    LIST,
    LOCK,
    GROUP,
    RING,
    SOCKET,
    ACCEPT,
    RECEIVE,
    SEND,
    POLL,
    WATCH,
    WAIT,
    PROTECT,
    PLACE,
    FENCE,
    DUPLICATE,
    ATTRIBUTES,
    RANDOM,
    SLEEP,
    TIMER,
    PERF,
    N_KINDS,
    NONE = N_KINDS
};

static const char *const kind_names[] = {
    "open",      "read",       "write",  "fsync",    "rename",  "unlink", "mkdir",
    "truncate",  "mmap",       "fork",   "thread",   "exec",    "pipe",   "stat",
    "list",      "lock",       "cgroup", "io_uring", "socket",  "accept", "receive",
    "send",      "poll",       "watch",  "wait",     "protect", "place",  "fence",
    "duplicate", "attributes", "random", "sleep",    "timer",   "perf"};

enum object { NO_OBJECT, FD, PATH, PATH_AT, OPTION };

static const struct call {
    int no;
    enum kind kind;
    enum object object;
    const char *name;
} calls[] = {
    {SYS_open, OPEN, PATH, "open"},
    {SYS_openat, OPEN, PATH_AT, "openat"},
    {SYS_creat, OPEN, PATH, "creat"},
    {SYS_read, READ, FD, "read"},
    {SYS_pread64, READ, FD, "pread"},
    {SYS_readv, READ, FD, "readv"},
    {SYS_write, WRITE, FD, "write"},
    {SYS_pwrite64, WRITE, FD, "pwrite"},
    {SYS_writev, WRITE, FD, "writev"},
    {SYS_copy_file_range, WRITE, FD, "copy_file_range"},
    {SYS_sendfile, WRITE, FD, "sendfile"},
    {SYS_fsync, FSYNC, FD, "fsync"},
    {SYS_fdatasync, FSYNC, FD, "fdatasync"},
    {SYS_rename, RENAME, PATH, "rename"},
    {SYS_renameat, RENAME, PATH_AT, "renameat"},
    {SYS_renameat2, RENAME, PATH_AT, "renameat2"},
    {SYS_link, RENAME, PATH, "link"},
    {SYS_linkat, RENAME, PATH_AT, "linkat"},
    {SYS_unlink, UNLINK, PATH, "unlink"},
    {SYS_unlinkat, UNLINK, PATH_AT, "unlinkat"},
    {SYS_rmdir, UNLINK, PATH, "rmdir"},
    {SYS_mkdir, MKDIR, PATH, "mkdir"},
    {SYS_mkdirat, MKDIR, PATH_AT, "mkdirat"},
    {SYS_ftruncate, TRUNCATE, FD, "ftruncate"},
    {SYS_fallocate, TRUNCATE, FD, "fallocate"},
    {SYS_mmap, MAP, NO_OBJECT, "mmap"},
    {SYS_mremap, MAP, NO_OBJECT, "mremap"},
    {SYS_fork, FORK, NO_OBJECT, "fork"},
    {SYS_vfork, FORK, NO_OBJECT, "vfork"},
    {SYS_clone, FORK, NO_OBJECT, "clone"},
    {SYS_clone3, FORK, NO_OBJECT, "clone3"},
    {SYS_execve, EXEC, PATH, "execve"},
    {SYS_pipe, PIPE, NO_OBJECT, "pipe"},
    {SYS_pipe2, PIPE, NO_OBJECT, "pipe2"},
    {SYS_eventfd2, PIPE, NO_OBJECT, "eventfd2"},
    {SYS_memfd_create, PIPE, NO_OBJECT, "memfd_create"},
    {SYS_stat, STAT, PATH, "stat"},
    {SYS_fstat, STAT, FD, "fstat"},
    {SYS_newfstatat, STAT, PATH_AT, "newfstatat"},
    {SYS_statx, STAT, PATH_AT, "statx"},
    {SYS_getdents64, LIST, FD, "getdents64"},
    {SYS_flock, LOCK, FD, "flock"},
    {SYS_access, STAT, PATH, "access"},
    {SYS_faccessat, STAT, PATH_AT, "faccessat"},
    {SYS_faccessat2, STAT, PATH_AT, "faccessat2"},
    {SYS_readlink, STAT, PATH, "readlink"},
    {SYS_readlinkat, STAT, PATH_AT, "readlinkat"},
    {SYS_statfs, STAT, PATH, "statfs"},
    {SYS_fstatfs, STAT, FD, "fstatfs"},
    {SYS_getcwd, STAT, NO_OBJECT, "getcwd"},
    {SYS_fcntl, LOCK, FD, "fcntl"}, /* or DUPLICATE, or not counted */
    {SYS_dup, DUPLICATE, FD, "dup"},
    {SYS_dup2, DUPLICATE, FD, "dup2"},
    {SYS_dup3, DUPLICATE, FD, "dup3"},
    {SYS_preadv, READ, FD, "preadv"},
    {SYS_socket, SOCKET, NO_OBJECT, "socket"},
    {SYS_socketpair, SOCKET, NO_OBJECT, "socketpair"},
    {SYS_bind, SOCKET, FD, "bind"},
    {SYS_listen, SOCKET, FD, "listen"},
    {SYS_connect, SOCKET, FD, "connect"},
    {SYS_setsockopt, SOCKET, FD, "setsockopt"},
    {SYS_getsockopt, SOCKET, FD, "getsockopt"},
    {SYS_getsockname, SOCKET, FD, "getsockname"},
    {SYS_shutdown, SOCKET, FD, "shutdown"},
    {SYS_accept, ACCEPT, FD, "accept"},
    {SYS_accept4, ACCEPT, FD, "accept4"},
    {SYS_recvfrom, RECEIVE, FD, "recv"},
    {SYS_recvmsg, RECEIVE, FD, "recvmsg"},
    {SYS_sendto, SEND, FD, "send"},
    {SYS_sendmsg, SEND, FD, "sendmsg"},
    {SYS_epoll_create1, WATCH, NO_OBJECT, "epoll_create1"},
    {SYS_epoll_ctl, WATCH, FD, "epoll_ctl"},
    {SYS_epoll_wait, WAIT, FD, "epoll_wait"},
    {SYS_epoll_pwait, WAIT, FD, "epoll_pwait"},
    {SYS_poll, POLL, NO_OBJECT, "poll"},
    {SYS_ppoll, POLL, NO_OBJECT, "ppoll"},
    {SYS_select, POLL, NO_OBJECT, "select"},
    {SYS_pselect6, POLL, NO_OBJECT, "pselect6"},
    {SYS_wait4, WAIT, NO_OBJECT, "wait4"},
    {SYS_waitid, WAIT, NO_OBJECT, "waitid"},
    {SYS_mprotect, PROTECT, NO_OBJECT, "mprotect"},
    {SYS_munmap, PROTECT, NO_OBJECT, "munmap"},
    {SYS_madvise, PROTECT, NO_OBJECT, "madvise"},
    {SYS_mlock, PROTECT, NO_OBJECT, "mlock"},
    {SYS_mincore, PROTECT, NO_OBJECT, "mincore"},
    {SYS_fadvise64, PROTECT, FD, "fadvise64"},
    {SYS_readahead, PROTECT, FD, "readahead"},
    {SYS_sched_setaffinity, PLACE, NO_OBJECT, "sched_setaffinity"},
    {SYS_sched_getaffinity, PLACE, NO_OBJECT, "sched_getaffinity"},
    {SYS_sched_setscheduler, PLACE, NO_OBJECT, "sched_setscheduler"},
    {SYS_setpriority, PLACE, NO_OBJECT, "setpriority"},
    {SYS_prlimit64, PLACE, NO_OBJECT, "prlimit64"},
    {SYS_getrusage, PLACE, NO_OBJECT, "getrusage"},
    {SYS_mbind, PLACE, NO_OBJECT, "mbind"},
    {SYS_set_mempolicy, PLACE, NO_OBJECT, "set_mempolicy"},
    {SYS_get_mempolicy, PLACE, NO_OBJECT, "get_mempolicy"},
    {SYS_prctl, FENCE, OPTION, "prctl"},
    {SYS_seccomp, FENCE, NO_OBJECT, "seccomp"},
    {SYS_unshare, FENCE, NO_OBJECT, "unshare"},
    {SYS_setuid, FENCE, NO_OBJECT, "setuid"},
    {SYS_setgid, FENCE, NO_OBJECT, "setgid"},
    {SYS_setgroups, FENCE, NO_OBJECT, "setgroups"},
    {SYS_setresuid, FENCE, NO_OBJECT, "setresuid"},
    {SYS_setresgid, FENCE, NO_OBJECT, "setresgid"},
    {SYS_capset, FENCE, NO_OBJECT, "capset"},
    {SYS_setsid, FENCE, NO_OBJECT, "setsid"},
    {444, FENCE, NO_OBJECT, "landlock_create_ruleset"},
    {445, FENCE, FD, "landlock_add_rule"},
    {446, FENCE, FD, "landlock_restrict_self"},
    {SYS_chmod, ATTRIBUTES, PATH, "chmod"},
    {SYS_fchmod, ATTRIBUTES, FD, "fchmod"},
    {SYS_fchmodat, ATTRIBUTES, PATH_AT, "fchmodat"},
    {SYS_chown, ATTRIBUTES, PATH, "chown"},
    {SYS_fchown, ATTRIBUTES, FD, "fchown"},
    {SYS_fchownat, ATTRIBUTES, PATH_AT, "fchownat"},
    {SYS_utimensat, ATTRIBUTES, PATH_AT, "utimensat"},
    {SYS_getrandom, RANDOM, NO_OBJECT, "getrandom"},
    {SYS_nanosleep, SLEEP, NO_OBJECT, "nanosleep"},
    {SYS_clock_nanosleep, SLEEP, NO_OBJECT, "clock_nanosleep"},
    {SYS_timer_create, TIMER, NO_OBJECT, "timer_create"},
    {SYS_timerfd_create, TIMER, NO_OBJECT, "timerfd_create"},
    {SYS_setitimer, TIMER, NO_OBJECT, "setitimer"},
    {SYS_signalfd4, TIMER, NO_OBJECT, "signalfd4"},
    {SYS_perf_event_open, PERF, NO_OBJECT, "perf_event_open"},
    {425, RING, NO_OBJECT, "io_uring_setup"},
    {426, RING, FD, "io_uring_enter"},
    {427, RING, FD, "io_uring_register"},
};

#define N_CALLS (sizeof calls / sizeof *calls)

/* Options of prctl() that put up a part of a fence; others are shown as numbers. */
static const struct {
    unsigned long long value;
    const char *name;
} prctl_options[] = {{PR_SET_SECCOMP, "PR_SET_SECCOMP"},
                     {PR_SET_NO_NEW_PRIVS, "PR_SET_NO_NEW_PRIVS"},
                     {PR_CAP_AMBIENT, "PR_CAP_AMBIENT"},
                     {PR_CAPBSET_READ, "PR_CAPBSET_READ"},
                     {PR_CAPBSET_DROP, "PR_CAPBSET_DROP"},
                     {PR_SET_DUMPABLE, "PR_SET_DUMPABLE"},
                     {PR_SET_PDEATHSIG, "PR_SET_PDEATHSIG"},
                     {PR_SET_NAME, "PR_SET_NAME"},
                     {PR_SET_CHILD_SUBREAPER, "PR_SET_CHILD_SUBREAPER"}};

static const struct {
    const char *name;
    int value;
} faults[] = {{"short", 0},
              {"EIO", EIO},
              {"ENOSPC", ENOSPC},
              {"EMFILE", EMFILE},
              {"ENFILE", ENFILE},
              {"ENOMEM", ENOMEM},
              {"EINTR", EINTR},
              {"EAGAIN", EAGAIN},
              {"EACCES", EACCES},
              {"EBUSY", EBUSY},
              {"EPERM", EPERM},
              {"ENOLCK", ENOLCK},
              {"EROFS", EROFS},
              {"EINVAL", EINVAL},
              {"ENOSYS", ENOSYS},
              {"ENOBUFS", ENOBUFS},
              {"ECONNABORTED", ECONNABORTED},
              {"ECONNRESET", ECONNRESET},
              {"EPIPE", EPIPE},
              {"EADDRINUSE", EADDRINUSE},
              {"ECHILD", ECHILD},
              {"ESRCH", ESRCH},
              {"ENOTSOCK", ENOTSOCK},
              {"EDQUOT", EDQUOT},
              {"ENODEV", ENODEV}};

#endif
