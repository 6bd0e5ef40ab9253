/* SPDX-License-Identifier: MIT
 *
 * fault_runner.c - runs a program, and makes one of its system calls fail
 *
 * usage: fault_runner REPORT SECONDS KIND FAULT N -- PROGRAM [ARGUMENT...]
 *
 * The N-th call of KIND, made by the program or by any process that it starts, fails
 * with FAULT (a name such as ENOSPC) or transfers half of its bytes (short); with N+
 * all later calls of KIND do, too. N@CALL or N+@CALL: the N-th of those like CALL. KIND
 * "none" lets everything succeed and counts, and FAULT is a file that becomes a list of
 * the calls, a line each: kind, a tab, and CALL, which is 0 (the first process) or 1,
 * where in the program, and the call with its object. An N in CALL is any number, an X
 * any hexadecimal one.
 * REPORT becomes a JSON object: how the program ended, what was made to fail, the
 * processes, those that were left behind, which it ends, and behind what models were
 * opened ("walls"): 0 (the first process) or 1, how often it had restricted its files
 * (Landlock), and its calls (seccomp).
 *
 * SECONDS are those in which a task could have run: time that it, or this program,
 * waited for a CPU, or for which this program was stopped, is added to them.
 *
 * Calls stop at a seccomp filter and are changed through ptrace, so nothing that libc
 * does internally is missed, and a program that fences itself is followed, too. Where
 * one call fails, only those that may be of KIND stop, and those that show "walls":
 * each stop is two switches of tasks. Calls of the dynamic loader are left alone:
 * before main() there is nobody to report a failure. So are those of other programs
 * that it starts, writes to standard error, which is where failures are reported, and
 * brk(), whose failure malloc() of glibc 2.36 does not survive itself.
 *
 * Ends with 0 if REPORT was written, 77 if this machine does not allow it.
 */
#include <stdio.h>

#if defined(__x86_64__)

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
#include <sys/epoll.h>
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

#include "tests/faults/fault_calls.h"
#include "tests/faults/fault_walls.h"
#include "tests/faults/fault_waits.h"

/* ---- the run --------------------------------------------------------------------- */

struct task {
    pid_t tid;
    uintptr_t loader_begin, loader_end;
    uintptr_t code_begin, code_end; /* of the program itself */
    int process;                    /* of the order in which they began */
    double starved_s;               /* that it has waited for a CPU */
    bool is_new;                    /* its first stop is still to come */
};

static struct {
    enum kind kind;
    int fault;
    long at;
    const char *call; /* what those that are counted are like; NULL: all of the kind */
    bool all_after;
    long n_like, n_failed;
    char where[400], program[400];
    FILE *trace; /* of a run that counts */
    struct task tasks[MAX_TASKS];
    int n_tasks;
    pid_t pids[MAX_TASKS];
    struct walls walls[MAX_TASKS]; /* of these */
    int n_pids;
    uint64_t
        opened_behind[2]; /* of the first process, of others: a bit for each pair */
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

/* Whether a task runs the program; others that it starts, as gnuplot, are left alone.
 */
static bool runs_program(pid_t tid)
{
    char path[64], exe[400];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%d/exe", (int)tid);
    n = readlink(path, exe, sizeof exe - 1);
    exe[n > 0 ? n : 0] = '\0';
    if (!run.program[0])
        snprintf(run.program, sizeof run.program, "%s", exe);
    return !strcmp(exe, run.program);
}

/* After exec(): where the dynamic loader and the program's code are. */
static void find_loader(struct task *t)
{
    char path[64], line[512], mode[8];
    unsigned long begin, end;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)t->tid);
    t->loader_begin = t->loader_end = t->code_end = 0;
    if (!runs_program(t->tid))
        return;
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, mode) != 3) {
            continue;
        } else if (strstr(line, "/ld-")) {
            if (!t->loader_begin)
                t->loader_begin = begin;
            t->loader_end = end;
        } else if (mode[2] == 'x' && !t->code_end) {
            t->code_begin = begin;
            t->code_end = end;
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
    case OPTION:
        snprintf(buf, cap, "%llu", r->rdi);
        for (size_t i = 0; i < sizeof prctl_options / sizeof *prctl_options; i++)
            if (prctl_options[i].value == r->rdi)
                snprintf(buf, cap, "%s", prctl_options[i].name);
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
    if (c->no == SYS_epoll_ctl && r->rsi != EPOLL_CTL_ADD)
        return NONE; /* what is there can be changed and removed */
    if (c->no == SYS_fcntl) {
        const unsigned how = (unsigned)r->rsi;

        if (how == F_DUPFD || how == F_DUPFD_CLOEXEC)
            return DUPLICATE;
        return how == F_SETLK || how == F_SETLKW || how == F_OFD_SETLK ? LOCK : NONE;
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

/* Where the program made a call, as far as its stack shows that: an offset in it. */
static unsigned long caller_of(const struct task *t, const struct user_regs_struct *r)
{
    uintptr_t words[128];
    struct iovec to = {words, sizeof words}, from = {(void *)r->rsp, sizeof words};
    ssize_t n = process_vm_readv(t->tid, &to, 1, &from, 1, 0);

    if (n < 0) {
        to.iov_len = from.iov_len = 4096 - r->rsp % 4096;
        n = process_vm_readv(t->tid, &to, 1, &from, 1, 0);
    }
    for (ssize_t i = 0; i < n / (ssize_t)sizeof *words; i++)
        if (words[i] >= t->code_begin && words[i] < t->code_end)
            return words[i] - t->code_begin;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex_digit(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* Whether text is like a pattern, in which N is any number, and X one of hexadecimal
 * digits. */
static bool is_like(const char *text, const char *pattern)
{
    for (; *pattern; pattern++)
        if (*pattern == 'N' && is_digit(*text))
            while (is_digit(*text))
                text++;
        else if (*pattern == 'X' && is_hex_digit(*text))
            while (is_hex_digit(*text))
                text++;
        else if (*text++ != *pattern)
            return false;
    return !*text;
}

/* Whether a call of the kind that is to fail does so. */
static bool fails(const char *text)
{
    if (run.n_failed)
        return run.all_after;
    return (!run.call || is_like(text, run.call)) && ++run.n_like == run.at;
}

static void on_call(struct task *t)
{
    struct user_regs_struct r;
    const struct call *c = calls;
    char object[256], text[320];
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
    snprintf(text, sizeof text, "%d %lx %s(%s)", t->process > 0, caller_of(t, &r),
             c->name, object);
    if (run.trace)
        fprintf(run.trace, "%s\t%s\n", kind_names[kind], text);
    if (kind != run.kind || !fails(text)) {
        if (c->kind == OPEN && is_model(object))
            run.opened_behind[t->process > 0] |= walls_bit(&run.walls[t->process]);
        else
            put_up(&run.walls[t->process], c->no, &r);
        return;
    }
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
        t->code_begin = parent->code_begin;
        t->code_end = parent->code_end;
        t->process =
            is_process && run.n_pids < MAX_TASKS ? run.n_pids : parent->process;
    }
    if (is_process && run.n_pids < MAX_TASKS) {
        run.walls[run.n_pids] = run.walls[parent->process];
        run.pids[run.n_pids++] = (pid_t)tid;
    }
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

/* Whether such a call may be of a kind, by kind_of(). */
static bool may_be(const struct call *c, enum kind kind)
{
    if (c->kind == FORK)
        return kind == FORK || kind == THREAD;
    if (c->no == SYS_fcntl)
        return kind == LOCK || kind == DUPLICATE;
    return c->kind == kind ||
           (kind == GROUP && (c->kind == OPEN || c->kind == READ || c->kind == WRITE ||
                              c->kind == MKDIR || c->kind == UNLINK));
}

static bool stops(const struct call *c)
{
    return run.trace || may_be(c, run.kind) || c->kind == OPEN || is_wall(c->no);
}

static int install_filter(void)
{
    struct sock_filter f[N_CALLS + 3];
    struct sock_fprog program = {.filter = f};
    size_t n = 0, n_left = 0;

    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                          offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < N_CALLS; i++)
        n_left += stops(&calls[i]);
    for (size_t i = 0; i < N_CALLS; i++)
        if (stops(&calls[i]))
            f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                  (unsigned)calls[i].no,
                                                  (unsigned char)n_left--, 0);
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
        setsid(); /* who stops this program's session for a while sends it no signal */
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

static void on_alarm(int sig)
{
    (void)sig; /* it only interrupts waitpid() */
}

static void kill_all(void)
{
    for (int i = 0; i < run.n_tasks; i++)
        kill(run.tasks[i].tid, SIGKILL);
}

/* By how much the run was held up since the last look: by the task that waited longest,
 * and by this program, for which a task waits at each call. */
static double held_up_s(void)
{
    static double own_s;
    const double now = starved_s("self");
    double most = 0, sum = now - own_s;

    own_s = now;
    for (int i = 0; i < run.n_tasks; i++) {
        char who[16];

        snprintf(who, sizeof who, "%d", (int)run.tasks[i].tid);
        const double s = starved_s(who);
        if (s - run.tasks[i].starved_s > most)
            most = s - run.tasks[i].starved_s;
        run.tasks[i].starved_s = s;
    }
    return sum + most;
}

#define LOOK_S 1.0

static void follow(double limit_s)
{
    const struct sigaction act = {.sa_handler = on_alarm};
    const struct itimerval tick = {{0, 50000}, {0, 50000}};
    double deadline = now_s() + limit_s, looked = now_s();
    bool killed = false;

    held_up_s();

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
        if (now_s() > looked + LOOK_S) {
            const double s = held_up_s(), passed = now_s() - looked;
            const double stopped = passed > 2 * LOOK_S ? passed - 2 * LOOK_S : 0;

            deadline += stopped + (s < passed - stopped ? s : passed - stopped);
            looked = now_s();
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
    fputs("\", \"pids\": [", f);
    for (int i = 0; i < run.n_pids; i++)
        fprintf(f, "%s%d", i ? ", " : "", (int)run.pids[i]);
    fputs("], \"walls\": [", f);
    for (int i = 0, n = 0; i < 2 * 64; i++)
        if (run.opened_behind[i / 64] >> i % 64 & 1)
            fprintf(f, "%s\"%d %d %d\"", n++ ? ", " : "", i / 64, i % 64 / 8, i % 8);
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
    if (run.kind == NONE) {
        run.trace = strcmp(argv[0], "none") ? NULL : fopen(argv[1], "we");
        return run.trace;
    }
    while (i < sizeof faults / sizeof *faults && strcmp(argv[1], faults[i].name))
        i++;
    run.at = strtol(argv[2], &end, 10);
    run.all_after = *end == '+';
    end += run.all_after;
    run.call = *end == '@' ? end + 1 : NULL;
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
