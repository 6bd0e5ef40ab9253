/* SPDX-License-Identifier: MIT
 *
 * fault_runner.c - runs a program, and makes one of its system calls fail
 *
 * usage: fault_runner REPORT SECONDS KIND FAULT N -- PROGRAM [ARGUMENT...]
 *
 * The N-th call of KIND, made by the program or by any process that it starts, fails
 * with FAULT (a name such as ENOSPC) or transfers half of its bytes (short); with N+
 * all calls from the N-th on do. KIND "none" lets everything succeed and counts. REPORT
 * becomes a JSON object: how the program ended, what was made to fail, the number of
 * calls of each kind, the processes, and those that were left behind, which it ends.
 *
 * Calls stop at a seccomp filter and are changed through ptrace, so nothing that libc
 * does internally is missed, and a program that fences itself is followed, too. Calls
 * of the dynamic loader are left alone: before main() there is nobody to report a
 * failure. So are writes to standard error, which is where failures are reported, and
 * brk(), whose failure malloc() of glibc 2.36 does not survive itself.
 *
 * Ends with 0 if REPORT was written, 77 if this machine does not allow it.
 */
#include <stdio.h>

#if defined(__x86_64__)

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_TASKS  4096
#define PATIENCE_S 3.0 /* for what the program has left to end by itself */

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
    N_KINDS,
    NONE = N_KINDS
};

static const char *const kind_names[] = {
    "open",  "read",     "write", "fsync", "rename", "unlink",
    "mkdir", "truncate", "mmap",  "fork",  "thread", "exec",
    "pipe",  "stat",     "list",  "lock",  "cgroup", "io_uring"};

enum object { NO_OBJECT, FD, PATH, PATH_AT };

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
    {425, RING, NO_OBJECT, "io_uring_setup"},
    {426, RING, FD, "io_uring_enter"},
    {427, RING, FD, "io_uring_register"},
};

#define N_CALLS (sizeof calls / sizeof *calls)

static const struct {
    const char *name;
    int value;
} faults[] = {{"short", 0},       {"EIO", EIO},       {"ENOSPC", ENOSPC},
              {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"EINTR", EINTR},
              {"EAGAIN", EAGAIN}, {"EACCES", EACCES}, {"EBUSY", EBUSY},
              {"EPERM", EPERM},   {"ENOLCK", ENOLCK}, {"EROFS", EROFS}};

/* ---- the run --------------------------------------------------------------------- */

struct task {
    pid_t tid;
    uintptr_t loader_begin, loader_end;
    bool is_new; /* its first stop is still to come */
};

static struct {
    enum kind kind;
    int fault;
    long at;
    bool all_after;
    long count[N_KINDS];
    long n_failed;
    char where[400];
    struct task tasks[MAX_TASKS];
    int n_tasks;
    pid_t pids[MAX_TASKS];
    int n_pids;
    pid_t root;
    int root_status;
    bool root_ended, timed_out;
    int n_left;
} run;

static struct task *task_of(pid_t tid)
{
    for (int i = 0; i < run.n_tasks; i++)
        if (run.tasks[i].tid == tid)
            return &run.tasks[i];
    if (run.n_tasks == MAX_TASKS)
        return NULL;
    run.tasks[run.n_tasks] = (struct task){.tid = tid, .is_new = true};
    return &run.tasks[run.n_tasks++];
}

static void forget(pid_t tid)
{
    for (int i = 0; i < run.n_tasks; i++)
        if (run.tasks[i].tid == tid)
            run.tasks[i] = run.tasks[--run.n_tasks];
}

/* After exec(): where the dynamic loader is. */
static void find_loader(struct task *t)
{
    char path[64], line[512];
    unsigned long begin, end;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)t->tid);
    t->loader_begin = t->loader_end = 0;
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "/ld-") && sscanf(line, "%lx-%lx", &begin, &end) == 2) {
            if (!t->loader_begin)
                t->loader_begin = begin;
            t->loader_end = end;
        }
    if (f)
        fclose(f);
}

static void peek_text(pid_t tid, uintptr_t at, char *buf, size_t cap)
{
    struct iovec to = {buf, cap - 1}, from = {(void *)at, cap - 1};
    ssize_t n = process_vm_readv(tid, &to, 1, &from, 1, 0);

    if (n < 0) { /* the text ends before an unreadable page */
        const size_t page = 4096 - at % 4096;

        to.iov_len = from.iov_len = page < cap - 1 ? page : cap - 1;
        n = process_vm_readv(tid, &to, 1, &from, 1, 0);
    }
    buf[n > 0 ? n : 0] = '\0';
}

/* What a call is about, for the report and for what belongs to cgroups. */
static void find_object(pid_t tid, const struct call *c,
                        const struct user_regs_struct *r, char *buf, size_t cap)
{
    char link[64];
    ssize_t n;

    buf[0] = '\0';
    switch (c->object) {
    case FD:
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)tid, (int)r->rdi);
        n = readlink(link, buf, cap - 1);
        buf[n > 0 ? n : 0] = '\0';
        break;
    case PATH:
        peek_text(tid, r->rdi, buf, cap);
        break;
    case PATH_AT:
        peek_text(tid, r->rsi, buf, cap);
        break;
    case NO_OBJECT:
        break;
    }
}

static enum kind kind_of(pid_t tid, const struct call *c,
                         const struct user_regs_struct *r, const char *object)
{
    uint64_t flags = r->rdi;

    if (c->no == SYS_clone3) {
        struct iovec to = {&flags, sizeof flags}, from = {(void *)r->rdi, sizeof flags};

        if (process_vm_readv(tid, &to, 1, &from, 1, 0) != sizeof flags)
            flags = 0;
    }
    if ((c->no == SYS_clone || c->no == SYS_clone3) && (flags & CLONE_THREAD))
        return THREAD;
    if (c->kind == WRITE && r->rdi == STDERR_FILENO)
        return NONE;
    if (!strncmp(object, "/sys/fs/cgroup/", 15) &&
        (c->kind == OPEN || c->kind == READ || c->kind == WRITE || c->kind == MKDIR ||
         c->kind == UNLINK))
        return GROUP;
    return c->kind;
}

static void make_fail(pid_t tid, const struct call *c, struct user_regs_struct *r)
{
    if (run.fault) {
        r->orig_rax = (unsigned long long)-1;
        r->rax = (unsigned long long)-(long long)run.fault;
    } else if (r->rdx > 1 && c->no != SYS_sendfile && c->no != SYS_copy_file_range) {
        r->rdx /= 2;
    }
    ptrace(PTRACE_SETREGS, tid, NULL, r);
}

static void on_call(struct task *t)
{
    struct user_regs_struct r;
    const struct call *c = calls;
    char object[256];
    enum kind kind;

    if (ptrace(PTRACE_GETREGS, t->tid, NULL, &r))
        return;
    while (c < calls + N_CALLS && c->no != (int)r.orig_rax)
        c++;
    if (c == calls + N_CALLS || !t->loader_end ||
        (r.rip >= t->loader_begin && r.rip < t->loader_end))
        return;
    find_object(t->tid, c, &r, object, sizeof object);
    kind = kind_of(t->tid, c, &r, object);
    if (kind == NONE)
        return;
    run.count[kind]++;
    if (kind != run.kind ||
        (run.count[kind] != run.at && (!run.all_after || run.count[kind] < run.at)))
        return;
    if (!run.n_failed++)
        snprintf(run.where, sizeof run.where, "%s(%s)", c->name, object);
    make_fail(t->tid, c, &r);
}

static void on_new(struct task *parent, bool is_process)
{
    unsigned long tid;
    struct task *t;

    if (ptrace(PTRACE_GETEVENTMSG, parent->tid, NULL, &tid))
        return;
    t = task_of((pid_t)tid);
    if (t) {
        t->loader_begin = parent->loader_begin;
        t->loader_end = parent->loader_end;
    }
    if (is_process && run.n_pids < MAX_TASKS)
        run.pids[run.n_pids++] = (pid_t)tid;
}

static void on_stop(pid_t tid, int status)
{
    struct task *t = task_of(tid);
    const int event = status >> 16;
    int sig = 0;

    if (!t)
        return;
    if (event == PTRACE_EVENT_SECCOMP) {
        on_call(t);
    } else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
               event == PTRACE_EVENT_CLONE) {
        on_new(t, event != PTRACE_EVENT_CLONE);
    } else if (event == PTRACE_EVENT_EXEC) {
        find_loader(t);
    } else if (t->is_new && WSTOPSIG(status) == SIGSTOP) {
        t->is_new = false;
    } else if (!event) {
        sig = WSTOPSIG(status);
    }
    ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)sig);
}

/* ---- starting and following ------------------------------------------------------ */

static int install_filter(void)
{
    struct sock_filter f[N_CALLS + 3];
    struct sock_fprog program = {.filter = f};
    size_t n = 0;

    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                          offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < N_CALLS; i++)
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                              (unsigned)calls[i].no,
                                              (unsigned char)(N_CALLS - i), 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    program.len = (unsigned short)n;
    if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        return 0;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static bool start(char **argv)
{
    const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                         PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    int status;

    run.root = fork();
    if (!run.root) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(126);
        raise(SIGSTOP);
        if (install_filter())
            _exit(126);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (run.root < 0 || waitpid(run.root, &status, 0) != run.root ||
        !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, run.root, NULL, (void *)options))
        return false;
    task_of(run.root)->is_new = false;
    run.pids[run.n_pids++] = run.root;
    return !ptrace(PTRACE_CONT, run.root, NULL, NULL);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void on_alarm(int sig)
{
    (void)sig; /* it only interrupts waitpid() */
}

static void kill_all(void)
{
    for (int i = 0; i < run.n_tasks; i++)
        kill(run.tasks[i].tid, SIGKILL);
}

static void follow(double limit_s)
{
    const struct sigaction act = {.sa_handler = on_alarm};
    const struct itimerval tick = {{0, 50000}, {0, 50000}};
    double deadline = now_s() + limit_s;
    bool killed = false;

    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &tick, NULL);
    for (;;) {
        int status;
        const pid_t tid = waitpid(-1, &status, __WALL);

        if (tid < 0 && errno != EINTR)
            return;
        if (tid > 0 && WIFSTOPPED(status))
            on_stop(tid, status);
        else if (tid > 0)
            forget(tid);
        if (tid == run.root && !WIFSTOPPED(status) && !run.root_ended) {
            run.root_ended = true;
            run.root_status = status;
            if (!run.timed_out)
                deadline = now_s() + PATIENCE_S;
        }
        if (!killed && now_s() > deadline) {
            run.timed_out = !run.root_ended;
            run.n_left = run.root_ended ? run.n_tasks : 0;
            killed = true;
        }
        if (killed)
            kill_all();
    }
}

/* ---- report ---------------------------------------------------------------------- */

static bool report(const char *path)
{
    FILE *f = fopen(path, "we");

    if (!f)
        return false;
    fprintf(f, "{\"code\": %d, \"signal\": %d, \"timed_out\": %d, \"left\": %d, ",
            WIFEXITED(run.root_status) ? WEXITSTATUS(run.root_status) : -1,
            WIFSIGNALED(run.root_status) ? WTERMSIG(run.root_status) : 0, run.timed_out,
            run.n_left);
    fprintf(f, "\"failed\": %ld, \"where\": \"", run.n_failed);
    for (const char *p = run.where; *p; p++)
        fputc(*p < ' ' || *p == '"' || *p == '\\' ? '?' : *p, f);
    fputs("\", \"count\": {", f);
    for (int i = 0; i < N_KINDS; i++)
        fprintf(f, "%s\"%s\": %ld", i ? ", " : "", kind_names[i], run.count[i]);
    fputs("}, \"pids\": [", f);
    for (int i = 0; i < run.n_pids; i++)
        fprintf(f, "%s%d", i ? ", " : "", (int)run.pids[i]);
    fputs("]}\n", f);
    return !fclose(f);
}

static bool read_fault(char **argv)
{
    char *end;
    size_t i = 0;

    run.kind = OPEN;
    while (run.kind < N_KINDS && strcmp(argv[0], kind_names[run.kind]))
        run.kind++;
    while (i < sizeof faults / sizeof *faults && strcmp(argv[1], faults[i].name))
        i++;
    run.at = strtol(argv[2], &end, 10);
    run.all_after = *end == '+';
    if (run.kind == NONE)
        return !strcmp(argv[0], "none");
    if (i < sizeof faults / sizeof *faults)
        run.fault = faults[i].value;
    return i < sizeof faults / sizeof *faults && run.at > 0;
}

int main(int argc, char **argv)
{
    if (argc < 8 || strcmp(argv[6], "--") || !read_fault(argv + 3)) {
        fprintf(stderr, "usage: fault_runner REPORT SECONDS KIND FAULT N -- PROGRAM "
                        "[ARGUMENT...]\n");
        return 2;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (!start(argv + 7)) {
        if (run.root > 0)
            kill(run.root, SIGKILL);
        fprintf(stderr, "fault_runner: this machine does not allow ptrace\n");
        return 77;
    }
    follow(strtod(argv[2], NULL));
    if (WIFEXITED(run.root_status) && WEXITSTATUS(run.root_status) == 126)
        return 77;
    return report(argv[1]) ? 0 : 2;
}

#else

int main(void)
{
    fprintf(stderr, "fault_runner: only for x86-64\n");
    return 77;
}

#endif
