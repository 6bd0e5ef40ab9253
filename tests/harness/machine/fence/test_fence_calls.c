/* SPDX-License-Identifier: MIT
 *
 * test_fence_calls.c - what a fenced process asks of the kernel: refused by the filter,
 * not by the kernel. And all calls that there are: those of the table are let through,
 * and none else.
 *
 * Arguments are such that the kernel's own answer would be another one: descriptors and
 * addresses that there are not, and processes of the same user.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "engine/base/thread_pool.h"
#include "harness/machine/fence/fence.h"
#include "harness/machine/fence/fence_rules.h"

enum { PARENT = -1000, SELF, THREAD, CPUS }; /* what arguments stand for */

struct call {
    const char *what;
    long number, arg[5];
    int error, of_writer; /* expected: errno; 0: it is done; -1: it is not tried */
};

#define DENIED EPERM, EPERM
#define NO     (-1)

static const struct call calls[] = {
    {"kill(parent)", SYS_kill, {PARENT, 0}, DENIED},
    {"kill(all)", SYS_kill, {-1, 0}, DENIED},
    {"kill(group)", SYS_kill, {0, 0}, EPERM, 0},
    {"kill(self)", SYS_kill, {SELF, 0}, 0, 0},
    {"tgkill(parent)", SYS_tgkill, {PARENT, PARENT, 0}, DENIED},
    {"tgkill(self)", SYS_tgkill, {SELF, THREAD, 0}, 0, 0},
    {"tkill(parent)", SYS_tkill, {PARENT, 0}, DENIED},
    {"rt_sigqueueinfo", SYS_rt_sigqueueinfo, {PARENT, 0, 0}, DENIED},
    {"rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo, {PARENT, PARENT, 0, 0}, DENIED},
    {"pidfd_open", 434, {PARENT, 0}, DENIED},
    {"pidfd_send_signal", 424, {-1, 0, 0, 0}, DENIED},
    {"process_mrelease", 448, {-1, 0}, DENIED},
    {"fcntl(F_SETOWN)", SYS_fcntl, {-1, F_SETOWN, PARENT}, DENIED},
    {"fcntl(F_SETSIG)", SYS_fcntl, {-1, 10, SIGKILL}, DENIED},
    {"fcntl(F_SETOWN_EX)", SYS_fcntl, {-1, 15, 0}, DENIED},
    {"fcntl(F_GETFL)", SYS_fcntl, {-1, F_GETFL, 0}, EBADF, EBADF},

    {"openat to write", SYS_openat, {AT_FDCWD, 0, O_WRONLY}, EPERM, EFAULT},
    {"openat to make", SYS_openat, {AT_FDCWD, 0, O_CREAT}, EPERM, EFAULT},
    {"openat to cut", SYS_openat, {AT_FDCWD, 0, O_TRUNC}, EPERM, EFAULT},
    {"openat to read", SYS_openat, {AT_FDCWD, 0, O_CLOEXEC}, EFAULT, EFAULT},
    {"openat2", 437, {AT_FDCWD, 0, 0, 0}, DENIED},

    {"setpriority(parent)", SYS_setpriority, {0, PARENT, 0}, DENIED},
    {"setpriority(user)", SYS_setpriority, {2, 0, 0}, DENIED},
    {"setpriority(self)", SYS_setpriority, {0, 0, 19}, 0, 0},
    {"ioprio_set(parent)", SYS_ioprio_set, {1, PARENT, 0}, DENIED},
    {"ioprio_set(user)", SYS_ioprio_set, {3, 0, 0}, DENIED},
    {"sched_setaffinity(parent)", SYS_sched_setaffinity, {PARENT, 8, CPUS}, DENIED},
    {"sched_setaffinity(self)", SYS_sched_setaffinity, {0, 8, CPUS}, 0, 0},
    {"sched_setscheduler(parent)", SYS_sched_setscheduler, {PARENT, 0, 0}, DENIED},
    {"sched_setparam(parent)", SYS_sched_setparam, {PARENT, 0}, DENIED},
    {"sched_setattr(parent)", SYS_sched_setattr, {PARENT, 0, 0}, DENIED},
    {"prlimit64(parent)", SYS_prlimit64, {PARENT, 7, 0, 0}, DENIED},
    {"prlimit64(self)", SYS_prlimit64, {0, 7, 0, 0}, 0, 0},
    {"migrate_pages(parent)", SYS_migrate_pages, {PARENT, 0, 0, 0}, DENIED},
    {"move_pages(parent)", SYS_move_pages, {PARENT, 0, 0, 0}, DENIED},
    {"perf_event_open(parent)", SYS_perf_event_open, {0, PARENT, -1, -1}, DENIED},
    {"perf_event_open(self)", SYS_perf_event_open, {0, 0, -1, -1}, EFAULT, EFAULT},
    {"perf_event_open(group)",
     SYS_perf_event_open,
     {0, 0, 0, -1, PERF_FLAG_PID_CGROUP},
     DENIED},
    {"prctl(PR_SCHED_CORE)", SYS_prctl, {62, 2 /* share to */, PARENT, 0, 0}, DENIED},
    {"prctl(PR_SET_PTRACER)", SYS_prctl, {0x59616d61, PARENT}, DENIED},
    {"prctl(PR_SET_MM)", SYS_prctl, {PR_SET_MM, 1, 0, 0, 0}, DENIED},
    {"prctl(PR_GET_SECCOMP)", SYS_prctl, {PR_GET_SECCOMP}, 0, 0},

    {"TIOCSTI", SYS_ioctl, {-1, TIOCSTI, 0}, DENIED},
    {"TIOCSTI, high bits", SYS_ioctl, {-1, TIOCSTI | 1L << 32, 0}, DENIED},
    {"TIOCLINUX", SYS_ioctl, {-1, TIOCLINUX, 0}, DENIED},
    {"TIOCSETD", SYS_ioctl, {-1, TIOCSETD, 0}, DENIED},
    {"TIOCSCTTY", SYS_ioctl, {-1, TIOCSCTTY, 0}, DENIED},
    {"TIOCSPGRP", SYS_ioctl, {-1, TIOCSPGRP, 0}, DENIED},
    {"KDSKBSENT", SYS_ioctl, {-1, 0x4B49, 0}, DENIED},
    {"FIOSETOWN", SYS_ioctl, {-1, 0x8901, 0}, DENIED},
    {"TCSETSW", SYS_ioctl, {-1, TCSETSW, 0}, EPERM, EBADF},
    {"TIOCSWINSZ", SYS_ioctl, {-1, TIOCSWINSZ, 0}, EPERM, EBADF},
    {"unknown ioctl", SYS_ioctl, {-1, 0x12345678, 0}, EPERM, EBADF},
    {"TCGETS", SYS_ioctl, {-1, TCGETS, 0}, EBADF, EBADF},
    {"TIOCGWINSZ", SYS_ioctl, {-1, TIOCGWINSZ, 0}, EBADF, EBADF},
    {"PERF_EVENT_IOC_ENABLE", SYS_ioctl, {-1, PERF_EVENT_IOC_ENABLE, 0}, EBADF, EBADF},

    {"fchmod", SYS_fchmod, {-1, 0600}, EPERM, EBADF},
    {"fchmodat", SYS_fchmodat, {AT_FDCWD, 0, 0600}, EPERM, EFAULT},
    {"fchmodat2", 452, {AT_FDCWD, 0, 0600, 0}, EPERM, NO},
    {"fchown", SYS_fchown, {-1, 0, 0}, EPERM, EBADF},
    {"fchownat", SYS_fchownat, {AT_FDCWD, 0, 0, 0}, EPERM, EFAULT},
    {"setxattr", SYS_setxattr, {0, 0, 0, 0}, DENIED},
    {"lsetxattr", SYS_lsetxattr, {0, 0, 0, 0}, DENIED},
    {"fsetxattr", SYS_fsetxattr, {-1, 0, 0, 0}, DENIED},
    {"removexattr", SYS_removexattr, {0, 0}, DENIED},
    {"lremovexattr", SYS_lremovexattr, {0, 0}, DENIED},
    {"fremovexattr", SYS_fremovexattr, {-1, 0}, DENIED},
    {"setxattrat", 463, {AT_FDCWD, 0, 0, 0}, DENIED},
    {"removexattrat", 466, {AT_FDCWD, 0, 0, 0}, DENIED},
    {"file_setattr", 469, {AT_FDCWD, 0, 0, 0}, DENIED},
    {"utimensat", SYS_utimensat, {AT_FDCWD, 16, 0, 0}, EPERM, EFAULT},
    {"truncate", SYS_truncate, {0, 0}, EPERM, EFAULT},
    {"unlinkat", SYS_unlinkat, {AT_FDCWD, 0, 0}, EPERM, EFAULT},
    {"mkdirat", SYS_mkdirat, {AT_FDCWD, 0, 0}, EPERM, EFAULT},
    {"renameat2", SYS_renameat2, {AT_FDCWD, 0, AT_FDCWD, 0}, EPERM, EFAULT},
    {"linkat", SYS_linkat, {AT_FDCWD, 0, AT_FDCWD, 0}, EPERM, EFAULT},
    {"symlinkat", SYS_symlinkat, {0, AT_FDCWD, 0}, EPERM, EFAULT},
    {"mknodat", SYS_mknodat, {AT_FDCWD, 0, 0, 0}, DENIED},
#ifdef SYS_chmod /* older calls, which newer architectures lack */
    {"chmod", SYS_chmod, {0, 0600}, EPERM, EFAULT},
    {"chown", SYS_chown, {0, 0, 0}, EPERM, EFAULT},
    {"lchown", SYS_lchown, {0, 0, 0}, EPERM, EFAULT},
    {"utime", SYS_utime, {16, 0}, DENIED},
    {"utimes", SYS_utimes, {16, 0}, DENIED},
    {"futimesat", SYS_futimesat, {AT_FDCWD, 16, 0}, DENIED},
    {"unlink", SYS_unlink, {0}, EPERM, EFAULT},
    {"rename", SYS_rename, {0, 0}, EPERM, EFAULT},
#endif

    {"shmget", SYS_shmget, {0, 4096, 0600}, DENIED},
    {"shmat", SYS_shmat, {-1, 0, 0}, DENIED},
    {"semget", SYS_semget, {0, 1, 0600}, DENIED},
    {"msgget", SYS_msgget, {0, 0600}, DENIED},
    {"mq_open", SYS_mq_open, {0, 0, 0, 0}, DENIED},

    {"io_uring_setup", 425, {1, 0}, DENIED},
    {"io_uring_enter", 426, {-1, 0, 0, 0}, DENIED},
    {"io_uring_register", 427, {-1, 0, 0, 0}, DENIED},

    {"clone3", 435, {0, 0}, ENOSYS, ENOSYS},
    {"unshare", SYS_unshare, {0}, DENIED},
    {"open_tree", 428, {-1, 0, 0}, DENIED},
    {"open_tree_attr", 467, {-1, 0, 0, 0}, DENIED},
    {"lsm_set_self_attr", 460, {0, 0, 0, 0}, DENIED},
    {"a call of a later kernel", 470, {0}, ENOSYS, ENOSYS},
    {"one of a much later kernel", 2000, {0}, ENOSYS, ENOSYS},
};

enum { N_CALLS = sizeof calls / sizeof *calls, N_CLONES = 8 };

/* Each of them with what makes a process; alone, and with what makes a thread. */
static const long namespaces[N_CLONES] = {0,
                                          CLONE_NEWUSER,
                                          CLONE_NEWNS,
                                          CLONE_NEWPID,
                                          CLONE_NEWNET,
                                          CLONE_NEWIPC,
                                          CLONE_NEWUTS,
                                          CLONE_NEWCGROUP};

struct found {
    enum status status;
    bool seccomp;
    int error[N_CALLS], cloned[N_CLONES];
    int forked, thread, signalled, tiles[2];
    enum status pool;
    bool as_pinned;
};

static long meaning(long arg, const cpu_set_t *cpus)
{
    return arg == PARENT   ? getppid()
           : arg == SELF   ? getpid()
           : arg == THREAD ? (long)syscall(SYS_gettid)
           : arg == CPUS   ? (long)(intptr_t)cpus
                           : arg;
}

static int try_call(const struct call *c)
{
    cpu_set_t cpus;
    long arg[5];

    sched_getaffinity(0, sizeof cpus, &cpus);
    for (int i = 0; i < 5; i++)
        arg[i] = meaning(c->arg[i], &cpus);
    return syscall(c->number, arg[0], arg[1], arg[2], arg[3], arg[4], 0) < 0 ? errno
                                                                             : 0;
}

static int try_clone(long flags)
{
    const long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);

    if (!pid)
        _exit(0);
    return pid < 0 ? errno : 0;
}

/* Requests the use of tiles (AMX), as detection does, which may be first within the
 * fence: the kernel's own answer, 0 where the CPU has tiles. */
static int request_tiles(void)
{
#ifdef SYS_arch_prctl
    return syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18) ? errno : 0;
#else
    return 0;
#endif
}

static void *do_nothing(void *arg)
{
    return arg;
}

static void look_at_cpu(void *arg, int thread, int n_threads)
{
    cpu_set_t cpus;

    (void)n_threads;
    if (sched_getaffinity(0, sizeof cpus, &cpus) || CPU_COUNT(&cpus) != 1)
        ((bool *)arg)[thread] = false;
}

/* What measuring needs: threads, each on its CPU, and signals among them. */
static void try_threads(struct found *f)
{
    pthread_t thread;
    cpu_set_t own;
    struct thread_pool *pool;
    struct err err = ERR_INIT;
    bool pinned[2] = {true, true};
    int cpus[2] = {-1, -1};

    f->thread = pthread_create(&thread, NULL, do_nothing, NULL);
    if (!f->thread) {
        pthread_join(thread, NULL);
        f->signalled = pthread_kill(pthread_self(), 0);
    }
    sched_getaffinity(0, sizeof own, &own);
    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        if (CPU_ISSET(i, &own)) {
            cpus[1] = cpus[0] < 0 ? i : cpus[0];
            cpus[0] = i;
        }
    f->pool = thread_pool_start(&pool, 2, cpus, &err);
    if (!f->pool) {
        thread_pool_run(pool, look_at_cpu, pinned);
        thread_pool_stop(pool);
        f->as_pinned = pinned[0] && pinned[1];
    }
}

static void try_all(struct found *f, bool writer)
{
    try_threads(f);
    for (int i = 0; i < N_CALLS; i++)
        if ((writer ? calls[i].of_writer : calls[i].error) != NO)
            f->error[i] = try_call(&calls[i]);
    for (int i = 0; i < N_CLONES; i++)
        f->cloned[i] = try_clone(namespaces[i] | SIGCHLD);
#ifdef SYS_fork
    const long pid = syscall(SYS_fork);

    if (!pid)
        _exit(0);
    f->forked = pid < 0 ? errno : 0;
#else
    f->forked = EPERM;
#endif
}

static void fence_and_try(struct found *f, bool writer)
{
    struct fence_state state = {.seccomp = true};
    struct err err = ERR_INIT;

    f->tiles[0] = request_tiles();
    f->status = writer ? fence_enter_calls(-1, &err)
                       : fence_enter(&(struct fence){.keeps_user = true}, &state, &err);
    f->seccomp = state.seccomp;
    f->tiles[1] = request_tiles();
    if (f->status == ST_OK)
        try_all(f, writer);
}

static void check(bool writer)
{
    static struct found f;
    int pipe_fd[2];
    pid_t child;

    f = (struct found){.status = ST_IO};
    assert_int_equal(pipe(pipe_fd), 0);
    child = fork();
    if (!child) {
        fence_and_try(&f, writer);
        _exit(write(pipe_fd[1], &f, sizeof f) != sizeof f);
    }
    close(pipe_fd[1]);
    assert_int_equal(read(pipe_fd[0], &f, sizeof f), sizeof f);
    close(pipe_fd[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(f.status, ST_OK);
    if (!f.seccomp)
        skip();
    for (int i = 0; i < N_CALLS; i++) {
        const int expected = writer ? calls[i].of_writer : calls[i].error;

        if (expected != NO && f.error[i] != expected)
            fail_msg("%s: %s instead of %s", calls[i].what, strerror(f.error[i]),
                     strerror(expected));
    }
    assert_int_equal(f.tiles[1], f.tiles[0]);
    assert_true(f.tiles[1] != EPERM && f.tiles[1] != ENOSYS);
    assert_int_equal(f.thread, 0);
    assert_int_equal(f.signalled, 0);
    assert_int_equal(f.pool, ST_OK);
    assert_true(f.as_pinned);
#ifndef __SANITIZE_ADDRESS__ /* whose own processes are made so */
    assert_int_equal(f.cloned[0], EPERM);
    assert_int_equal(f.forked, EPERM);
#endif
    for (int i = 1; i < N_CLONES; i++)
        assert_int_equal(f.cloned[i], EPERM);
}

static void a_reader(void **state)
{
    (void)state;
    check(false);
}

static void a_command_that_writes(void **state)
{
    (void)state;
    check(true);
}

/* ---- every call ------------------------------------------------------------------ */

#ifdef __x86_64__
/* A filter that was there before answers each call that the fence lets through, so that
 * none is made; where both refuse, the later one's error counts. */
enum { LET_THROUGH = 1000, N_NUMBERS = 520, FIRST_LATER = 470 };

enum who { EVERY = 1, SERVER = 2, WRITER = 4, RING = 8, SANITIZED = 16 };

static const struct {
    const char *name;
    int number;
    unsigned who;
} table[] = {
#define FENCE_CALL(name, who)          {#name, -1, who},
#define FENCE_NEWER(number, name, who) {#name, number, who},
#include "harness/machine/fence/fence_calls.def"
};

/* What puts up the fence and reports the results. */
static const int made[] = {SYS_prctl, SYS_seccomp, SYS_brk,   SYS_mmap,      SYS_munmap,
                           SYS_write, SYS_getpid,  SYS_futex, SYS_exit_group};

enum { N_MADE = sizeof made / sizeof *made, A_SOCKET = 71, A_RING = 72 };

static bool answer_everything(void)
{
    struct sock_filter code[N_MADE + 3] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    const struct sock_fprog program = {N_MADE + 3, code};

    for (int i = 0; i < N_MADE; i++)
        code[1 + i] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (unsigned)made[i], (uint8_t)(N_MADE - i), 0);
    code[N_MADE + 1] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | LET_THROUGH);
    code[N_MADE + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* With arguments that are let through. */
static int make_call(int number)
{
    const long self = getpid();
    long a = 0, b = 0;

    if (number == SYS_kill || number == SYS_tgkill || number == SYS_rt_sigqueueinfo ||
        number == SYS_rt_tgsigqueueinfo)
        a = self;
    else if (number == SYS_ioprio_set)
        a = 1;
    else if (number == SYS_clone)
        a = CLONE_THREAD;
    else if (number == SYS_ioctl)
        b = TCGETS;
    else if (number == SYS_accept4)
        a = A_SOCKET;
    else if (number == SYS_io_uring_enter)
        a = A_RING;
    return syscall(number, a, b, 0, 0, 0, 0) < 0 ? errno : 0;
}

/* Or made by the kernel itself, uretprobe() and uprobe(), past all filters. */
static bool is_made(int number)
{
    if (number == 335 || number == 336)
        return true;
    for (int i = 0; i < N_MADE; i++)
        if (made[i] == number)
            return true;
    return false;
}

static int expected(int number, unsigned roles)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const int named = seccomp_syscall_resolve_name(table[i].name);

        if (number == (named == __NR_SCMP_ERROR ? table[i].number : named) &&
            (table[i].who & roles))
            return LET_THROUGH;
    }
    return number >= FIRST_LATER || number == 435 /* clone3 */ ? ENOSYS : EPERM;
}

static void walk(const char *who, struct fence fence, unsigned roles)
{
    static int found[N_NUMBERS + 1];
    int pipe_fd[2], n = N_MADE;
    pid_t child;

#ifdef __SANITIZE_ADDRESS__
    roles |= SANITIZED;
#endif
    assert_int_equal(pipe(pipe_fd), 0);
    child = fork();
    if (!child) {
        found[N_NUMBERS] = answer_everything() && fence_filter_enter(&fence);
        for (int i = 0; i < N_NUMBERS; i++)
            if (!is_made(i))
                found[i] = make_call(i);
        _exit(write(pipe_fd[1], found, sizeof found) != sizeof found);
    }
    close(pipe_fd[1]);
    assert_int_equal(read(pipe_fd[0], found, sizeof found), sizeof found);
    close(pipe_fd[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    if (!found[N_NUMBERS])
        skip(); /* a kernel without filters */
    for (int i = 0; i < N_NUMBERS; i++) {
        if (is_made(i))
            continue;
        n += found[i] == LET_THROUGH;
        if (found[i] != expected(i, roles))
            fail_msg("%s: call %d: error %d instead of %d", who, i, found[i],
                     expected(i, roles));
    }
    print_message("%s: %d of %d calls\n", who, n, N_NUMBERS);
}

static void every_call(void **state)
{
    (void)state;
    walk("a reader", (struct fence){0}, EVERY);
    walk("a reader with a ring", (struct fence){.has_ring = true, .ring = A_RING},
         EVERY | RING);
    walk("a server", (struct fence){.serves = true, .listener = A_SOCKET},
         EVERY | SERVER);
    walk("a command", (struct fence){.writes = true, .has_ring = true, .ring = A_RING},
         EVERY | WRITER | RING);
}
#else
static void every_call(void **state)
{
    (void)state;
    skip(); /* numbers are those of x86-64 */
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader),
        cmocka_unit_test(a_command_that_writes),
        cmocka_unit_test(every_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
