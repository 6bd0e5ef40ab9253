/* SPDX-License-Identifier: MIT
 *
 * apart.c - a function in a forked child
 */
#include "harness/base/apart.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/interrupt.h"

#define LOOK_MS 20

struct shared {
    struct err err;
    bool is_done;
    _Alignas(64) char result[];
};

static void work(struct shared *s, apart_fn *fn, const void *arg)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fn(s->result, arg, &s->err);
    fflush(stdout);
    s->is_done = true;
    _exit(0);
}

/* Until the child has ended; it is sent an interrupt that only its parent has got.
 * Returns the status of waitpid(), -1: no child. */
static int wait_for(pid_t pid)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    bool sent = false;
    int status = 0;
    pid_t got;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
        nanosleep(&pause, NULL);
        if (interrupted() && !sent) {
            /* the terminal sends Ctrl-C to both; twice would end the child at once */
            sent = true;
            if (!interrupted_by_user())
                kill(pid, SIGTERM);
        }
    }
    return got == pid ? status : -1;
}

enum status apart_run(apart_fn *fn, void *result, size_t bytes, const void *arg,
                      struct err *err)
{
    const size_t all = sizeof(struct shared) + bytes;
    struct shared *s =
        mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    enum status st;
    int status;
    pid_t pid;

    if (s == MAP_FAILED)
        return err_set(err, ST_NO_MEMORY, "no memory for a result of %zu bytes", bytes);
    fflush(stdout);
    pid = fork();
    if (!pid)
        work(s, fn, arg);
    status = pid > 0 ? wait_for(pid) : -1;
    memcpy(result, s->result, bytes);
    if (pid < 0)
        st = err_set_errno(err, ST_IO, "cannot start a process");
    else if (s->is_done)
        st = s->err.code ? err_set(err, s->err.code, "%s", s->err.msg) : ST_OK;
    else if (interrupted())
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    else
        st = err_set(err, ST_IO, "the process that did the work was ended by signal %d",
                     WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    munmap(s, all);
    return st;
}
