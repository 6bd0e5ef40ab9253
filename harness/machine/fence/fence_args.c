/* SPDX-License-Identifier: MIT
 *
 * fence_args.c - the arguments that allowed calls (fence_calls.def) may have, and calls
 * that this program does not know
 *
 * Filters of their own: libseccomp's rules have no "one of these values" for an
 * argument, and no ENOSYS for what is newer than it is. Values are compared in the low
 * 32 bits, which are all that the kernel looks at for these arguments. Calls of another
 * ABI are the other filter's, which ends the process.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "harness/machine/fence/fence_rules.h"

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0 /* one that the rows are not for */
#endif

/* Calls that Linux 6.18 has all are below; from 424 on they have one number on every
 * architecture. What is newer is answered as by a kernel without it, and so is
 * clone3(), whose flags are not in an argument: the C library then calls clone(). */
#define FIRST_UNKNOWN 470
#define CLONE3        435

#define NAMESPACES                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
     CLONE_NEWPID | CLONE_NEWNET)

#define TO_WRITE (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

/* Whose headers do not go with others. */
#define MODES_TOO       0x802C542A /* TCGETS2, asm/termbits.h */
#define KEY_OF_CONSOLE  0x4B47     /* KDSKBENT, linux/kd.h */
#define TEXT_OF_CONSOLE 0x4B49     /* KDSKBSENT */
#define OWNER_OF_FILE   0x8901     /* FIOSETOWN */
#define OWNER_OF_SOCKET 0x8902     /* SIOCSPGRP */
#define LEASE           1024       /* F_SETLEASE */
#define NAME_OF_MEMORY  0x53564d41 /* PR_SET_VMA, linux/prctl.h of 5.17 */

enum check {
    ONE_OF,  /* the argument must be one of the values, */
    NONE_OF, /* none of them, */
    WITHOUT, /* have none of the bits of the value, */
    WITH,    /* have one */
};

enum role {
    ALL = 0,
    READER = 1, /* writes nothing, and nobody's terminal is its own */
    WRITER = 2, /* a command at its user's terminal */
};

#define MAX_VALUES 12
#define SELF       UINT32_C(0xffffffff) /* this process */

/* Several rows of one call must all let it pass. */
struct row {
    int number;
    enum role role; /* the row counts for: all bits of it */
    enum check check;
    int arg, n;
    uint32_t value[MAX_VALUES];
};

#define VALUES(...)                                              \
    (int)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), \
    {                                                            \
        __VA_ARGS__                                              \
    }

static const struct row rows[] = {
    /* signals: to itself, all of its threads included; WRITER: line editing sends one
     * to its process group */
    {SYS_kill, READER, ONE_OF, 0, VALUES(SELF)},
    {SYS_kill, WRITER, ONE_OF, 0, VALUES(SELF, 0)},
    {SYS_tgkill, ALL, ONE_OF, 0, VALUES(SELF)},
    {SYS_rt_sigqueueinfo, ALL, ONE_OF, 0, VALUES(SELF)},
    {SYS_rt_tgsigqueueinfo, ALL, ONE_OF, 0, VALUES(SELF)},
    {SYS_fcntl, ALL, NONE_OF, 1,
     VALUES(F_SETOWN, 10 /* F_SETSIG */, 15 /* F_SETOWN_EX */, LEASE)},
/* also where Landlock is missing: nothing is written, made or cut */
#ifdef SYS_open
    {SYS_open, READER, WITHOUT, 1, VALUES(TO_WRITE)},
#endif
    {SYS_openat, READER, WITHOUT, 2, VALUES(TO_WRITE)},
    /* what other processes run on, how, and with which limits: 0 is the caller */
    {SYS_setpriority, ALL, ONE_OF, 0, VALUES(0)},
    {SYS_setpriority, ALL, ONE_OF, 1, VALUES(0)},
    {SYS_ioprio_set, ALL, ONE_OF, 0, VALUES(1)},
    {SYS_ioprio_set, ALL, ONE_OF, 1, VALUES(0)},
    {SYS_sched_setaffinity, ALL, ONE_OF, 0, VALUES(0)},
    {SYS_sched_setscheduler, ALL, ONE_OF, 0, VALUES(0)},
    {SYS_sched_setparam, ALL, ONE_OF, 0, VALUES(0)},
    {SYS_sched_setattr, ALL, ONE_OF, 0, VALUES(0)},
    {SYS_prlimit64, ALL, ONE_OF, 0, VALUES(0, SELF)},
    {SYS_migrate_pages, ALL, ONE_OF, 0, VALUES(0, SELF)},
    {SYS_move_pages, ALL, ONE_OF, 0, VALUES(0, SELF)},
    {SYS_perf_event_open, ALL, ONE_OF, 1, VALUES(0, SELF)},
    /* ... which with that flag is a descriptor, of a group of processes */
    {SYS_perf_event_open, ALL, WITHOUT, 4, VALUES(PERF_FLAG_PID_CGROUP)},
    /* of itself; what is not here has others share a core with it, or trace it */
    {SYS_prctl, ALL, ONE_OF, 0,
     VALUES(PR_SET_NAME, PR_GET_NAME, NAME_OF_MEMORY, PR_SET_DUMPABLE, PR_GET_DUMPABLE,
            PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_GET_SECCOMP,
            PR_SET_THP_DISABLE, PR_GET_THP_DISABLE, PR_SET_PDEATHSIG)},
    /* a socket that listened, and was shut down, would be connected by what it sends */
    {SYS_sendto, ALL, WITHOUT, 3, VALUES(MSG_FASTOPEN)},
    {SYS_sendmsg, ALL, WITHOUT, 2, VALUES(MSG_FASTOPEN)},
    /* terminals: nothing is typed into one, none is taken over */
    {SYS_ioctl, READER, ONE_OF, 1,
     VALUES(TCGETS, MODES_TOO, TIOCGWINSZ, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX,
            PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE, PERF_EVENT_IOC_RESET)},
    {SYS_ioctl, WRITER, NONE_OF, 1,
     VALUES(TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS, TIOCSCTTY, TIOCSPGRP,
            KEY_OF_CONSOLE, TEXT_OF_CONSOLE, OWNER_OF_FILE, OWNER_OF_SOCKET)},
    /* processes and namespaces; LeakSanitizer makes a process */
    {SYS_clone, ALL, WITHOUT, 0, VALUES(NAMESPACES)},
#ifndef __SANITIZE_ADDRESS__
    {SYS_clone, ALL, WITH, 0, VALUES(CLONE_THREAD)},
#endif
};

/* ---- rows as a program ----------------------------------------------------------- */

#define MAX_CODE 600

struct code {
    struct sock_filter at[MAX_CODE];
    unsigned short n;
};

#define LOAD          (BPF_LD | BPF_W | BPF_ABS)
#define EQUAL         (BPF_JMP | BPF_JEQ | BPF_K)
#define BITS          (BPF_JMP | BPF_JSET | BPF_K)
#define REACH         (BPF_JMP | BPF_JGE | BPF_K)
#define RETURN        (BPF_RET | BPF_K)
#define ERROR(number) (SECCOMP_RET_ERRNO | (number))

static void put(struct code *c, int what, uint32_t value, int if_true, int if_false)
{
    c->at[c->n++] = (struct sock_filter){(uint16_t)what, (uint8_t)if_true,
                                         (uint8_t)if_false, value};
}

/* The low half of an argument. */
static uint32_t offset_of(int arg)
{
    const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

    return (uint32_t)(offsetof(struct seccomp_data, args) + (size_t)arg * 8 +
                      (big ? 4 : 0));
}

static void put_check(struct code *c, const struct row *r, uint32_t self)
{
    const bool one_of = r->check == ONE_OF;

    put(c, LOAD, offset_of(r->arg), 0, 0);
    /* to the return behind all of them, or behind that */
    for (int i = 0; i < r->n && (one_of || r->check == NONE_OF); i++) {
        const uint32_t value = r->value[i] == SELF ? self : r->value[i];
        const bool last = i + 1 == r->n;

        if (one_of)
            put(c, EQUAL, value, r->n - i, 0);
        else
            put(c, EQUAL, value, r->n - 1 - i, last ? 1 : 0);
    }
    if (r->check == WITHOUT)
        put(c, BITS, r->value[0], 0, 1);
    else if (r->check == WITH)
        put(c, BITS, r->value[0], 1, 0);
    put(c, RETURN, ERROR(EPERM), 0, 0);
}

static void put_row(struct code *c, const struct row *r, uint32_t self)
{
    const int begin = c->n + 1;

    put(c, LOAD, offsetof(struct seccomp_data, nr), 0, 0);
    put(c, EQUAL, (uint32_t)r->number, 0, 0);
    put_check(c, r, self);
    c->at[begin].jf = (uint8_t)(c->n - begin - 1);
}

static bool enter(struct code *c)
{
    struct sock_fprog program = {.filter = c->at};

    put(c, RETURN, SECCOMP_RET_ALLOW, 0, 0);
    assert(c->n < MAX_CODE);
    program.len = c->n;
    return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void begin(struct code *c)
{
    c->n = 0;
    put(c, LOAD, offsetof(struct seccomp_data, arch), 0, 0);
    put(c, EQUAL, ARCH, 1, 0);
    put(c, RETURN, SECCOMP_RET_ALLOW, 0, 0);
}

bool fence_args_enter(const struct fence *fence)
{
    const unsigned role = fence->writes ? WRITER : READER;
    struct code c;

    begin(&c);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((rows[i].role & role) == rows[i].role)
            put_row(&c, &rows[i], (uint32_t)getpid());
    return enter(&c);
}

bool fence_later_enter(void)
{
    struct code c;

    begin(&c);
    put(&c, LOAD, offsetof(struct seccomp_data, nr), 0, 0);
    put(&c, EQUAL, CLONE3, 1, 0);
    put(&c, REACH, FIRST_UNKNOWN, 0, 1);
    put(&c, RETURN, ERROR(ENOSYS), 0, 0);
    return enter(&c);
}
