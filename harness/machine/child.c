/* SPDX-License-Identifier: MIT
 *
 * child.c - fork, group, exec, lines
 */
#include "harness/machine/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/inherited.h"
#include "harness/base/sysfile.h"
#include "harness/machine/keeper.h"

#define LINE_MAX_ (1u << 20)
#define PAUSE_US  10000

/* ---- starting -------------------------------------------------------------------- */

struct ends {
    int go[2], in[2], out[2], number[2];
    int error_tail;
    pid_t parent;
    sigset_t signals; /* those that are blocked, but for fork() */
    cpu_set_t cpus;
};

struct start {
    const struct child_params *p;
    const struct ends *e;
};

static void list_to_set(const struct child_params *p, cpu_set_t *cpus)
{
    CPU_ZERO(cpus);
    for (int i = 0; i < p->n_cpus; i++)
        if (p->cpus[i] < CPU_SETSIZE)
            CPU_SET(p->cpus[i], cpus);
}

/* That it prefers this process to ours. */
static void offer_to_oom_killer(void)
{
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, "1000", 4) != 4) { /* it is the kernel's choice then */
    }
    close(fd);
}

/* In the child, between fork() and exec(): only async-signal-safe calls. */
static void become(const void *arg)
{
    const struct start *s = arg;
    const struct child_params *p = s->p;
    const struct ends *e = s->e;
    const int in = p->talk ? e->in[0] : open("/dev/null", O_RDONLY);
    const int out = p->no_output ? open("/dev/null", O_WRONLY) : e->out[1];
    char byte;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != e->parent)
        _exit(127);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &e->signals, NULL);
    if (p->foreign)
        setpgid(0, 0);
    offer_to_oom_killer();
    if (p->cpus && sched_setaffinity(0, sizeof e->cpus, &e->cpus)) {
        perror("it cannot be pinned to its CPUs");
        _exit(126);
    }
    /* Its own copy would keep the pipe from ending. */
    close(e->go[1]);
    if (read(e->go[0], &byte, 1) == 1 && in >= 0 && out >= 0 &&
        dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        (e->error_tail < 0 || dup2(e->error_tail, STDERR_FILENO) >= 0)) {
        inherited_pass_on(p->also_fd);
        execv(p->program, p->argv);
        perror("it cannot be run");
    }
    _exit(127);
}

/* All signals are blocked from before fork() on: no handler of ours runs in a child. */
static pid_t fork_child(const struct child_params *p, struct ends *e)
{
    const struct start s = {p, e};
    const pid_t ours = e->parent;
    sigset_t all;
    pid_t pid;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &e->signals);
    pid = fork();
    if (!pid) {
        e->parent = getpid();
        keeper_run(ours, e->number[1], p->foreign, become, &s);
    }
    pthread_sigmask(SIG_SETMASK, &e->signals, NULL);
    return pid;
}

static void close_pair(int fd[2])
{
    for (int i = 0; i < 2; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

static enum status open_ends(struct ends *e, const struct child_params *p,
                             struct err *err)
{
    if (pipe2(e->go, O_CLOEXEC) || pipe2(e->out, O_CLOEXEC) ||
        pipe2(e->number, O_CLOEXEC) || (p->talk && pipe2(e->in, O_CLOEXEC)))
        return err_set_errno(err, ST_IO, "cannot start a measuring process");
    return ST_OK;
}

/* The program's number, from its keeper. */
static enum status read_number(struct child *c, struct ends *e, struct err *err)
{
    ssize_t n;

    close(e->number[1]);
    e->number[1] = -1;
    do
        n = read(e->number[0], &c->pid, sizeof c->pid);
    while (n < 0 && errno == EINTR);
    if (n == sizeof c->pid)
        return ST_OK;
    c->pid = 0;
    return err_set(err, ST_IO, "cannot start a measuring process");
}

enum status child_start(struct child *c, const struct child_params *p, struct err *err)
{
    struct ends e = {.go = {-1, -1},
                     .in = {-1, -1},
                     .out = {-1, -1},
                     .number = {-1, -1},
                     .error_tail = -1,
                     .parent = getpid()};
    enum status st = open_ends(&e, p, err);

    list_to_set(p, &e.cpus);
    if (st == ST_OK && (p->talk || p->foreign))
        st = stderr_tail_start(&c->error_tail, &e.error_tail, p->pass_errors, err);
    if (st == ST_OK && (c->keeper = fork_child(p, &e)) < 0) {
        c->keeper = 0;
        st = err_set_errno(err, ST_IO, "cannot start a measuring process");
    }
    if (st == ST_OK)
        st = read_number(c, &e, err);
    if (st == ST_OK && p->sandbox)
        st = sandbox_add(p->sandbox, c->pid, err);
    /* Without its byte the child sees the pipe end, and exits. */
    if (st == ST_OK && write(e.go[1], "g", 1) != 1)
        st = err_set_errno(err, ST_IO, "cannot start a measuring process");
    c->out = e.out[0];
    c->in = e.in[1];
    c->keeper_end = e.number[0];
    e.out[0] = e.in[1] = e.number[0] = -1;
    if (e.error_tail >= 0)
        close(e.error_tail);
    close_pair(e.go);
    close_pair(e.out);
    close_pair(e.in);
    close_pair(e.number);
    if (c->out >= 0)
        fcntl(c->out, F_SETFL, O_NONBLOCK);
    return st;
}

/* ---- talking --------------------------------------------------------------------- */

int child_poll(struct pollfd *fd, nfds_t n, int timeout_ms)
{
    const int ready = poll(fd, n, timeout_ms);
    const bool fails = ready < 0 && errno != EINTR;

    if (ready >= 0)
        return ready;
    if (fails)
        usleep(PAUSE_US);
    for (nfds_t i = 0; i < n; i++)
        fd[i].revents = fails && fd[i].fd >= 0 ? fd[i].events : 0;
    return fails ? (int)n : 0;
}

static bool make_room(struct child *c)
{
    const size_t want = c->line_cap ? c->line_cap * 2 : 65536;
    char *grown;

    if (c->n_line + 1 < c->line_cap)
        return true;
    grown = want <= LINE_MAX_ ? realloc(c->line, want) : NULL;
    if (!grown)
        return false;
    c->line = grown;
    c->line_cap = want;
    return true;
}

bool child_read_lines(struct child *c, child_line_fn *fn, void *arg)
{
    for (;;) {
        char *begin, *newline;
        ssize_t got;

        if (!make_room(c))
            return false;
        got = read(c->out, c->line + c->n_line, c->line_cap - c->n_line);
        if (got < 0)
            return errno == EAGAIN || errno == EINTR;
        if (got == 0)
            return false;
        c->n_line += (size_t)got;
        c->n_received += (size_t)got;

        begin = c->line;
        while ((newline = memchr(begin, '\n', (size_t)(c->line + c->n_line - begin)))) {
            fn(arg, begin, (size_t)(newline - begin));
            begin = newline + 1;
        }
        c->n_line = (size_t)(c->line + c->n_line - begin);
        memmove(c->line, begin, c->n_line);
    }
}

enum status child_write(struct child *c, const char *text, struct err *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    size_t left = strlen(text);
    bool ok = true;

    /* Ignored: SIGPIPE of an ended child would end this process. */
    sigaction(SIGPIPE, &ignore, &before);
    while (left && ok) {
        const ssize_t n = write(c->in, text, left);

        if (n > 0) {
            text += n;
            left -= (size_t)n;
        } else {
            ok = n < 0 && errno == EINTR;
        }
    }
    sigaction(SIGPIPE, &before, NULL);
    return ok ? ST_OK
              : err_set_errno(err, ST_IO, "the measuring process does not listen");
}

const char *child_rest(const struct child *c, size_t *len)
{
    *len = c->n_line;
    return c->line;
}

/* ---- ending ---------------------------------------------------------------------- */

void child_request_end(const struct child *c)
{
    if (c->keeper > 0)
        kill(c->keeper, KEEPER_REQUEST);
}

void child_kill(const struct child *c)
{
    if (c->keeper > 0)
        kill(c->keeper, KEEPER_END);
}

/* Fields 3, 14 and 15 of a process' or thread's stat. */
static char read_stat(const char *process, uint64_t *ticks)
{
    unsigned long long user, system;
    char text[1024], state;
    const char *stat = sysfile_stat("", process, text, sizeof text);

    if (!stat || sscanf(stat, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
                        &state, &user, &system) != 3)
        return 0;
    *ticks = user + system;
    return state;
}

bool child_wants_cpu(const struct child *c, double *cpu_s)
{
    char folder[40], process[320];
    uint64_t ticks = 0, of_thread;
    bool wants = false;
    DIR *d;

    snprintf(folder, sizeof folder, "/proc/%ld/task", (long)c->pid);
    d = c->pid > 0 ? opendir(folder) : NULL;
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
        snprintf(process, sizeof process, "%ld/task/%s", (long)c->pid, e->d_name);
        if (e->d_name[0] != '.')
            wants |= read_stat(process, &of_thread) == 'R';
    }
    if (d)
        closedir(d);
    /* That of the whole process has the time of threads that have ended, too. */
    snprintf(process, sizeof process, "%ld", (long)c->pid);
    read_stat(process, &ticks);
    *cpu_s = (double)ticks / (double)sysconf(_SC_CLK_TCK);
    return wants;
}

bool child_has_ended(const struct child *c)
{
    siginfo_t info = {.si_pid = 0};

    return c->keeper <= 0 ||
           waitid(P_PID, (id_t)c->keeper, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == c->keeper;
}

int child_reap(struct child *c, uint64_t patience_ns, struct rusage *usage,
               bool *killed)
{
    const uint64_t deadline = clock_ns() + patience_ns;
    bool was_killed = false;
    int wstatus = 0;

    while (!child_has_ended(c)) {
        if (!was_killed && clock_ns() > deadline) {
            child_kill(c);
            was_killed = true;
        }
        usleep(500);
    }
    while (wait4(c->keeper, &wstatus, 0, usage) < 0 && errno == EINTR)
        ;
    c->pid = c->keeper = 0;
    stderr_tail_stop(c->error_tail);
    if (killed)
        *killed = was_killed;
    return wstatus;
}

const char *child_stderr_tail(const struct child *c, char *buf, size_t cap)
{
    size_t len = stderr_tail_read(c->error_tail, buf, cap);

    while (len && (unsigned char)buf[len - 1] <= ' ')
        len--;
    buf[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)buf[i] < ' ')
            buf[i] = ' ';
    return buf;
}

void child_close(struct child *c)
{
    const struct child none = CHILD_INIT;

    if (c->in >= 0)
        close(c->in);
    if (c->keeper > 0) {
        child_kill(c);
        child_reap(c, 0, NULL, NULL);
    }
    if (c->out >= 0)
        close(c->out);
    if (c->keeper_end >= 0)
        close(c->keeper_end);
    stderr_tail_free(c->error_tail);
    free(c->line);
    *c = none;
}
