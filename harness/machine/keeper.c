/* SPDX-License-Identifier: MIT
 *
 * keeper.c - wait, pass on, kill until no child is left
 *
 * Whoever loses its parent becomes the keeper's child, so killing children until no
 * child is left reaches every depth. /proc has the numbers to try, and waitid() finds
 * those that are children.
 */
#include "harness/machine/keeper.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/inherited.h"

/* Processes of other users, which sudo has started, cannot be killed; and one that
 * waits for a dead disk does not die. */
#define MAX_END_NS 10000000000u

/* ---- children -------------------------------------------------------------------- */

/* A number in /proc; 0: none. */
static pid_t number(const char *name)
{
    long n = 0;

    for (; *name >= '0' && *name <= '9' && n < INT32_MAX / 10; name++)
        n = n * 10 + (*name - '0');
    return *name ? 0 : (pid_t)n;
}

static void kill_child(pid_t pid)
{
    siginfo_t info;

    if (pid > 0 && !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT))
        kill(pid, SIGKILL);
}

static void kill_children(void)
{
    const size_t length_at = sizeof(uint64_t) + sizeof(int64_t); /* of an entry */
    const size_t name_at = length_at + sizeof(uint16_t) + 1;
    char entries[4096];
    const int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n;

    while (fd >= 0 && (n = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
        for (uint16_t at = 0, length; at < n; at = (uint16_t)(at + length)) {
            memcpy(&length, entries + at + length_at, sizeof length);
            kill_child(number(entries + at + name_at));
        }
    if (fd >= 0)
        close(fd);
}

/* Whether the program has ended. It stays to be waited for, and its number its own;
 * orphans do not. */
static bool has_ended(pid_t program)
{
    siginfo_t info = {.si_pid = 0};

    while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
        if (info.si_pid == program)
            return true;
        waitpid(info.si_pid, NULL, 0);
        info.si_pid = 0;
    }
    return false;
}

/* Returns the program's status. */
static int end_all(pid_t program, bool leads, const sigset_t *signals)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const uint64_t begin = clock_ns();
    int status = SIGKILL;

    kill(leads ? -program : program, SIGKILL);
    do {
        pid_t pid;
        int one;

        while ((pid = waitpid(-1, &one, WNOHANG)) > 0)
            if (pid == program)
                status = one;
        if (pid < 0)
            break;
        kill_children();
        sigtimedwait(signals, NULL, &pause);
    } while (clock_ns() - begin < MAX_END_NS);
    return status;
}

/* ---- the keeper ------------------------------------------------------------------ */

static _Noreturn void end_as(int status)
{
    const int sig = WTERMSIG(status);
    sigset_t one;

    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    prctl(PR_SET_DUMPABLE, 0); /* its core was the program's */
    signal(sig, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, sig);
    kill(getpid(), sig);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    _exit(127);
}

static pid_t start(bool leads, void (*become)(const void *arg), const void *arg)
{
    const pid_t pid = fork();

    if (!pid) {
        become(arg);
        _exit(127);
    }
    if (pid > 0 && leads)
        setpgid(pid, pid); /* before it can be signalled */
    return pid;
}

_Noreturn void keeper_run(pid_t parent, int fd, bool leads,
                          void (*become)(const void *arg), const void *arg)
{
    sigset_t signals;
    pid_t program;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, KEEPER_REQUEST);
    sigaddset(&signals, KEEPER_END);
    signal(SIGCHLD, SIG_DFL);
    signal(KEEPER_REQUEST, SIG_DFL);
    signal(KEEPER_END, SIG_DFL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, KEEPER_END);
    if (leads)
        setpgid(0, 0);
    program = getppid() == parent ? start(leads, become, arg) : -1;
    if (program < 0 || write(fd, &program, sizeof program) != sizeof program)
        _exit(127);
    inherited_close_all(fd);
    while (!has_ended(program)) {
        const int sig = sigwaitinfo(&signals, NULL);

        if (sig == KEEPER_END)
            break;
        if (sig == KEEPER_REQUEST)
            kill(leads ? -program : program, SIGTERM);
    }
    end_as(end_all(program, leads, &signals));
}
