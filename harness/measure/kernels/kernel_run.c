/* SPDX-License-Identifier: MIT
 *
 * kernel_run.c - the child, its progress and its end
 *
 * The child gets the names of its cases and a pipe for reporting finished repetitions;
 * its standard error is kept and shown when it fails. It has its own process group, so
 * that this process handles Ctrl-C: it sends SIGTERM once, and the child writes the
 * finished repetitions.
 */
#include "harness/measure/kernels/kernel_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/program.h"
#include "harness/base/progress.h"

#define NOT_STARTED 127
#define MAX_ARGS    16

struct child {
    pid_t pid;
    int cases_fd, errors_fd; /* memory files */
    int progress_fd;         /* our end of the pipe */
    bool is_stopped;         /* SIGTERM was sent */
};

static enum status find_program(char *path, size_t cap, struct err *err)
{
    snprintf(path, cap, "%s/bench_kernels", self_dir());
    if (!access(path, X_OK))
        return ST_OK;
    return err_set(err, ST_UNSUPPORTED,
                   "there is no program bench_kernels next to %.200s: it is built if "
                   "google-benchmark is installed (apt-get install libbenchmark-dev, "
                   "then build again)",
                   self_path());
}

/* "avx512vnni,avx2": the levels that --isa-disable switched off. */
static void disabled_levels(char *list, size_t cap)
{
    const uint32_t off = isa_detected() & ~isa_usable();

    list[0] = '\0';
    for (int isa = 0; isa < KERN_N_ISA; isa++)
        if (off >> isa & 1)
            text_append(list, cap, "%s%s", list[0] ? "," : "",
                        isa_name((enum kern_isa)isa));
}

static void thread_list(char *list, size_t cap, const struct kernel_plan *plan)
{
    list[0] = '\0';
    for (int i = 0; i < plan->n_threads; i++)
        text_append(list, cap, "%s%d", i ? "," : "", plan->threads[i]);
}

static bool write_cases(int fd, const struct kernel_plan *plan)
{
    FILE *f = fdopen(dup(fd), "w");

    if (!f)
        return false;
    for (size_t i = 0; i < plan->n_run; i++) {
        char name[KERNEL_NAME_MAX];

        fprintf(f, "%s\n", kernel_case_name(&plan->run[i], name));
    }
    return fclose(f) == 0;
}

static void exec_child(const char *program, const struct kernel_run_params *p,
                       int json_fd, const struct child *c, int progress_fd)
{
    char arg[MAX_ARGS][4300], levels[128], threads[4096];
    char *argv[MAX_ARGS + 1];
    int n = 0;
    const int null_fd = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    setpgid(0, 0);
    fcntl(json_fd, F_SETFD, 0);
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
        dup2(null_fd, STDOUT_FILENO) < 0 || dup2(c->errors_fd, STDERR_FILENO) < 0)
        _exit(NOT_STARTED);
    disabled_levels(levels, sizeof levels);
    thread_list(threads, sizeof threads, p->plan);
    snprintf(arg[n++], sizeof arg[0], "%s", program);
    snprintf(arg[n++], sizeof arg[0], "--cases=/proc/self/fd/%d", c->cases_fd);
    snprintf(arg[n++], sizeof arg[0], "--threads=%s", threads);
    snprintf(arg[n++], sizeof arg[0], "--placement=%s", p->placement);
    snprintf(arg[n++], sizeof arg[0], "--progress-fd=%d", progress_fd);
    snprintf(arg[n++], sizeof arg[0], "--benchmark_out=/proc/self/fd/%d", json_fd);
    snprintf(arg[n++], sizeof arg[0], "--benchmark_out_format=json");
    snprintf(arg[n++], sizeof arg[0], "--benchmark_enable_random_interleaving=true");
    snprintf(arg[n++], sizeof arg[0], "--benchmark_repetitions=%d", p->n_repetitions);
    snprintf(arg[n++], sizeof arg[0], "--benchmark_min_time=%.6f", p->min_time_s);
    if (levels[0])
        snprintf(arg[n++], sizeof arg[0], "--isa-disable=%s", levels);
    for (int i = 0; i < n; i++)
        argv[i] = arg[i];
    argv[n] = NULL;
    execv(program, argv);
    _exit(NOT_STARTED);
}

static enum status start(struct child *c, const struct kernel_run_params *p,
                         int json_fd, struct err *err)
{
    char program[4096];
    int pipe_fd[2] = {-1, -1};

    if (find_program(program, sizeof program, err))
        return err->code;
    c->cases_fd = memfd_create("cases", 0);
    c->errors_fd = memfd_create("errors", 0);
    if (c->cases_fd < 0 || c->errors_fd < 0 || !write_cases(c->cases_fd, p->plan) ||
        pipe(pipe_fd))
        return err_set_errno(err, ST_IO, "cannot prepare a child process");
    lseek(c->cases_fd, 0, SEEK_SET);
    fcntl(pipe_fd[0], F_SETFD, FD_CLOEXEC);
    c->pid = fork();
    if (c->pid == 0)
        exec_child(program, p, json_fd, c, pipe_fd[1]);
    close(pipe_fd[1]);
    c->progress_fd = pipe_fd[0];
    if (c->pid < 0)
        return err_set_errno(err, ST_IO, "cannot start %.300s", program);
    return ST_OK;
}

/* ---- progress -------------------------------------------------------------------- */

/* Runs of a case come in: the first few find out how often to call it, then one per
 * repetition. A run that lasted is a repetition. */
struct tally {
    const struct kernel_run_params *p;
    int *n_done; /* [plan->n_run] */
    size_t n_all_done;
    char line[256];
    size_t used;
};

static void count_line(struct tally *t)
{
    char name[KERNEL_NAME_MAX], *end;
    const double seconds = strtod(t->line, &end);

    for (size_t i = 0; i < t->p->plan->n_run; i++) {
        if (strcmp(kernel_case_name(&t->p->plan->run[i], name), end + (*end == ' ')))
            continue;
        if ((t->n_done[i] || seconds >= 0.8 * t->p->min_time_s) &&
            t->n_done[i] < t->p->n_repetitions) {
            t->n_done[i]++;
            t->n_all_done++;
        }
    }
}

static void take_bytes(struct tally *t, const char *buf, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (buf[i] == '\n') {
            t->line[t->used] = '\0';
            count_line(t);
            t->used = 0;
        } else if (t->used < sizeof t->line - 1) {
            t->line[t->used++] = buf[i];
        }
    }
}

/* Until the child has closed its end. */
static void follow(struct child *c, struct tally *t)
{
    const double n_runs = (double)t->p->plan->n_run * t->p->n_repetitions;
    struct progress progress;
    char buf[4096], detail[64];
    ssize_t n = 1;

    progress_begin(&progress, "kernels");
    while (n != 0) {
        struct pollfd ready = {c->progress_fd, POLLIN, 0};

        if (interrupted() && !c->is_stopped) {
            kill(c->pid, SIGTERM);
            c->is_stopped = true;
        }
        if (poll(&ready, 1, 200) > 0) {
            n = read(c->progress_fd, buf, sizeof buf);
            if (n > 0)
                take_bytes(t, buf, (size_t)n);
            else if (n < 0 && errno != EINTR)
                break;
        }
        snprintf(detail, sizeof detail, "%zu row%s, %d repetition%s", t->p->plan->n_run,
                 t->p->plan->n_run == 1 ? "" : "s", t->p->n_repetitions,
                 t->p->n_repetitions == 1 ? "" : "s");
        progress_update(&progress, (double)t->n_all_done / n_runs, detail);
    }
    progress_end(&progress);
}

/* ---- its end
 * -------------------------------------------------------------------------- */

/* The last line of stderr that is not a warning. */
static void last_words(int fd, char *to, size_t cap)
{
    char text[4096];
    const off_t end = lseek(fd, 0, SEEK_END);
    const off_t from = end > (off_t)sizeof text - 1 ? end - (off_t)sizeof text + 1 : 0;
    const ssize_t n = pread(fd, text, sizeof text - 1, from);

    snprintf(to, cap, "no reason given");
    text[n > 0 ? n : 0] = '\0';
    for (char *save, *line = strtok_r(text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, "***WARNING", 10) != 0)
            snprintf(to, cap, "%s", line);
}

static enum status judge_end(const struct child *c, int rc, struct err *err)
{
    char words[300];

    if (interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (WIFEXITED(rc) && WEXITSTATUS(rc) <= 1) /* 1: a row failed and is named */
        return ST_OK;
    last_words(c->errors_fd, words, sizeof words);
    if (WIFSIGNALED(rc))
        return err_set(err, ST_IO, "bench_kernels was ended by signal %d (%s): %s",
                       WTERMSIG(rc), strsignal(WTERMSIG(rc)), words);
    return err_set(err, ST_IO, "bench_kernels failed: %s", words);
}

enum status kernel_run(const struct kernel_run_params *p, int json_fd, struct err *err)
{
    struct child c = {-1, -1, -1, -1, false};
    struct tally t = {.p = p, .n_done = calloc(p->plan->n_run, sizeof(int))};
    enum status st = t.n_done ? start(&c, p, json_fd, err)
                              : err_set(err, ST_NO_MEMORY, "no memory for progress");
    int rc = 0;

    if (st == ST_OK) {
        follow(&c, &t);
        while (waitpid(c.pid, &rc, 0) < 0 && errno == EINTR)
            ;
        st = judge_end(&c, rc, err);
    }
    if (c.progress_fd >= 0)
        close(c.progress_fd);
    if (c.cases_fd >= 0)
        close(c.cases_fd);
    if (c.errors_fd >= 0)
        close(c.errors_fd);
    free(t.n_done);
    return st;
}
